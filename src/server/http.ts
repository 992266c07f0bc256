/** HTTP: reads requests within their bounds, routes them, and turns answers and errors into responses. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { AccessError, InvalidInputError, OverloadedError, TidingsError, TooLargeError } from "../domain/errors.js";
import { later } from "../platform/timers.js";
import type { Access, Caller } from "./access.js";
import { type Dispatcher, type RpcResponse, refusal } from "./dispatcher.js";
import type { Gate } from "./gate.js";
import type { Ingest } from "./ingest.js";
import type { ServerLimits } from "./limits.js";
import { page } from "./page.js";
import type { RateLimit } from "./rate.js";
import { httpStatusOf, publicReport, RPC, rpcErrorOf } from "./wire.js";

export interface HttpParts {
  readonly gate: Gate;
  readonly access: Access;
  readonly dispatcher: Dispatcher;
  readonly ingest: Ingest;
  readonly limits: ServerLimits;
  /** Tries without a good token, by address. */
  readonly refusals: RateLimit;
  readonly version: string;
  /** Whether new work is taken. */
  ready(): boolean;
  onDefect(error: unknown): void;
}

type Route = (request: IncomingMessage, response: ServerResponse) => Promise<void> | void;

/** How long the rest of a body that nobody wants is let run out, so that its sender sees the answer. */
const LINGER_MS = 2_000;

export class Http {
  readonly #parts: HttpParts;
  readonly #routes: Readonly<Record<string, Readonly<Record<string, Route>>>>;

  constructor(parts: HttpParts) {
    this.#parts = parts;
    const health: Route = (_request, response) => json(response, 200, { status: "ok", version: parts.version });
    const ready: Route = (_request, response) =>
      parts.ready() ? json(response, 200, { status: "ready" }) : json(response, 503, { status: "closing" });
    const front: Route = (_request, response) => page(response, parts.version);
    this.#routes = {
      "/": { GET: front, HEAD: front },
      "/healthz": { GET: health, HEAD: health },
      "/readyz": { GET: ready, HEAD: ready },
      "/v1/events": { POST: (request, response) => this.#events(request, response) },
      "/rpc": { POST: (request, response) => this.#rpc(request, response) },
    };
  }

  async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      this.#parts.gate.check(request.headers);
      const path = (request.url ?? "/").split("?", 1)[0] ?? "/";
      const route = Object.hasOwn(this.#routes, path) ? this.#routes[path] : undefined;
      if (route === undefined) {
        json(response, 404, { error: { code: "not_found", message: `there is nothing at ${path.slice(0, 100)}` } });
        return;
      }
      const { method = "GET" } = request;
      const run = Object.hasOwn(route, method) ? route[method] : undefined;
      if (run === undefined) {
        response.setHeader("allow", Object.keys(route).join(", "));
        json(response, 405, { error: { code: "invalid_input", message: `${path} does not take ${method}` } });
        return;
      }
      await run(request, response);
    } catch (error) {
      this.#fail(request, response, error, (report) => ({ error: report }));
    }
  }

  async #events(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const caller = await this.callerOf(request, bearerOf(request));
    caller.mustHave("ingest");
    const answer = await this.#parts.ingest.take(caller, await this.#body(request));
    json(response, 202, answer);
  }

  async #rpc(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let answer: RpcResponse | RpcResponse[] | undefined;
    try {
      const caller = await this.callerOf(request, bearerOf(request));
      const message = await this.#body(request).catch((error: unknown) => {
        if (error instanceof InvalidInputError) return refusal(null, RPC.parseError, error.field, error.reason);
        throw error;
      });
      answer = isRefusal(message) ? message : await this.#parts.dispatcher.answer(caller, message);
    } catch (error) {
      this.#fail(request, response, error, () => ({ jsonrpc: "2.0", id: null, error: rpcErrorOf(error) }));
      return;
    }
    if (answer === undefined) {
      response.writeHead(204).end();
      return;
    }
    const failure = Array.isArray(answer) || "result" in answer ? undefined : answer.error;
    if (failure?.data.retry_after_ms !== undefined) retryAfter(response, failure.data.retry_after_ms);
    json(response, failure === undefined ? 200 : (RPC_STATUS[failure.code] ?? 200), answer);
  }

  /** Who asks. Whoever tries without a good token too often has to wait, whatever they try next. */
  async callerOf(request: IncomingMessage, token: string | undefined): Promise<Caller> {
    const address = request.socket.remoteAddress ?? "";
    const { refusals, access } = this.#parts;
    const waitMs = refusals.waitFor(address, 1);
    if (waitMs > 0) throw new OverloadedError("too many tries without a good token", waitMs);
    try {
      return await access.callerOf(token);
    } catch (error) {
      if (error instanceof AccessError) refusals.take(address, 1);
      throw error;
    }
  }

  async #body(request: IncomingMessage): Promise<unknown> {
    const { bodyBytes } = this.#parts.limits;
    const tooLarge = () => new TooLargeError(`the body is larger than ${bodyBytes} bytes; send less at once`);
    if (Number(request.headers["content-length"] ?? 0) > bodyBytes) throw tooLarge();
    const chunks: Buffer[] = [];
    let bytes = 0;
    // Not `for await`: leaving it early would close the connection before the answer.
    await new Promise<void>((resolve, reject) => {
      request.on("data", (chunk: Buffer) => {
        bytes += chunk.length;
        if (bytes > bodyBytes) reject(tooLarge());
        else chunks.push(chunk);
      });
      request.on("end", resolve);
      request.on("error", reject);
      request.on("aborted", () => reject(new InvalidInputError("", "the request was not sent to its end")));
    });
    return parseJson(Buffer.concat(chunks));
  }

  #fail(
    request: IncomingMessage,
    response: ServerResponse,
    error: unknown,
    body: (report: ReturnType<typeof publicReport>) => unknown,
  ): void {
    if (!(error instanceof TidingsError)) this.#parts.onDefect(error);
    if (response.headersSent || response.destroyed) {
      response.destroy();
      return;
    }
    const report = publicReport(error);
    if (report.code === "unauthorized") response.setHeader("www-authenticate", "Bearer");
    if (report.retry_after_ms !== undefined) retryAfter(response, report.retry_after_ms);
    if (!request.complete) {
      // What is still coming of the body is not wanted: the connection ends with this answer.
      response.setHeader("connection", "close");
      request.resume();
      const cancel = later(LINGER_MS, () => request.destroy());
      request.on("close", cancel);
    }
    json(response, httpStatusOf(error), body(report));
  }
}

/** A call that fails is answered with 200, except where HTTP itself has a word that clients and proxies act on. */
const RPC_STATUS: Readonly<Record<number, number>> = {
  [RPC.parseError]: 400,
  [RPC.invalidRequest]: 400,
  [RPC.unauthorized]: 401,
  [RPC.forbidden]: 403,
  [RPC.overloaded]: 429,
};

function isRefusal(message: unknown): message is RpcResponse {
  return typeof message === "object" && message !== null && "error" in message && "jsonrpc" in message;
}

function retryAfter(response: ServerResponse, ms: number): void {
  response.setHeader("retry-after", String(Math.max(1, Math.ceil(ms / 1_000))));
}

export function json(response: ServerResponse, status: number, body: unknown): void {
  const text = JSON.stringify(body);
  response.writeHead(status, {
    "content-type": "application/json; charset=utf-8",
    "content-length": Buffer.byteLength(text),
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
  });
  response.end(text);
}

const BEARER = /^Bearer +([!-~]+) *$/i;

export function bearerOf(request: IncomingMessage): string | undefined {
  return BEARER.exec(request.headers.authorization ?? "")?.[1];
}

const utf8 = new TextDecoder("utf-8", { fatal: true });

/** Text that is no UTF-8, or no JSON, is told apart. */
export function parseJson(bytes: Uint8Array): unknown {
  let text: string;
  try {
    text = utf8.decode(bytes);
  } catch {
    throw new InvalidInputError("", "is not UTF-8");
  }
  try {
    return JSON.parse(text);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new InvalidInputError("", `is not JSON: ${why.slice(0, 200)}`);
  }
}
