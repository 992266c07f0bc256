/** `tidings tail`: what a server tells, a line each, until it is ended. */
import type { ChildProcess } from "node:child_process";
import { describe, expect, onTestFinished, test } from "vitest";
import { eventually, temporaryFolder } from "../support/folder.js";
import { Server } from "../support/server.js";
import { run, start } from "./cli.js";

/** A process that says things until it is ended. */
class Tail {
  stdout = "";
  stderr = "";
  readonly ended: Promise<number | null>;
  readonly #process: ChildProcess;

  constructor(words: readonly string[]) {
    this.#process = start(["tail", ...words], { NO_COLOR: "1" });
    this.#process.stdout?.setEncoding("utf8").on("data", (text: string) => {
      this.stdout += text;
    });
    this.#process.stderr?.setEncoding("utf8").on("data", (text: string) => {
      this.stderr += text;
    });
    this.ended = new Promise((resolve) => this.#process.on("close", (code) => resolve(code)));
    onTestFinished(() => {
      this.#process.kill("SIGKILL");
    });
  }

  get lines(): string[] {
    return this.stdout.split("\n").slice(0, -1);
  }

  says(wanted: (tail: Tail) => boolean): Promise<Tail> {
    return eventually(async () => this, wanted, 60_000).catch(() => {
      throw new Error(`waited in vain; it said ${JSON.stringify([this.stdout, this.stderr])}`);
    });
  }

  async end(): Promise<void> {
    this.#process.kill("SIGINT");
    expect(await this.ended).toBe(0);
  }
}

const notify = (server: Server, content: string, more: object = {}) =>
  server.call<{ id: string; seq: number }>("notification/notify", { content, target: "user", ...more });

/** It follows from a place that is known, and so nothing depends on when it has connected. */
async function seqOf(server: Server): Promise<string> {
  return String((await server.call<{ seq: number }>("initialize")).seq);
}

test("what happens is a line each, without what a terminal would obey; Ctrl+C ends it", async () => {
  const server = await Server.start({ args: ["--provider", "rehearsal"] });
  const tail = new Tail(["--data", server.data, "--since", "0"]);
  const { id } = await notify(server, "Lunch is\nready \u001b[31mnow\u202e", { severity: "warning" });
  await server.call("notification/ack", { id, revision: 1, action: "clicked" });
  const { thread_id } = await server.call("thread/start");
  await server.call("turn/start", { thread_id, input: "call read_notifications {}" });
  await tail.says(({ stdout }) => stdout.includes("turn/completed"));
  await server.call("turn/start", { thread_id, input: "good day" });
  await tail.says(({ stdout }) => stdout.split("turn/completed").length === 3);
  await tail.end();
  expect(tail.stderr).toBe("");
  const [created, updated, ...others] = tail.lines;
  expect(created).toMatch(
    /^\d\d:\d\d:\d\d {2}notification\/created {2}▲ direct: Lunch is ready \\u\{1b\}\[31mnow\\u\{202e\}$/,
  );
  expect(updated).toMatch(/^\d\d:\d\d:\d\d {2}notification\/updated {2}▲ direct: DELIVERED, clicked: Lunch is ready /);
  for (const shape of [
    new RegExp(`thread/started {8}${thread_id}: running$`),
    new RegExp(`turn/started {10}${thread_id}: \\S+, opened by the user$`),
    /item\/created {10}user: call read_notifications \{\}$/,
    /item\/created {10}tool: read_notifications \{\}$/,
    /item\/updated {10}tool: read_notifications \{\} → /,
    /item\/created {10}assistant: .*"good day"/,
  ])
    expect(
      others.some((line) => shape.test(line)),
      `${shape} in ${tail.stdout}`,
    ).toBe(true);
  expect(tail.stdout).not.toMatch(/inbox\/counts|turn\/progress/);
});

test("with --json, frames, a line each; of the methods and the conversation that are asked for", async () => {
  const server = await Server.start({ args: ["--provider", "rehearsal"] });
  const since = await seqOf(server);
  const [{ thread_id }, other] = [await server.call("thread/start"), await server.call("thread/start")];
  await notify(server, "elsewhere", { thread_id: other["thread_id"] });
  await notify(server, "here", { thread_id });
  await notify(server, "nowhere");
  const of = ["--data", server.data, "--since", since, "--json"];
  const created = new Tail([...of, "--methods", "notification/created"]);
  const thread = new Tail([...of, "--thread", String(thread_id)]);
  const observing = new Tail([...of, "--observe", "--methods", "item/created,inbox/counts"]);
  await notify(server, "for the agent", { target: "agent", thread_id });
  await server.call("turn/start", { thread_id, input: "hello" });
  await notify(server, "the end", { thread_id });
  const frames = (tail: Tail) => tail.lines.map((line) => JSON.parse(line));
  const content = (frame: { params: { notification?: { content: string } } }) => frame.params.notification?.content;
  await created.says((tail) => tail.stdout.includes("the end"));
  expect(frames(created).map(content)).toEqual(["elsewhere", "here", "nowhere", "the end"]);
  expect(Object.keys(frames(created)[0])).toEqual(["method", "params"]);
  await thread.says((tail) => tail.stdout.includes("turn/completed") && tail.stdout.includes("the end"));
  expect(thread.stdout).not.toMatch(/elsewhere|nowhere/);
  expect(new Set(frames(thread).map(({ params }) => params.thread_id ?? params.notification.thread_id))).toEqual(
    new Set([thread_id]),
  );
  await observing.says((tail) => tail.stdout.includes("observation") && tail.stdout.includes("inbox/counts"));
  expect(new Set(frames(observing).map(({ method }) => method))).toEqual(new Set(["item/created", "inbox/counts"]));
  await Promise.all([created.end(), thread.end(), observing.end()]);
});

test("from now on, over a server that is killed and comes back: nothing is left out, and it says so", async () => {
  const data = await temporaryFolder();
  const env = { TIDINGS_OWN_TOKEN: "a-token-that-stays-the-same" };
  const first = await Server.start({ data, env });
  await notify(first, "before");
  const tail = new Tail(["--data", data, "--json", "--methods", "notification/created"]);
  // It is there when it says something.
  let heard = 0;
  await eventually(
    async () => {
      heard += 1;
      await notify(first, `heard ${heard}`);
      return tail.lines.length;
    },
    (lines) => lines > 0,
    60_000,
  );
  await tail.says(({ stdout }) => stdout.includes(`"heard ${heard}"`));
  await first.kill();
  await tail.says(({ stderr }) => stderr.includes("trying again"));
  const second = await Server.start({ data, env, args: ["--port", new URL(first.url).port] });
  await notify(second, "after");
  await tail.says(({ stdout, stderr }) => stdout.includes('"after"') && stderr.includes("connected again"));
  await tail.end();
  expect(tail.stderr).toMatch(/^tidings: .* tells no more: .*; trying again\ntidings: connected again\n$/);
  const contents = tail.lines.map((line) => JSON.parse(line).params.notification.content as string);
  const numbers = contents.slice(0, -1).map((text) => Number(text.replace("heard ", "")));
  expect(contents.at(-1)).toBe("after");
  // From the first that it heard of, every one.
  expect(numbers).toEqual(Array.from({ length: numbers.length }, (_, n) => heard - numbers.length + 1 + n));
  expect(await second.stop()).toBe(0);
});

describe("it ends with a message", () => {
  test("where no server runs", async () => {
    const data = await temporaryFolder();
    const { code, stdout, stderr } = await run(["tail", "--data", data]);
    expect({ code, stdout }).toEqual({ code: 5, stdout: "" });
    expect(stderr).toMatch(/no server runs on .* start one with `.*serve .*`, or name one with --server/);
  });

  test("for a method that there is none of, and for words", async () => {
    const { code, stderr } = await run(["tail", "--methods", "notification/creatd"]);
    expect(code).toBe(2);
    expect(stderr).toMatch(/no "notification\/creatd"; did you mean notification\/created\?/);
    expect(await run(["tail", "what"])).toMatchObject({ code: 2 });
  });

  test("for a token that may not, and for one that is taken back meanwhile", async () => {
    const server = await Server.start();
    const writes = await server.createToken({ scopes: ["ingest"] });
    const line = ["--server", server.url, "--token"];
    expect(await run(["tail", ...line, writes.token])).toMatchObject({ code: 7, stdout: "" });
    const reads = await server.createToken({ user_id: "ada", scopes: ["read"] });
    const tail = new Tail([...line, reads.token, "--since", "0"]);
    await notify(server, "for ada", { user_id: "ada" });
    await notify(server, "for somebody else");
    await tail.says(({ stdout }) => stdout.includes("for ada"));
    await server.call("token/revoke", { id: reads.id });
    expect(await tail.ended).toBe(7);
    expect(tail.stderr).toMatch(/^tidings: the token was revoked\n$/);
    expect(tail.lines).toHaveLength(1);
  });
});
