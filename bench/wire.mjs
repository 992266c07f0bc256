/**
 * HTTP and WebSocket from the client's side, on bare sockets: the same for every server that is measured, and with so
 * little work of its own that the server stays the slower one.
 */
import { randomBytes } from "node:crypto";
import { connect } from "node:net";

/** Milliseconds by a clock that all processes of one machine share. */
export function sharedMs() {
  return Number(process.hrtime.bigint()) / 1e6;
}

/** A whole POST, ready to be written. */
export function requestOf({ url, token }, body, path = "/v1/events") {
  const text = Buffer.from(JSON.stringify(body));
  const head = [
    `POST ${path} HTTP/1.1`,
    `host: ${new URL(url).host}`,
    `authorization: Bearer ${token}`,
    "content-type: application/json",
    `content-length: ${text.length}`,
  ];
  return Buffer.concat([Buffer.from(`${head.join("\r\n")}\r\n\r\n`), text]);
}

/** One keep-alive connection with at most one request under way. */
export class HttpConnection {
  #socket;
  /** Of the answer that is under way: its head until that is complete, its status, and how much is to come. */
  #head = Buffer.alloc(0);
  #status;
  #left = 0;
  #resolve;
  #reject;
  /** Why it cannot be used any more. */
  gone;

  static async open(url) {
    return new HttpConnection(await openSocket(url));
  }

  constructor(socket) {
    this.#socket = socket;
    socket.on("data", (chunk) => this.#take(chunk));
    socket.on("close", () => this.#end(new Error("the server closed a connection")));
  }

  /** Answers the status when all of the answer is here. */
  send(request) {
    return new Promise((resolve, reject) => {
      if (this.gone !== undefined) {
        reject(this.gone);
        return;
      }
      this.#resolve = resolve;
      this.#reject = reject;
      this.#socket.write(request);
    });
  }

  close() {
    this.#socket.destroy();
  }

  #take(chunk) {
    if (this.#status === undefined) {
      this.#head = this.#head.length === 0 ? chunk : Buffer.concat([this.#head, chunk]);
      const end = this.#head.indexOf("\r\n\r\n");
      if (end < 0) return;
      const head = this.#head.latin1Slice(0, end);
      const length = /\r\ncontent-length: *([0-9]+)/i.exec(head)?.[1];
      if (length === undefined) {
        this.#end(new Error(`an answer without its length: ${head}`));
        return;
      }
      this.#status = Number(head.slice(9, 12));
      this.#left = Number(length) - (this.#head.length - end - 4);
      this.#head = Buffer.alloc(0);
    } else this.#left -= chunk.length;
    if (this.#left > 0) return;
    const status = this.#status;
    this.#status = undefined;
    this.#resolve(status);
  }

  #end(error) {
    this.gone ??= error;
    this.#reject?.(this.gone);
    this.#socket.destroy();
  }
}

const OPCODE = { text: 1, close: 8, ping: 9 };

/** Opens `GET /ws` and calls `onText` with each message, valid for that call only; `onEnd` with why it ended. */
export async function openWebSocket({ url, token }, onText, onEnd) {
  const socket = await openSocket(url);
  const head = [
    "GET /ws HTTP/1.1",
    `host: ${new URL(url).host}`,
    `authorization: Bearer ${token}`,
    "connection: Upgrade",
    "upgrade: websocket",
    "sec-websocket-version: 13",
    `sec-websocket-key: ${randomBytes(16).toString("base64")}`,
  ];
  socket.write(`${head.join("\r\n")}\r\n\r\n`);
  let rest = await upgraded(socket);
  let reason = "the server closed a WebSocket";
  const take = (chunk) => {
    rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    for (;;) {
      const frame = frameAt(rest);
      if (frame === undefined) break;
      if (frame.opcode === OPCODE.text) onText(frame.payload);
      // A pong, masked with zeros.
      else if (frame.opcode === OPCODE.ping) socket.write(Buffer.from([0x8a, 0x80, 0, 0, 0, 0]));
      else if (frame.opcode === OPCODE.close) reason = `a WebSocket was closed: ${frame.payload.subarray(2)}`;
      rest = rest.subarray(frame.length);
    }
  };
  socket.on("data", take);
  socket.on("close", () => onEnd(new Error(reason)));
  take(Buffer.alloc(0));
}

/** The first frame in `bytes`, if all of it is there. A server's are not masked; these come in one piece. */
function frameAt(bytes) {
  if (bytes.length < 2) return undefined;
  const short = bytes[1];
  const start = short < 126 ? 2 : short === 126 ? 4 : 10;
  if (bytes.length < start) return undefined;
  const size = short < 126 ? short : short === 126 ? bytes.readUInt16BE(2) : Number(bytes.readBigUInt64BE(2));
  const length = start + size;
  if (bytes.length < length) return undefined;
  return { opcode: bytes[0] & 0x0f, payload: bytes.subarray(start, length), length };
}

/** Resolves with what came after the head of a 101. */
function upgraded(socket) {
  return new Promise((resolve, reject) => {
    let head = Buffer.alloc(0);
    const onClose = () => reject(new Error("a WebSocket was refused"));
    const onData = (chunk) => {
      head = Buffer.concat([head, chunk]);
      const end = head.indexOf("\r\n\r\n");
      if (end < 0) return;
      socket.off("data", onData);
      socket.off("close", onClose);
      if (head.latin1Slice(9, 12) === "101") resolve(head.subarray(end + 4));
      else reject(new Error(`a WebSocket was refused: ${head.latin1Slice(0, 200)}`));
    };
    socket.on("data", onData);
    socket.on("close", onClose);
  });
}

function openSocket(url) {
  const { hostname, port } = new URL(url);
  return new Promise((resolve, reject) => {
    const socket = connect({ host: hostname, port: Number(port), noDelay: true });
    socket.once("connect", () => {
      socket.off("error", reject);
      // Told by the close that follows.
      socket.on("error", () => {});
      resolve(socket);
    });
    socket.once("error", reject);
  });
}
