/** The token that the address brings in its fragment, which no server and no log ever sees; kept for this browser. */
const KEY = "tidings.token";

/** Taken out of the address, so that it is not in what people copy from there. */
export function takeToken(): string | null {
  const brought = new URLSearchParams(location.hash.replace(/^#/, "")).get("token");
  if (brought === null) return null;
  keepToken(brought);
  history.replaceState(null, "", "#/");
  return brought;
}

export function readToken(): string | null {
  return takeToken() ?? localStorage.getItem(KEY);
}

export function keepToken(token: string): void {
  localStorage.setItem(KEY, token);
}

export function forgetToken(): void {
  localStorage.removeItem(KEY);
}
