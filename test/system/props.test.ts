/** What the rehearsal model brings to the stage, under `tidings serve`: when it is there, what runs, and that nothing of it is left. */
import { execFileSync } from "node:child_process";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { McpServerView, ThreadItem } from "../../src/index.js";
import { call } from "../support/background.js";
import { eventually, openTidings, temporaryFolder } from "../support/folder.js";
import { odd } from "../support/mcp.js";
import { Server, type ServerOptions } from "../support/server.js";
import { run } from "./cli.js";

const PROPS = ["nightly_build", "documents_read"];
const READ = call("documents_read", { document: "handbook" });
const BUILD = call("nightly_build", { action: "spawn", handle: "b" });

function serve(options: ServerOptions = {}): Promise<Server> {
  return Server.start({ agent: "its own", ...options });
}

async function propsOf(server: Server): Promise<string[]> {
  return (await server.call<{ props: string[] }>("runtime/status")).props;
}

/** Processes that it has started and that are there now, by what they run. */
function childrenOf(pid: number): Map<number, string> {
  const lines = execFileSync("ps", ["-A", "-o", "pid=,ppid=,args="], { encoding: "utf8" }).split("\n");
  return new Map(
    lines.flatMap((line): [number, string][] => {
      const [, child, parent, args = ""] = /^\s*(\d+)\s+(\d+)\s+(.*)$/.exec(line) ?? [];
      return Number(parent) === pid ? [[Number(child), args]] : [];
    }),
  );
}

/** What is dead and not yet buried does not count. */
function isAlive(pid: number): boolean {
  const lines = execFileSync("ps", ["-A", "-o", "stat=,pid="], { encoding: "utf8" }).split("\n");
  return lines.some((line) => new RegExp(`^[^Z]\\S*\\s+${pid}$`).test(line));
}

async function say(server: Server, thread_id: string, input: string): Promise<string[]> {
  const { turn_id } = await server.call<{ turn_id: string }>("turn/start", { thread_id, input });
  await eventually(
    async () => (await server.call<{ turns: { turn_id: string }[] }>("queue/list", { thread_id })).turns,
    (turns) => turns.every((turn) => turn.turn_id !== turn_id),
  );
  const { items } = await server.call<{ items: ThreadItem[] }>("thread/read", { thread_id });
  return items.flatMap((item) =>
    item.type === "tool_call" && item.turn_id === turn_id ? [`${item.status}: ${item.content.output}`] : [],
  );
}

async function start(server: Server): Promise<string> {
  return (await server.call<{ thread_id: string }>("thread/start")).thread_id;
}

async function documents(server: Server): Promise<McpServerView | undefined> {
  const { servers } = await server.call<{ servers: McpServerView[] }>("mcp/list");
  return servers.find(({ name }) => name === "documents");
}

describe("they are there", () => {
  test("with the rehearsal model, and nothing of them runs before it is called", async () => {
    const server = await serve();
    expect(await propsOf(server)).toEqual(PROPS);
    expect(await documents(server)).toMatchObject({ state: "idle", pid: null, tools: [{ name: "documents_read" }] });
    expect([...childrenOf(server.pid)]).toEqual([]);
    const listed = await run(["mcp", "list", "--data", server.data]);
    expect(listed).toMatchObject({ code: 0, stdout: expect.stringMatching(/^idle +documents +1 tool\n$/) });
    const thread_id = await start(server);
    const [answer] = await say(server, thread_id, READ);
    const { state, pid } = (await documents(server)) ?? {};
    expect(state).toBe("connected");
    expect(answer).toMatch(new RegExp(`^completed: Handbook: .* \\(Read by process ${pid}\\.\\)$`));
    // The same process for the same conversation, another one for another.
    expect(await say(server, thread_id, READ)).toEqual([answer]);
    expect(await say(server, await start(server), READ)).not.toEqual([answer]);
    expect(await say(server, thread_id, call("documents_read", { document: "diary" }))).toMatchObject([
      expect.stringMatching(/^failed: .*must be one of handbook, minutes/),
    ]);
  });

  test.each([
    ["--no-props", ["--no-props"]],
    ["--provider none", ["--provider", "none"]],
    ["a real provider", ["--provider", "openai-compatible", "--base-url", "http://127.0.0.1:9/v1", "--model", "m"]],
  ])("not with %s", async (_what, args) => {
    const server = await serve({ args });
    expect(await propsOf(server)).toEqual([]);
    expect(await documents(server)).toBeUndefined();
  });

  test("not where tidings.toml says so", async () => {
    const data = await temporaryFolder();
    writeFileSync(join(data, "tidings.toml"), "[agent]\nprops = false\n");
    const server = await serve({ data });
    expect(await propsOf(server)).toEqual([]);
    expect(await say(server, await start(server), READ)).toMatchObject([
      expect.stringMatching(/^failed: there is no tool/),
    ]);
  });

  test("not in the library, unless it is asked for", async () => {
    const plain = await openTidings({ agent: { provider: "rehearsal" } });
    expect([plain.props, plain.tools.list()]).toEqual([[], []]);
    const asked = await openTidings({ agent: { provider: "rehearsal", props: true } });
    expect(asked.props).toEqual(PROPS);
    const alone = await openTidings({ agent: { provider: "rehearsal", props: true, mcp: false } });
    expect(alone.props).toEqual(["nightly_build"]);
  });

  test("beside an operator's own server of the same name, which goes before; and what was once seen of that holds nothing back", async () => {
    const data = await temporaryFolder();
    const config = join(data, "tidings.toml");
    const file = join(data, "tools.json");
    writeFileSync(file, JSON.stringify({ tools: [{ name: "read", inputSchema: { type: "object" } }] }));
    const { command, args } = odd({ file });
    writeFileSync(
      config,
      `[mcp.servers.documents]\ncommand = ${JSON.stringify(command)}\nargs = ${JSON.stringify(args)}\n`,
    );
    const server = await serve({ data });
    await eventually(
      () => documents(server),
      (one) => one?.state === "connected",
    );
    expect(await propsOf(server)).toEqual(["nightly_build"]);
    const thread_id = await start(server);
    expect(await say(server, thread_id, READ)).toEqual(["completed: read done"]);
    rmSync(config);
    await eventually(
      () => propsOf(server),
      (props) => props.length === 2,
    );
    expect(await say(server, thread_id, READ)).toMatchObject([expect.stringMatching(/^completed: Handbook: /)]);
  });
});

test("no more than sixteen processes, whoever calls: the one that nobody has called for longest makes room", async () => {
  const server = await serve();
  const answers: string[] = [];
  const threads: string[] = [];
  for (let number = 0; number < 17; number += 1) {
    threads.push(await start(server));
    answers.push(...(await say(server, threads[number] ?? "", READ)));
  }
  expect(answers.filter((answer) => answer.startsWith("completed: Handbook: "))).toHaveLength(17);
  await eventually(
    async () => [...childrenOf(server.pid).values()].filter((args) => args.includes("documents.js")).length,
    (processes) => processes === 16,
  );
  // It has another one now, and nobody was told that anything was lost.
  const [again] = await say(server, threads[0] ?? "", READ);
  expect(again).toMatch(/^completed: Handbook: /);
  expect(again).not.toBe(answers[0]);
  const { notifications } = await server.call<{ notifications: { kind: string }[] }>("notification/list");
  expect(notifications.filter(({ kind }) => kind.startsWith("mcp."))).toEqual([]);
});

test.each(["SIGKILL", "SIGTERM"] as const)("a server that ends by %s leaves no process", async (signal) => {
  const server = await serve();
  const thread_id = await start(server);
  await say(server, thread_id, READ);
  await server.call("turn/start", { thread_id, input: BUILD });
  // One waits for its next call, the other is in the middle of its work.
  const children = await eventually(
    async () => childrenOf(server.pid),
    (found) =>
      [/documents\.js$/, /nightly_build\.js$/].every((one) => [...found.values()].some((args) => one.test(args))),
  );
  expect(await server.stop(signal)).toBe(signal === "SIGKILL" ? "SIGKILL" : 0);
  await eventually(
    async () => [...children.keys()].filter(isAlive),
    (left) => left.length === 0,
  );
});
