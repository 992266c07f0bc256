/** MCP servers for tests: a real one as a child process or behind an address, and what the journal says of them. */
import { type ChildProcess, spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { connect, createServer, type Server, type Socket } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished } from "vitest";
import { payloadProblem } from "../../src/domain/payloads.js";
import { DEFAULT_POLICY } from "../../src/domain/policy.js";
import type { AgentInput, JournalEntry, McpServerConfig, OpenOptions, Tidings } from "../../src/index.js";
import { Catalogue } from "../../src/intake/catalogue.js";
import { systemClock } from "../../src/platform/clock.js";
import type { Store } from "../../src/store/contract.js";
import { openSqliteStore } from "../../src/store/sqlite/store.js";
import { Talk } from "./background.js";
import { eventually, temporaryFolder } from "./folder.js";

const require = createRequire(import.meta.url);
const EVERYTHING = require.resolve("@modelcontextprotocol/server-everything/dist/index.js");
const ODD = fileURLToPath(new URL("./odd_mcp_server.mjs", import.meta.url));

let marks = 0;

/** Something that no other process has in its command line. */
export function mark(): string {
  marks += 1;
  return `mcp-test-${process.pid}-${marks}`;
}

/** The reference server of the protocol's authors, on standard input and output. */
export function everything(more: Partial<McpServerConfig> = {}): McpServerConfig {
  return { command: process.execPath, args: [EVERYTHING, "stdio", mark()], ...more };
}

/** A server that does what the test says, by the names of its habits and a folder in which it keeps what it knows. */
export function odd(habits: Record<string, unknown>, more: Partial<McpServerConfig> = {}): McpServerConfig {
  return { command: process.execPath, args: [ODD, JSON.stringify(habits), mark()], ...more };
}

export const QUICK = { reconnect_max_secs: 0.5 };

export type Listed = { name: string; description: string; inputSchema: object };

/** A server whose tools stand in a file. */
export async function fromFile(habits: Record<string, unknown>, ...tools: Listed[]) {
  const file = join(await temporaryFolder(), "tools.json");
  const write = (...listed: Listed[]) => writeFileSync(file, JSON.stringify({ tools: listed }));
  write(...tools);
  return { config: odd({ ...habits, file }, QUICK), write };
}

export function tool(name: string, description = "Does it", properties: object = {}): Listed {
  return { name, description, inputSchema: { type: "object", properties } };
}

export async function open(
  config: NonNullable<AgentInput["mcp"]>,
  options: OpenOptions = {},
  state = "connected",
): Promise<Talk> {
  const talk = await Talk.open({ mcp: config }, options);
  for (const name of Object.keys(config)) await becomes(talk.tidings, name, state);
  return talk;
}

export async function answer(talk: Talk): Promise<string> {
  const last = (await talk.calls()).at(-1);
  return `${last?.status}: ${last?.content.output ?? ""}`;
}

/** The store of a folder where nothing runs. */
export async function openStore(folder: string): Promise<Store> {
  const editor = await Catalogue.open({ subscribers: [], folder: null, config_file: null, watch: false });
  const store = await openSqliteStore({
    folder,
    editor,
    policy: DEFAULT_POLICY,
    clock: systemClock,
    mode: "write",
    waitMs: 5_000,
    onFailure: (error) => {
      throw error;
    },
  });
  onTestFinished(() => store.close());
  return store;
}

/** All events; those of servers have the payloads that their types have. */
async function told(tidings: Tidings) {
  const found: Extract<JournalEntry, { type: "event" }>[] = [];
  const last = await tidings.lastSeq();
  if (last === 0) return found;
  for await (const entry of tidings.watch({ after: 0 })) {
    if (entry.type === "event") found.push(entry);
    if (entry.seq >= last) break;
  }
  const own = found.filter(({ event }) => event.source === "mcp");
  expect(own.flatMap(({ event }) => payloadProblem(event.type, event.payload) ?? [])).toEqual([]);
  return found;
}

/** The payloads of the events of a type, in order. */
export async function events(tidings: Tidings, type: string): Promise<Record<string, unknown>[]> {
  return (await told(tidings)).flatMap(({ event }) => (event.type === type ? [event.payload] : []));
}

/** How often each kind of news of servers is in the journal, like `{ "mcp.disconnected": 1 }`. */
export async function news(tidings: Tidings): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const { event } of await told(tidings))
    if (event.source === "mcp") counts[event.type] = (counts[event.type] ?? 0) + 1;
  return counts;
}

/** The news of servers with whom it is for, in order. */
export async function places(tidings: Tidings): Promise<string[]> {
  return (await told(tidings)).flatMap(({ event: { type, source, user_id, thread_id } }) =>
    source === "mcp" ? [`${type} ${user_id} ${thread_id}`] : [],
  );
}

export async function hears(tidings: Tidings, type: string, count = 1): Promise<void> {
  await eventually(
    async () => (await events(tidings, type)).length,
    (heard) => heard >= count,
  );
}

export async function server(tidings: Tidings, name: string) {
  const found = (await tidings.mcp.list()).find((one) => one.name === name);
  if (found === undefined) throw new Error(`no server ${name}`);
  return found;
}

export async function becomes(tidings: Tidings, name: string, state: string) {
  return eventually(
    () => server(tidings, name),
    (view) => view.state === state,
  );
}

/** An address of the reference server. */
export async function everythingAt(port: number): Promise<ChildProcess> {
  const child = spawn(process.execPath, [EVERYTHING, "streamableHttp", mark()], {
    env: { PATH: process.env["PATH"], PORT: String(port) },
    stdio: ["ignore", "ignore", "pipe"],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  let said = "";
  child.stderr?.on("data", (text) => {
    said += text;
  });
  await eventually(
    async () => said,
    (text) => text.includes("listening on port"),
  );
  return child;
}

export async function freePort(): Promise<number> {
  const listening = createServer();
  await new Promise<void>((resolve) => listening.listen(0, "127.0.0.1", resolve));
  const { port } = listening.address() as { port: number };
  await new Promise((resolve) => listening.close(resolve));
  return port;
}

/** Passes connections on, until it is told to drop them. */
export class Wire {
  readonly #to: number;
  readonly #sockets = new Set<Socket>();
  /** What came last by each connection. */
  readonly #last = new Map<Socket, string>();
  #listening: Server | null = null;
  port = 0;

  private constructor(to: number) {
    this.#to = to;
  }

  static async to(port: number): Promise<Wire> {
    const wire = new Wire(port);
    await wire.mend();
    onTestFinished(() => wire.cut());
    return wire;
  }

  /** Every connection ends, and none is made. */
  async cut(): Promise<void> {
    const listening = this.#listening;
    this.#listening = null;
    this.drop();
    if (listening !== null) await new Promise((resolve) => listening.close(resolve));
  }

  /** Every connection ends; new ones are made. */
  drop(): void {
    for (const socket of this.#sockets) socket.resetAndDestroy();
    this.#sockets.clear();
  }

  /** The connection ends by which this was asked for last. */
  dropAsking(text: string): void {
    for (const [socket, last] of this.#last) if (last.includes(text)) socket.resetAndDestroy();
  }

  async mend(): Promise<void> {
    const listening = createServer((near) => {
      const far = connect(this.#to, "127.0.0.1");
      for (const socket of [near, far]) {
        this.#sockets.add(socket);
        socket.on("error", () => undefined);
        socket.on("close", () => this.#sockets.delete(socket));
      }
      near.on("data", (piece) => this.#last.set(near, String(piece)));
      near.on("close", () => this.#last.delete(near));
      near.pipe(far).pipe(near);
    });
    await new Promise<void>((resolve) => listening.listen(this.port, "127.0.0.1", resolve));
    this.port = (listening.address() as { port: number }).port;
    this.#listening = listening;
  }
}
