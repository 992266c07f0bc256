/** Short forms of what is too long for a line. */
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
const CHARS = 24;

/** An id for people: its end is where ids differ; a name that somebody chose is left as it is. */
export function shortId(id: string): string {
  if (UUID.test(id)) return `…${id.slice(-6)}`;
  return id.length > CHARS ? `${id.slice(0, CHARS)}…` : id;
}

/** `1 row`, `2 rows`. */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${count.toLocaleString("en")} ${count === 1 ? one : many}`;
}

/** Who says it, and what it is: what came by a call of its own has no producer worth a name. */
export function namesOf({ source, kind }: { readonly source: string; readonly kind: string }): {
  readonly name: string;
  readonly kind: string;
} {
  if (source !== "direct") return { name: source, kind };
  return isPlainNotice({ source, kind }) ? { name: "notice", kind: "" } : { name: kind, kind: "" };
}

/** It came by a call of its own and has no kind: no name says more of it than its words do. */
export function isPlainNotice({ source, kind }: { readonly source: string; readonly kind: string }): boolean {
  return source === "direct" && kind === "direct.notify";
}
