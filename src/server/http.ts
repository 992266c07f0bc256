/** HTTP: reads requests within their bounds, routes them, and turns answers and errors into responses. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { AccessError, InvalidInputError, OverloadedError, TidingsError, TooLargeError } from "../domain/errors.js";
import { later } from "../platform/timers.js";
import type { Access, Caller } from "./access.js";
import { type Addresses, networkOf } from "./addresses.js";
import { Budget, type Hold } from "./budget.js";
import type { Dispatcher, RpcResponse } from "./dispatcher.js";
import { answerPreflight, isPreflight, showTo } from "./elsewhere.js";
import type { FiguresPage } from "./figures.js";
import { type Gate, pathOf } from "./gate.js";
import { readEvents } from "./ingest/forms.js";
import type { Hooks } from "./ingest/hooks.js";
import type { Ingest } from "./ingest/ingest.js";
import type { ServerLimits } from "./limits.js";
import type { Log, OnDefect } from "./log.js";
import { METRICS_TYPE, type Metrics } from "./metrics.js";
import { openRpc } from "./openrpc.js";
import type { RateLimit } from "./rate.js";
import type { Requests } from "./requests.js";
import type { Streams } from "./streams.js";
import type { WebApp } from "./web_app.js";
import { httpStatusOf, publicReport, RPC, rpcErrorOf } from "./wire.js";

export interface HttpParts {
  readonly gate: Gate;
  readonly addresses: Addresses;
  readonly access: Access;
  readonly dispatcher: Dispatcher;
  readonly ingest: Ingest;
  readonly streams: Streams;
  readonly hooks: Hooks;
  readonly requests: Requests;
  readonly metrics: Metrics;
  readonly figures: FiguresPage;
  readonly web: WebApp;
  readonly log: Log;
  readonly limits: ServerLimits;
  /** Tries without a good token, by address. */
  readonly refusals: RateLimit;
  readonly version: string;
  /** Whether new work is taken. */
  ready(): boolean;
  readonly onDefect: OnDefect;
}

/** A stream stays open for as long as its client likes. */
type Route = (request: IncomingMessage, response: ServerResponse) => Promise<unknown> | unknown;

/** How long, and for how many pieces, the rest of a body that nobody wants is let run out. */
const LINGER_MS = 2_000;
const LINGER_PIECES = 4_096;
const RPC_PATH = "/rpc";
/** Whatever comes after it is the name of a hook. */
const HOOKS = "/v1/hooks/";
/** Bodies that nobody has vouched for yet share what one token has. */
const HOOKS_HOLD = "hooks";
/** What is answered to the last: how it stands. */
const TO_THE_LAST: ReadonlySet<string> = new Set(["/healthz", "/readyz", "/metrics"]);
/** How long somebody waits whose token has too much under way. */
const HOLD_RETRY_MS = 1_000;

export class Http {
  readonly #parts: HttpParts;
  readonly #budget: Budget;
  readonly #routes: Readonly<Record<string, Readonly<Record<string, Route>>>>;
  readonly #hookRoute: Readonly<Record<string, Route>>;
  readonly #webRoute: Readonly<Record<string, Route>>;
  /** Of the calls that are not answered yet. */
  readonly #underWay = new Set<AbortController>();
  #ending = false;
  #shut = false;

  constructor(parts: HttpParts) {
    this.#parts = parts;
    this.#budget = new Budget(parts.limits.tokenBytes);
    const health: Route = (_request, response) => json(response, 200, { status: "ok", version: parts.version });
    const ready: Route = (_request, response) =>
      parts.ready() ? json(response, 200, { status: "ready" }) : json(response, 503, { status: "closing" });
    const webSocket: Route = (_request, response) => {
      response.setHeader("upgrade", "websocket");
      json(response, 426, { error: { code: "invalid_input", message: "/ws is a WebSocket; ask for the upgrade" } });
    };
    const { streams } = parts;
    const described: Route = (_request, response) => json(response, 200, openRpc(parts.version));
    this.#routes = {
      "/healthz": { GET: health, HEAD: health },
      "/readyz": { GET: ready, HEAD: ready },
      "/metrics": { GET: (request, response) => this.#figures(request, response) },
      "/v1/events": { POST: (request, response) => this.#events(request, response) },
      "/ws": { GET: webSocket },
      [RPC_PATH]: { POST: (request, response) => this.#rpc(request, response) },
      "/rpc/stream": {
        GET: (request, response) =>
          this.#stream(request, response, (caller) => streams.listen(caller, request, response)),
        POST: (request, response) =>
          this.#stream(request, response, (caller) => streams.converse(caller, request, response)),
      },
      "/sse": {
        GET: (request, response) =>
          this.#stream(request, response, (caller) => streams.serverSentEvents(caller, request, response)),
      },
      "/openrpc.json": { GET: described, HEAD: described },
    };
    const web: Route = (request, response) => parts.web.answer(pathOf(request), request, response);
    this.#webRoute = { GET: web, HEAD: web };
    this.#hookRoute = { POST: (request, response) => this.#hook(request, response) };
  }

  async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = pathOf(request);
    const hook = path.startsWith(HOOKS);
    const web = this.#parts.web.has(path);
    const route = hook
      ? this.#hookRoute
      : web
        ? this.#webRoute
        : Object.hasOwn(this.#routes, path)
          ? this.#routes[path]
          : undefined;
    const name = hook ? HOOKS : web ? "web" : route === undefined ? "other" : path;
    this.#parts.requests.begin(request, response, name, path);
    try {
      this.#parts.gate.check(request);
      const { origin } = request.headers;
      // Neither hooks nor the files of our own pages are for those of others.
      const shown = origin !== undefined && !hook && !web;
      if (shown) showTo(origin, response);
      if (this.#shut && !TO_THE_LAST.has(path)) throw new TidingsError("closed", "the server is going away");
      if (route === undefined) {
        json(response, 404, { error: { code: "not_found", message: `there is nothing at ${path.slice(0, 100)}` } });
        return;
      }
      if (shown && isPreflight(request)) {
        answerPreflight(request, response, Object.keys(route));
        return;
      }
      const { method = "GET" } = request;
      const run = Object.hasOwn(route, method) ? route[method] : undefined;
      if (run === undefined) {
        response.setHeader("allow", Object.keys(route).join(", "));
        json(response, 405, { error: { code: "invalid_input", message: `${path} does not take ${method}` } });
        return;
      }
      if ((await run(request, response)) === "stream") return;
      // Whoever stops reading the answer is not waited for without end.
      if (response.writableLength > 0) response.setTimeout(this.#parts.limits.requestMs);
    } catch (error) {
      this.#fail(request, response, error, (report) => (path === RPC_PATH ? unreadCall(error) : { error: report }));
    }
  }

  async #stream(
    request: IncomingMessage,
    response: ServerResponse,
    open: (caller: Caller) => Promise<void> | void,
  ): Promise<"stream"> {
    const caller = await this.callerOf(request, bearerOf(request));
    if (!response.destroyed) await open(caller);
    return "stream";
  }

  async #events(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const caller = await this.callerOf(request, bearerOf(request));
    caller.mustHave("ingest");
    const hold = this.#budget.hold(caller.token_id ?? "", response);
    const sent = await this.#body(request, hold)
      .then((body) => readEvents(request.headersDistinct, body, this.#parts.limits))
      .catch((error: unknown) => this.#unread(caller, error));
    json(response, 202, await this.#parts.ingest.take(caller, sent));
    hold.take(response.writableLength);
  }

  /** Of all users: for admin, or a token that opens nothing else. */
  async #figures(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { figures } = this.#parts;
    const token = bearerOf(request);
    if (!figures.opens(token)) (await this.callerOf(request, token)).mustHave("admin");
    const text = await figures.text();
    response.writeHead(200, {
      "content-type": METRICS_TYPE,
      "content-length": Buffer.byteLength(text),
      "cache-control": "no-store",
    });
    response.end(text);
  }

  async #hook(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const name = pathOf(request).slice(HOOKS.length);
    const { addresses, hooks, metrics, log, requests } = this.#parts;
    addresses.admit(request.socket);
    const known = hooks.knows(name);
    const body = await this.#body(request, this.#budget.hold(HOOKS_HOLD, response));
    try {
      const answer = await hooks.take(name, request.headers, body);
      if (known) metrics.hooks.add({ hook: name, outcome: answer.outcome });
      json(response, answer.outcome === "duplicate" ? 200 : 202, answer);
    } catch (error) {
      const { code, field, reason } = publicReport(error);
      if (known) metrics.hooks.add({ hook: name, outcome: reason === "replayed" ? reason : code });
      const refused = this.#slowed(request, error);
      // Not the reason: of a body that is no JSON it shows a piece.
      const fields = { request_id: requests.idOf(request), code, field: field ?? null };
      if (refused !== error) throw refused;
      if (known) log.say("warn", `a request to the hook ${name} was refused: ${code}`, { ...fields, hook: name });
      else log.say("info", `a request to no hook was refused: ${code}`, fields);
      throw refused;
    }
  }

  async #rpc(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let answer: RpcResponse | RpcResponse[] | undefined;
    let hold: Hold;
    try {
      const { dispatcher, limits, requests } = this.#parts;
      const caller = await this.callerOf(request, bearerOf(request));
      hold = this.#budget.hold(caller.token_id ?? "", response);
      const body = await this.#body(request, hold).catch((error: unknown) => this.#unread(caller, error));
      const gone = this.#goneWith(response);
      const request_id = requests.idOf(request);
      answer = await dispatcher.answer(body, { caller, bytesMax: limits.answerBytes, gone, session: null, request_id });
    } catch (error) {
      this.#fail(request, response, error, () => unreadCall(error));
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

  /** What is asked for from now on is refused; what was asked for before is answered. */
  shut(): void {
    this.#shut = true;
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
    const { access, addresses, requests } = this.#parts;
    addresses.admit(request.socket);
    try {
      const caller = await access.callerOf(token);
      requests.note(request, { user_id: caller.user_id, token_id: caller.token_id });
      return caller;
    } catch (error) {
      throw this.#slowed(request, error);
    }
  }

  /** The error; or that there were too many like it of this address. */
  #slowed(request: IncomingMessage, error: unknown): unknown {
    if (!(error instanceof AccessError)) return error;
    const waitMs = this.#parts.refusals.take(networkOf(request.socket.remoteAddress ?? ""), 1);
    return waitMs > 0 ? new OverloadedError("too many tries without a good token", waitMs) : error;
  }

  /** What cannot be read costs of the rate, too: throws that it was too much, or what is wrong with it. */
  #unread(caller: Caller, error: unknown): never {
    const isSent = error instanceof InvalidInputError || error instanceof TooLargeError;
    const waitMs = isSent ? this.#parts.dispatcher.charge(caller, 1) : 0;
    throw waitMs > 0 ? new OverloadedError("more than this token may send; slow down", waitMs) : error;
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
    const { onDefect, requests } = this.#parts;
    if (!(error instanceof TidingsError)) onDefect(error, { request_id: requests.idOf(request) });
    if (response.headersSent || response.destroyed) {
      response.destroy();
      return;
    }
    const report = publicReport(error);
    if (report.code === "unauthorized") response.setHeader("www-authenticate", "Bearer");
    if (report.retry_after_ms !== undefined) retryAfter(response, report.retry_after_ms);
    if (report.code === "closed" || this.#parts.addresses.isExcess(request.socket))
      response.setHeader("connection", "close");
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

/** What is refused before anybody has seen which call it is. */
function unreadCall(error: unknown): RpcResponse {
  return { jsonrpc: "2.0", id: null, error: rpcErrorOf(error) };
}

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
