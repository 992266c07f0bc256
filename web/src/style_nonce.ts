/** What the server has given this page to sign its styles with. */
export function styleNonce(): string {
  return document.querySelector<HTMLElement>("[nonce]")?.nonce ?? "";
}
