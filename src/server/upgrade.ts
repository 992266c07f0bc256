/** From an HTTP request to a WebSocket: who asks is known before anything is upgraded. */
import { type IncomingMessage, STATUS_CODES } from "node:http";
import type { Duplex } from "node:stream";
import { WebSocketServer } from "ws";
import { InvalidInputError, NotFoundError, OverloadedError, TidingsError } from "../domain/errors.js";
import type { Clock } from "../platform/clock.js";
import { Connection } from "./connection.js";
import { bearerOf, type Http, type HttpParts } from "./http.js";
import type { Hub } from "./hub.js";
import { httpStatusOf, publicReport } from "./wire.js";

const PROTOCOL = "tidings.v1";
/** Browsers cannot set a header on a WebSocket: they offer the token as a subprotocol beside ours. */
const BEARER_PREFIX = "bearer.";

export class Upgrade {
  readonly #parts: HttpParts;
  readonly #http: Http;
  readonly #hub: Hub;
  readonly #clock: Clock;
  readonly #sockets: WebSocketServer;

  constructor(parts: HttpParts, http: Http, hub: Hub, clock: Clock) {
    this.#parts = parts;
    this.#http = http;
    this.#hub = hub;
    this.#clock = clock;
    this.#sockets = new WebSocketServer({
      noServer: true,
      clientTracking: false,
      perMessageDeflate: false,
      maxPayload: parts.limits.messageBytes,
      maxFragments: parts.limits.messageFragments,
      handleProtocols: (offered) => (offered.has(PROTOCOL) ? PROTOCOL : false),
    });
  }

  async handle(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    // A client that goes away while it is being looked at is nobody's failure.
    socket.on("error", () => socket.destroy());
    try {
      const { gate, limits, dispatcher } = this.#parts;
      gate.check(request.headers);
      if ((request.url ?? "").split("?", 1)[0] !== "/ws") throw new NotFoundError("WebSocket at", request.url ?? "");
      const offered = protocolsOf(request);
      if (offered.length > 0 && !offered.includes(PROTOCOL))
        throw new InvalidInputError("sec-websocket-protocol", `must offer ${PROTOCOL}`);
      const offeredToken = offered.find((name) => name.startsWith(BEARER_PREFIX))?.slice(BEARER_PREFIX.length);
      const caller = await this.#http.callerOf(request, bearerOf(request) ?? offeredToken);
      caller.mustHave("read");
      if (!this.#parts.ready() || this.#hub.size >= limits.sockets)
        throw new OverloadedError("no more connections are taken now", 1_000);
      if (socket.destroyed) return;
      this.#sockets.handleUpgrade(request, socket, head, (webSocket) => {
        void this.#hub.add(new Connection(webSocket, caller, dispatcher, limits, this.#clock));
      });
    } catch (error) {
      if (!(error instanceof TidingsError)) this.#parts.onDefect(error);
      refuse(socket, error);
    }
  }
}

function protocolsOf(request: IncomingMessage): string[] {
  const header = request.headers["sec-websocket-protocol"] ?? "";
  return header
    .split(",")
    .map((name) => name.trim())
    .filter((name) => name !== "");
}

function refuse(socket: Duplex, error: unknown): void {
  const status = httpStatusOf(error);
  const report = publicReport(error);
  const body = JSON.stringify({ error: report });
  const lines = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    "connection: close",
    "content-type: application/json; charset=utf-8",
    `content-length: ${Buffer.byteLength(body)}`,
    ...(status === 401 ? ["www-authenticate: Bearer"] : []),
    ...(report.retry_after_ms === undefined ? [] : [`retry-after: ${Math.ceil(report.retry_after_ms / 1_000)}`]),
  ];
  if (!socket.writable) {
    socket.destroy();
    return;
  }
  socket.end(`${lines.join("\r\n")}\r\n\r\n${body}`, () => socket.destroy());
}
