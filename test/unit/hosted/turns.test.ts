/** A conversation with the hosted agent: turns, their queue, steers, interruptions, pauses. */
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { threadId, userId } from "../../../src/domain/ids.js";
import { HOST, userPrincipal } from "../../../src/domain/principal.js";
import type { TurnState } from "../../../src/domain/turn.js";
import type { Tool } from "../../../src/runtime/tools.js";
import { eventually } from "../../support/folder.js";
import { type Hosted, hosted, servedModel, THREAD } from "../../support/hosted.js";

/** Resolves when the running answer has begun to be said. */
function firstWord(plane: Hosted): Promise<void> {
  return new Promise((resolve) => {
    const stop = plane.agent.onProgress(({ type }) => {
      if (type !== "text") return;
      stop();
      resolve();
    });
  });
}

/** A tool that waits until the test lets it go. */
function gate(impact: "internal" | "external" = "internal") {
  let open: () => void = () => {};
  let entered: () => void = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  const running = new Promise<void>((resolve) => {
    entered = resolve;
  });
  let runs = 0;
  const tool: Tool = {
    name: "gate",
    description: "Waits.",
    input: z.object({}),
    impact,
    async run(_input, { signal }) {
      runs += 1;
      entered();
      await Promise.race([opened, new Promise((resolve) => signal.addEventListener("abort", resolve))]);
      if (signal.aborted) throw new Error("gone");
      return "the gate is open";
    },
  };
  return { tool, open, running, runs: () => runs };
}

describe("a turn", () => {
  test("a message is answered, and the turn is over", async () => {
    const plane = await hosted();
    const turn = await plane.say("good day");
    expect(turn).toMatchObject({ state: "active", source: "user", internal: false, content: "good day" });
    expect(await plane.agent.ended(turn.id)).toMatchObject({ state: "completed", note: null });
    expect(await plane.items()).toMatchObject([
      { type: "chat_request", content: "good day", source: "user" },
      { type: "chat_response", content: 'I read: "good day".\nThere are no notifications.' },
    ]);
    expect(plane.agent.counters.model_calls).toBe(1);
    expect(await plane.events("agent.turn.start")).toEqual([{ turn_id: turn.id, source: "user", internal: false }]);
    expect(await plane.events("agent.turn.end")).toEqual([{ turn_id: turn.id, status: "completed" }]);
  });

  test("the whole conversation is in the next request, and its beginning does not change", async () => {
    const { model, server } = await servedModel();
    const plane = await hosted({ model, system: "Be brief." });
    server.answers.push({ content: "First." });
    await plane.notify({ content: "the build ended" });
    await plane.converse("one");
    server.answers.push({ content: "Second." });
    await plane.converse("two");
    const [first, second] = server.recorder.requests.map(({ body }) => JSON.parse(body));
    expect(second.messages.slice(0, first.messages.length)).toEqual(first.messages);
    expect(second.messages.slice(first.messages.length)).toMatchObject([
      { role: "assistant", content: "First." },
      { role: "user", content: "two" },
    ]);
    expect(second.tools).toEqual(first.tools);
  });

  test("a second agent has the same conversation from the store", async () => {
    const { model, server } = await servedModel();
    const plane = await hosted({ model });
    await plane.notify({ content: "the build ended" });
    await plane.converse("one");
    await plane.converse("two");
    await plane.agent.close();
    await plane.host({ model });
    await plane.converse("three");
    const bodies = server.recorder.requests.map(({ body }) => JSON.parse(body).messages);
    expect(bodies[2].slice(0, bodies[1].length)).toEqual(bodies[1]);
  });

  test("a turn costs three commits at most, and a call of a tool two more", async () => {
    const tool: Tool = { name: "look", description: "Looks.", input: z.object({}), run: () => "seen" };
    const plane = await hosted({ tools: [tool] });
    await plane.notify({ content: "the build ended" });
    let commits = 0;
    plane.store.onCommit(() => {
      commits += 1;
    });
    await plane.converse("hello");
    expect(commits).toBeLessThanOrEqual(3);
    commits = 0;
    await plane.converse("call look {}");
    // begun, answered, results, ended; nothing is told, so that nothing is sent.
    expect(commits).toBeLessThanOrEqual(5);
  });

  test("another user has no thread and no turn here", async () => {
    const plane = await hosted();
    const stranger = userPrincipal(userId("eve"));
    const turn = await plane.say("say slowly 40");
    await expect(plane.agent.startTurn(stranger, { thread_id: THREAD, content: "hi" })).rejects.toThrow(/no thread/);
    await expect(plane.agent.interrupt(stranger, { turn_id: turn.id })).rejects.toThrow(/no turn/);
    await expect(plane.agent.steer(stranger, { thread_id: THREAD, content: "hi" })).rejects.toThrow(/no thread/);
    expect((await plane.store.turn(HOST, turn.id))?.state).toBe("active");
  });

  test("what is said can be watched as it is said", async () => {
    const plane = await hosted();
    const words: string[] = [];
    plane.agent.onProgress((progress) => {
      if (progress.type === "text") words.push(progress.delta);
    });
    await plane.converse("say slowly 3");
    expect(words).toEqual(["word-1 ", "word-2 ", "word-3 "]);
  });
});

describe("the queue", () => {
  test("messages for a busy thread wait, in their order", async () => {
    const plane = await hosted();
    const turns = [await plane.say("say slowly 8"), await plane.say("second"), await plane.say("third")];
    expect(turns.map(({ state }) => state)).toEqual(["active", "queued", "queued"]);
    const ended = await Promise.all(turns.map(({ id }) => plane.agent.ended(id)));
    expect(ended.map(({ state }) => state)).toEqual(["completed", "completed", "completed"]);
    const requests = (await plane.items()).flatMap((item) => (item.type === "chat_request" ? [item.content] : []));
    expect(requests).toEqual(["say slowly 8", "second", "third"]);
  });

  test("a queued turn that is interrupted is taken out", async () => {
    const plane = await hosted();
    await plane.say("say slowly 8");
    const queued = await plane.say("never mind");
    const interrupted = await plane.agent.interrupt(HOST, { turn_id: queued.id });
    expect(interrupted).toMatchObject({ outcome: "removed", successor: null });
    expect((await plane.agent.ended(queued.id)).state).toBe("removed");
    await plane.turnsOver(2);
    expect((await plane.items()).filter(({ type }) => type === "chat_request")).toHaveLength(1);
  });

  test("a paused thread takes no turn until it is resumed", async () => {
    const plane = await hosted();
    await plane.agent.pause(HOST, THREAD);
    const turn = await plane.say("hello");
    expect(turn.state).toBe("queued");
    expect((await plane.agent.pause(HOST, THREAD)).paused_at).not.toBeNull();
    expect(plane.agent.counters.model_calls).toBe(0);
    await plane.agent.resume(HOST, THREAD);
    expect((await plane.agent.ended(turn.id)).state).toBe("completed");
  });

  test("what runs when its thread is paused comes to its end", async () => {
    const plane = await hosted();
    const turn = await plane.say("say slowly 5");
    await plane.agent.pause(HOST, THREAD);
    expect((await plane.agent.ended(turn.id)).state).toBe("completed");
    expect(await plane.texts()).toEqual(["word-1 word-2 word-3 word-4 word-5 "]);
  });
});

describe("a steer", () => {
  test("is taken up with the results of the tools", async () => {
    const { tool, open, running } = gate();
    const plane = await hosted({ tools: [tool] });
    const turn = await plane.say("call gate {}");
    await running;
    await plane.notify({ content: "low and late", priority: "low" });
    expect(await plane.agent.steer(HOST, { thread_id: THREAD, content: "and this too" })).toMatchObject({
      id: turn.id,
    });
    open();
    expect((await plane.agent.ended(turn.id)).state).toBe("completed");
    const items = await plane.items();
    expect(items.map(({ type }) => type)).toEqual([
      "chat_request",
      "chat_response",
      "tool_call_request",
      "steer",
      "tool_call_response",
      "chat_request",
      "chat_response",
    ]);
    expect(items[5]).toEqual({ type: "chat_request", content: "and this too", source: "user", steer: 1 });
    // A user's words drain all that waits.
    expect((await plane.texts()).at(-1)).toContain("low and late");
  });

  test("that comes while the last words are said makes one more step of the same turn", async () => {
    const plane = await hosted();
    const turn = await plane.say("say slowly 10");
    await firstWord(plane);
    await plane.agent.steer(HOST, { thread_id: THREAD, expected_turn_id: turn.id, content: "one more thing" });
    expect((await plane.agent.ended(turn.id)).state).toBe("completed");
    const texts = await plane.texts();
    expect(texts).toHaveLength(2);
    expect(texts[1]).toContain('I read: "one more thing".');
    expect(await plane.turns()).toHaveLength(1);
  });

  test("of a turn that is over, or of another than expected, is refused", async () => {
    const plane = await hosted();
    const over = await plane.converse("hello");
    const steer = (expected_turn_id?: string) =>
      plane.agent.steer(HOST, { thread_id: THREAD, content: "too late", expected_turn_id });
    await expect(steer()).rejects.toMatchObject({ reason: "turn_not_active" });
    await plane.say("say slowly 20");
    await expect(steer(over.id)).rejects.toMatchObject({ reason: "turn_not_active" });
  });

  test("deliver says which it was", async () => {
    const plane = await hosted();
    const deliver = (content: string) => plane.agent.deliver(HOST, { thread_id: THREAD, content });
    const started = await deliver("say slowly 10");
    expect(started.how).toBe("started");
    const steered = await deliver("go on");
    expect(steered).toMatchObject({ how: "steered", turn: { id: started.turn.id } });
    await plane.agent.ended(started.turn.id);
    await plane.agent.pause(HOST, THREAD);
    expect((await deliver("later")).how).toBe("queued");
    expect((await plane.items()).filter(({ type }) => type === "chat_request")).toHaveLength(2);
  });

  test("is not lost when it is delivered at the very end", async () => {
    const plane = await hosted();
    await plane.converse("hello");
    for (let round = 0; round < 20; round += 1) {
      const first = await plane.say(`round ${round}`);
      const { turn } = await plane.agent.deliver(HOST, { thread_id: THREAD, content: `late ${round}` });
      await Promise.all([plane.agent.ended(first.id), plane.agent.ended(turn.id)]);
    }
    const requests = (await plane.items()).flatMap((item) => (item.type === "chat_request" ? [item.content] : []));
    for (let round = 0; round < 20; round += 1) expect(requests).toContain(`late ${round}`);
    expect(await plane.store.liveTurns(HOST, threadId(THREAD))).toEqual([]);
  });
});

describe("an interruption", () => {
  test("stops the turn and keeps what was said", async () => {
    const plane = await hosted();
    const turn = await plane.say("say slowly 200");
    await firstWord(plane);
    await plane.agent.steer(HOST, { thread_id: THREAD, content: "unheard" });
    const interrupted = await plane.agent.interrupt(HOST, { turn_id: turn.id });
    expect(interrupted).toMatchObject({
      outcome: "interrupted",
      turn: { state: "stopped" },
      unconsumed: ["unheard"],
      successor: null,
    });
    const answer = (await plane.items()).at(-1);
    expect(answer).toMatchObject({ type: "chat_response", truncated: true });
    expect((await plane.agent.ended(turn.id)).state).toBe("stopped");
    expect(plane.agent.counters.model_calls).toBe(1);
  });

  test("with a reply goes on with that", async () => {
    const plane = await hosted();
    const turn = await plane.say("say slowly 200");
    await firstWord(plane);
    await plane.notify({ content: "meanwhile" });
    const { outcome, successor } = await plane.agent.interrupt(HOST, { turn_id: turn.id, content: "stop that" });
    expect(outcome).toBe("interrupted");
    expect(successor).toMatchObject({ state: "active", source: "user", content: "stop that" });
    expect((await plane.agent.ended(turn.id)).state).toBe("interrupted");
    expect((await plane.agent.ended(successor?.id ?? "")).state).toBe("completed");
    const texts = await plane.texts();
    expect(texts[0]).toMatch(/^word-1 /);
    expect(texts[1]).toContain('I read: "stop that".');
    expect(texts[1]).toContain("meanwhile");
  });

  test("gives every open call a result before the next request", async () => {
    const { tool, running, runs } = gate();
    const { model, server } = await servedModel();
    const plane = await hosted({ model, tools: [tool] });
    server.answers.push({ content: "", toolCalls: [{ id: "c1", name: "gate", arguments: "{}" }] });
    const turn = await plane.say("open it");
    await running;
    const { successor } = await plane.agent.interrupt(HOST, { turn_id: turn.id, content: "leave it" });
    await plane.agent.ended(successor?.id ?? "");
    const { messages } = JSON.parse(server.recorder.requests.at(-1)?.body ?? "{}");
    expect(messages.slice(-3)).toMatchObject([
      { role: "assistant", tool_calls: [{ id: "c1" }] },
      { role: "tool", tool_call_id: "c1", content: expect.stringMatching(/^Error: interrupted/) },
      { role: "user", content: "leave it" },
    ]);
    expect(runs()).toBe(1);
  });

  test.each<{ state: TurnState }>([{ state: "completed" }])("of a turn that is $state says so", async ({ state }) => {
    const plane = await hosted();
    const turn = await plane.converse("hello");
    expect(await plane.agent.interrupt(HOST, { turn_id: turn.id })).toEqual({
      turn,
      outcome: state,
      unconsumed: [],
      successor: null,
    });
  });

  test("of a turn whose tool takes no notice is requested, and comes true", async () => {
    let entered: () => void = () => {};
    const running = new Promise<void>((resolve) => {
      entered = resolve;
    });
    const deaf: Tool = {
      name: "deaf",
      description: "Hears nothing.",
      input: z.object({}),
      run: () => {
        entered();
        return new Promise<string>(() => {});
      },
    };
    const plane = await hosted({ tools: [deaf] });
    const turn = await plane.say("call deaf {}");
    await running;
    expect(await plane.agent.interrupt(HOST, { turn_id: turn.id })).toMatchObject({ outcome: "cancel_requested" });
    expect((await plane.agent.ended(turn.id)).state).toBe("stopped");
  });

  test("a paused thread keeps the reply for later", async () => {
    const plane = await hosted();
    const turn = await plane.say("say slowly 200");
    await firstWord(plane);
    await plane.agent.pause(HOST, THREAD);
    const { successor } = await plane.agent.interrupt(HOST, { turn_id: turn.id, content: "later then" });
    expect(successor).toMatchObject({ state: "queued", content: "later then" });
    expect((await plane.store.turn(HOST, turn.id))?.state).toBe("stopped");
    await plane.agent.resume(HOST, THREAD);
    expect((await plane.agent.ended(successor?.id ?? "")).state).toBe("completed");
  });

  test("the thread's end stops what runs in it, and the queue", async () => {
    const plane = await hosted();
    const turn = await plane.say("say slowly 200");
    await firstWord(plane);
    const queued = await plane.say("never");
    await plane.agent.closing(THREAD);
    await plane.store.closeThread(HOST, threadId(THREAD));
    expect((await plane.agent.ended(turn.id)).state).toBe("stopped");
    expect(
      await eventually(
        () => plane.store.turn(HOST, queued.id),
        (one) => one?.state === "removed",
      ),
    ).toBeDefined();
    await expect(plane.say("hello")).rejects.toMatchObject({ reason: "thread_closed" });
  });

  test("what is said to a thread while it is being closed is told that", async () => {
    const plane = await hosted();
    await plane.say("say slowly 200");
    await firstWord(plane);
    const closing = plane.agent.closing(THREAD);
    await expect(plane.say("too late")).rejects.toMatchObject({ code: "conflict", reason: "thread_closed" });
    await closing;
  });

  test("closing the host fails what runs, and says so", async () => {
    const plane = await hosted();
    const turn = await plane.say("say slowly 200");
    await firstWord(plane);
    const queued = await plane.say("later");
    const ended = plane.agent.ended(turn.id);
    const never = plane.agent.ended(queued.id).catch((error: unknown) => error);
    await plane.agent.close();
    expect(await ended).toMatchObject({ state: "failed", note: "the host was closed" });
    expect(await never).toMatchObject({ code: "closed" });
    await expect(plane.say("hello")).rejects.toMatchObject({ code: "closed" });
    // The queue is the store's: the next host begins with it.
    await plane.host();
    expect((await plane.agent.ended(queued.id)).state).toBe("completed");
  });
});
