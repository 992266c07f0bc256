/** A proxy that cuts connections, and a client that comes back until it has everything. */
import { request } from "node:http";
import { type AddressInfo, connect, createServer, type Server as NetServer, type Socket } from "node:net";
import { WebSocket } from "ws";
import type { StreamFrame } from "./stream.js";

/** After how many bytes of what the server sends each connection is cut; undefined: not at all. */
export type Cuts = (connection: number) => number | undefined;

export class CuttingProxy {
  readonly #server: NetServer;
  readonly #sockets = new Set<Socket>();
  #target: URL;
  connections = 0;
  cuts = 0;
  /** Of what the server has sent, so many bytes were passed on. */
  bytes = 0;
  /** What the server sends is kept from those who are connected now. */
  #silent: ReadonlySet<Socket> = new Set();

  private constructor(target: URL, cutAfter: Cuts) {
    this.#target = target;
    this.#server = createServer((client) => {
      let left = cutAfter(this.connections) ?? Number.POSITIVE_INFINITY;
      this.connections += 1;
      const server = connect({ host: this.#target.hostname, port: Number(this.#target.port), noDelay: true });
      const end = () => {
        client.destroy();
        server.destroy();
      };
      for (const socket of [client, server]) {
        this.#sockets.add(socket);
        socket.on("error", end);
        socket.on("close", () => {
          this.#sockets.delete(socket);
          end();
        });
      }
      client.pipe(server);
      server.on("data", (chunk: Buffer) => {
        if (this.#silent.has(client)) return;
        this.bytes += Math.min(left, chunk.length);
        if (chunk.length <= left) client.write(chunk);
        else {
          this.cuts += 1;
          // What came before the cut arrives; then nothing does.
          client.end(chunk.subarray(0, left), () => end());
        }
        left -= Math.min(left, chunk.length);
      });
    });
  }

  static async start(url: string, cutAfter: Cuts): Promise<CuttingProxy> {
    const proxy = new CuttingProxy(new URL(url), cutAfter);
    await new Promise<void>((resolve) => proxy.#server.listen(0, "127.0.0.1", resolve));
    return proxy;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  /** From now on connections go there: a server can be told of the proxy before it is started. */
  pointAt(url: string): void {
    this.#target = new URL(url);
  }

  /** Those who are connected now hear nothing more, and are not told so. */
  silence(): void {
    this.#silent = new Set(this.#sockets);
  }

  /** Ends every connection that there is. */
  cut(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  stop(): void {
    this.#server.close();
    this.cut();
  }
}

export type Kind = "ndjson" | "sse" | "websocket";

export interface Cursor {
  readonly journal_id: string;
  readonly after_seq: number;
  readonly after_part?: number;
}

/** What a client was told, without what depends on the connection. */
export type Told = { readonly method: string; readonly params: Record<string, unknown> };

/** Follows a stream as the documentation says, over as many connections as it takes. */
export class StubbornClient {
  readonly told: Told[] = [];
  /** How much it had been told when it had to begin anew. */
  readonly resets: { readonly at: number; readonly newest_seq: number }[] = [];
  readonly problems: string[] = [];
  readonly #proxy: CuttingProxy;
  readonly #host: string;
  readonly #token: string;
  readonly #kind: Kind;
  #cursor: Cursor;
  /** The id of the last event, as a browser keeps it. */
  #lastEventId = "";
  #previous: number | null = null;
  /** It was told to begin anew on this connection: what waits may follow, until its end is told. */
  #waits = false;
  /** The data of an event that has not ended. */
  #pending = "";
  #close: () => void = () => {};
  #lastSeq = Number.POSITIVE_INFINITY;
  #done = false;

  constructor(
    proxy: CuttingProxy,
    { url, token, cursor, kind = "ndjson" }: { url: string; token: string; cursor: Cursor; kind?: Kind },
  ) {
    this.#proxy = proxy;
    this.#host = new URL(url).host;
    this.#token = token;
    this.#cursor = cursor;
    this.#kind = kind;
  }

  /** Resolves when `isLast` says of a frame that it is the last one. */
  async follow(isLast: (told: Told) => boolean): Promise<void> {
    while (!this.#done) await this.#connect(isLast);
    this.#proxy.stop();
  }

  /** Nothing comes after this one: whoever was told to begin anew after it has nothing to wait for. */
  endsAt(seq: number): void {
    this.#lastSeq = seq;
    if ((this.resets.at(-1)?.newest_seq ?? -1) >= seq) this.#end();
  }

  #end(): void {
    this.#done = true;
    this.#close();
  }

  #connect(isLast: (told: Told) => boolean): Promise<void> {
    const { journal_id, after_seq, after_part } = this.#cursor;
    const resumes = this.#kind === "sse" && this.#lastEventId !== "";
    // What a browser goes on from is the id of the last event: that may be of one that is no part of the chain.
    this.#previous = resumes ? Number(/:(\d+)/.exec(this.#lastEventId)?.[1]) : after_seq;
    if (this.#previous < after_seq) this.problems.push(`the last id was ${this.#lastEventId} after ${after_seq}`);
    this.#waits = false;
    const query = new URLSearchParams({ journal_id, after_seq: String(after_seq), conversation: "true" });
    if (after_part !== undefined) query.set("after_part", String(after_part));
    const take = (json: string) => this.#take(JSON.parse(json) as StreamFrame, isLast);
    return new Promise((resolve) => {
      if (this.#kind === "websocket") {
        const socket = new WebSocket(`ws://127.0.0.1:${this.#proxy.port}/ws?${query}`, {
          headers: { authorization: `Bearer ${this.#token}`, host: this.#host },
        });
        this.#close = () => socket.terminate();
        socket.on("message", (data) => take(String(data)));
        socket.on("error", () => {});
        socket.on("close", () => resolve());
        return;
      }
      const sse = this.#kind === "sse";
      const path = sse ? (resumes ? "/sse" : `/sse?${query}`) : `/rpc/stream?${query}`;
      const asked = request({
        host: "127.0.0.1",
        port: this.#proxy.port,
        path,
        agent: false,
        headers: {
          authorization: `Bearer ${this.#token}`,
          host: this.#host,
          ...(resumes ? { "last-event-id": this.#lastEventId } : {}),
        },
      });
      this.#close = () => asked.destroy();
      asked.on("error", () => resolve());
      asked.on("close", () => resolve());
      asked.on("response", (response) => {
        if (response.statusCode !== 200) this.problems.push(`answered with ${response.statusCode}`);
        let rest = Buffer.alloc(0);
        let id = "";
        response.on("error", () => {});
        response.on("data", (chunk: Buffer) => {
          const bytes = Buffer.concat([rest, chunk]);
          let start = 0;
          for (let end = bytes.indexOf(0x0a); end !== -1; end = bytes.indexOf(0x0a, start)) {
            const line = bytes.toString("utf8", start, end);
            start = end + 1;
            if (line.startsWith("{")) take(line);
            // An event counts when the empty line after it has come.
            else if (line.startsWith("id: ")) id = line.slice(4);
            else if (line.startsWith("data: ")) this.#pending = line.slice(6);
            else if (line === "" && this.#pending !== "") {
              const data = this.#pending;
              this.#pending = "";
              if (id !== "") this.#lastEventId = id;
              id = "";
              take(data);
            }
          }
          rest = bytes.subarray(start);
        });
        this.#pending = "";
      });
      asked.end();
    });
  }

  #take({ method, params, error }: StreamFrame, isLast: (told: Told) => boolean): void {
    if (this.#done) return;
    if (method === undefined) {
      this.problems.push(`was told ${JSON.stringify(error)}`);
      return;
    }
    if (method === "stream/reset") {
      this.resets.push({ at: this.told.length, newest_seq: params.newest_seq });
      this.#cursor = { journal_id: params.journal_id, after_seq: params.newest_seq };
      this.#previous = null;
      this.#waits = true;
      if (params.newest_seq >= this.#lastSeq) this.#end();
      return;
    }
    if (method === "stream/heartbeat") {
      if (params.seq !== this.#previous) this.problems.push(`a heartbeat after ${params.seq}, not ${this.#previous}`);
      return;
    }
    if (method === "inbox/counts") this.#waits = false;
    if (params.prev_seq === undefined) return;
    const { prev_seq, ...rest } = params;
    if (params.waiting === true && !this.#waits) this.problems.push(`${params.seq} waits, but nothing began anew`);
    if (prev_seq !== this.#previous)
      this.problems.push(`${method} ${params.seq} comes after ${prev_seq}, not ${this.#previous}`);
    this.#previous = params.seq;
    // What waits is no place to go on from, and has no part in what is told one after the other.
    if (params.waiting === true) return;
    this.#waits = false;
    this.#cursor = {
      journal_id: params.journal_id,
      after_seq: params.seq,
      ...(params.part === undefined ? {} : { after_part: params.part }),
    };
    const told = { method, params: rest as Record<string, unknown> };
    this.told.push(told);
    if (isLast(told)) this.#end();
  }
}
