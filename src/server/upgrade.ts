/** From an HTTP request to a WebSocket: who asks is known before anything is upgraded. */
import { type IncomingMessage, type Server, STATUS_CODES } from "node:http";
import type { Duplex } from "node:stream";
import { WebSocketServer } from "ws";
import { InvalidInputError, OverloadedError, TidingsError } from "../domain/errors.js";
import type { Clock } from "../platform/clock.js";
import { Connection } from "./connection.js";
import { pathOf } from "./gate.js";
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
      maxBufferedChunks: parts.limits.messagePieces,
      // A connection answers by itself, and counts what waits.
      autoPong: false,
      handleProtocols: (offered) => (offered.has(PROTOCOL) ? PROTOCOL : false),
    });
  }

  async handle(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    // A client that goes away while it is being looked at is nobody's failure.
    socket.on("error", () => socket.destroy());
    try {
      const { gate, limits, dispatcher, onDefect } = this.#parts;
      gate.check(request);
      if (pathOf(request) !== "/ws") throw new TidingsError("not_found", "the WebSocket is at /ws");
      const offered = protocolsOf(request);
      if (offered.length > 0 && !offered.includes(PROTOCOL))
        throw new InvalidInputError("sec-websocket-protocol", `must offer ${PROTOCOL}`);
      const offeredToken = offered.find((name) => name.startsWith(BEARER_PREFIX))?.slice(BEARER_PREFIX.length);
      const caller = await this.#http.callerOf(request, bearerOf(request) ?? offeredToken);
      caller.mustHave("read");
      if (!this.#parts.ready() || this.#hub.size >= limits.sockets)
        throw new OverloadedError("no more connections are taken now", 1_000);
      if (this.#hub.sizeOf(caller.user_id) >= limits.socketsPerUser)
        throw new OverloadedError(`this user has ${limits.socketsPerUser} connections already`, 1_000);
      if (socket.destroyed) return;
      this.#sockets.handleUpgrade(request, socket, head, (webSocket) => {
        const hub = this.#hub;
        void hub.add(new Connection(webSocket, caller, dispatcher, limits, this.#clock, hub, onDefect));
      });
    } catch (error) {
      if (!(error instanceof TidingsError)) this.#parts.onDefect(error);
      refuse(socket, error);
    }
  }
}

export function wantsWebSocket(request: IncomingMessage): boolean {
  return request.headers.upgrade?.toLowerCase() === "websocket";
}

const ABOUT_UPGRADE: ReadonlySet<string> = new Set(["connection", "upgrade", "http2-settings"]);

/**
 * What asks for another protocol, as clients that know HTTP/2 do, is taken as if it had asked for none. Node has given
 * the connection away by then: the head of the request is put back without those lines, and read again.
 */
export function readWithoutUpgrade(server: Server, request: IncomingMessage, socket: Duplex, head: Buffer): void {
  const { method, url, httpVersion, rawHeaders } = request;
  const lines = [`${method} ${url} HTTP/${httpVersion}`];
  for (let at = 0; at < rawHeaders.length; at += 2)
    if (!ABOUT_UPGRADE.has(rawHeaders[at]?.toLowerCase() ?? "")) lines.push(`${rawHeaders[at]}: ${rawHeaders[at + 1]}`);
  socket.unshift(Buffer.concat([Buffer.from(`${lines.join("\r\n")}\r\n\r\n`, "latin1"), head]));
  server.emit("connection", socket);
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
