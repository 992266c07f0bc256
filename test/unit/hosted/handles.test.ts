/** Stateful tools: their calls go on by the names that the model gives them. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { describe, expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { type TurnId, threadId } from "../../../src/domain/ids.js";
import { HOST } from "../../../src/domain/principal.js";
import { defineTool, HandleError } from "../../../src/index.js";
import { ManualClock } from "../../../src/platform/manual_clock.js";
import { BACKGROUND } from "../../../src/runtime/words.js";
import { act, call, spawn, Talk } from "../../support/background.js";
import { eventually, temporaryFolder } from "../../support/folder.js";
import { type Hosted, hosted, THREAD } from "../../support/hosted.js";
import { calls, END, ScriptedModel, STARTED, signal, words } from "../../support/scripted.js";

/** Jobs that run until the test ends them. */
function jobs() {
  const ends = new Map<string, { done: (result: string) => void; fail: (error: unknown) => void }>();
  let spawned = 0;
  let aborted = 0;
  const tool = defineTool({
    name: "job",
    description: "Runs until it is told to end.",
    input: z.object({ ask: z.string().optional() }),
    impact: "internal",
    async spawn({ ask }, handle) {
      spawned += 1;
      if (ask !== undefined) return `you said ${await handle.ask(ask)}`;
      return new Promise<string>((done, fail) => {
        ends.set(handle.id, { done, fail });
        handle.signal.addEventListener("abort", () => {
          aborted += 1;
          fail(new Error("gone"));
        });
      });
    },
  });
  const end = (id: string, result = `result of ${id}`) => ends.get(id)?.done(result);
  const fail = (id: string, error: unknown) => ends.get(id)?.fail(error);
  return { tool, end, fail, spawned: () => spawned, aborted: () => aborted };
}

const job = (handle: string, input = {}) => spawn(handle, input, "job");
const onJob = (action: "fetch" | "apply" | "abort", handle: string, more = {}) =>
  act(action, handle, { tool: "job", ...more });

describe("a handle", () => {
  test("runs across turns, stops with a result, and is told", async () => {
    const { tool, end } = jobs();
    const talk = await Talk.open({ tools: [tool] });
    await talk.say(job("a"));
    expect(await talk.answer()).toEqual({ handle: "a", tool: "job", state: "running", failed: false });
    await talk.say(onJob("fetch", "a"));
    expect(await talk.answer()).toEqual({ handle: "a", tool: "job", state: "running", failed: false });
    end("a");
    await talk.becomes("tool.stopped DELIVERED");
    await talk.say(onJob("fetch", "a"));
    expect(await talk.answer()).toEqual({
      handle: "a",
      tool: "job",
      state: "stopped",
      result: "result of a",
      failed: false,
    });
  });

  test.each([
    ["fetching", "job", { action: "fetch", handle: "b" }],
    ["awaiting", "await", { any: ["b"] }],
  ])("%s withdraws what is pending", async (_, name, input) => {
    const { tool, end } = jobs();
    const model = new ScriptedModel(async function* (number) {
      yield STARTED;
      if (number === 0) yield calls("1", "job", { action: "spawn", handle: "b" });
      if (number === 1) {
        // It ends while the model writes, and is read before the agent is told.
        end("b");
        await talk.becomes("tool.stopped PENDING");
        yield calls("2", name, input);
      }
      yield words("ok");
      yield END;
    });
    const talk: Talk = await Talk.open({ model, tools: [tool] });
    await talk.say("go");
    expect(JSON.stringify(await talk.answer())).toContain("result of b");
    expect(await talk.handled()).toEqual(["tool.stopped SUPPRESSED observed"]);
    expect(await talk.told()).toEqual([]);
    expect(talk.tidings.agentCounters).toMatchObject({ wakes: 0 });
  });

  test("fails with an error that may pass, or not", async () => {
    const { tool, fail } = jobs();
    const talk = await Talk.open({ tools: [tool] });
    await talk.say(job("a"), job("b"));
    fail("a", new HandleError("no route", { transient: true, data: { status: 503 } }));
    fail("b", new Error("no such file"));
    await talk.say(call("await", { all: ["a", "b"] }));
    expect(await talk.answer()).toMatchObject({
      status: "completed",
      completed: [
        { handle: "a", state: "stopped", status: 503, error: { message: "no route", transient: true } },
        { handle: "b", state: "stopped", error: { message: "no such file", transient: false } },
      ],
    });
  });

  test("waits for an answer: told, answered by apply, and stops", async () => {
    const { tool } = jobs();
    const talk = await Talk.open({ tools: [tool] });
    await talk.say(job("a", { ask: "debug or release?" }));
    await talk.becomes("tool.waiting DELIVERED");
    expect((await talk.told())[0]).toMatch(
      /^tool_waiting: job \(handle a\) is waiting for input\nquestion: debug or release\?/,
    );
    expect((await talk.told())[0]).toContain("call job with action apply and handle a to answer");
    await talk.say(call("await", { all: ["a"] }));
    expect(await talk.answer(), "waiting for one that waits would be in vain").toMatchObject({
      status: "pending",
      completed: [],
      pending: [{ handle: "a", state: "waiting", question: "debug or release?" }],
    });
    await talk.say(onJob("apply", "a", { text: "release" }), call("await", { all: ["a"] }));
    expect(await talk.answer(2)).toMatchObject({ applied: "answered", state: "running" });
    expect(await talk.answer()).toMatchObject({ status: "completed", completed: [{ result: "you said release" }] });
    expect(await talk.handled()).toEqual(["tool.waiting DELIVERED", "tool.stopped SUPPRESSED observed"]);
    expect((await talk.tidings.audit()).problems).toEqual([]);
  });

  test("a name is free again when its call has stopped; what is told is of the new one", async () => {
    const { tool, end } = jobs();
    const talk = await Talk.open({ tools: [tool] });
    await talk.say(job("a"));
    end("a", "first");
    await talk.becomes("tool.stopped DELIVERED");
    await talk.say(job("a"));
    expect(await talk.answer()).toMatchObject({ state: "running", replaced: { state: "stopped", result: "first" } });
    end("a", "second");
    await talk.becomes("tool.stopped DELIVERED", "tool.stopped DELIVERED");
    await talk.say(onJob("fetch", "a"));
    expect(await talk.answer()).toMatchObject({ result: "second" });
  });

  test("a name that is taken refuses the whole batch before anything runs", async () => {
    const { tool, spawned } = jobs();
    let ran = 0;
    const once = defineTool({
      name: "once",
      description: "",
      input: z.object({}),
      run: () => {
        ran += 1;
        return "ran";
      },
    });
    const talk = await Talk.open({ tools: [tool, once] });
    await talk.say(job("a"));
    for (const batch of [
      [job("b"), call("once", {}), job("a")],
      [job("c"), call("once", {}), job("c")],
    ]) {
      await talk.say(...batch);
      const answers = (await talk.calls()).slice(-3);
      for (const { status, content } of answers) {
        expect(status).toBe("failed");
        expect(JSON.parse(content.output ?? "")).toMatchObject({ error: "handle_collision" });
      }
    }
    expect([spawned(), ran]).toEqual([1, 0]);
    // Of another conversation it is another handle.
    const { thread_id } = await talk.tidings.startThread({ thread_id: "other" });
    await new Talk(talk.tidings, thread_id).say(job("a"));
    expect(spawned()).toBe(2);
  });

  test("offers what its tool says, and belongs to it", async () => {
    const { tool } = jobs();
    const plain = { ...tool, name: "plain", actions: [] };
    const talk = await Talk.open({ tools: [tool, plain] });
    await talk.say(spawn("a", {}, "plain"));
    for (const action of ["apply", "abort"] as const) {
      await talk.say(act(action, "a", { tool: "plain", ...(action === "apply" ? { text: "x" } : {}) }));
      expect(await talk.answer()).toMatchObject({ failed: true, error: "bad_arguments" });
    }
    await talk.say(onJob("fetch", "a"));
    expect(await talk.answer()).toMatchObject({ failed: true, error: "wrong_tool" });
    await talk.say(job("b"), onJob("apply", "b", { text: "x" }));
    expect(await talk.answer()).toMatchObject({ failed: true, error: "not_taken" });
  });

  test("one that takes no notice of its end is left alone, and has failed", async () => {
    const deaf = defineTool({
      name: "job",
      description: "",
      input: z.object({}),
      spawn: () => new Promise<string>(() => undefined),
    });
    const talk = await Talk.open({ tools: [deaf], handles: { abort_ms: 50 } });
    await talk.say(job("a"));
    await talk.say(onJob("abort", "a"));
    expect(await talk.answer()).toMatchObject({ state: "stopped", error: { message: "aborted by the agent" } });
  });
});

test("a new call under the name of one that has stopped says what has come of that", async () => {
  const { tool, fail, spawned } = jobs();
  const model = new ScriptedModel(async function* (number) {
    yield STARTED;
    if (number === 0) yield calls("a", "job", { action: "spawn", handle: "a" });
    if (number === 1) {
      // It stops while the model writes.
      fail("a", new Error("half deployed"));
      await eventually(
        () => plane.store.handle(HOST, threadId(THREAD), "a"),
        (record) => record?.state === "failed",
      );
      yield calls("b", "job", { action: "spawn", handle: "a" });
    }
    yield words("ok");
    yield END;
  });
  const plane: Hosted = await hosted({ model, tools: [tool] });
  await plane.converse("go");
  expect(spawned()).toBe(2);
  const said = (await plane.items()).flatMap((item) => (item.type === "tool_call_response" ? [item.output] : []));
  expect(JSON.parse(said[1] ?? "")).toMatchObject({
    handle: "a",
    state: "running",
    replaced: { state: "stopped", error: { message: "half deployed", transient: false } },
  });
});

describe("what is over", () => {
  /** Asks when the test says so. */
  const asking = () => {
    const { promise, give } = signal();
    const tool = defineTool({
      name: "job",
      description: "",
      input: z.object({}),
      async spawn(_, handle) {
        await promise;
        return handle.ask("which?");
      },
    });
    return { tool, ask: give };
  };

  test("waits for nothing: when its host has closed, its question is told no more", async () => {
    const { tool, ask } = asking();
    const data = await temporaryFolder();
    const talk = await Talk.open({ tools: [tool] }, { data });
    await talk.say(job("a"));
    await talk.tidings.thread(talk.thread_id).pause();
    ask();
    await talk.becomes("tool.waiting PENDING");
    await talk.tidings.close();
    const again = await Talk.open({ tools: [tool] }, { data });
    await again.becomes("tool.waiting SUPPRESSED observed", "tool.failed PENDING");
    await again.tidings.thread(again.thread_id).resume();
    await again.becomes("tool.waiting SUPPRESSED observed", "tool.failed DELIVERED");
    expect(await again.told()).toEqual([expect.stringContaining("its host was closed")]);
  });

  test("waits for nothing: nor when its host is gone without a word", async () => {
    const { tool, ask } = asking();
    const model = new ScriptedModel(async function* (number) {
      yield STARTED;
      if (number === 0) yield calls("a", "job", { action: "spawn", handle: "a" });
      yield words("ok");
      yield END;
    });
    const plane = await hosted({ model, tools: [tool] });
    const told = async () => {
      const { stored } = await plane.store.list(HOST, { thread_id: threadId(THREAD), limit: 10 });
      return stored
        .map(({ notification, delivery }) => `${notification.kind} ${delivery.state}`)
        .filter((line) => /^tool\.(waiting|failed)/.test(line))
        .toSorted();
    };
    const becomes = (...wanted: string[]) => eventually(told, (states) => states.join() === wanted.join());
    await plane.converse("go");
    await plane.agent.pause(HOST, THREAD);
    ask();
    await becomes("tool.waiting PENDING");
    await plane.host({ model, tools: [tool] });
    await becomes("tool.failed PENDING", "tool.waiting SUPPRESSED");
  });

  test("is not told at a start if its tool said so, whenever the tool is registered", async () => {
    const { tool, end } = jobs();
    const silent = { ...tool, emits: ["waiting"] as const };
    const data = await temporaryFolder();
    const talk = await Talk.open({}, { data });
    talk.tidings.tools.register(silent);
    await talk.say(job("done"), job("open"));
    end("done");
    await talk.say(call("await", { all: ["done"] }));
    await talk.tidings.close();
    const again = await Talk.open({}, { data });
    again.tidings.tools.register(silent);
    await again.say(onJob("fetch", "open"));
    expect(await again.answer()).toMatchObject({ error: { message: "ended: its host was closed" } });
    expect(await again.handled()).toEqual([]);
    expect(await again.told()).toEqual([]);
  });

  test("is told again at a start in few commits, however much is kept", async () => {
    const plane = await hosted();
    const record = (id: string) =>
      plane.store.recordHandle(HOST, {
        thread_id: threadId(THREAD),
        id,
        tool: "job",
        state: "stopped",
        detail: { result: id },
      });
    await Promise.all(Array.from({ length: 300 }, (_, at) => record(`h${at}`)));
    let commits = 0;
    plane.store.onCommit(() => {
      commits += 1;
    });
    await plane.host();
    expect(commits).toBeLessThan(100);
    expect(await plane.events("tool.stopped")).toHaveLength(300);
  });
});

describe("a tool that is careless", () => {
  test("asks, works on, and is aborted before it waits for the answer: nothing of that reaches the host", async () => {
    const unhandled: unknown[] = [];
    const hear = (reason: unknown) => unhandled.push(reason);
    process.on("unhandledRejection", hear);
    onTestFinished(() => void process.off("unhandledRejection", hear));
    const { promise: ended, give: end } = signal();
    const early = defineTool({
      name: "job",
      description: "",
      input: z.object({}),
      async spawn(_, handle) {
        const answer = handle.ask("debug or release?");
        void handle.ask("and where?");
        handle.signal.addEventListener("abort", () => void handle.ask("why?"));
        await ended;
        return answer;
      },
    });
    const talk = await Talk.open({ tools: [early], handles: { abort_ms: 50 } });
    await talk.say(job("a"));
    await talk.say(onJob("abort", "a"));
    expect(await talk.answer()).toMatchObject({ state: "stopped", error: { message: "aborted by the agent" } });
    end();
    await talk.say("hello");
    expect(unhandled).toEqual([]);
  });

  test("throws what cannot be put into words: it has failed all the same", async () => {
    const wordless = [
      Object.create(null),
      Object.defineProperty(new Error(), "message", {
        get() {
          throw new Error("no");
        },
      }),
    ];
    const { tool, fail } = jobs();
    const talk = await Talk.open({ tools: [tool] });
    await talk.say(job("0"), job("1"));
    for (const [at, error] of wordless.entries()) fail(String(at), error);
    await talk.say(call("await", { all: ["0", "1"] }));
    const failed = { state: "stopped", error: { message: expect.stringContaining("no words for"), transient: false } };
    expect(await talk.answer()).toMatchObject({ status: "completed", completed: [failed, failed] });
  });
});

test("of what a tool says in one piece no more is held than is kept", async () => {
  setFlagsFromString("--expose-gc");
  const collect: () => void = runInNewContext("gc");
  const held = () => {
    collect();
    const { heapUsed, external } = process.memoryUsage();
    return heapUsed + external;
  };
  const loud = defineTool({
    name: "job",
    description: "",
    input: z.object({}),
    async spawn(_, handle) {
      handle.output("first\n");
      handle.output(`${Buffer.alloc(20_000_000, "x").toString("latin1")}\nlast\n`);
      void handle.ask(Buffer.alloc(20_000_000, "?").toString("latin1"));
      return new Promise<string>(() => undefined);
    },
  });
  const talk = await Talk.open({ tools: [loud], handles: { abort_ms: 0 } });
  const before = held();
  await talk.say(job("a"), job("b"), job("c"), job("d"));
  // Of the four one may still be on its way out; more than that stays only if it is held.
  await eventually(
    async () => held() - before,
    (bytes) => bytes < 20_000_000,
  );
  await talk.say(onJob("fetch", "a"));
  expect((await talk.answer())["output"]).toMatch(/^first\nx+\n\(\d+ characters left out\)\nx+\nlast\n$/);
});

describe("what a tool answers", () => {
  const answers = {
    null: [null, "it answered null; it must answer text, or an object with `result`"],
    list: [[1], "it answered [1]; it must answer text, or an object with `result`"],
    object: [{ ok: true }, 'it answered {"ok":true}; it must answer text, or an object with `result`'],
  } as const;

  test.each(Object.entries(answers))(
    "is text, or an object that has one; other things fail in clear words: %s",
    async (_, [given, message]) => {
      const odd = defineTool({ name: "job", description: "", input: z.object({}), spawn: () => given as never });
      const talk = await Talk.open({ tools: [odd] });
      await talk.say(job("a"), call("await", { all: ["a"] }));
      expect(await talk.answer()).toMatchObject({
        completed: [{ handle: "a", state: "stopped", error: { message, transient: false } }],
      });
    },
  );

  test("is shown as JSON where it is no text", async () => {
    const odd = defineTool({
      name: "job",
      description: "",
      input: z.object({}),
      spawn: () => ({ result: { passed: 3 } as never }),
    });
    const talk = await Talk.open({ tools: [odd] });
    await talk.say(job("a"), call("await", { all: ["a"] }));
    expect(await talk.answer()).toMatchObject({ completed: [{ result: '{"passed":3}' }] });
  });
});

describe("what else a tool says of a call", () => {
  const circular: Record<string, unknown> = {};
  circular["self"] = circular;
  const cases = {
    bigint: [{ n: 1n }, "holds a bigint, which is not JSON"],
    circular: [circular, "is nested deeper than 32 levels"],
    huge: [{ text: "y".repeat(2_000_000) }, "is larger than 65536 bytes"],
    text: ["no object", "must be a JSON object"],
  } as const;

  test.each(Object.entries(cases))("is checked and bounded: %s", async (_, [data, reason]) => {
    const odd = defineTool({
      name: "job",
      description: "",
      input: z.object({ fails: z.boolean() }),
      async spawn({ fails }) {
        if (fails) throw new HandleError("no route", { transient: true, data: data as never });
        return { result: "done", data: data as never };
      },
    });
    const talk = await Talk.open({ tools: [odd] });
    await talk.say(job("a", { fails: false }), job("b", { fails: true }), call("await", { all: ["a", "b"] }));
    const { completed } = await talk.answer();
    expect(completed).toMatchObject([
      { handle: "a", state: "stopped", error: { message: `its data cannot be kept: ${reason}`, transient: false } },
      { handle: "b", state: "stopped", error: { message: expect.stringMatching(/^no route\n/), transient: true } },
    ]);
    expect(JSON.stringify(completed)).toContain(`(its data cannot be kept: ${reason})`);
    await talk.becomes("tool.failed SUPPRESSED observed", "tool.failed SUPPRESSED observed");
  });
});

describe("await", () => {
  test("any, all, and the time that is over", async () => {
    const { tool, end } = jobs();
    const talk = await Talk.open({ tools: [tool] });
    await talk.say(job("a"), job("b"), call("await", { all: ["a", "b"], timeout_secs: 0.05 }));
    expect(await talk.answer()).toMatchObject({
      status: "timed_out",
      completed: [],
      pending: [{ handle: "a" }, { handle: "b" }],
    });
    await talk.say(call("await", { any: ["a"], timeout_secs: 0 }));
    expect(await talk.answer()).toMatchObject({ status: "pending" });
    end("b");
    await talk.say(call("await", { any: ["a", "b"] }));
    expect(await talk.answer()).toMatchObject({
      status: "completed",
      completed: [{ handle: "b" }],
      pending: [{ handle: "a" }],
    });
  });

  test("what is started in a batch is known in it, wherever that stands; the rest follows in order", async () => {
    const { tool } = jobs();
    const talk = await Talk.open({ tools: [tool] });
    await talk.say(
      call("await", { any: ["a"], timeout_secs: 0.05 }),
      onJob("abort", "a"),
      onJob("fetch", "a"),
      job("a"),
    );
    expect(await talk.answer(4)).toMatchObject({ status: "timed_out", pending: [{ handle: "a", state: "running" }] });
    expect(await talk.answer(2)).toMatchObject({ state: "stopped", error: { message: "aborted by the agent" } });
    expect(await talk.answer(1)).toMatchObject({ state: "running" });
  });

  test("the user speaks meanwhile: it is pending, and the words are taken up", async () => {
    const { tool } = jobs();
    const talk = await Talk.open({ tools: [tool] });
    const thread = talk.tidings.thread(talk.thread_id);
    const turn = await thread.say([job("a"), call("await", { all: ["a"], timeout_secs: 300 })].join("\n"));
    await eventually(
      () => talk.calls(),
      (calls) => calls.length === 2,
    );
    await thread.steer("never mind");
    await talk.tidings.turns.ended(turn.turn_id);
    expect(await talk.answer()).toMatchObject({ status: "pending", pending: [{ handle: "a", state: "running" }] });
    expect(JSON.stringify(await talk.items())).toContain("never mind");
  });

  test("an unknown handle, a name of 10 kB, nothing named: typed answers", async () => {
    const { tool, spawned } = jobs();
    const talk = await Talk.open({ tools: [tool] });
    await talk.say(call("await", { all: ["nobody"] }));
    expect(await talk.answer()).toMatchObject({ failed: true, error: "unknown_handle", unknown: ["nobody"] });
    await talk.say(onJob("fetch", "nobody"));
    expect(await talk.answer()).toMatchObject({ failed: true, error: "unknown_handle" });
    const long = "h".repeat(10_000);
    for (const line of [job(long), onJob("fetch", long), call("await", { any: [long] }), call("await", {})]) {
      await talk.say(line);
      const answer = await talk.answer();
      expect(answer).toMatchObject({ failed: true, error: "bad_arguments" });
      expect(JSON.stringify(answer).length).toBeLessThan(500);
    }
    expect(spawned()).toBe(0);
  });
});

describe("many", () => {
  test("a thousand at once; one more is refused; all of them end, and are bounded together", async () => {
    const { tool, end, spawned } = jobs();
    const talk = await Talk.open({ tools: [tool], limits: { iterations: 1_000 } });
    const names = Array.from({ length: 1_000 }, (_, index) => `h${index}`);
    for (let at = 0; at < names.length; at += 200)
      await talk.say(...names.slice(at, at + 200).map((name) => job(name)));
    expect(spawned()).toBe(1_000);
    await talk.say(job("more"));
    expect(await talk.answer()).toMatchObject({ failed: true, error: "too_many_handles" });
    for (const name of names) end(name, "x".repeat(1_000));
    for (const half of [names.slice(0, 500), names.slice(500)]) {
      await talk.say(call("await", { all: half, timeout_secs: 60 }));
      const answer = await talk.answer();
      expect(answer).toMatchObject({ status: "completed", pending: [] });
      expect(answer["completed"]).toHaveLength(500);
      expect(JSON.stringify(answer).length).toBeLessThan(100_000);
    }
    const handled = await eventually(
      () => talk.handled(),
      (states) => states.length > 0 && states.every((state) => !state.includes("PENDING")),
    );
    expect(handled.filter((state) => !/ (DELIVERED|SUPPRESSED observed)$/.test(state))).toEqual([]);
    await talk.say(onJob("fetch", "h0"));
    expect(await talk.answer()).toMatchObject({ result: "x".repeat(1_000) });
    expect((await talk.tidings.audit()).problems).toEqual([]);
  }, 120_000);

  test("what they have come to is bounded together: what was read goes first, then what is oldest", async () => {
    const { tool, end } = jobs();
    const talk = await Talk.open({ tools: [tool], handles: { kept_chars: 5_500 } });
    const names = ["a", "b", "c", "d", "e"];
    await talk.say(...names.map((name) => job(name)));
    for (const name of names) end(name, name.repeat(1_000));
    await talk.becomes("tool.stopped DELIVERED");
    await talk.say(job("f"), onJob("fetch", "e"));
    end("f", "f".repeat(1_000));
    await talk.say(call("await", { all: ["f"] }));
    await talk.say("nothing");
    const kept = await eventually(
      async () => {
        await talk.say(...[...names, "f"].map((name) => onJob("fetch", name)));
        const calls = (await talk.calls()).slice(-6);
        return calls.map(({ status }, at) => (status === "completed" ? [...names, "f"][at] : "")).join("");
      },
      (found) => found.length < 6,
    );
    expect(kept).toBe("abcdf");
  });

  test("what has stopped is kept for so long, and then is not known any more", async () => {
    const { tool, end } = jobs();
    const talk = await Talk.open({ tools: [tool], handles: { retention_ms: 1 } });
    await talk.say(job("a"));
    end("a");
    await talk.becomes("tool.stopped DELIVERED");
    await eventually(
      async () => {
        await talk.say(onJob("fetch", "a"));
        return talk.answer();
      },
      ({ error }) => error === "unknown_handle",
    );
  });

  test("also if nothing else has stopped since: its time is over when it is asked for", async () => {
    const { tool, end } = jobs();
    const clock = new ManualClock(Date.parse("2026-01-03T12:00:00.000Z"));
    const talk = await Talk.open({ tools: [tool], handles: { retention_ms: 60_000 } }, { clock });
    await talk.say(job("a"));
    end("a");
    await talk.say(call("await", { all: ["a"] }));
    await talk.say(onJob("fetch", "a"));
    expect(await talk.answer()).toMatchObject({ state: "stopped", result: "result of a" });
    clock.advance(61_000);
    await talk.say(onJob("fetch", "a"));
    expect(await talk.answer()).toMatchObject({ error: "unknown_handle", failed: true });
    await talk.say(call("await", { all: ["a"] }));
    expect(await talk.answer()).toMatchObject({ error: "unknown_handle", failed: true });
  });

  test("what is read before its name is given to another is what it came to, whole", async () => {
    const { tool, end } = jobs();
    const talk = await Talk.open({ tools: [tool] });
    await talk.say(job("a"));
    end("a", "x".repeat(20_000));
    await talk.becomes("tool.stopped DELIVERED");
    await talk.say(onJob("fetch", "a"), job("a"), onJob("fetch", "a"));
    expect(await talk.answer(3)).toMatchObject({ state: "stopped", result: "x".repeat(20_000), failed: false });
    expect(await talk.answer(2)).toMatchObject({ state: "running", failed: false });
    expect(await talk.answer(1)).toMatchObject({ state: "running", failed: false });
  });
});

test("nobody can take the id of what is to be told, and keep it from being told by that", async () => {
  const { tool, end } = jobs();
  const talk = await Talk.open({ tools: [tool] });
  await talk.say(job("a"));
  const claimed = { type: "cli.some.thing", source: "tools", user_id: "local" };
  const next = await talk.tidings.lastSeq();
  const outcomes = await talk.tidings.emitMany(
    Array.from({ length: 300 }, (_, n) => ({ ...claimed, id: `handle:${next + n}` })),
  );
  expect(outcomes.every((outcome) => "outcome" in outcome)).toBe(true);
  await expect(talk.tidings.emit({ ...claimed, id: `tidings:handle:${next + 400}` })).rejects.toMatchObject({
    code: "invalid_input",
    field: "id",
  });
  end("a");
  await talk.becomes("tool.stopped DELIVERED");
});

test("to wait for one is cut short: that is said, and not that its time was over", async () => {
  const { tool } = jobs();
  const talk = await Talk.open({ tools: [tool] });
  await talk.say(job("a"));
  const { turn_id } = await talk.tidings.thread(talk.thread_id).say(call("await", { all: ["a"], timeout_secs: 200 }));
  await eventually(
    async () => (await talk.calls()).at(-1)?.content.name,
    (name) => name === "await",
  );
  await talk.tidings.turns.interrupt(turn_id);
  await talk.tidings.turns.ended(turn_id);
  const last = (await talk.calls()).at(-1);
  expect(last).toMatchObject({
    status: "failed",
    content: { name: "await", output: expect.stringMatching(/^interrupted/) },
  });
});

describe("the end of a turn", () => {
  test("await: the turn waits, and its agent is told in it", async () => {
    const { tool, end } = jobs();
    const talk = await Talk.open({ tools: [{ ...tool, turn_end: "await" }] });
    const turn = await talk.tidings.thread(talk.thread_id).say(job("a"));
    await eventually(
      () => talk.items(),
      (items) => items.some((item) => item.type === "tool_call" && item.status === "completed"),
    );
    expect(await talk.tidings.turns.read(turn.turn_id)).toMatchObject({ state: "active" });
    end("a");
    expect((await talk.tidings.turns.ended(turn.turn_id)).state).toBe("completed");
    expect(await talk.told()).toHaveLength(1);
    expect(talk.tidings.agentCounters).toMatchObject({ wakes: 0 });
  });

  test("await is bounded", async () => {
    const { tool } = jobs();
    const talk = await Talk.open({ tools: [{ ...tool, turn_end: "await" }], handles: { turn_end_ms: 50 } });
    expect((await talk.say(job("a"))).state).toBe("completed");
    await talk.say(onJob("fetch", "a"));
    expect(await talk.answer()).toMatchObject({ state: "running" });
  });

  test("abort, by the operator's word: ended with the turn, not told, and can be asked for", async () => {
    const { tool } = jobs();
    const data = await temporaryFolder();
    writeFileSync(join(data, "tidings.toml"), '[conversation.tools.job]\nturn_end = "abort"\n');
    const talk = await Talk.open({ tools: [{ ...tool, turn_end: "await" }] }, { data });
    await talk.say(job("a"));
    await talk.becomes("tool.failed SUPPRESSED observed");
    await talk.say(onJob("fetch", "a"));
    expect(await talk.answer()).toMatchObject({ state: "stopped", error: { message: "ended with its turn" } });
  });

  test.each(["remove", "interrupt"] as const)(
    "a message that is taken out of the queue ends nothing: %s",
    async (how) => {
      const { tool, spawned, aborted } = jobs();
      const { promise: opened, give: open } = signal();
      const gate = defineTool({
        name: "gate",
        description: "",
        input: z.object({}),
        run: () => opened.then(() => "open"),
      });
      const talk = await Talk.open({ tools: [{ ...tool, turn_end: "abort" }, gate] });
      const { tidings, thread_id } = talk;
      const first = await tidings.thread(thread_id).say([job("a"), call("gate", {})].join("\n"));
      await eventually(
        async () => spawned(),
        (count) => count === 1,
      );
      const second = await tidings.thread(thread_id).say("never mind");
      expect(second.state).toBe("queued");
      await tidings.turns[how](second.turn_id);
      expect((await tidings.turns.ended(second.turn_id)).state).toBe("removed");
      expect(aborted(), "while the first turn runs").toBe(0);
      open();
      await tidings.turns.ended(first.turn_id);
      expect(aborted()).toBe(1);
    },
  );
});

test("a tool that says so is not told of", async () => {
  const { tool, end } = jobs();
  const talk = await Talk.open({ tools: [{ ...tool, emits: ["failed"] }] });
  await talk.say(job("a"));
  end("a");
  await talk.say(call("await", { all: ["a"] }));
  expect(await talk.answer()).toMatchObject({ status: "completed" });
  expect(await talk.handled()).toEqual([]);
});

test("an external one that an internal turn starts is shown to the user first; reading what it came to is not", async () => {
  const { tool, end, spawned } = jobs();
  const talk = await Talk.open({ tools: [{ ...tool, impact: "external" }] });
  const { thread_id } = talk;
  const decides = { thread_id, target: "agent", handler: "agent" } as const;
  const started = await talk.tidings.notify({ ...decides, content: "go", directive: job("a") });
  const shown = async (id: string) => {
    const read = await talk.tidings.read(id);
    return "channel" in read ? `${read.channel} ${read.state}` : "none";
  };
  await eventually(
    () => shown(started.id),
    (state) => state === "floor ESCALATED",
  );
  // The user is shown it before it runs.
  await eventually(
    async () => spawned(),
    (count) => count === 1,
  );
  end("a");
  await talk.becomes("tool.stopped DELIVERED");
  const read = await talk.tidings.notify({ ...decides, content: "look", directive: onJob("fetch", "a") });
  await eventually(
    () => shown(read.id),
    (state) => state === "agent DELIVERED",
  );
  expect(await talk.answer()).toMatchObject({ result: "result of a" });
});

describe("a turn that is broken off while its agent reads of a call", () => {
  /** The model waits for `h`, which fails, while another tool runs. */
  const reading = async (meanwhile: (plane: Hosted, turn_id: TurnId) => Promise<unknown>) => {
    const { tool, fail } = jobs();
    const slow = defineTool({
      name: "slow",
      description: "",
      input: z.object({}),
      async run(_, { signal: cut, turn_id }) {
        fail("h", new Error("exit 3"));
        await eventually(
          () => plane.store.list(HOST, { thread_id: threadId(THREAD), limit: 10 }),
          ({ stored }) => stored.some(({ notification }) => notification.kind === "tool.failed"),
        );
        await meanwhile(plane, turn_id);
        await new Promise((resolve) => (cut.aborted ? resolve(null) : cut.addEventListener("abort", resolve)));
        return "slow";
      },
    });
    const model = new ScriptedModel(async function* (number) {
      yield STARTED;
      if (number === 0) yield calls("a", "job", { action: "spawn", handle: "h" });
      if (number === 1) {
        yield calls("b", "await", { all: ["h"] });
        yield calls("c", "slow");
      }
      yield words("ok");
      yield END;
    });
    const plane: Hosted = await hosted({ model, tools: [tool, slow], policy: { leaseMs: 1_500 } });
    const outcome = () =>
      eventually(
        async () => {
          const { stored } = await plane.store.list(HOST, { thread_id: threadId(THREAD), limit: 10 });
          const told = stored.find(({ notification }) => notification.kind === "tool.failed");
          return `${told?.delivery.state} ${told?.delivery.reason}`;
        },
        (state) => !state.startsWith("PENDING") && !state.startsWith("LOCKED"),
      );
    return { plane, model, outcome };
  };

  test("it is lost: what it would have read is told", async () => {
    const { plane, model, outcome } = await reading((plane, turn_id) =>
      plane.store.endTurn(HOST, { turn_id, state: "failed", items: [], note: "taken away" }),
    );
    expect((await plane.converse("go")).state).toBe("failed");
    expect(await outcome()).toBe("DELIVERED null");
    expect(JSON.stringify(model.requests)).toContain("exit 3");
  });

  test("the user replies: what it has read goes on with the reply, and is not told again", async () => {
    const { plane, model, outcome } = await reading(async (plane, turn_id) => {
      void plane.agent.interrupt(HOST, { turn_id, content: "never mind" });
    });
    expect((await plane.converse("go")).state).toBe("interrupted");
    await plane.turnsOver(2);
    expect(await outcome()).toBe("SUPPRESSED observed");
    expect(JSON.stringify(model.requests.at(-1))).toContain("exit 3");
  });
});

describe("the end of a turn that has waited for a call of which nothing is told", () => {
  test("says nothing of news, and takes up what the user says until the very end", async () => {
    const { tool, end } = jobs();
    const asked = new Set<string>();
    const model = new ScriptedModel(async function* (_, { messages }) {
      yield STARTED;
      const newest = messages.findLast(({ role }) => role === "user");
      const text = newest?.role === "user" ? newest.text : "";
      if (text.startsWith("go ") && !asked.has(text))
        yield calls(text, "job", { action: "spawn", handle: text.replace(" ", "-") });
      asked.add(text);
      yield words("ok");
      yield END;
    });
    const silent = { ...tool, emits: [], turn_end: "await" } as const;
    const plane = await hosted({ model, tools: [silent] });
    for (let round = 0; round < 24; round += 1) {
      const before = model.requests.length;
      const turn = await plane.say(`go ${round}`);
      // It has answered, and waits.
      await eventually(
        async () => model.requests.length,
        (count) => count === before + 2,
      );
      end(`go-${round}`);
      for (let passes = 0; passes < round; passes += 1) await new Promise((resolve) => setImmediate(resolve));
      const content = `and this, ${round}.`;
      const taken = await plane.agent.steer(HOST, { thread_id: THREAD, content }).then(
        () => true,
        () => false,
      );
      await plane.agent.ended(turn.id);
      expect(JSON.stringify(model.requests).includes(content), `heard in round ${round}`).toBe(taken);
    }
    expect(JSON.stringify(await plane.items())).not.toContain(BACKGROUND);
  });
});
