/** HTTP: reads requests within their bounds, routes them, and turns answers and errors into responses. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { AccessError, InvalidInputError, OverloadedError, TidingsError, TooLargeError } from "../domain/errors.js";
import { later } from "../platform/timers.js";
import type { Access, Caller } from "./access.js";
import { Budget, type Hold } from "./budget.js";
import type { Dispatcher, RpcResponse } from "./dispatcher.js";
import { type Gate, pathOf } from "./gate.js";
import type { Ingest } from "./ingest.js";
import { parseJson } from "./json.js";
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

/** How long, and for how many pieces, the rest of a body that nobody wants is let run out. */
const LINGER_MS = 2_000;
const LINGER_PIECES = 4_096;
/** How long somebody waits whose token has too much under way. */
const HOLD_RETRY_MS = 1_000;

export class Http {
  readonly #parts: HttpParts;
  readonly #budget: Budget;
  readonly #routes: Readonly<Record<string, Readonly<Record<string, Route>>>>;
  /** Of the calls that are not answered yet. */
  readonly #underWay = new Set<AbortController>();
  #ending = false;

  constructor(parts: HttpParts) {
    this.#parts = parts;
    this.#budget = new Budget(parts.limits.tokenBytes);
    const health: Route = (_request, response) => json(response, 200, { status: "ok", version: parts.version });
    const ready: Route = (_request, response) =>
      parts.ready() ? json(response, 200, { status: "ready" }) : json(response, 503, { status: "closing" });
    const front: Route = (_request, response) => page(response, parts.version);
    const webSocket: Route = (_request, response) => {
      response.setHeader("upgrade", "websocket");
      json(response, 426, { error: { code: "invalid_input", message: "/ws is a WebSocket; ask for the upgrade" } });
    };
    this.#routes = {
      "/": { GET: front, HEAD: front },
      "/healthz": { GET: health, HEAD: health },
      "/readyz": { GET: ready, HEAD: ready },
      "/v1/events": { POST: (request, response) => this.#events(request, response) },
      "/ws": { GET: webSocket },
      "/rpc": { POST: (request, response) => this.#rpc(request, response) },
    };
  }

  async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      this.#parts.gate.check(request);
      const path = pathOf(request);
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
      // Whoever stops reading the answer is not waited for without end.
      if (response.writableLength > 0) response.setTimeout(this.#parts.limits.requestMs);
    } catch (error) {
      this.#fail(request, response, error, (report) => ({ error: report }));
    }
  }

  async #events(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const caller = await this.callerOf(request, bearerOf(request));
    caller.mustHave("ingest");
    const hold = this.#budget.hold(caller.token_id ?? "", response);
    const answer = await this.#parts.ingest.take(caller, parseJson(await this.#body(request, hold)));
    json(response, 202, answer);
    hold.take(response.writableLength);
  }

  async #rpc(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let answer: RpcResponse | RpcResponse[] | undefined;
    let hold: Hold;
    try {
      const { dispatcher, limits } = this.#parts;
      const caller = await this.callerOf(request, bearerOf(request));
      hold = this.#budget.hold(caller.token_id ?? "", response);
      const body = await this.#body(request, hold);
      const gone = this.#goneWith(response);
      answer = await dispatcher.answer(body, { caller, bytesMax: limits.answerBytes, gone, session: null });
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
    hold.take(response.writableLength);
  }

  /** Nobody waits any more: calls that do are answered now. */
  end(): void {
    this.#ending = true;
    for (const call of this.#underWay) call.abort();
  }

  #goneWith(response: ServerResponse): AbortSignal {
    const call = new AbortController();
    if (this.#ending || response.destroyed) call.abort();
    this.#underWay.add(call);
    response.on("close", () => {
      this.#underWay.delete(call);
      call.abort();
    });
    return call.signal;
  }

  /**
   * Who asks. Tries without a good token are slowed down by address. A good one never is: behind a proxy, or on one
   * machine, everybody has the same address.
   */
  async callerOf(request: IncomingMessage, token: string | undefined): Promise<Caller> {
    const { refusals, access } = this.#parts;
    try {
      return await access.callerOf(token);
    } catch (error) {
      if (!(error instanceof AccessError)) throw error;
      const waitMs = refusals.take(request.socket.remoteAddress ?? "", 1);
      throw waitMs > 0 ? new OverloadedError("too many tries without a good token", waitMs) : error;
    }
  }

  async #body(request: IncomingMessage, hold: Hold): Promise<Buffer> {
    const { bodyBytes, bodyPieces } = this.#parts.limits;
    const tooLarge = () => new TooLargeError(`the body is larger than ${bodyBytes} bytes; send less at once`);
    const tooMuch = () => new OverloadedError("this token has too much under way; read its answers", HOLD_RETRY_MS);
    if (Number(request.headers["content-length"] ?? 0) > bodyBytes) throw tooLarge();
    const chunks: Buffer[] = [];
    let bytes = 0;
    // Not `for await`: leaving it early would close the connection before the answer.
    await new Promise<void>((resolve, reject) => {
      request.on("data", (chunk: Buffer) => {
        bytes += chunk.length;
        if (hold.isSpent) reject(tooMuch());
        else if (bytes > bodyBytes) reject(tooLarge());
        else if (chunks.length >= bodyPieces)
          reject(new TooLargeError(`the body comes in more than ${bodyPieces} pieces; send larger ones`));
        else {
          chunks.push(chunk);
          hold.take(chunk.length);
        }
      });
      request.on("end", resolve);
      request.on("error", reject);
      request.on("aborted", () => reject(new InvalidInputError("", "the request was not sent to its end")));
    });
    return Buffer.concat(chunks);
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
    if (request.complete) json(response, httpStatusOf(error), body(report));
    else lastJson(request, response, httpStatusOf(error), body(report));
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

function retryAfter(response: ServerResponse, ms: number): void {
  response.setHeader("retry-after", String(Math.max(1, Math.ceil(ms / 1_000))));
}

function json(response: ServerResponse, status: number, body: unknown): void {
  response.end(jsonWritten(response, status, body));
}

/**
 * The connection ends with this answer. What is still coming of the body is not wanted, but is let run out for a
 * while: an end right now would take the answer with it.
 */
function lastJson(request: IncomingMessage, response: ServerResponse, status: number, body: unknown): void {
  response.setHeader("connection", "close");
  response.write(jsonWritten(response, status, body));
  const end = () => {
    cancel();
    response.end();
  };
  const cancel = later(LINGER_MS, end);
  let pieces = 0;
  request.on("data", () => {
    pieces += 1;
    if (pieces === LINGER_PIECES) end();
  });
  request.on("end", end);
  request.on("close", end);
}

/** The head is written; the text is what is left. */
function jsonWritten(response: ServerResponse, status: number, body: unknown): string {
  // With an end of line, for those who read it in a terminal.
  const text = `${JSON.stringify(body)}\n`;
  response.writeHead(status, {
    "content-type": "application/json; charset=utf-8",
    "content-length": Buffer.byteLength(text),
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
  });
  return text;
}

const BEARER = /^Bearer +([!-~]+) *$/i;

export function bearerOf(request: IncomingMessage): string | undefined {
  return BEARER.exec(request.headers.authorization ?? "")?.[1];
}
