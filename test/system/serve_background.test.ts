/**
 * Calls in the background through the real server: another process, `[agent.shell]` in its file, a provider's SDK to a server that speaks
 * its protocol, and everything asked over the wire.
 */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { ThreadItem } from "../../src/index.js";
import type { ThreadPage, TurnView } from "../../src/runtime/conversation.js";
import { longSleep, noneRuns, running } from "../support/background.js";
import { eventually, temporaryFolder } from "../support/folder.js";
import { type ModelServer, modelServer } from "../support/recorder.js";
import { Server } from "../support/server.js";
import { run } from "./cli.js";

type Call = Extract<ThreadItem, { type: "tool_call" }>;

/** What a model answers that calls tools. */
const calls = (...wanted: [name: string, input: object][]) => ({
  toolCalls: wanted.map(([name, input]) => ({ name, arguments: JSON.stringify(input) })),
});
const spawn = (handle: string, ...argv: string[]): [string, object] => [
  "shell",
  { action: "spawn", handle, input: { argv } },
];
const fetches = (handle: string): [string, object] => ["shell", { action: "fetch", handle }];

/** A user of an agent that runs on this model, with commands allowed by the file of the operator. */
class User {
  readonly server: Server;
  readonly model: ModelServer;
  readonly thread_id: string;

  constructor(server: Server, model: ModelServer, thread_id: string) {
    this.server = server;
    this.model = model;
    this.thread_id = thread_id;
  }

  static async begin(more = "", data?: string, env: Record<string, string> = {}): Promise<User> {
    const model = await modelServer();
    const folder = data ?? (await temporaryFolder());
    await writeFile(join(folder, "tidings.toml"), `[agent.shell]\nenable = true\n${more}`);
    const server = await User.serve(folder, model, env);
    const { thread_id } = await server.call<{ thread_id: string }>("thread/start");
    return new User(server, model, thread_id);
  }

  static serve(data: string, model: ModelServer, env: Record<string, string> = {}): Promise<Server> {
    const args = ["--provider", "openai-compatible", "--model", "gpt-5.1", "--base-url", `${model.url}/v1`];
    return Server.start({ data, args, env });
  }

  /** The same conversation on a server that was started again. */
  async again(): Promise<User> {
    return new User(await User.serve(this.server.data, this.model), this.model, this.thread_id);
  }

  say(input: string): Promise<TurnView> {
    return this.server.call("turn/start", { thread_id: this.thread_id, input });
  }

  /** Says something, and waits until nothing runs any more. */
  async converse(input: string): Promise<void> {
    await this.say(input);
    await this.idle();
  }

  idle(): Promise<unknown> {
    return eventually(
      () => this.server.call<{ turns: TurnView[] }>("queue/list", { thread_id: this.thread_id }),
      ({ turns }) => turns.length === 0,
    );
  }

  async items(): Promise<ThreadItem[]> {
    const items: ThreadItem[] = [];
    for (let after: number | null = 0; after !== null; ) {
      const params = { thread_id: this.thread_id, observe: true, internal: true, after };
      const page: ThreadPage = await this.server.call("thread/read", params);
      items.push(...page.items);
      after = page.next;
    }
    return items;
  }

  async told(): Promise<string[]> {
    return (await this.items()).flatMap((item) =>
      item.type === "observation" && item.status === "sent" ? [item.content.text] : [],
    );
  }

  /** What its calls were answered, oldest first. */
  async answers(): Promise<Record<string, unknown>[]> {
    const made = (await this.items()).filter((item): item is Call => item.type === "tool_call");
    return made.map(({ content, status }) => ({ ...JSON.parse(content.output ?? "{}"), failed: status === "failed" }));
  }

  /** The words of the user and the agent, in order. */
  async words(): Promise<string[]> {
    return (await this.items()).flatMap((item) =>
      item.type === "message" ? [`${item.role}: ${item.content.text}`] : [],
    );
  }

  /** The notifications about handles: `kind STATE reason`. */
  async handled(): Promise<string[]> {
    const { notifications } = await this.server.call<{
      notifications: { kind: string; state: string; reason: string | null }[];
    }>("notification/list", { thread_id: this.thread_id, limit: 1_000 });
    return notifications
      .filter(({ kind }) => /^tool\.(stopped|waiting|failed)$/.test(kind))
      .map(({ kind, state, reason }) => `${kind} ${state}${reason === null ? "" : ` ${reason}`}`);
  }

  becomes(...wanted: string[]): Promise<string[]> {
    return eventually(
      () => this.handled(),
      (handled) => handled.join() === wanted.join(),
    );
  }

  /** Waits until the agent was told all that there is to tell, and nothing runs. */
  async becomesQuiet(): Promise<void> {
    await eventually(
      () => this.handled(),
      (handled) => handled.length > 0 && handled.every((one) => !/ (PENDING|LOCKED)$/.test(one)),
      60_000,
    );
    await this.idle();
  }

  /** Waits until the model was asked so often. */
  requested(count: number): Promise<unknown> {
    return eventually(
      async () => this.requests.length,
      (made) => made >= count,
    );
  }

  get requests(): string[] {
    return this.model.recorder.requests.map(({ body }) => body);
  }
}

async function clean(server: Server): Promise<void> {
  expect(await server.stop()).toBe(0);
  expect(server.stderr).toBe("");
  const audit = await run(["audit", "--data", server.data, "--json"]);
  expect(audit).toMatchObject({ code: 0, stderr: "" });
}

/** Ends with code 3 when it is let. */
class Failing {
  readonly argv: string[];
  readonly #gate: string;

  private constructor(gate: string) {
    this.#gate = gate;
    this.argv = ["sh", "-c", `echo broken; until [ -e ${gate} ]; do sleep 0.1; done; exit 3`];
  }

  static async make(): Promise<Failing> {
    return new Failing(join(await temporaryFolder(), "open"));
  }

  end(): Promise<void> {
    return writeFile(this.#gate, "");
  }
}

describe("a command that ends with code 3 after a while", () => {
  test("the agent has answered and is idle: woken once, told once that it failed and how to go on, and fetches the output", async () => {
    const user = await User.begin();
    const failing = await Failing.make();
    user.model.answers.push(calls(spawn("b", ...failing.argv)), { content: "It runs." }, calls(fetches("b")), {
      content: "It failed with 3.",
    });
    await user.converse("build it");
    expect(await user.handled(), "the user was answered before it ended").toEqual([]);
    await failing.end();
    const words = await eventually(
      () => user.words(),
      (all) => all.at(-1) === "assistant: It failed with 3.",
    );
    await user.idle();
    expect(words.filter((line) => !line.startsWith("system"))).toEqual([
      "user: build it",
      "assistant: It runs.",
      "assistant: It failed with 3.",
    ]);
    expect(user.requests).toHaveLength(4);
    const said = "tool_failed: shell (handle b) has failed\\nexit_code: 3\\nerror: exited with code 3\\n";
    expect(user.requests.map((body) => body.split(said).length - 1)).toEqual([0, 0, 1, 1]);
    expect(user.requests[2]).toContain("call shell with action fetch and handle b to read the error");
    expect((await user.answers()).at(-1)).toMatchObject({
      handle: "b",
      state: "stopped",
      exit_code: 3,
      error: { message: "exited with code 3" },
      output: "broken\n",
      failed: false,
    });
    expect(await user.told()).toHaveLength(1);
    expect(await user.handled()).toEqual(["tool.failed DELIVERED"]);
    await clean(user.server);
  });

  test("the agent is busy: told with the results of the next tool, and nobody is woken", async () => {
    const user = await User.begin();
    const failing = await Failing.make();
    const gate = join(await temporaryFolder(), "open");
    const waits = `until [ -e ${gate} ]; do sleep 0.1; done`;
    user.model.answers.push(
      calls(spawn("b", ...failing.argv), spawn("gate", "sh", "-c", waits)),
      calls(["await", { all: ["gate"], timeout_secs: 120 }]),
      { content: "I know." },
    );
    await user.say("build it");
    await user.requested(2);
    await failing.end();
    await user.becomes("tool.failed PENDING");
    await writeFile(gate, "");
    await user.idle();
    const said = "tool_failed: shell (handle b) has failed";
    expect(user.requests.map((body) => body.split(said).length - 1)).toEqual([0, 0, 1]);
    // The result of the call stands before it.
    const last = user.requests[2] ?? "";
    expect(last.indexOf("completed")).toBeGreaterThan(0);
    expect(last.lastIndexOf("tool_failed")).toBeGreaterThan(last.indexOf('\\"status\\"'));
    expect(await user.told()).toHaveLength(1);
    expect((await user.words()).at(-1)).toBe("assistant: I know.");
    await clean(user.server);
  });

  test("the agent awaits it: the answer says it, and there is no notification at all", async () => {
    const user = await User.begin();
    const failing = await Failing.make();
    user.model.answers.push(calls(spawn("b", ...failing.argv)), calls(["await", { all: ["b"] }]), {
      content: "It failed.",
    });
    await user.say("build it");
    await user.requested(2);
    await failing.end();
    await user.idle();
    expect((await user.answers()).at(-1)).toMatchObject({
      status: "completed",
      completed: [{ handle: "b", state: "stopped", exit_code: 3, output: "broken\n" }],
    });
    await user.becomes("tool.failed SUPPRESSED observed");
    await user.converse("hello");
    expect(await user.told()).toEqual([]);
    expect(user.requests).toHaveLength(4);
    expect(user.requests.join()).not.toContain("tool_failed");
    await clean(user.server);
  });

  test("the server is killed while it runs: it is ended, and told of once after the start", async () => {
    const nap = longSleep();
    const first = await User.begin();
    first.model.answers.push(calls(spawn("b", "sh", "-c", `trap "" TERM; ${nap}; ${nap}; exit 3`)), {
      content: "It runs.",
    });
    await first.converse("build it");
    expect(running(nap)).toBeGreaterThan(0);
    await first.server.stop("SIGKILL");
    await noneRuns(nap);

    first.model.answers.push(calls(fetches("b")), { content: "It is gone." });
    const second = await first.again();
    await eventually(
      () => second.words(),
      (all) => all.at(-1) === "assistant: It is gone.",
    );
    await second.idle();
    expect(await second.told()).toEqual([expect.stringContaining("error: its host was gone before it was done")]);
    expect((await second.answers()).at(-1)).toMatchObject({ state: "stopped", error: { transient: true } });
    await second.server.stop("SIGKILL");

    const third = await first.again();
    await third.converse("hello");
    expect(await third.told()).toHaveLength(1);
    expect(await third.handled()).toEqual(["tool.failed DELIVERED"]);
    await clean(third.server);
  });

  test("the server is killed when it has ended and nobody was told: told after the start, once, with its code", async () => {
    const first = await User.begin("", undefined, { TIDINGS_CRASH_AT: "handle.recorded" });
    const failing = await Failing.make();
    first.model.answers.push(calls(spawn("b", ...failing.argv)), { content: "It runs." });
    await first.converse("build it");
    await failing.end();
    expect(await first.server.ended).toBe("SIGKILL");

    first.model.answers.push(calls(fetches("b")), { content: "It failed." });
    const second = await first.again();
    await eventually(
      () => second.words(),
      (all) => all.at(-1) === "assistant: It failed.",
    );
    await second.idle();
    expect(await second.told()).toEqual([expect.stringContaining("exit_code: 3")]);
    expect((await second.answers()).at(-1)).toMatchObject({ exit_code: 3, output: "broken\n" });
    await clean(second.server);
  });
});

describe("bounds", () => {
  test("a thousand handles at once: so many run as may, the others have a typed answer, and none is left", async () => {
    const nap = longSleep();
    const user = await User.begin("processes_max = 20\n");
    const all = Array.from({ length: 1_000 }, (_, n) => `h${n}`);
    user.model.answers.push(calls(...all.map((handle) => spawn(handle, ...nap.split(" ")))), { content: "They run." });
    await user.say("a thousand");
    await user.becomesQuiet();
    const answers = await user.answers();
    expect(answers).toHaveLength(1_000);
    expect(answers.filter(({ state, failed }) => state !== "running" || failed)).toEqual([]);
    expect(running(nap)).toBe(20);
    user.model.answers.push(calls(fetches("h999")), { content: "Refused." });
    await user.converse("and the last?");
    expect((await user.answers()).at(-1)).toMatchObject({
      state: "stopped",
      error: { message: "20 commands run already", transient: true },
    });
    await clean(user.server);
    expect(running(nap)).toBe(0);
  });

  test("100 MB, a command that ignores SIGTERM, a name of 10 kB, a handle that there is not: each a typed answer", async () => {
    const nap = longSleep();
    const user = await User.begin();
    const name = "x".repeat(10_000);
    user.model.answers.push(
      calls(
        spawn("much", "sh", "-c", "head -c 100000000 /dev/zero | tr '\\0' x; echo end"),
        spawn("deaf", "sh", "-c", `trap "" TERM; ${nap}; ${nap}`),
        spawn("short", "true"),
      ),
      calls(["await", { all: ["much"], timeout_secs: 120 }]),
      calls(fetches("much")),
      calls(spawn(name, "true")),
      calls(["await", { all: ["nobody"] }]),
      calls(["await", { any: [name] }]),
      calls(["shell", { action: "abort", handle: "deaf" }]),
      { content: "Done." },
    );
    await user.converse("go on");
    const answers = await user.answers();
    const [, , , awaited, fetched, long, unknown, longer, aborted] = answers;
    expect(awaited).toMatchObject({ status: "completed", completed: [{ handle: "much", exit_code: 0 }] });
    expect(String(fetched?.["output"])).toMatch(/characters left out[\s\S]*end\n$/);
    expect(String(fetched?.["output"]).length).toBeLessThan(40_000);
    expect(long).toMatchObject({ failed: true, error: "bad_arguments", message: expect.stringContaining("handle") });
    expect(unknown).toMatchObject({ failed: true, error: "unknown_handle", unknown: ["nobody"] });
    expect(longer).toMatchObject({ failed: true, error: "bad_arguments" });
    expect(aborted).toMatchObject({ handle: "deaf", state: "stopped", error: { message: "aborted by the agent" } });
    expect(JSON.stringify([long, longer]).length, "the name is not said again").toBeLessThan(1_000);
    expect(running(nap)).toBe(0);
    await clean(user.server);
  });
});
