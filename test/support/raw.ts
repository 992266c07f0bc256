/**
 * A bare connection to a server: any bytes can be sent, also those that no client would send, and nothing is read
 * unless it is asked for.
 */
import { randomBytes } from "node:crypto";
import { connect, type Socket } from "node:net";
import { onTestFinished } from "vitest";

/** Generous: a loaded machine is slow, and never wrong. */
const LIMIT_MS = 30_000;

export interface RawResponse {
  status: number;
  headers: Record<string, string>;
  body: string;
}

export interface RawFrame {
  opcode: number;
  payload: Buffer;
}

export const OPCODE = { continuation: 0, text: 1, binary: 2, close: 8, ping: 9, pong: 10 } as const;

export class RawSocket {
  readonly socket: Socket;
  #chunks: Buffer[] = [];
  #ended = false;
  #wake: () => void = () => {};

  private constructor(socket: Socket) {
    this.socket = socket;
    socket.on("data", (chunk) => {
      this.#chunks.push(chunk);
      this.#wake();
    });
    socket.on("error", () => {});
    socket.on("close", () => {
      this.#ended = true;
      this.#wake();
    });
  }

  /** It is gone when the test is over. */
  static async open(url: string): Promise<RawSocket> {
    const { hostname, port } = new URL(url);
    const socket = connect({ host: hostname.replace(/^\[|\]$/g, ""), port: Number(port), noDelay: true });
    onTestFinished(() => {
      socket.destroy();
    });
    const raw = new RawSocket(socket);
    await new Promise<void>((resolve, reject) => {
      socket.once("connect", resolve);
      socket.once("error", reject);
    });
    return raw;
  }

  get ended(): boolean {
    return this.#ended;
  }

  write(data: string | Buffer): void {
    this.socket.write(typeof data === "string" ? Buffer.from(data, "latin1") : data);
  }

  /** Writes, and waits while the other side takes nothing in. False when the connection has ended. */
  async writeAll(data: Buffer): Promise<boolean> {
    if (this.#ended || this.socket.destroyed) return false;
    if (this.socket.write(data)) return true;
    return new Promise((resolve) => {
      const done = () => {
        this.socket.off("drain", done);
        this.socket.off("close", done);
        resolve(!this.socket.destroyed);
      };
      this.socket.on("drain", done);
      this.socket.on("close", done);
    });
  }

  /** The next whole response; throws if the connection ends before. */
  async response(): Promise<RawResponse> {
    return this.#take((bytes) => {
      const end = bytes.indexOf("\r\n\r\n");
      if (end < 0) return undefined;
      const [first = "", ...lines] = bytes.toString("latin1", 0, end).split("\r\n");
      const headers = Object.fromEntries(
        lines.map((line) => [line.slice(0, line.indexOf(":")).toLowerCase(), line.slice(line.indexOf(":") + 1).trim()]),
      );
      const status = Number(first.split(" ")[1]);
      const length = status === 101 ? 0 : Number(headers["content-length"] ?? 0);
      const used = end + 4 + length;
      if (bytes.length < used) return undefined;
      return { value: { status, headers, body: bytes.toString("utf8", end + 4, used) }, used };
    });
  }

  /** The next frame of the WebSocket; throws if the connection ends before. */
  async frame(): Promise<RawFrame> {
    return this.#take((bytes) => {
      if (bytes.length < 2) return undefined;
      const short = bytes.readUInt8(1) & 0x7f;
      const head = short === 126 ? 4 : short === 127 ? 10 : 2;
      if (bytes.length < head) return undefined;
      const length = short === 126 ? bytes.readUInt16BE(2) : short === 127 ? Number(bytes.readBigUInt64BE(2)) : short;
      if (bytes.length < head + length) return undefined;
      const value = { opcode: bytes.readUInt8(0) & 0x0f, payload: bytes.subarray(head, head + length) };
      return { value, used: head + length };
    });
  }

  /** The code that the server closes the WebSocket with, after whatever else it sends; undefined if it only ends. */
  async closeCode(): Promise<number | undefined> {
    for (;;) {
      let frame: RawFrame;
      try {
        frame = await this.frame();
      } catch (error) {
        if (this.#ended) return undefined;
        throw error;
      }
      if (frame.opcode === OPCODE.close) return frame.payload.readUInt16BE(0);
    }
  }

  /** Resolves when the connection has ended. */
  async closed(): Promise<void> {
    await this.#until(() => this.#ended || undefined);
  }

  async #take<Value>(read: (bytes: Buffer) => { value: Value; used: number } | undefined): Promise<Value> {
    return this.#until(() => {
      const [first = Buffer.alloc(0)] = this.#chunks;
      const bytes = this.#chunks.length > 1 ? Buffer.concat(this.#chunks) : first;
      this.#chunks = [bytes];
      const found = read(bytes);
      if (found !== undefined) {
        this.#chunks = [bytes.subarray(found.used)];
        return found.value;
      }
      if (this.#ended) throw new Error(`the connection ended after ${JSON.stringify(bytes.toString("latin1"))}`);
      return undefined;
    });
  }

  async #until<Value>(look: () => Value | undefined): Promise<Value> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_resolve, reject) => {
      timer = setTimeout(() => reject(new Error(`nothing came within ${LIMIT_MS} ms`)), LIMIT_MS);
    });
    try {
      for (;;) {
        const woken = new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
        const value = look();
        if (value !== undefined) return value;
        await Promise.race([woken, late]);
      }
    } finally {
      clearTimeout(timer);
    }
  }
}

/** A request of these lines, the first of which is its own, and this body. */
export function requestText(lines: readonly string[], body = ""): string {
  return `${lines.join("\r\n")}\r\n\r\n${body}`;
}

/** What asks for a WebSocket; without `host` its own. */
export function upgradeLines(token: string, more: readonly string[], target = "/ws"): string[] {
  return [
    `GET ${target} HTTP/1.1`,
    `Authorization: Bearer ${token}`,
    "Connection: Upgrade",
    "Upgrade: websocket",
    "Sec-WebSocket-Version: 13",
    `Sec-WebSocket-Key: ${randomBytes(16).toString("base64")}`,
    ...more,
  ];
}

/** A WebSocket without a client's care: frames are made by hand. */
export async function openRawWebSocket(
  server: { url: string; token: string },
  token = server.token,
): Promise<RawSocket> {
  const raw = await RawSocket.open(server.url);
  raw.write(requestText(upgradeLines(token, [`Host: ${new URL(server.url).host}`])));
  const { status, body } = await raw.response();
  if (status !== 101) throw new Error(`the upgrade was refused with ${status}: ${body}`);
  return raw;
}

export function frameBytes(
  opcode: number,
  payload: string | Buffer,
  { fin = true, masked = true }: { fin?: boolean; masked?: boolean } = {},
): Buffer {
  const data = typeof payload === "string" ? Buffer.from(payload) : Buffer.from(payload);
  const long = data.length > 65_535 ? 127 : data.length > 125 ? 126 : data.length;
  const head = Buffer.alloc(long === 127 ? 10 : long === 126 ? 4 : 2);
  head[0] = (fin ? 0x80 : 0) | opcode;
  head[1] = (masked ? 0x80 : 0) | long;
  if (long === 126) head.writeUInt16BE(data.length, 2);
  if (long === 127) head.writeBigUInt64BE(BigInt(data.length), 2);
  if (!masked) return Buffer.concat([head, data]);
  const mask = randomBytes(4);
  for (let at = 0; at < data.length; at += 1) data[at] = (data[at] ?? 0) ^ (mask[at % 4] ?? 0);
  return Buffer.concat([head, mask, data]);
}
