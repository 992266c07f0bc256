/** Streams as their clients have them: lines over HTTP, by `curl` or by hand, and over the pipes of a process. */
import { type ChildProcess, spawn } from "node:child_process";
import { type ClientRequest, type IncomingMessage, request } from "node:http";
import type { Readable } from "node:stream";
import { onTestFinished } from "vitest";
import { NOTIFICATIONS, type NotificationName } from "../../src/server/notifications.js";
import { checkedReply } from "./answers.js";

/** Generous: a loaded machine is slow, and never wrong. */
const LIMIT_MS = 30_000;

export interface StreamFrame {
  readonly jsonrpc?: "2.0";
  readonly id?: string | number | null;
  readonly method?: string;
  // biome-ignore lint/suspicious/noExplicitAny: what is in it is what the tests are about
  readonly params?: any;
  // biome-ignore lint/suspicious/noExplicitAny: the same
  readonly result?: any;
  readonly error?: { readonly code: number; readonly message: string; readonly data: Record<string, unknown> };
}

/** The frames in what was read so far; a line that is not whole yet is none. */
export class Frames {
  readonly all: StreamFrame[] = [];
  /** Everything as it came. */
  text = "";
  ended = false;
  #rest = Buffer.alloc(0);
  readonly #watching = new Set<() => void>();

  take(chunk: Buffer): void {
    this.text += chunk.toString("latin1");
    const bytes = Buffer.concat([this.#rest, chunk]);
    let start = 0;
    for (let end = bytes.indexOf(0x0a); end !== -1; end = bytes.indexOf(0x0a, start)) {
      const line = bytes.toString("utf8", start, end);
      start = end + 1;
      const json = line.startsWith("data: ") ? line.slice("data: ".length) : line;
      if (json.startsWith("{") || json.startsWith("[")) this.#add(JSON.parse(json) as StreamFrame);
    }
    this.#rest = bytes.subarray(start);
    this.#wake();
  }

  /** Every frame is of the documented form. */
  #add(frame: StreamFrame): void {
    this.all.push(frame);
    if (frame.method === undefined) return;
    const known = NOTIFICATIONS[frame.method as NotificationName];
    if (known === undefined) throw new Error(`there is no notification ${frame.method}`);
    known.params.parse(frame.params);
  }

  end(): void {
    this.ended = true;
    this.#wake();
  }

  #wake(): void {
    for (const look of [...this.#watching]) look();
  }

  /** What `read` makes of the frames so far, asked again with each new one until it is not undefined. */
  until<Value>(read: (frames: readonly StreamFrame[]) => Value | undefined, what = "a frame"): Promise<Value> {
    const said = () => `waited for ${what} in vain; the last of ${this.all.length}: ${JSON.stringify(this.all.at(-3))}`;
    return new Promise((resolve, reject) => {
      const end = (settle: () => void) => {
        clearTimeout(timer);
        this.#watching.delete(look);
        settle();
      };
      const timer = setTimeout(() => end(() => reject(new Error(said()))), LIMIT_MS);
      const look = () => {
        const value = read(this.all);
        if (value !== undefined) end(() => resolve(value));
        else if (this.ended) end(() => reject(new Error(`it ended; ${said()}`)));
      };
      this.#watching.add(look);
      look();
    });
  }

  frame(wanted: (frame: StreamFrame) => boolean, what?: string): Promise<StreamFrame> {
    return this.until((frames) => frames.find(wanted), what);
  }

  told(method: string, wanted: (params: Record<string, unknown>) => boolean = () => true): Promise<StreamFrame> {
    return this.frame((frame) => frame.method === method && wanted(frame.params), method);
  }

  answer(id: string | number): Promise<StreamFrame> {
    return this.frame((frame) => frame.method === undefined && frame.id === id, `the answer ${id}`);
  }

  /** Resolves when nothing more comes. */
  over(): Promise<true> {
    return this.until(() => (this.ended ? true : undefined), "the end");
  }
}

/** `curl` with these words; what it is given on standard input is the body, which stays open until `close`. */
export class Curl {
  readonly frames = new Frames();
  readonly #process: ChildProcess;

  constructor(words: readonly string[]) {
    this.#process = spawn("curl", ["-sSN", "--no-progress-meter", "-i", ...words], {
      stdio: ["pipe", "pipe", "inherit"],
    });
    onTestFinished(() => {
      this.#process.kill();
    });
    this.#process.stdout?.on("data", (chunk: Buffer) => this.frames.take(chunk));
    this.#process.on("close", () => this.frames.end());
  }

  say(line: object | string): void {
    this.#process.stdin?.write(`${typeof line === "string" ? line : JSON.stringify(line)}\n`);
  }

  close(): void {
    this.#process.stdin?.end();
  }

  kill(): void {
    this.#process.kill();
  }

  /** The head of the last response, in lower case. */
  get head(): string[] {
    const [head = ""] = this.frames.text.replace(/^HTTP\/1\.1 100 Continue\r\n\r\n/, "").split("\r\n\r\n");
    return head.toLowerCase().split("\r\n");
  }
}

/** The same by hand: a request whose body is written while its response is read. */
export class Duplex {
  readonly frames = new Frames();
  readonly request: ClientRequest;
  #calls = 0;
  response: IncomingMessage | undefined;

  constructor(url: string, { token, method = "POST" }: { token: string; method?: "GET" | "POST" }) {
    this.request = request(url, {
      method,
      headers: {
        authorization: `Bearer ${token}`,
        accept: "application/x-ndjson",
        "content-type": "application/x-ndjson",
      },
    });
    onTestFinished(() => {
      this.request.destroy();
    });
    this.request.on("error", () => this.frames.end());
    this.request.on("response", (response) => {
      this.response = response;
      response.on("data", (chunk: Buffer) => this.frames.take(chunk));
      response.on("error", () => {});
      response.on("close", () => this.frames.end());
    });
    if (method === "GET") this.request.end();
    else this.request.flushHeaders();
  }

  say(line: object | string): void {
    this.request.write(`${typeof line === "string" ? line : JSON.stringify(line)}\n`);
  }

  async rpc(method: string, params: object = {}): Promise<StreamFrame> {
    this.#calls += 1;
    const id = `call ${this.#calls}`;
    this.say({ jsonrpc: "2.0", id, method, params });
    return checkedReply(method, await this.frames.answer(id));
  }
}

/** What a process writes on a pipe. */
export function framesOf(stream: Readable): Frames {
  const frames = new Frames();
  stream.on("data", (chunk: Buffer) => frames.take(chunk));
  stream.on("close", () => frames.end());
  return frames;
}
