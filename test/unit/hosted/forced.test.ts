/** Who is woken when: forced delivery, wakes, storms. */
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { LOCAL_USER, type NotificationId, threadId, userId } from "../../../src/domain/ids.js";
import { HOST } from "../../../src/domain/principal.js";
import type { Tool } from "../../../src/runtime/tools.js";
import { eventually } from "../../support/folder.js";
import { type Hosted, hosted, servedModel, THREAD } from "../../support/hosted.js";

function speaking(plane: Hosted): Promise<void> {
  return new Promise((resolve) => {
    const stop = plane.agent.onProgress(({ type }) => {
      if (type !== "text") return;
      stop();
      resolve();
    });
  });
}

/** Until the agent has nothing to do, and has had nothing to do for as long as a wake may take. */
async function quiet(plane: Hosted): Promise<void> {
  await eventually(
    async () => {
      const before = plane.agent.counters.model_calls;
      const started = plane.store.now();
      await eventually(
        async () => plane.store.now(),
        (now) => now > started + 600,
      );
      return (
        plane.agent.counters.model_calls === before &&
        (await plane.store.liveTurns(HOST, null)).every(({ state }) => state !== "active")
      );
    },
    (isQuiet) => isQuiet,
  );
}

describe("something critical", () => {
  test("idle: a turn of the system's own accord, with all that is pending", async () => {
    const plane = await hosted();
    const low = await plane.notify({ content: "low", priority: "low" });
    const id = await plane.critical("the disk is full");
    await plane.becomes(id, "DELIVERED");
    const [turn] = await plane.turnsOver(1);
    expect(turn).toMatchObject({ source: "system", internal: false, state: "completed" });
    expect(turn?.content).toContain("critical");
    expect(await plane.state(low)).toBe("DELIVERED");
    expect((await plane.texts())[0]).toContain("the disk is full");
    expect(plane.agent.counters).toMatchObject({ model_calls: 1, forced_turns: 1 });
  });

  test("streaming: the answer is cut off, kept and finished in the next turn, and nothing is retried", async () => {
    const plane = await hosted();
    const turn = await plane.say("say slowly 40");
    await speaking(plane);
    const id = await plane.critical("the disk is full");
    const ended = await plane.agent.ended(turn.id);
    expect(ended.state).toBe("interrupted");
    const turns = await plane.turnsOver(2);
    expect(turns[1]).toMatchObject({ source: "system", internal: false, state: "completed" });
    expect(turns[1]?.content).toMatch(/what the user had asked is still open/);
    const answers = (await plane.items()).filter((item) => item.type === "chat_response");
    expect(answers).toHaveLength(2);
    expect(answers[0]).toMatchObject({ truncated: true });
    expect(answers[1]?.truncated).toBeUndefined();
    expect(answers[1]?.content).toContain("the disk is full");
    const words = `${answers[0]?.content}${answers[1]?.content}`.match(/word-\d+/g);
    expect(words).toEqual(Array.from({ length: 40 }, (_, index) => `word-${index + 1}`));
    expect(await plane.state(id)).toBe("DELIVERED");
    expect(plane.agent.counters).toMatchObject({ model_calls: 2, retries: 0, forced_turns: 1 });
  });

  test("before the first word: what the cut-off turn was told is told by the next one", async () => {
    const { model, server } = await servedModel({}, { latency: 400 });
    const plane = await hosted({ model });
    const passive = await plane.notify({ content: "passive" });
    const turn = await plane.say("hello");
    await eventually(
      async () => server.recorder.requests.length,
      (count) => count === 1,
    );
    const id = await plane.critical("critical");
    expect((await plane.agent.ended(turn.id)).state).toBe("interrupted");
    await plane.turnsOver(2);
    expect(await plane.state(id)).toBe("DELIVERED");
    expect(await plane.state(passive)).toBe("DELIVERED");
    const { messages } = JSON.parse(server.recorder.requests.at(-1)?.body ?? "{}");
    expect(JSON.stringify(messages)).toContain("passive");
  });

  test("tools running: it goes with their results, and nothing is cut off", async () => {
    let plane: Hosted | undefined;
    let id: NotificationId | undefined;
    const tool: Tool = {
      name: "work",
      description: "Works.",
      input: z.object({}),
      run: async () => {
        id = await plane?.critical("the disk is full");
        const started = plane?.store.now() ?? 0;
        await eventually(
          async () => plane?.store.now() ?? 0,
          (now) => now > started + 300,
        );
        return "worked";
      },
    };
    plane = await hosted({ tools: [tool] });
    expect((await plane.converse("call work {}")).state).toBe("completed");
    expect(await plane.state(id as NotificationId)).toBe("DELIVERED");
    await quiet(plane);
    expect(await plane.turns()).toHaveLength(1);
    expect(plane.agent.counters).toMatchObject({ model_calls: 2, forced_turns: 0 });
  });

  test("paused: it goes to the user at once, whoever was to be told", async () => {
    const plane = await hosted();
    await plane.agent.pause(HOST, THREAD);
    const context = await plane.critical("the disk is full");
    const narrates = await plane.critical("the house burns", { target: "user", handler: "agent" });
    const normal = await plane.mustNarrate("not urgent");
    await plane.becomes(context, "SUPPRESSED superseded");
    await plane.becomes(narrates, "ESCALATED paused");
    expect((await plane.shown()).sort()).toEqual(["the disk is full", "the house burns"]);
    expect(await plane.state(normal)).toBe("PENDING");
    expect(plane.agent.counters.model_calls).toBe(0);
  });

  test("during a system turn: told within one more call", async () => {
    const plane = await hosted();
    await plane.say("say slowly 60");
    await speaking(plane);
    const first = await plane.critical("first");
    await plane.becomes(first, "DELIVERED");
    const second = await plane.critical("second");
    await plane.becomes(second, "DELIVERED");
    const turns = await plane.turnsOver(3);
    expect(turns.map(({ state, source }) => [source, state])).toEqual([
      ["user", "interrupted"],
      ["system", "interrupted"],
      ["system", "completed"],
    ]);
    const said = (await plane.texts()).join("").match(/word-\d+/g);
    expect(said).toEqual(Array.from({ length: 60 }, (_, index) => `word-${index + 1}`));
    expect(plane.agent.counters.model_calls).toBe(3);
  });

  test("during an internal turn: it becomes a visible one", async () => {
    const { model } = await servedModel({}, { latency: 500 });
    const plane = await hosted({ model });
    const decides = await plane.decides("decide");
    await plane.becomes(decides, "LOCKED");
    const id = await plane.critical("critical");
    await plane.becomes(id, "DELIVERED");
    const turns = await plane.turnsOver(2);
    expect(turns.map(({ internal }) => internal)).toEqual([true, false]);
    expect(await plane.state(decides)).toBe("DELIVERED");
  });

  test("a steer that was not taken up is not lost by it", async () => {
    const plane = await hosted();
    await plane.say("say slowly 60");
    await speaking(plane);
    await plane.agent.steer(HOST, { thread_id: THREAD, content: "mind this" });
    await plane.critical("critical");
    await plane.turnsOver(2);
    const requests = (await plane.items()).flatMap((item) => (item.type === "chat_request" ? [item] : []));
    expect(requests.map(({ source }) => source)).toEqual(["user", "user", "system"]);
    expect(requests[1]).toMatchObject({ content: "mind this", steer: 1 });
  });
});

describe("a storm", () => {
  test.each([
    { whom: "the agent, to know", axes: {}, source: false },
    { whom: "the user, by the agent", axes: { target: "user", handler: "agent" }, source: false },
    { whom: "the agent, to decide", axes: { target: "agent", handler: "agent" }, source: false },
  ] as const)("of a hundred in a second makes four calls at most ($whom)", async ({ axes }) => {
    const plane = await hosted({ policy: { criticalPerMinute: 1_000 } });
    const ids: NotificationId[] = [];
    const started = plane.store.now();
    for (let number = 0; number < 100; number += 1) {
      ids.push(await plane.critical(`critical ${number}`, axes));
      await eventually(
        async () => plane.store.now(),
        (now) => now >= started + number * 10,
      );
    }
    await quiet(plane);
    expect(plane.agent.counters.model_calls).toBeLessThanOrEqual(4);
    expect(plane.agent.counters.forced_turns).toBeLessThanOrEqual(3);
    const states = await Promise.all(ids.map((id) => plane.state(id)));
    const allowed = "handler" in axes ? ["DELIVERED", "ESCALATED storm"] : ["DELIVERED", "PENDING"];
    expect(states.filter((state) => !allowed.includes(state))).toEqual([]);
    // What waits rides with the next message.
    await plane.converse("hello");
    await plane.converse("and now");
    const left = (await Promise.all(ids.map((id) => plane.state(id)))).filter((state) => state === "PENDING");
    expect(left).toEqual([]);
  });

  test("is over when the user has spoken", async () => {
    const plane = await hosted();
    for (const content of ["one", "two", "three"]) await plane.becomes(await plane.critical(content), "DELIVERED");
    const fourth = await plane.critical("four");
    await quiet(plane);
    expect(await plane.state(fourth)).toBe("PENDING");
    await plane.converse("hello");
    expect(await plane.state(fourth)).toBe("DELIVERED");
    const fifth = await plane.critical("five");
    await plane.becomes(fifth, "DELIVERED");
    expect(plane.agent.counters.forced_turns).toBe(4);
  });
});

describe("a wake", () => {
  test("is one for many", async () => {
    const plane = await hosted();
    const ids = await Promise.all([1, 2, 3, 4, 5].map((number) => plane.mustNarrate(`number ${number}`)));
    for (const id of ids) await plane.becomes(id, "DELIVERED");
    await quiet(plane);
    expect(plane.agent.counters).toMatchObject({ wakes: 1, model_calls: 2 });
    expect(await plane.turns()).toMatchObject([{ source: "system", internal: false }]);
  });

  test("comes for context that asks for it, and not for other context", async () => {
    const plane = await hosted();
    await plane.notify({ content: "nothing to wake for", priority: "high" });
    await quiet(plane);
    expect(plane.agent.counters.model_calls).toBe(0);
    const accepted = await plane.emit({
      type: "tool.stopped",
      source: "tool",
      thread_id: THREAD,
      subject: "h_1",
      payload: { handle_id: "h_1", tool_name: "cargo_check" },
    });
    const id = accepted.matches.find(({ stored }) => stored.notification.wake_ms !== null)?.stored.notification.id;
    expect(id).toBeDefined();
    await plane.becomes(id as NotificationId, "DELIVERED");
    const [turn] = await plane.turnsOver(1);
    expect(turn).toMatchObject({ source: "system", internal: false });
  });

  test("of what has no thread goes where the user was last, or to a new one", async () => {
    const plane = await hosted();
    await plane.store.startThread(HOST, LOCAL_USER, threadId("second"));
    await plane.agent.ended((await plane.say("hello", "second")).id);
    const id = await plane.notify({ content: "for you", target: "user", handler: "agent", thread_id: undefined });
    await plane.becomes(id, "DELIVERED");
    expect((await plane.turns("second")).map(({ source }) => source)).toEqual(["user", "system"]);

    const nowhere = await plane.notify({
      content: "for ada",
      target: "user",
      handler: "agent",
      thread_id: undefined,
      user_id: "ada",
    });
    await plane.becomes(nowhere, "DELIVERED");
    const [home] = await plane.store.threadsOf(HOST, userId("ada"), null, 10);
    expect(await plane.turnsOver(1, home?.id)).toMatchObject([{ source: "system", state: "completed" }]);
  });

  test("waits for somebody else's agent, and comes when that has gone", async () => {
    const plane = await hosted();
    await plane.notify({ content: "for the other" });
    const carrier = await plane.store.collect(HOST, {
      user_id: null,
      thread_id: threadId(THREAD),
      point: "turn_start",
      limit: 10,
      owner: "another",
      lease_ms: 60_000,
      auto_settle: false,
      awareness_alone: false,
      compose: (candidates) => ({
        told: candidates.map(({ notification: { id, kind, severity, content } }) => ({
          id,
          revision: 1,
          kind,
          severity,
          form: "full" as const,
          content,
        })),
        text: "told",
        form: "text",
      }),
    });
    const id = await plane.mustNarrate("tell the user");
    await expect(plane.say("hello")).rejects.toMatchObject({ reason: "thread_held" });
    await plane.store.settleCarrier(HOST, carrier?.id ?? ("" as never), new Set());
    await plane.becomes(id, "DELIVERED");
    expect(plane.agent.counters.wakes).toBe(1);
  });

  test("comes after a turn that was stopped, for what came meanwhile", async () => {
    const plane = await hosted();
    const turn = await plane.say("say slowly 200");
    await speaking(plane);
    const id = await plane.mustNarrate("meanwhile");
    await plane.agent.interrupt(HOST, { turn_id: turn.id });
    await plane.becomes(id, "DELIVERED");
  });

  test("comes when the thread is resumed", async () => {
    const plane = await hosted();
    await plane.agent.pause(HOST, THREAD);
    const id = await plane.mustNarrate("while you rested");
    await quiet(plane);
    expect(await plane.state(id)).toBe("PENDING");
    await plane.agent.resume(HOST, THREAD);
    await plane.becomes(id, "DELIVERED");
  });
});
