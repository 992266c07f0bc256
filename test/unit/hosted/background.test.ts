/** Commands in the background, for real: the agent goes on, and is told when they end. */
import { mkdirSync, rmdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { defineTool } from "../../../src/index.js";
import { act, call, longSleep, noneRuns, running, spawn, Talk } from "../../support/background.js";
import { eventually, temporaryFolder } from "../../support/folder.js";
import { servedModel } from "../../support/hosted.js";

const SHELL = { command_lines: true };
const FAILING = { command: "echo out; echo err >&2; sleep 0.3; exit 3" };

describe("a command that fails with code 3", () => {
  test("idle: the agent has answered, is woken once, is told once and how to go on, and fetches the output", async () => {
    const { model, server } = await servedModel();
    const shell = (input: Record<string, unknown>) => ({
      toolCalls: [{ name: "shell", arguments: JSON.stringify(input) }],
    });
    const gate = join(await temporaryFolder(), "open");
    const command = `echo out; echo err >&2; until [ -e ${gate} ]; do sleep 0.1; done; exit 3`;
    server.answers.push(
      shell({ action: "spawn", handle: "build", input: { command } }),
      { content: "It builds." },
      shell({ action: "fetch", handle: "build" }),
      { content: "It failed." },
    );
    const talk = await Talk.open({ model, shell: SHELL });
    await talk.say("build it");
    expect(await talk.answer()).toMatchObject({ handle: "build", tool: "shell", state: "running", failed: false });
    expect(await talk.handled(), "the user was answered before it ended").toEqual([]);
    writeFileSync(gate, "");
    await talk.turnsOver(2);
    const [told, ...more] = await talk.told();
    expect(more).toEqual([]);
    expect(told).toMatch(/^tool_failed: shell \(handle build\) has failed\nexit_code: 3\nerror: exited with code 3\n/);
    expect(told).toContain("call shell with action fetch and handle build to read the error");
    expect(await talk.answer()).toEqual({
      handle: "build",
      tool: "shell",
      state: "stopped",
      error: { message: "exited with code 3", transient: false },
      exit_code: 3,
      output: expect.stringMatching(/^(out\nerr|err\nout)\n$/),
      failed: false,
    });
    expect(talk.tidings.agentCounters).toMatchObject({ wakes: 1, forced_turns: 0, model_calls: 4 });
    expect(await talk.handled()).toEqual(["tool.failed DELIVERED"]);
    expect((await talk.tidings.audit()).problems).toEqual([]);
  });

  test("busy: told with the results of the next tool, in the same turn, and nobody is woken", async () => {
    const ended = defineTool({
      name: "gate",
      description: "Waits until the command has ended.",
      input: z.object({}),
      async run() {
        await talk.becomes("tool.failed PENDING");
        return "open";
      },
    });
    const talk = await Talk.open({ tools: [ended], shell: SHELL });
    await talk.say(spawn("build", FAILING), call("gate", {}));
    expect(await talk.told()).toEqual([expect.stringContaining("exit_code: 3")]);
    const items = await talk.items();
    const at = (type: string) => items.findLastIndex((item) => item.type === type);
    expect(at("observation")).toBeGreaterThan(at("tool_call"));
    expect(items.filter((item) => item.type === "message" && item.role === "user")).toHaveLength(1);
    expect(talk.tidings.agentCounters).toMatchObject({ wakes: 0, model_calls: 2 });
  });

  test("awaiting: the answer says it, and there is no notification at all", async () => {
    const talk = await Talk.open({ shell: SHELL });
    await talk.say(spawn("build", FAILING), call("await", { all: ["build"], timeout_secs: 60 }));
    expect(await talk.answer()).toMatchObject({
      failed: false,
      status: "completed",
      completed: [{ handle: "build", state: "stopped", exit_code: 3, error: { message: "exited with code 3" } }],
      pending: [],
    });
    await talk.becomes("tool.failed SUPPRESSED observed");
    expect(await talk.told()).toEqual([]);
    expect(talk.tidings.agentCounters).toMatchObject({ wakes: 0, model_calls: 2 });
    // What was awaited can still be read whole.
    await talk.say(act("fetch", "build"));
    expect(await talk.answer()).toMatchObject({ exit_code: 3, output: expect.stringContaining("out") });
  });
});

describe("a command", () => {
  test("says what it prints while it runs, takes input, and ends well", async () => {
    const talk = await Talk.open({ shell: SHELL });
    await talk.say(spawn("echo", { command: "while read -r line; do echo got $line; done; echo bye" }));
    await talk.say(act("apply", "echo", { text: "one\n" }));
    expect(await talk.answer()).toMatchObject({ applied: "sent", state: "running" });
    const said = await eventually(
      async () => {
        await talk.say(act("fetch", "echo"));
        return talk.answer();
      },
      ({ output }) => output !== undefined,
    );
    expect(said).toMatchObject({ state: "running", output: "got one\n" });
    await talk.say(act("fetch", "echo"));
    expect((await talk.answer()).output, "what was read is not said again while it runs").toBeUndefined();
    await talk.say(act("apply", "echo", { text: "two\n\u0004" }), call("await", { all: ["echo"] }));
    await talk.say(act("fetch", "echo"));
    expect(await talk.answer()).toMatchObject({
      state: "stopped",
      result: "exited with code 0",
      exit_code: 0,
      output: "got one\ngot two\nbye\n",
    });
    await talk.say(act("apply", "echo", { text: "three" }));
    expect(await talk.answer()).toMatchObject({ failed: true, error: "handle_stopped" });
  });

  test("takes input that is sent in the batch that starts it", async () => {
    const talk = await Talk.open({ shell: {} });
    await talk.say(
      spawn("cat", { argv: ["cat"] }),
      act("apply", "cat", { text: "one\n" }),
      act("apply", "cat", { text: "two\n\u0004" }),
      act("apply", "cat", { text: "three\n" }),
      call("await", { all: ["cat"] }),
    );
    expect(await talk.answer(4)).toMatchObject({ applied: "sent", failed: false });
    expect(await talk.answer(3)).toMatchObject({ applied: "sent", failed: false });
    expect(await talk.answer(2)).toMatchObject({ failed: true, error: expect.stringMatching(/not_taken|stopped/) });
    expect(await talk.answer(1)).toMatchObject({ completed: [{ exit_code: 0, output: "one\ntwo\n" }] });
  });

  test("is a program with arguments unless the operator allows command lines: no shell reads them", async () => {
    const folder = await temporaryFolder();
    const talk = await Talk.open({ shell: { folder } });
    const argv = ["printf", "%s|", "$(echo no)", "; echo no", "a b", "'", '"'];
    await talk.say(
      spawn("print", { argv }),
      spawn("where", { argv: ["pwd"] }),
      call("await", { all: ["print", "where"] }),
    );
    expect(await talk.answer()).toMatchObject({
      completed: [{ output: "$(echo no)|; echo no|a b|'|\"|" }, { output: expect.stringContaining(folder) }],
    });
    await talk.say(spawn("line", { command: "echo no" }));
    expect(await talk.answer()).toMatchObject({ failed: true, error: "bad_arguments" });
    await talk.say(spawn("option", { argv: ["-a", "x", "echo"] }));
    expect(await talk.answer()).toMatchObject({ failed: true, error: "bad_arguments" });
    await talk.say(spawn("none", { argv: ["no-such-program"] }), call("await", { all: ["none"] }));
    expect(await talk.answer()).toMatchObject({ completed: [{ exit_code: 127 }] });
  });

  test("sees the environment variables that it may see, and no others", async () => {
    process.env["TIDINGS_TEST_SECRET"] = "secret";
    process.env["TIDINGS_TEST_PUBLIC"] = "public";
    const talk = await Talk.open({ shell: { ...SHELL, environment: ["PATH", "TIDINGS_TEST_PUBLIC"] } });
    await talk.say(spawn("env", { command: "env" }), call("await", { all: ["env"] }));
    const [{ output = "" } = {}] = (await talk.answer())["completed"] as { output?: string }[];
    expect(output).toContain("TIDINGS_TEST_PUBLIC=public");
    expect(output).not.toContain("secret");
    expect(output).not.toContain("HOME=");
  });

  test("is external: an internal turn that runs one is shown to the user first", async () => {
    const talk = await Talk.open({ shell: {} });
    const directive = spawn("a", { argv: ["true"] });
    const { thread_id } = talk;
    const decides = { thread_id, target: "agent", handler: "agent", content: "go", directive } as const;
    const { id } = await talk.tidings.notify(decides);
    await talk.becomes("tool.stopped DELIVERED");
    expect(await talk.tidings.read(id)).toMatchObject({ channel: "floor", state: "ESCALATED" });
    expect(talk.tidings.tools.list()).toMatchObject([{ name: "shell", impact: "external" }]);
  });

  test("whose folder is not there any more fails in clear words", async () => {
    const folder = join(await temporaryFolder(), "work");
    mkdirSync(folder);
    const talk = await Talk.open({ shell: { folder } });
    rmdirSync(folder);
    await talk.say(spawn("a", { argv: ["true"] }), call("await", { all: ["a"] }));
    const message = `it could not be started: its working folder ${JSON.stringify(folder)} is not there any more`;
    expect(await talk.answer()).toMatchObject({ completed: [{ error: { message, transient: false } }] });
  });

  test("killed from outside: told by which signal", async () => {
    const talk = await Talk.open({ shell: SHELL });
    await talk.say(spawn("victim", { command: "kill -KILL $$" }));
    await talk.becomes("tool.failed DELIVERED");
    expect((await talk.told())[0]).toContain("error: ended by SIGKILL");
  });

  test("is not there unless the host enables it; the file can", async () => {
    const without = await Talk.open({});
    await without.say(spawn("x", { command: "true" }));
    expect((await without.calls())[0]?.content.output).toMatch(/there is no tool "shell"/);
    const data = await temporaryFolder();
    writeFileSync(join(data, "tidings.toml"), "[agent.shell]\nenable = true\ncommand_lines = true\n");
    const withFile = await Talk.open({}, { data });
    await withFile.say(spawn("x", { command: "echo hi" }), call("await", { all: ["x"] }));
    expect(await withFile.answer()).toMatchObject({ completed: [{ output: "hi\n" }] });
  });

  test("its notifications are switched off for the tool, and are in the journal all the same", async () => {
    const data = await temporaryFolder();
    writeFileSync(join(data, "tidings.toml"), "[conversation.tools.shell.notifications]\nfailed = false\n");
    const talk = await Talk.open({ shell: SHELL }, { data });
    await talk.say(spawn("x", { command: "exit 1" }));
    await eventually(
      async () => (await talk.handled()).length,
      (count) => count === 1,
    );
    await talk.say("hello");
    expect(await talk.told()).toEqual([]);
    expect(await talk.handled()).toEqual(["tool.failed SUPPRESSED muted"]);
  });
});

describe("no process is left", () => {
  test("abort ends the whole group, and the one who aborts is not told of it", async () => {
    const [one, other] = [longSleep(), longSleep()];
    const talk = await Talk.open({ shell: SHELL });
    await talk.say(spawn("nap", { command: `${one} & ${other}` }));
    await eventually(
      async () => running(one) + running(other),
      (count) => count >= 2,
    );
    await talk.say(act("abort", "nap"));
    expect(await talk.answer()).toMatchObject({ state: "stopped", error: { message: "aborted by the agent" } });
    expect(running(one) + running(other)).toBe(0);
    expect(await talk.handled()).toEqual(["tool.failed SUPPRESSED observed"]);
  });

  test("one that ignores SIGTERM is killed", async () => {
    const nap = longSleep();
    const talk = await Talk.open({ shell: { ...SHELL, kill_after_ms: 200 } });
    await talk.say(spawn("deaf", { command: `trap "" TERM; echo ready; while :; do ${nap}; done` }));
    await eventually(
      async () => running(nap),
      (count) => count >= 1,
    );
    await talk.say(act("abort", "deaf"));
    expect(await talk.answer()).toMatchObject({ state: "stopped", error: { transient: false } });
    await noneRuns(nap);
  });

  test("what a command leaves behind is ended with it", async () => {
    const nap = longSleep();
    const talk = await Talk.open({ shell: SHELL });
    await talk.say(spawn("parent", { command: `${nap} & echo started` }), call("await", { all: ["parent"] }));
    expect(await talk.answer()).toMatchObject({
      status: "completed",
      completed: [{ exit_code: 0, output: "started\n" }],
    });
    expect(running(nap)).toBe(0);
  });

  test("longer than it may: ended, and told why", async () => {
    const nap = longSleep();
    const talk = await Talk.open({ shell: { ...SHELL, time_limit_secs: 1 } });
    await talk.say(spawn("slow", { command: nap }), call("await", { all: ["slow"] }));
    expect(await talk.answer()).toMatchObject({ completed: [{ error: { message: "it ran longer than 1 s" } }] });
    expect(running(nap)).toBe(0);
  });

  test("Tidings closes: all are ended, the agent hears of it at the next start and can ask", async () => {
    const data = await temporaryFolder();
    const nap = longSleep();
    const talk = await Talk.open({ shell: SHELL }, { data });
    await talk.say(spawn("nap", { command: `echo before; ${nap}` }));
    await eventually(
      async () => running(nap),
      (count) => count >= 1,
    );
    await talk.tidings.close();
    expect(running(nap)).toBe(0);
    const again = await Talk.open({ shell: SHELL }, { data });
    await again.becomes("tool.failed DELIVERED");
    expect((await again.told())[0]).toContain("its host was closed");
    await again.say(act("fetch", "nap"));
    expect(await again.answer()).toMatchObject({ state: "stopped", output: "before\n" });
  });

  test("the conversation is closed: all of its are ended", async () => {
    const nap = longSleep();
    const talk = await Talk.open({ shell: SHELL });
    await talk.say(spawn("nap", { command: nap }));
    await talk.tidings.thread(talk.thread_id).close();
    expect(running(nap)).toBe(0);
    expect((await talk.tidings.audit()).problems).toEqual([]);
  });
});

describe("much", () => {
  test("100 MB are read to their end, and the beginning and the end are kept", async () => {
    const talk = await Talk.open({ shell: SHELL });
    const command = "echo first; head -c 100000000 /dev/zero | tr '\\0' x; echo; echo last";
    await talk.say(spawn("flood", { command }), call("await", { all: ["flood"], timeout_secs: 120 }));
    await talk.say(act("fetch", "flood"));
    const { output, exit_code } = (await talk.answer()) as { output?: string; exit_code?: number };
    expect(exit_code).toBe(0);
    expect(output).toMatch(/^first\nx+\n\(\d+ characters left out\)\nx+\nlast\n$/);
    expect(output?.length).toBeLessThan(40_000);
  });

  test("more than a command may print: it is ended", async () => {
    const talk = await Talk.open({ shell: { ...SHELL, output_bytes_max: 10_000 } });
    await talk.say(spawn("flood", { command: "yes tidings-flood" }), call("await", { all: ["flood"] }));
    expect(await talk.answer()).toMatchObject({
      completed: [{ error: { message: "it printed more than 10000 bytes" } }],
    });
    expect(running("yes tidings-flood")).toBe(0);
  });

  test("more commands than may run at once: a typed refusal that may pass", async () => {
    const talk = await Talk.open({ shell: { ...SHELL, processes_max: 1 } });
    await talk.say(
      spawn("a", { command: longSleep() }),
      spawn("b", { command: "true" }),
      call("await", { all: ["b"] }),
    );
    expect(await talk.answer()).toMatchObject({
      completed: [{ error: { message: "1 commands run already", transient: true } }],
    });
  });
});
