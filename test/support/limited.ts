/** A server with limits of one's own, and the same call over each of the ways that there are. */
import { createHmac } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { onTestFinished } from "vitest";
import type { ServerLimits } from "../../src/server/limits.js";
import { TidingsServer } from "../../src/server/server.js";
import { temporaryFolder } from "./folder.js";
import { RawSocket, requestText } from "./raw.js";
import { Client } from "./server.js";
import { Duplex, framesOf, type StreamFrame } from "./stream.js";

const SECRET = "a secret of this test";
const SECRET_ENV = "LIMITED_HOOK_SECRET";
const HOOK = `[hooks.limited]\nscheme = "github"\nsecret_env = "${SECRET_ENV}"\ntype = "cli.limited.hook"\nsource = "hook"\n`;

export class Limited {
  readonly server: TidingsServer;
  readonly defects: unknown[];

  private constructor(server: TidingsServer, defects: unknown[]) {
    this.server = server;
    this.defects = defects;
  }

  /** It is closed when the test is over, and has a hook that takes whatever is signed. */
  static async start(limits: Partial<ServerLimits>): Promise<Limited> {
    const defects: unknown[] = [];
    const data = await temporaryFolder();
    await writeFile(join(data, "tidings.toml"), HOOK);
    process.env[SECRET_ENV] = SECRET;
    const server = await TidingsServer.start({ data, port: 0, limits, onDefect: (error) => defects.push(error) });
    onTestFinished(() => server.close());
    return new Limited(server, defects);
  }

  get host(): string {
    return new URL(this.server.url).host;
  }

  head(first: string, ...more: string[]): string {
    return requestText([first, `Host: ${this.host}`, `Authorization: Bearer ${this.server.token}`, ...more]);
  }

  /** One by hand: of a connection of its own, which stays open. */
  async raw(first: string, more: readonly string[], body = ""): Promise<RawSocket> {
    const raw = await RawSocket.open(this.server.url);
    raw.write(this.head(first, ...more) + body);
    return raw;
  }

  post(path: string, body: unknown, token = this.server.token): Promise<Response> {
    const text = typeof body === "string" ? body : JSON.stringify(body);
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
    return fetch(new URL(path, this.server.url), { method: "POST", headers, body: text });
  }

  /** A request to the hook, signed. */
  hook(text: string): Promise<Response> {
    const headers = { "x-hub-signature-256": `sha256=${createHmac("sha256", SECRET).update(text).digest("hex")}` };
    return fetch(new URL("/v1/hooks/limited", this.server.url), { method: "POST", headers, body: text });
  }

  async call<Result>(method: string, params: object = {}): Promise<Result> {
    const answer = await this.post("/rpc", { id: 1, method, params });
    return ((await answer.json()) as { result: Result }).result;
  }

  async token(user_id: string, scopes: readonly string[] = ["read", "ingest", "agent"]): Promise<string> {
    return (await this.call<{ token: string }>("token/create", { user_id, scopes })).token;
  }

  /** Told to the server's own user, by whichever stream. */
  say(content: string): Promise<{ id: string }> {
    return this.call("notification/notify", { content, target: "user" });
  }

  async connections(): Promise<number> {
    return (await this.call<{ connections: number }>("runtime/status")).connections;
  }

  /** Whoever can speak and be answered. */
  async speakers(): Promise<Speaker[]> {
    return [this.overHttp(), await this.overWebSocket(), this.overLines(), this.overStdio()];
  }

  overHttp(): Speaker {
    const answers = new Map<unknown, Promise<StreamFrame>>();
    return {
      name: "POST /rpc",
      send: (text) => {
        const answer = this.post("/rpc", text).then((response) => response.json() as Promise<StreamFrame>);
        answers.set("last", answer);
      },
      frame: async (wanted) => {
        const frame = (await answers.get("last")) as StreamFrame;
        if (!wanted(frame)) throw new Error(`answered with ${JSON.stringify(frame).slice(0, 200)}`);
        return frame;
      },
      closed: async () => undefined,
    };
  }

  async overWebSocket(token = this.server.token): Promise<Speaker> {
    const client = await Client.open(`${this.server.url.replace(/^http/, "ws")}/ws`, { token });
    return {
      name: "WebSocket",
      send: (text) => client.send(text),
      frame: async (wanted) => (await client.frame((frame) => wanted(frame as StreamFrame))) as StreamFrame,
      closed: async () => (await client.closed).code,
    };
  }

  overLines(token = this.server.token): Speaker {
    const stream = new Duplex(`${this.server.url}/rpc/stream`, { token });
    return {
      name: "POST /rpc/stream",
      send: (text) => stream.say(text),
      frame: (wanted) => stream.frames.frame(wanted),
      closed: async () => {
        await stream.frames.over();
        return stream.frames.all.at(-1)?.error?.code;
      },
    };
  }

  overStdio(): Speaker {
    const [input, output] = [new PassThrough(), new PassThrough()];
    const frames = framesOf(output);
    void this.server.converse(input, output).then(() => output.destroy());
    onTestFinished(() => {
      input.end();
    });
    return {
      name: "stdio",
      send: (text) => input.write(`${text}\n`),
      frame: (wanted) => frames.frame(wanted),
      closed: async () => {
        input.end();
        await frames.over();
        return frames.all.at(-1)?.error?.code;
      },
    };
  }
}

/** Somebody who sends calls, however. */
export interface Speaker {
  readonly name: string;
  send(text: string): void;
  frame(wanted: (frame: StreamFrame) => boolean): Promise<StreamFrame>;
  /** The code that says why it ended: that of the WebSocket, or of the last line. */
  closed(): Promise<number | undefined>;
}

export async function ask(speaker: Speaker, id: string, method: string, params: object = {}): Promise<StreamFrame> {
  speaker.send(JSON.stringify({ jsonrpc: "2.0", id, method, params }));
  return speaker.frame((frame) => frame.id === id);
}
