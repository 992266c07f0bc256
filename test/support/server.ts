/**
 * The real server as its users have it: another process, started by `tidings serve --port 0`, spoken to over HTTP and
 * WebSocket.
 *
 * ```ts
 * const server = await Server.start();                       // its own folder; gone when the test is over
 * const { status, json } = await server.post("/v1/events", { type: "cli.a.b", source: "test" });
 * const { result, error } = await server.rpc("notification/list", {});
 * const token = await server.createToken({ user_id: "ada", scopes: ["read", "ack"] });
 * const client = await server.connect({ token });            // a WebSocket
 * const frame = await client.frame((one) => one.method === "notification/created");
 * await client.rpc("notification/ack", { id, revision: 1, action: "clicked" });
 * expect(await server.stop()).toBe(0);
 * ```
 */
import { type ChildProcess, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";
import { WebSocket } from "ws";
import type { NotificationView } from "../../src/domain/notification.js";
import type { Scope } from "../../src/domain/token.js";
import { checkedReply } from "./answers.js";
import { temporaryFolder } from "./folder.js";

const PROGRAM = fileURLToPath(new URL("../../dist/cli/main.js", import.meta.url));
/** Generous: a loaded machine is slow, and never wrong. */
const LIMIT_MS = 30_000;

export interface ServerOptions {
  /** The data folder; without it a new one that is removed after the test. */
  data?: string;
  /**
   * Further words for `tidings serve`. A `--port` among them takes the place of `--port 0`, a `--provider` that of
   * `--provider none`: an agent that is hosted would answer what a test means to collect itself.
   */
  args?: readonly string[];
  /** Where it runs; default: where the test does. */
  cwd?: string;
  /** With whatever agent it hosts by itself. */
  agent?: "its own";
  /** Further environment. Whatever begins with `TIDINGS_` outside stays outside. */
  env?: Readonly<Record<string, string>>;
  /** The caller ends the process itself, with `stop`: for servers that are started outside a test. */
  keep?: boolean;
}

/** A JSON-RPC error, as the wire has it. */
export interface RpcFailure {
  code: number;
  message: string;
  data?: { code?: string; reason?: string; field?: string; id?: string; retry_after_ms?: number };
}

/** One of `result` and `error` is there. */
export interface RpcReply<Result> {
  id?: string | number | null;
  result?: Result;
  error?: RpcFailure;
}

export interface HttpReply<Body> {
  status: number;
  headers: Headers;
  text: string;
  /** The text as JSON; undefined if it is none. */
  json: Body;
}

export interface RequestOptions {
  method?: string;
  /** Sent as it is if it is text or bytes, else as JSON. */
  body?: unknown;
  /** Without it the server's own, admin's; null sends none. */
  token?: string | null;
  headers?: Readonly<Record<string, string>>;
}

export interface NewToken {
  token: string;
  id: string;
  user_id: string;
  scopes: Scope[];
  expires_at: string | null;
}

const STOPPING = "tidings: stopping: what is under way is answered first\n";
const STOPPED = "tidings: stopped\n";

/** A running `tidings serve`. */
export class Server {
  readonly data: string;
  readonly process: ChildProcess;
  /** The exit code, or the signal that ended it. */
  readonly ended: Promise<number | NodeJS.Signals | null>;
  /** What it has said so far. */
  stdout = "";
  #stderr = "";
  /** From the ready line. */
  url = "";
  /** The server's own token, admin's. */
  token = "";

  private constructor(data: string, { args = [], env = {}, agent, cwd }: ServerOptions) {
    this.data = data;
    const port = args.some((word) => word.startsWith("--port")) || "TIDINGS_PORT" in env ? [] : ["--port", "0"];
    const named = agent !== undefined || args.some((word) => word.startsWith("--provider"));
    const provider = named ? [] : ["--provider", "none"];
    this.process = spawn(process.execPath, [PROGRAM, "serve", "--data", data, ...port, ...provider, ...args], {
      env: { ...outerEnvironment(), ...env },
      ...(cwd === undefined ? {} : { cwd }),
      stdio: ["ignore", "pipe", "pipe"],
    });
    this.ended = new Promise((resolve, reject) => {
      this.process.on("error", reject);
      this.process.on("close", (code, signal) => resolve(signal ?? code));
    });
    this.process.stderr?.setEncoding("utf8").on("data", (text: string) => {
      this.#stderr += text;
    });
  }

  /** Starts it and waits for the ready line; throws what it said if it ends before. */
  static async start(options: ServerOptions = {}): Promise<Server> {
    const server = new Server(options.data ?? (await temporaryFolder()), options);
    if (options.keep !== true) onTestFinished(() => server.kill());
    try {
      await server.#ready();
    } catch (error) {
      await server.kill();
      throw error;
    }
    return server;
  }

  async #ready(): Promise<void> {
    const { stdout } = this.process;
    if (stdout === null) throw new Error("the server has no output");
    const told = new Promise<void>((resolve) => {
      createInterface({ input: stdout }).on("line", (line) => {
        this.stdout += `${line}\n`;
        const found = endpointIn(line);
        if (found === undefined) return;
        this.url = found.url;
        this.token = found.token;
        resolve();
      });
    });
    const over = this.ended.then((end) => {
      throw new Error(`the server ended with ${end} before it was ready: ${this.stdout}${this.stderr}`);
    });
    await within(Promise.race([told, over]), () => `no ready line: ${this.stdout}${this.stderr}`);
  }

  /** Without what every one says that is told to end. */
  get stderr(): string {
    return this.#stderr.replace(STOPPING, "").replace(STOPPED, "");
  }

  /** That it ends, and that it has: as it says so. */
  get farewell(): string[] {
    return [STOPPING, STOPPED].filter((line) => this.#stderr.includes(line));
  }

  get pid(): number {
    return this.process.pid ?? 0;
  }

  /** Ends it in order and answers its exit code; with another signal, that signal's way. */
  stop(signal: NodeJS.Signals = "SIGTERM"): Promise<number | NodeJS.Signals | null> {
    this.process.kill(signal);
    return within(this.ended, () => `it did not end after ${signal}: ${this.stderr}`);
  }

  /** Ends it however it stands. */
  async kill(): Promise<void> {
    this.process.kill("SIGKILL");
    await this.ended;
  }

  /** Any HTTP request. */
  async request<Body = unknown>(path: string, options: RequestOptions = {}): Promise<HttpReply<Body>> {
    const { method = "GET", body, token = this.token, headers = {} } = options;
    const response = await fetch(new URL(path, this.url), {
      method,
      headers: {
        ...(token === null ? {} : { authorization: `Bearer ${token}` }),
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: isRaw(body) ? body : JSON.stringify(body) }),
      signal: AbortSignal.timeout(LIMIT_MS),
    });
    const text = await response.text();
    return { status: response.status, headers: response.headers, text, json: jsonOf(text) as Body };
  }

  /** `GET` of a path. */
  get<Body = unknown>(path: string, token: string | null = this.token): Promise<HttpReply<Body>> {
    return this.request(path, { token });
  }

  /** `POST` of JSON to a path, for example events to `/v1/events`. */
  post<Body = unknown>(path: string, body: unknown, token: string | null = this.token): Promise<HttpReply<Body>> {
    return this.request(path, { method: "POST", body, token });
  }

  /** One call to `POST /rpc`, with its HTTP status. */
  async rpc<Result = unknown>(
    method: string,
    params: object = {},
    token: string | null = this.token,
  ): Promise<RpcReply<Result> & { status: number }> {
    const reply = await this.post<RpcReply<Result>>("/rpc", { jsonrpc: "2.0", id: 1, method, params }, token);
    return { ...checkedReply(method, reply.json ?? {}), status: reply.status };
  }

  /** The result of a call; throws where it has none. */
  async call<Result = Record<string, unknown>>(
    method: string,
    params: object = {},
    token: string | null = this.token,
  ): Promise<Result> {
    const { result, error } = await this.rpc<Result>(method, params, token);
    if (error !== undefined) throw new Error(`${method}: ${error.code} ${error.message}`);
    return result as Result;
  }

  /** A token of its own kind, made by the server's own. */
  createToken(input: { user_id?: string; scopes: readonly Scope[]; ttl_ms?: number }): Promise<NewToken> {
    return this.call("token/create", input);
  }

  /** Opens a WebSocket; throws `UpgradeRefused` where the server does not. It is gone when the test is over. */
  connect(options: ClientOptions = {}): Promise<Client> {
    return Client.open(`${this.url.replace(/^http/, "ws")}/ws`, { token: this.token, ...options });
  }
}

export interface ClientOptions {
  /** Sent as `Authorization: Bearer`; null sends none. */
  token?: string | null;
  protocols?: readonly string[];
  headers?: Readonly<Record<string, string>>;
  origin?: string;
}

/** What the server sends: a push, or the answer of a call. */
export interface Frame extends RpcReply<unknown> {
  jsonrpc: "2.0";
  method?: string;
  params?: {
    notification?: NotificationView;
    seq?: number;
    prev_seq?: number | null;
    journal_id?: string;
    unacknowledged?: number;
    unread?: number;
    cap?: number;
  };
}

/** The server answered an upgrade with a status of HTTP. */
export class UpgradeRefused extends Error {
  readonly status: number;
  readonly body: string;

  constructor(status: number, body: string) {
    super(`the upgrade was refused with ${status}: ${body}`);
    this.status = status;
    this.body = body;
  }
}

/** A WebSocket client that keeps every frame it gets. */
export class Client {
  readonly socket: WebSocket;
  readonly frames: Frame[] = [];
  /** Resolves when the connection has ended. */
  readonly closed: Promise<{ code: number; reason: string }>;
  readonly #watching = new Set<() => void>();
  /** Why the connection has ended, if it has. */
  #end: string | undefined;
  #calls = 0;

  private constructor(socket: WebSocket) {
    this.socket = socket;
    socket.on("message", (data) => {
      this.frames.push(JSON.parse(String(data)) as Frame);
      this.#wake();
    });
    socket.on("error", () => {});
    this.closed = new Promise((resolve) => {
      socket.on("close", (code, reason) => {
        this.#end = `${code} ${reason.toString()}`;
        resolve({ code, reason: reason.toString() });
        this.#wake();
      });
    });
  }

  static async open(url: string, { token, protocols = [], headers = {}, origin }: ClientOptions): Promise<Client> {
    const socket = new WebSocket(url, [...protocols], {
      headers: { ...(typeof token === "string" ? { authorization: `Bearer ${token}` } : {}), ...headers },
      ...(origin === undefined ? {} : { origin }),
    });
    const client = new Client(socket);
    onTestFinished(() => socket.terminate());
    const opened = new Promise<void>((resolve, reject) => {
      socket.on("open", resolve);
      socket.on("error", reject);
      socket.on("unexpected-response", (request, response) => {
        let body = "";
        response.setEncoding("utf8").on("data", (text: string) => {
          body += text;
        });
        response.on("close", () => {
          request.destroy();
          reject(new UpgradeRefused(response.statusCode ?? 0, body));
        });
      });
    });
    await within(opened, () => "the WebSocket did not open");
    return client;
  }

  /** The first frame that `wanted` takes, among those that came already and those to come. */
  async frame(wanted: (frame: Frame) => boolean, limitMs = LIMIT_MS): Promise<Frame> {
    const found = await this.until((frames) => frames.find(wanted), limitMs);
    return found;
  }

  /** What `read` makes of the frames so far, asked again with each new one until it is not undefined. */
  until<Value>(read: (frames: readonly Frame[]) => Value | undefined, limitMs = LIMIT_MS): Promise<Value> {
    const said = () => `last of ${this.frames.length} frames: ${JSON.stringify(this.frames.at(-1))}`;
    return new Promise((resolve, reject) => {
      const end = (settle: () => void) => {
        clearTimeout(timer);
        this.#watching.delete(look);
        settle();
      };
      const timer = setTimeout(
        () => end(() => reject(new Error(`waited ${limitMs} ms for a frame in vain; ${said()}`))),
        limitMs,
      );
      const look = () => {
        const value = read(this.frames);
        if (value !== undefined) end(() => resolve(value));
        else if (this.#end !== undefined)
          end(() => reject(new Error(`closed with ${this.#end} before the frame came; ${said()}`)));
      };
      this.#watching.add(look);
      look();
    });
  }

  /** Everything about notifications so far: `notification/created` and `notification/updated`, in their order. */
  get pushes(): Frame[] {
    return this.frames.filter(({ method }) => method?.startsWith("notification/"));
  }

  /** The frame about this notification of this kind, now or later. */
  pushed(kind: "created" | "updated", id: string): Promise<Frame> {
    return this.frame(({ method, params }) => method === `notification/${kind}` && params?.notification?.id === id);
  }

  /** Resolves when the client has been told what waits: the first counts come after it. */
  welcomed(): Promise<Frame> {
    return this.frame(({ method }) => method === "inbox/counts");
  }

  /** A call over this connection, and its answer. */
  async rpc<Result = unknown>(method: string, params: object = {}): Promise<RpcReply<Result>> {
    this.#calls += 1;
    const id = `call ${this.#calls}`;
    this.send({ jsonrpc: "2.0", id, method, params });
    return checkedReply(method, (await this.frame((frame) => frame.id === id)) as RpcReply<Result>);
  }

  /** Sends text as it is, anything else as JSON. */
  send(message: unknown): void {
    this.socket.send(typeof message === "string" ? message : JSON.stringify(message));
  }

  /** Closes it and waits until both sides have. */
  close(): Promise<{ code: number; reason: string }> {
    this.socket.close();
    return this.closed;
  }

  #wake(): void {
    for (const look of [...this.#watching]) look();
  }
}

/** `Tidings is ready: URL/#token=TOKEN`, or `{"ready": {url, token, pid}}`. */
function endpointIn(line: string): { url: string; token: string } | undefined {
  if (line.startsWith("{")) return (JSON.parse(line) as { ready?: { url: string; token: string } }).ready;
  const [, url, token] = /^Tidings is ready: (http:\S+?)\/#token=(\S+)$/.exec(line) ?? [];
  return url === undefined || token === undefined ? undefined : { url, token };
}

/** The caller's own Tidings settings stay outside. */
function outerEnvironment(): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("TIDINGS_")));
}

function isRaw(body: unknown): body is string | Uint8Array {
  return typeof body === "string" || body instanceof Uint8Array;
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The promise, or an error with these words after a generous while. */
async function within<Value>(promise: Promise<Value>, words: () => string): Promise<Value> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(words())), LIMIT_MS);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}
