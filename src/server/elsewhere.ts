/**
 * What a browser wants to be told before a page from elsewhere may use the server (CORS). Which pages may, the gate has
 * said before: nobody else is told anything. Credentials that a browser adds by itself are not asked for, a page has a token.
 */
import type { IncomingMessage, ServerResponse } from "node:http";

/** Headers that a page may send, beside those of CloudEvents. */
const SENT: ReadonlySet<string> = new Set(["authorization", "content-type", "last-event-id", "x-request-id"]);
const ATTRIBUTE = /^ce-[a-z0-9]+$/;
/** Headers of an answer that it may read. */
const READ = "x-request-id, retry-after";
/** How long a browser need not ask again. */
const ASK_AGAIN_S = "600";

/** The page that has asked may read the answer. */
export function showTo(origin: string, response: ServerResponse): void {
  response.setHeader("access-control-allow-origin", origin);
  response.setHeader("access-control-expose-headers", READ);
  response.setHeader("vary", "origin");
}

/** Whether a browser asks what a page may send, before it sends it. */
export function isPreflight({ method, headers }: IncomingMessage): boolean {
  return method === "OPTIONS" && headers.origin !== undefined && headers["access-control-request-method"] !== undefined;
}

export function answerPreflight(
  { headers }: IncomingMessage,
  response: ServerResponse,
  methods: readonly string[],
): void {
  const wanted = (headers["access-control-request-headers"] ?? "").split(",").map((name) => name.trim().toLowerCase());
  const taken = wanted.filter((name) => SENT.has(name) || ATTRIBUTE.test(name));
  response.writeHead(204, {
    "access-control-allow-methods": methods.join(", "),
    "access-control-allow-headers": [...new Set([...SENT, ...taken])].join(", "),
    "access-control-max-age": ASK_AGAIN_S,
  });
  response.end();
}
