/** The commands for what a running server has: its conversations, their turns, and any of its methods. */
import type { ChildProcess } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { METHODS } from "../../src/server/methods.js";
import { eventually, temporaryFolder } from "../support/folder.js";
import { Server } from "../support/server.js";
import { run, start } from "./cli.js";

let server: Server;
beforeAll(async () => {
  const data = await mkdtemp(join(tmpdir(), "tidings-cli-server-"));
  server = await Server.start({ data, keep: true, args: ["--provider", "rehearsal"] });
});
afterAll(async () => {
  expect(await server.stop()).toBe(0);
  expect(server.stderr).toBe("");
  await rm(server.data, { recursive: true, force: true });
});

const onServer = (...line: string[]) => run([...line, "--data", server.data]);

async function lines(...line: string[]): Promise<unknown[]> {
  const { stdout, stderr, code } = await onServer(...line, "--json");
  expect({ code, stderr }, line.join(" ")).toEqual({ code: 0, stderr: "" });
  return stdout
    .split("\n")
    .slice(0, -1)
    .map((text) => JSON.parse(text) as unknown);
}

let threads = 0;
async function thread(user_id?: string): Promise<string> {
  threads += 1;
  const thread_id = `talk-${threads}`;
  await server.call("thread/start", { thread_id, ...(user_id === undefined ? {} : { user_id }) });
  return thread_id;
}

interface TurnsAnswer {
  readonly turns: readonly { turn_id: string; state: string }[];
}
const turnsOf = (thread_id: string) => server.call<TurnsAnswer>("queue/list", { thread_id });

/** A turn that takes a minute, unless it is stopped. */
async function busy(): Promise<{ thread_id: string; turn_id: string }> {
  const thread_id = await thread();
  const { turn_id } = await server.call<{ turn_id: string }>("turn/start", { thread_id, input: "say slowly 1200" });
  return { thread_id, turn_id };
}

async function ended(thread_id: string): Promise<void> {
  await eventually(
    () => turnsOf(thread_id),
    ({ turns }) => turns.length === 0,
    30_000,
  );
}

/** A `tidings turn` that is being followed. */
class Turn {
  stdout = "";
  stderr = "";
  readonly code: Promise<number | null>;
  readonly process: ChildProcess;

  constructor(...line: string[]) {
    this.process = start(["turn", ...line, "--data", server.data], { NO_COLOR: "1" });
    this.process.stdin?.end();
    this.process.stdout?.setEncoding("utf8").on("data", (text: string) => {
      this.stdout += text;
    });
    this.process.stderr?.setEncoding("utf8").on("data", (text: string) => {
      this.stderr += text;
    });
    this.code = new Promise((resolve) => this.process.on("close", resolve));
    onTestFinished(() => {
      this.process.kill("SIGKILL");
    });
  }

  says(words: RegExp): Promise<Turn> {
    return eventually(
      async () => this,
      ({ stdout, stderr }) => words.test(`${stdout}${stderr}`),
      30_000,
    ).catch(() => {
      throw new Error(`waited for ${words} in vain; it said ${JSON.stringify([this.stdout, this.stderr])}`);
    });
  }
}

describe("threads", () => {
  test("are listed with what they are about, the latest first; the closed ones if all are wanted", async () => {
    const user = "ada of the threads";
    const quiet = await thread(user);
    const paused = await thread(user);
    const closed = await thread(user);
    await server.call("thread/pause", { thread_id: paused });
    await server.call("turn/start", { thread_id: paused, input: "What about\nthe \u001b[31mdeployment?" });
    await server.call("thread/close", { thread_id: closed });
    const named = async (...more: string[]) => {
      const [page] = (await lines("threads", "--user", user, ...more)) as [
        { threads: { thread_id: string; state: string; title: string | null }[]; next: string | null },
      ];
      return page;
    };
    const { threads: open, next } = await named();
    expect(new Map(open.map(({ thread_id, state }) => [thread_id, state]))).toEqual(
      new Map([
        [quiet, "open"],
        [paused, "paused"],
      ]),
    );
    expect(next).toBeNull();
    const all = await named("--all");
    expect(all.threads).toHaveLength(3);
    const first = await named("--all", "--limit", "1");
    expect(first.threads).toMatchObject(all.threads.slice(0, 1));
    const rest = await named("--all", "--limit", "2", "--after", first.next ?? "");
    expect(rest.threads.map(({ thread_id }) => thread_id)).toEqual(
      all.threads.slice(1).map(({ thread_id }) => thread_id),
    );

    const shown = await onServer("threads", "--user", user);
    expect(shown).toMatchObject({ code: 0, stderr: "" });
    const row = shown.stdout.split("\n").find((line) => line.includes(paused));
    expect(row).toMatch(/^paused +\S.* {2}talk-\d+ {2}What about the .*deployment\?/);
    expect(row).toContain("(1 message waits)");
    expect(shown.stdout).not.toContain("\u001b");
    expect(shown.stdout).toMatch(new RegExp(`^open .*${quiet}  \\(nothing said yet\\)`, "m"));
    expect(shown.stdout).not.toContain(closed);
    const more = await onServer("threads", "--user", user, "--all", "--limit", "1");
    expect(more.stdout).toContain(
      `threads --all --user '${user}' --limit 1 --after ${first.next} --data ${server.data}`,
    );
    expect((await onServer("threads", "--user", "nobody at all")).stdout).toContain("has no open conversations");
  });

  test("of a folder without a server", async () => {
    const data = await temporaryFolder();
    const one = await Server.start({ data });
    await one.call("thread/start", { thread_id: "left" });
    expect(await one.stop()).toBe(0);
    const { code, stdout } = await run(["threads", "--data", data]);
    expect({ code, stdout }).toMatchObject({ code: 0, stdout: expect.stringMatching(/^open .* left {2}\(nothing/) });
  });
});

describe("turn", () => {
  test("says what became of it, and gives the whole answer", async () => {
    const thread_id = await thread();
    const { code, stdout, stderr } = await onServer("turn", thread_id, "good day");
    expect(stderr).toMatch(/^tidings: started: a turn has begun \(\S+\)\n$/);
    expect(stdout).toContain('I read: "good day".');
    expect(code).toBe(0);
    const called = await run(["turn", thread_id, "-", "--data", server.data], { input: "call read_notifications {}" });
    expect(called).toMatchObject({ code: 0, stdout: expect.stringContaining("⚙ read_notifications {} → ") });
  });

  test("as JSON: what became of it, what happens, and the end", async () => {
    const thread_id = await thread();
    const told = (await lines("turn", thread_id, "hello")) as Record<string, unknown>[];
    const [first, last] = [told[0], told.at(-1)];
    const { turn_id } = (first?.["turn"] ?? {}) as { turn_id?: string };
    expect(first).toMatchObject({ how: "started", turn: { thread_id, content: "hello" } });
    expect(last).toEqual({ over: { turn_id, how: "completed" } });
    const between = told.slice(1, -1) as { method: string; params: { turn_id: string } }[];
    expect(between.map(({ method }) => method)).toEqual(
      expect.arrayContaining(["turn/started", "item/created", "turn/completed"]),
    );
    expect(new Set(between.map(({ params }) => params.turn_id))).toEqual(new Set([turn_id]));
  });

  test("is for the turn that runs, or waits for it, or stops it; and follows what it is for", async () => {
    const { thread_id, turn_id } = await busy();
    expect(await lines("turn", thread_id, "this too", "--no-wait")).toMatchObject([
      { how: "steered", turn: { turn_id } },
    ]);
    expect(await lines("turn", thread_id, "and this", "--steer", "--no-wait")).toMatchObject([{ how: "steered" }]);
    const waiting = new Turn(thread_id, "say slowly 1", "--start");
    await waiting.says(/queued: it waits for its turn/);
    const other = (await turnsOf(thread_id)).turns.find(({ state }) => state === "queued");
    expect(other).toBeDefined();
    // What the busy one says is not shown by the one that waits.
    expect(waiting.stdout).toBe("");
    const replied = await onServer("turn", thread_id, "say slowly 2", "--interrupt");
    expect(replied.stderr).toMatch(/^tidings: interrupted: the turn that ran was stopped \(\S+\)\n$/);
    expect(replied).toMatchObject({ code: 0, stdout: expect.stringContaining("word-2") });
    expect(await waiting.code).toBe(0);
    expect(waiting.stdout).toContain("word-1");
    await ended(thread_id);
    const late = await onServer("turn", thread_id, "late", "--steer");
    expect(late).toMatchObject({ code: 4, stdout: "" });
    const nothing = await onServer("turn", thread_id, "--interrupt");
    expect(nothing).toMatchObject({ code: 4, stderr: expect.stringContaining("no turn is active") });
  });

  test("that is stopped is followed to its end; Ctrl+C ends the following alone", async () => {
    const { thread_id } = await busy();
    const stopped = await onServer("turn", thread_id, "--interrupt");
    expect(stopped).toMatchObject({ code: 0, stdout: expect.stringContaining("the turn was stopped") });
    await ended(thread_id);
    const following = new Turn(thread_id, "say slowly 1200");
    await following.says(/started/);
    following.process.kill("SIGINT");
    expect(await following.code).toBe(0);
    expect(following.stderr).toContain(`turn ${thread_id} --interrupt --data`);
    expect((await turnsOf(thread_id)).turns).toHaveLength(1);
    expect(await onServer("turn", thread_id, "--interrupt", "--no-wait")).toMatchObject({ code: 0 });
  });

  test("of a paused conversation is not waited for", async () => {
    const thread_id = await thread();
    await server.call("thread/pause", { thread_id });
    const { code, stderr, stdout } = await onServer("turn", thread_id, "later");
    expect({ code, stdout }).toEqual({ code: 0, stdout: "" });
    expect(stderr).toMatch(/queued: [\s\S]*paused/);
  });

  test("of somebody else's conversation is said, and followed with a token of theirs", async () => {
    const user_id = "bob of the turns";
    const thread_id = await thread(user_id);
    const refused = await onServer("turn", thread_id, "hello");
    expect(refused).toMatchObject({ code: 2, stdout: "" });
    expect(refused.stderr).toContain(`token create --user '${user_id}' --scope read --scope agent`);
    expect((await turnsOf(thread_id)).turns, "nothing was said").toEqual([]);
    expect(await onServer("turn", thread_id, "hello", "--no-wait")).toMatchObject({ code: 0 });
    await ended(thread_id);
    const { token } = await server.createToken({ user_id, scopes: ["read", "agent"] });
    const theirs = await run(["turn", thread_id, "hello again", "--server", server.url, "--token", token]);
    expect(theirs).toMatchObject({ code: 0, stdout: expect.stringContaining("hello again") });
  });

  test("needs a server, an agent, a conversation and words", async () => {
    const data = await temporaryFolder();
    const none = await run(["turn", "x", "hello", "--data", data]);
    expect(none).toMatchObject({ code: 5, stderr: expect.stringContaining("only a server hosts an agent") });
    const idle = await Server.start({ data });
    await idle.call("thread/start", { thread_id: "x" });
    const without = await run(["turn", "x", "hello", "--data", data]);
    expect(without).toMatchObject({ code: 4, stderr: expect.stringContaining("--provider") });
    expect(await onServer("turn", "no such thread", "hello")).toMatchObject({ code: 3 });
    for (const line of [[], ["x"], ["x", "one", "two"], ["x", "one", "--steer", "--start"]])
      expect(await onServer("turn", ...line), line.join(" ")).toMatchObject({ code: 2, stdout: "" });
  });
});

describe("rpc", () => {
  test("calls any method, with parameters from a word or a pipe, and prints the result on one line", async () => {
    const status = await onServer("rpc", "runtime/status");
    expect(status).toMatchObject({ code: 0, stderr: "" });
    expect(status.stdout).toMatch(/^\{.*\}\n$/);
    expect(JSON.parse(status.stdout)).toMatchObject({ status: "running", pid: server.pid });
    const given = await onServer("rpc", "inbox/counts", '{"user_id": "ada"}', "--json");
    expect(JSON.parse(given.stdout)).toEqual({ unacknowledged: 0, unread: 0, cap: 1000 });
    const line = ["rpc", "notification/notify", "-", "--data", server.data];
    const piped = await run(line, { input: '{"content": "piped", "target": "user"}' });
    expect(JSON.parse(piped.stdout)).toMatchObject({ channel: "inbox", state: "DISPATCHED" });
    expect((await onServer("rpc", "holon/status")).code).toBe(0);
  });

  test("tells errors with their code and data, and by exit codes as elsewhere", async () => {
    const missing = await onServer("rpc", "notification/read", '{"id": "none"}');
    expect(missing).toMatchObject({ code: 3, stdout: "" });
    const [words, data] = missing.stderr.split("\n");
    expect(words).toMatch(/^tidings: no notification "none" .*\(-32004\)$/);
    expect(JSON.parse(data ?? "")).toEqual({ code: "not_found", reason: "not_found", id: "none" });
    const bad = await onServer("rpc", "notification/read", "{}", "--json");
    expect(bad).toMatchObject({ code: 2, stderr: "" });
    expect(JSON.parse(bad.stdout)).toMatchObject({
      error: { code: -32602, data: { code: "invalid_input", field: "id", reason: "is required" } },
    });
    const thread_id = await thread();
    const conflict = await onServer("rpc", "turn/steer", JSON.stringify({ thread_id, input: "x" }));
    expect(conflict).toMatchObject({ code: 4, stderr: expect.stringContaining("(-32009)") });
    const { token } = await server.createToken({ scopes: ["read"] });
    const forbidden = await run(["rpc", "token/list", "--server", server.url, "--token", token]);
    expect(forbidden).toMatchObject({ code: 7, stderr: expect.stringContaining("(-32003)") });
    const wrong = await run(["rpc", "token/list", "--server", server.url, "--token", "tdg_wrong"]);
    expect(wrong).toMatchObject({ code: 7, stderr: expect.stringContaining("(-32002)") });
  });

  test("of a method that is not there, names the nearest", async () => {
    const near = await onServer("rpc", "notification/lst");
    expect(near).toMatchObject({ code: 3, stdout: "" });
    expect(near.stderr).toMatch(/there is no method "notification\/lst".*notification\/list.*rpc --list.*\(-32601\)/);
    expect((await onServer("rpc", "zzzzzz")).stderr).toMatch(/there is no method "zzzzzz"\. .*rpc --list/);
  });

  test("lists the methods with their scopes and summaries", async () => {
    const { code, stdout } = await onServer("rpc", "--list");
    expect(code).toBe(0);
    for (const { name, scope, summary } of METHODS)
      expect(stdout).toMatch(
        new RegExp(`^${name} +${scope} +${summary.slice(0, 20).replace(/[.*+?^$(){}|[\]\\]/g, "\\$&")}`, "m"),
      );
    const listed = await lines("rpc", "--list");
    expect(listed).toEqual(METHODS.map(({ name, scope, summary }) => ({ name, scope, summary })));
  });

  test("needs a server, a method, and parameters that are an object", async () => {
    const none = await run(["rpc", "runtime/status", "--data", await temporaryFolder()]);
    expect(none).toMatchObject({ code: 5, stderr: expect.stringContaining("only a server has methods") });
    const bad = [
      [],
      ["--list", "runtime/status"],
      ["runtime/status", "["],
      ["runtime/status", "[1]"],
      ["a", "{}", "c"],
    ];
    for (const line of bad)
      expect(await onServer("rpc", ...line), line.join(" ")).toMatchObject({ code: 2, stdout: "" });
  });
});
