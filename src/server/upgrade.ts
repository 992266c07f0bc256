/** From an HTTP request to a WebSocket: who asks is known before anything is upgraded. */
import { type IncomingMessage, type Server, STATUS_CODES } from "node:http";
import type { Duplex } from "node:stream";
import { type Server as Sockets, WebSocketServer } from "ws";
import { InvalidInputError, TidingsError } from "../domain/errors.js";
import { Connection, type ConnectionParts } from "./connection.js";
import { pathOf } from "./gate.js";
import { bearerOf, type Http, type HttpParts } from "./http.js";
import type { Hub } from "./hub.js";
import { type Admission, askedOf } from "./stream_request.js";
import { INBOX_VIEW } from "./view.js";
import { ClientSocket, WebSocketTransport } from "./web_socket.js";
import { httpStatusOf, publicReport } from "./wire.js";

const PATH = "/ws";
const PROTOCOL = "tidings.v1";
/** Browsers cannot set a header on a WebSocket: they offer the token as a subprotocol beside ours. */
const BEARER_PREFIX = "bearer.";

export class Upgrade {
  readonly #parts: HttpParts;
  readonly #http: Http;
  readonly #hub: Hub;
  readonly #connections: ConnectionParts;
  readonly #admission: Admission;
  readonly #sockets: Sockets<typeof ClientSocket>;

  constructor(parts: HttpParts, http: Http, hub: Hub, connections: ConnectionParts, admission: Admission) {
    this.#parts = parts;
    this.#http = http;
    this.#hub = hub;
    this.#connections = connections;
    this.#admission = admission;
    this.#sockets = new WebSocketServer({
      noServer: true,
      WebSocket: ClientSocket,
      clientTracking: false,
      perMessageDeflate: false,
      maxPayload: parts.limits.messageBytes,
      maxFragments: parts.limits.messageFragments,
      maxBufferedChunks: parts.limits.messagePieces,
      // A connection answers by itself, and counts what waits.
      autoPong: false,
      handleProtocols: (offered) => (offered.has(PROTOCOL) ? PROTOCOL : false),
    });
    this.#sockets.on("headers", (headers, request) => {
      headers.push(`x-request-id: ${parts.requests.idOf(request)}`);
    });
    // What is no handshake is refused in the same form as all else.
    this.#sockets.on("wsClientError", ({ message }, socket, request) =>
      this.#refuse(request, socket, new InvalidInputError("", message), 400, ["sec-websocket-version: 13"]),
    );
  }

  async handle(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    // A client that goes away while it is being looked at is nobody's failure.
    socket.on("error", destroyIt);
    const { gate, limits, requests } = this.#parts;
    const path = pathOf(request);
    requests.beginUpgrade(request, path === PATH ? PATH : "other", path);
    try {
      gate.check(request);
      if (path !== PATH) throw new TidingsError("not_found", "the WebSocket is at /ws");
      if (request.method !== "GET") {
        const error = new InvalidInputError("", `${PATH} does not take ${request.method}`);
        this.#refuse(request, socket, error, 405, ["allow: GET"]);
        return;
      }
      const offered = protocolsOf(request);
      if (offered.length > 0 && !offered.includes(PROTOCOL))
        throw new InvalidInputError("sec-websocket-protocol", `must offer ${PROTOCOL}`);
      const offeredToken = offered.find((name) => name.startsWith(BEARER_PREFIX))?.slice(BEARER_PREFIX.length);
      const caller = await this.#http.callerOf(request, bearerOf(request) ?? offeredToken);
      const { view, cursor } = askedOf(request, INBOX_VIEW);
      this.#admission.take(caller);
      if (socket.destroyed) {
        requests.upgraded(request, null);
        return;
      }
      this.#sockets.handleUpgrade(request, socket, head, (webSocket) => {
        requests.upgraded(request, 101);
        // From now on the WebSocket looks after it.
        socket.off("error", destroyIt);
        const transport = new WebSocketTransport(webSocket, limits, this.#connections.clock);
        const connection = new Connection(transport, caller, view, this.#connections, requests.idOf(request));
        void this.#hub.add(connection, cursor);
      });
    } catch (error) {
      if (!(error instanceof TidingsError)) this.#parts.onDefect(error, { request_id: requests.idOf(request) });
      this.#refuse(request, socket, error);
    }
  }

  #refuse(
    request: IncomingMessage,
    socket: Duplex,
    error: unknown,
    status = httpStatusOf(error),
    headers: readonly string[] = [],
  ): void {
    const { requests } = this.#parts;
    const report = publicReport(error);
    const body = JSON.stringify({ error: report });
    const lines = [
      `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
      "connection: close",
      "content-type: application/json; charset=utf-8",
      `content-length: ${Buffer.byteLength(body)}`,
      `x-request-id: ${requests.idOf(request)}`,
      ...(status === 401 ? ["www-authenticate: Bearer"] : []),
      ...(report.retry_after_ms === undefined ? [] : [`retry-after: ${Math.ceil(report.retry_after_ms / 1_000)}`]),
      ...headers,
    ];
    requests.upgraded(request, socket.writable ? status : null);
    if (!socket.writable) {
      socket.destroy();
      return;
    }
    socket.end(`${lines.join("\r\n")}\r\n\r\n${body}`, () => socket.destroy());
  }
}

function destroyIt(this: Duplex): void {
  this.destroy();
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
