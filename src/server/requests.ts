/** Every HTTP request has an id, is counted when it is over, and is told of in the log. */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Clock } from "../platform/clock.js";
import { newNonce } from "../platform/secret.js";
import type { Log, LogFields } from "./log.js";
import type { Metrics } from "./metrics.js";

/** What others may call a request: it is shown in the log and in the answer. */
const REQUEST_ID = /^[A-Za-z0-9._:-]{1,128}$/;
const PATH_CHARS = 200;
/** Whoever asked has gone before the answer. */
const GONE = 499;
const METHODS: ReadonlySet<string> = new Set(["GET", "HEAD", "POST"]);

interface Begun {
  readonly id: string;
  /** One of a few, for the figures. */
  readonly route: string;
  /** As it was asked for. */
  readonly path: string;
  readonly from: number;
  fields: LogFields;
}

export class Requests {
  readonly #log: Log;
  readonly #metrics: Metrics;
  readonly #clock: Clock;
  readonly #begun = new WeakMap<IncomingMessage, Begun>();

  constructor(log: Log, metrics: Metrics, clock: Clock) {
    this.#log = log;
    this.#metrics = metrics;
    this.#clock = clock;
  }

  begin(request: IncomingMessage, response: ServerResponse, route: string, path: string): void {
    response.setHeader("x-request-id", this.#begin(request, route, path));
    response.on("close", () => this.#end(request, response.headersSent ? response.statusCode : GONE));
  }

  /** Of what asks for a WebSocket, which has no such response: whoever answers it shows the id, and says `upgraded`. */
  beginUpgrade(request: IncomingMessage, route: string, path: string): void {
    this.#begin(request, route, path);
  }

  /** It is over with this status, of which 101 is the WebSocket; null: whoever asked has gone. */
  upgraded(request: IncomingMessage, status: number | null): void {
    this.#end(request, status ?? GONE);
  }

  #begin(request: IncomingMessage, route: string, path: string): string {
    const id = requestIdOf(request);
    this.#begun.set(request, { id, route, path, from: this.#clock.monotonic(), fields: {} });
    return id;
  }

  #end(request: IncomingMessage, status: number): void {
    const begun = this.#begun.get(request);
    if (begun === undefined) return;
    const { id, route, path, from, fields } = begun;
    const { method = "GET" } = request;
    this.#metrics.requests.add({ route, method: METHODS.has(method) ? method : "other", status: String(status) });
    if (!this.#log.says("debug")) return;
    const ms = Math.round((this.#clock.monotonic() - from) * 1_000) / 1_000;
    this.#log.say("debug", `${method} ${route} ${status}`, {
      request_id: id,
      method,
      path: path.slice(0, PATH_CHARS),
      status,
      ms,
      ...fields,
    });
  }

  /** What became known of a request, for the log. */
  note(request: IncomingMessage, fields: LogFields): void {
    const begun = this.#begun.get(request);
    if (begun !== undefined) begun.fields = { ...begun.fields, ...fields };
  }

  idOf(request: IncomingMessage): string | null {
    return this.#begun.get(request)?.id ?? null;
  }
}

/** The caller's own, if it is one; else one that nobody else has. */
function requestIdOf(request: IncomingMessage): string {
  const given = request.headers["x-request-id"];
  return typeof given === "string" && REQUEST_ID.test(given) ? given : newNonce();
}
