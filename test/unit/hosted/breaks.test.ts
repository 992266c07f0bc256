/** Where a turn is broken off at an awkward moment: what was told stays told, what was asked stays asked. */
import { describe, expect, test } from "vitest";
import { TidingsError } from "../../../src/domain/errors.js";
import { type NotificationId, threadId, userId } from "../../../src/domain/ids.js";
import { HOST } from "../../../src/domain/principal.js";
import { ModelError, type ModelRequest } from "../../../src/providers/model.js";
import { eventually } from "../../support/folder.js";
import { type Hosted, hosted, THREAD } from "../../support/hosted.js";
import { aborted, answers, calls, END, ScriptedModel, STARTED, signal, words } from "../../support/scripted.js";

const QUICK = { retry_base_ms: 10 };
const OPEN = /what the user had asked is still open/;

function systemWords(model: ScriptedModel): string {
  const newest = model.requests.at(-1)?.findLast(({ role }) => role === "user");
  return newest?.role === "user" ? newest.text : "";
}

describe("an answer that breaks off without a word", () => {
  test("what was told stays as it was sent, and what is new has a message of its own", async () => {
    let plane: Hosted | undefined;
    const model = new ScriptedModel(async function* (number) {
      if (number === 0) {
        yield STARTED;
        await plane?.notify({ content: "SECOND" });
        throw new ModelError("transient", "broken off");
      }
      if (number === 1) throw new ModelError("transient", "try later");
      yield* answers(words("ok"));
    });
    plane = await hosted({ model, limits: QUICK, policy: { backoffMs: 1 } });
    const first = await plane.notify({ content: "FIRST" });
    expect((await plane.converse("hello")).state).toBe("completed");
    expect(await plane.state(first)).toBe("DELIVERED");
    const [sent = [], , third = []] = model.requests;
    expect(third.slice(0, sent.length)).toEqual(sent);
    expect(JSON.stringify(third.slice(sent.length))).toContain("SECOND");
    await plane.agent.close();
    await plane.host({ model });
    await plane.converse("and now");
    expect(model.requests.at(-1)?.slice(0, third.length)).toEqual(third);
  });

  test("with nothing new, the same request is made again", async () => {
    const model = new ScriptedModel(async function* (number) {
      if (number === 1) throw new ModelError("transient", "try later");
      yield STARTED;
      if (number === 0) throw new ModelError("transient", "broken off");
      yield* [words("ok"), END];
    });
    const plane = await hosted({ model, limits: QUICK });
    await plane.notify({ content: "FIRST" });
    expect((await plane.converse("hello")).state).toBe("completed");
    expect(model.requests[2]).toEqual(model.requests[0]);
  });
});

describe("an error while somebody is to be woken", () => {
  test.each([
    ["of the model", new Error("once")],
    ["of the store", new TidingsError("store_busy", "once", { retryable: true })],
  ])("%s: it is reported, nobody else is kept waiting, and it is tried again", async (_whose, error) => {
    let failures = 1;
    const model = new ScriptedModel(
      () => answers(words("ok")),
      () => {
        if (failures-- > 0) throw error;
      },
    );
    const plane = await hosted({ model });
    const ids: NotificationId[] = [];
    for (const user_id of ["ada", "bea"])
      await plane.store.startThread(HOST, userId(user_id), threadId(`chat-${user_id}`));
    for (const user_id of ["ada", "bea"])
      ids.push(await plane.decides("decide", { user_id, thread_id: `chat-${user_id}` }));
    for (const id of ids) await plane.becomes(id, "DELIVERED");
    expect(plane.errors).toEqual([error]);
  });
});

describe("what is queued", () => {
  test("is begun after a turn that an error of the host ended", async () => {
    const open = signal();
    const model = new ScriptedModel((number) => {
      if (number === 1) throw new Error("a defect in a model");
      if (number > 1) return answers(words("ok"));
      return (async function* () {
        yield STARTED;
        await open.promise;
        yield* [calls("c1", "nothing"), END];
      })();
    });
    const plane = await hosted({ model });
    const first = await plane.say("one");
    const second = await plane.say("two");
    expect(second.state).toBe("queued");
    open.give();
    expect((await plane.agent.ended(first.id)).state).toBe("failed");
    expect((await plane.agent.ended(second.id)).state).toBe("completed");
    expect(plane.errors).toMatchObject([{ message: "a defect in a model" }]);
  });

  test("is begun after a turn whose lease was over before anybody had noticed", async () => {
    const open = signal();
    const model = new ScriptedModel(async function* (number) {
      if (number === 0) {
        yield STARTED;
        await open.promise;
        // The whole process stands still.
        const until = Date.now() + 400;
        while (Date.now() < until);
      }
      yield* answers(words("ok"));
    });
    const plane = await hosted({ model, policy: { leaseMs: 300 }, unwatched: true });
    const first = await plane.say("one");
    const second = await plane.say("two");
    const lost = plane.agent.ended(first.id);
    const begun = plane.store.now();
    open.give();
    // The agent has found that it is lost, and that the next one cannot begin yet.
    await eventually(
      async () => plane.store.now(),
      (now) => now > begun + 800,
    );
    await plane.watchdog.start();
    expect((await lost).state).toBe("failed");
    expect((await plane.agent.ended(second.id)).state).toBe("completed");
  });

  test("is awaited by nobody once it is gone", async () => {
    const plane = await hosted();
    await plane.agent.pause(HOST, THREAD);
    const turn = await plane.say("later");
    const ended = plane.agent.ended(turn.id);
    const removed = await plane.store.editQueued(HOST, turn.id, null);
    if ("miss" in removed) throw new Error(removed.message);
    plane.agent.turnGone(removed);
    expect((await ended).state).toBe("removed");
  });
});

describe("something critical", () => {
  test("between an answer and its tools: the next turn is told what is open", async () => {
    const model = new ScriptedModel(async function* (number, request) {
      if (number > 0) return yield* answers(words("ok"));
      try {
        yield* answers(calls("c1", "look"));
      } finally {
        await aborted(request);
      }
    });
    const plane = await hosted({ model });
    const turn = await plane.say("what is the state?");
    await plane.critical("the disk is full");
    expect((await plane.agent.ended(turn.id)).state).toBe("interrupted");
    await plane.turnsOver(2);
    expect(systemWords(model)).toMatch(OPEN);
  });

  test("before a steer is taken up by another answer: the next turn is told what is open", async () => {
    let plane: Hosted | undefined;
    const model = new ScriptedModel(async function* (number, request) {
      if (number > 1) return yield* answers(words("ok"));
      yield STARTED;
      if (number === 0) {
        await plane?.agent.steer(HOST, { thread_id: THREAD, content: "and this?" });
        return yield* [words("That is all."), END];
      }
      await plane?.critical("the disk is full");
      await aborted(request);
    });
    plane = await hosted({ model });
    const turn = await plane.say("what is the state?");
    expect((await plane.agent.ended(turn.id)).state).toBe("interrupted");
    await plane.turnsOver(2);
    expect(systemWords(model)).toMatch(OPEN);
  });

  test("in a turn of the agent's own: there is no question of the user's", async () => {
    const model = new ScriptedModel(async function* (number, request) {
      if (number > 0) return yield* answers(words("ok"));
      yield* [STARTED, words("Let me see")];
      await aborted(request);
    });
    const plane = await hosted({ model });
    const decides = await plane.decides("decide");
    await plane.becomes(decides, "LOCKED");
    await plane.critical("the disk is full");
    const turns = await plane.turnsOver(2);
    expect(turns.map(({ internal, state }) => [internal, state])).toEqual([
      [true, "interrupted"],
      [false, "completed"],
    ]);
    expect(systemWords(model)).toMatch(/something critical/);
    expect(systemWords(model)).not.toMatch(OPEN);
  });

  test("in a turn of the system's own that nobody asked for: its answer is to be finished", async () => {
    const model = new ScriptedModel(async function* (number, request) {
      if (number > 0) return yield* answers(words("ok"));
      yield* [STARTED, words("You should")];
      await aborted(request);
    });
    const plane = await hosted({ model });
    const narrates = await plane.mustNarrate("tell the user");
    await plane.becomes(narrates, "LOCKED");
    await plane.critical("the disk is full");
    const forced = (await plane.turnsOver(2))[1]?.content;
    expect(forced).toMatch(/cut off/);
    expect(forced).not.toMatch(OPEN);
  });

  test("then a pause: the question is queued again, and answered when the thread is resumed", async () => {
    const cut = signal();
    const paused = signal();
    const model = new ScriptedModel(async function* (number, request) {
      if (number > 0) return yield* answers(words("ok"));
      yield* [STARTED, words("Well, ")];
      await aborted(request);
      cut.give();
      await paused.promise;
    });
    const plane = await hosted({ model });
    const turn = await plane.say("what is the state?");
    const id = await plane.critical("the disk is full", { target: "user", handler: "agent" });
    await cut.promise;
    await plane.agent.pause(HOST, THREAD);
    paused.give();
    expect((await plane.agent.ended(turn.id)).state).toBe("failed");
    const ends = await eventually(
      () => plane.events("agent.turn.end"),
      (events) => events.length > 0,
    );
    expect(ends).toMatchObject([{ status: "failed" }]);
    await plane.becomes(id, "ESCALATED paused");
    const waiting = await eventually(
      () => plane.store.liveTurns(HOST, threadId(THREAD)),
      (turns) => turns.length > 0,
    );
    expect(waiting).toMatchObject([{ state: "queued", content: "what is the state?", source: "user" }]);
    await plane.agent.resume(HOST, THREAD);
    expect((await plane.agent.ended(waiting[0]?.id ?? "")).state).toBe("completed");
    expect(systemWords(model)).toBe("what is the state?");
  });

  test("a hundred times in a second, with an agent that must be reminded: four calls at most", async () => {
    const acknowledging = ({ messages }: ModelRequest) => {
      const newest = messages.at(-1);
      if (newest?.role !== "user" || !newest.text.includes("not acknowledged")) return [];
      const ids = [...newest.text.matchAll(/`([\w-]{20,})`/g)].map(([, id = ""]) => id);
      return [calls(`c${messages.length}`, "acknowledge_notifications", { acknowledged_ids: ids })];
    };
    let plane: Hosted | undefined;
    const model = new ScriptedModel(async function* (_number, request) {
      const begun = plane?.store.now() ?? 0;
      yield* [STARTED, words("Well, ")];
      await eventually(
        async () => plane?.store.now() ?? 0,
        (now) => request.signal.aborted || now > begun + 300,
      );
      yield* [...acknowledging(request), END];
    });
    plane = await hosted({ model, policy: { criticalPerMinute: 1_000 } });
    const ids: NotificationId[] = [];
    const begun = plane.store.now();
    for (let number = 0; number < 100; number += 1) {
      ids.push(await plane.critical(`critical ${number}`, { target: "user", handler: "agent" }));
      await eventually(
        async () => plane?.store.now() ?? 0,
        (now) => now >= begun + number * 10,
      );
    }
    for (const id of ids)
      await eventually(
        async () => plane?.state(id),
        (state) => state === "DELIVERED" || state?.startsWith("ESCALATED") === true,
      );
    await plane.turnsOver(1);
    expect(plane.agent.counters.model_calls).toBeLessThanOrEqual(4);
  });
});

describe("a stream", () => {
  test("that does not let go does not keep its turn", async () => {
    const model = new ScriptedModel(async function* () {
      try {
        yield* answers(words("ok"));
      } finally {
        await new Promise(() => {});
      }
    });
    const plane = await hosted({ model });
    expect((await plane.converse("one")).state).toBe("completed");
    expect((await plane.converse("two")).state).toBe("completed");
  });
});

describe("the last step of a turn", () => {
  test("takes up what the user said while there was nothing more to tell", async () => {
    let plane: Hosted | undefined;
    let late: NotificationId | undefined;
    let steered: Promise<unknown> | undefined;
    const model = new ScriptedModel(async function* (number) {
      if (number === 0) late = await plane?.notify({ content: "late", inject_at: "turn_end" });
      yield* answers(words("ok"));
    });
    plane = await hosted({
      model,
      turn_end: () => {
        if (plane === undefined || late === undefined || steered !== undefined) return "step";
        const { store, agent } = plane;
        // Withdrawn after the turn has asked whether there is something, and before it is told.
        void store.commandMany(HOST, [
          { id: late, operation: "suppress", command: { column: "suppress", reason: "superseded" } },
        ]);
        steered = agent.steer(HOST, { thread_id: THREAD, content: "mind this" });
        return "step";
      },
    });
    expect((await plane.converse("hello")).state).toBe("completed");
    await steered;
    expect(systemWords(model)).toBe("mind this");
  });
});

describe("tell_user", () => {
  test("twice, with nothing left to promote: the user reads both", async () => {
    let id: NotificationId | undefined;
    const model = new ScriptedModel((number) => {
      if (number === 0) return answers(calls("c0", "acknowledge_notifications", { acknowledged_ids: [id ?? ""] }));
      if (number === 1) return answers(calls("c1", "tell_user", { text: "FIRST WORDS" }));
      if (number === 2) return answers(calls("c2", "tell_user", { text: "SECOND WORDS" }));
      return answers(words("ok"));
    });
    const plane = await hosted({ model });
    id = await plane.decides("decide");
    await plane.turnsOver(1);
    expect((await plane.shown()).sort()).toEqual(["FIRST WORDS", "SECOND WORDS"]);
  });
});
