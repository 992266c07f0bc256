/** Who may say what when: steers, the queue, interruptions, pauses, and the end of a thread with a turn in it. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { isMiss } from "../../../src/index.js";
import {
  type Agent,
  blockOf,
  CHAT,
  latch,
  NEVER,
  openAgent,
  recordedRehearsal,
  scripted,
  speaking,
  tool,
} from "../../support/agent.js";
import { temporaryFolder } from "../../support/folder.js";

/** A tool that says when it was begun, and ends when it may. */
function work() {
  const begun = latch();
  const end = latch();
  const made = tool("work", () => {
    begun.open();
    return end.opened.then(() => "worked");
  });
  return { begun, end, tool: made };
}

describe("a steer", () => {
  test("is taken up with the results of the tools, in the same turn, with what is to be told then", async () => {
    const { begun, end, tool: working } = work();
    const model = scripted([{ calls: [{ name: "work" }] }, { text: "So be it." }]);
    const agent = await openAgent({ agent: { model, tools: [working] } });
    const turn = await agent.chat.say("Work");
    await begun.opened;
    const low = await agent.notify("low", { priority: "low", inject_at: "turn_end" });
    const steered = await agent.chat.steer("Mind the gap", { expected_turn_id: turn.turn_id });
    expect(steered.turn_id).toBe(turn.turn_id);
    expect(await agent.chat.steer("And the step")).toMatchObject({ turn_id: turn.turn_id });
    const { items } = await agent.chat.read();
    expect(items.filter(({ type }) => type === "steer").map(({ content }) => content)).toEqual([
      { text: "Mind the gap" },
      { text: "And the step" },
    ]);
    end.open();
    expect(await agent.tidings.turns.ended(turn.turn_id)).toMatchObject({ state: "completed" });
    expect(model.last().slice(2)).toEqual([
      { role: "tools", results: [expect.objectContaining({ output: "worked" })] },
      { role: "user", text: "Mind the gap" },
      { role: "user", text: "And the step", block: expect.objectContaining({ text: expect.stringContaining(low) }) },
    ]);
    expect(await agent.turns()).toHaveLength(1);
    expect(await agent.seen()).toEqual([
      "user: Work",
      "call: work",
      "user: Mind the gap",
      "user: And the step",
      "assistant: So be it.",
    ]);
  });

  test("during the last words makes one more step of the same turn", async () => {
    const end = latch();
    const model = scripted([{ text: "Well,", until: end.opened }, { text: "Then so." }]);
    const agent = await openAgent({ agent: { model } });
    const heard = speaking(agent.tidings);
    const turn = await agent.chat.say("Hello");
    await heard;
    await agent.chat.steer("Wait");
    end.open();
    await agent.tidings.turns.ended(turn.turn_id);
    expect(await agent.seen()).toEqual(["user: Hello", "assistant: Well,", "user: Wait", "assistant: Then so."]);
    expect(await agent.turns()).toHaveLength(1);
  });

  test("of a turn that is over, that is another, or that the user does not see, is refused", async () => {
    const model = scripted([{ text: "Hello." }, { text: "Let me see.", until: NEVER }]);
    const agent = await openAgent({ agent: { model } });
    const refused = { code: "conflict", reason: "turn_not_active" };
    await expect(agent.chat.steer("Nobody")).rejects.toMatchObject(refused);
    const turn = await agent.converse("Hello");
    await expect(agent.chat.steer("Late")).rejects.toMatchObject(refused);
    const heard = speaking(agent.tidings, { internal: true });
    await agent.decides("a new version");
    await heard;
    await expect(agent.chat.steer("Who?", { expected_turn_id: turn.turn_id })).rejects.toMatchObject(refused);
    await expect(agent.chat.steer("You there")).rejects.toMatchObject(refused);
    expect(model.requests).toHaveLength(2);
  });

  test("deliver: to the running turn, else a turn of its own, or the queue", async () => {
    const { begun, end, tool: working } = work();
    const model = scripted([{ text: "Yes." }, { calls: [{ name: "work" }] }]);
    const agent = await openAgent({ agent: { model, tools: [working] } });
    const first = await agent.chat.deliver("One");
    expect(first.how).toBe("started");
    await agent.tidings.turns.ended(first.turn.turn_id);
    const second = await agent.chat.deliver("Two");
    await begun.opened;
    const third = await agent.chat.deliver("Three");
    expect([second.how, third.how]).toEqual(["started", "steered"]);
    expect(third.turn.turn_id).toBe(second.turn.turn_id);
    end.open();
    await agent.turnsOver(2);
    await agent.chat.pause();
    expect(await agent.chat.deliver("Four")).toMatchObject({ how: "queued", turn: { state: "queued" } });
  });
});

describe("the queue", () => {
  test("messages to a busy thread wait in their order; they can be changed and taken out", async () => {
    const end = latch();
    const model = scripted([{ text: "Well,", until: end.opened }]);
    const agent = await openAgent({ agent: { model } });
    const heard = speaking(agent.tidings);
    await agent.chat.say("One");
    await heard;
    const queued = [];
    for (const content of ["Two", "Three", "Four"]) queued.push(await agent.chat.say(content));
    expect(queued.map(({ state }) => state)).toEqual(["queued", "queued", "queued"]);
    const [two, three, four] = queued.map(({ turn_id }) => turn_id);
    await agent.tidings.turns.update(two ?? "", "Two, but better");
    await agent.tidings.turns.remove(three ?? "");
    expect((await agent.chat.turns()).map(({ content, state }) => `${state} ${content}`)).toEqual([
      "active One",
      "queued Two, but better",
      "queued Four",
    ]);
    end.open();
    await agent.tidings.turns.ended(four ?? "");
    const asked = model.last().flatMap((message) => (message.role === "user" ? [message.text] : []));
    expect(asked).toEqual(["One", "Two, but better", "Four"]);
    expect(await agent.tidings.turns.read(three ?? "")).toMatchObject({ state: "removed" });
    const late = await agent.tidings.turns.update(two ?? "", "Too late");
    expect(isMiss(late)).toBe(true);
  });

  test("outlives a restart", async () => {
    const data = await temporaryFolder();
    const before = await openAgent({ data });
    await before.chat.pause();
    await before.chat.say("One");
    await before.chat.say("Two");
    await before.tidings.close();
    const model = await recordedRehearsal();
    const agent = await openAgent({ data, agent: { model } });
    expect((await agent.chat.turns()).map(({ state }) => state)).toEqual(["queued", "queued"]);
    await agent.chat.resume();
    await agent.turnsOver(2);
    expect(model.last().flatMap((message) => (message.role === "user" ? [message.text] : []))).toEqual(["One", "Two"]);
  });

  test("goes on by itself after a restart in the middle of a turn", async () => {
    const data = await temporaryFolder();
    const before = await openAgent({ data, agent: { model: scripted([{ text: "Well,", until: NEVER }]) } });
    const heard = speaking(before.tidings);
    await before.chat.say("One");
    await heard;
    await before.chat.say("Two");
    await before.tidings.close();
    const model = await recordedRehearsal();
    const agent = await openAgent({ data, agent: { model } });
    expect((await agent.turnsOver(2)).map(({ state, content }) => `${state} ${content}`)).toEqual([
      "failed One",
      "completed Two",
    ]);
    expect(model.last().map((message) => (message.role === "tools" ? "" : message.text))).toEqual([
      "One",
      "Well,",
      "Two",
    ]);
  });
});

describe("an interruption", () => {
  test("with a reply goes on with that, and brings what waits", async () => {
    const model = scripted([{ text: "In the beginning", until: NEVER }, { text: "Short, then." }]);
    const agent = await openAgent({ agent: { model } });
    const heard = speaking(agent.tidings);
    const turn = await agent.chat.say("Tell me all");
    await heard;
    const id = await agent.notify("low", { priority: "low", inject_at: "turn_end" });
    await agent.chat.steer("Unheard");
    const answer = await agent.tidings.turns.interrupt(turn.turn_id, { content: "Shorter" });
    expect(answer).toMatchObject({
      outcome: "interrupted",
      turn: { state: "interrupted" },
      successor: { content: "Shorter", source: "user" },
      unconsumed: ["Unheard"],
    });
    await agent.turnsOver(2);
    expect(model.last()).toEqual([
      { role: "user", text: "Tell me all" },
      { role: "assistant", text: "In the beginning", calls: [], truncated: true },
      { role: "user", text: "Shorter", block: expect.objectContaining({ text: expect.stringContaining(id) }) },
    ]);
    expect(agent.counters.retries).toBe(0);
  });

  test("gives every open call a result; a tool that takes no notice is not waited for", async () => {
    const begun = latch();
    let aborted = false;
    const tools = [
      tool("work", (_, { signal }) => {
        signal.addEventListener("abort", () => {
          aborted = true;
        });
        begun.open();
        return new Promise<string>((_, reject) => signal.addEventListener("abort", () => reject(new Error("cut"))));
      }),
    ];
    const model = scripted([{ calls: [{ name: "work" }] }, { text: "As you wish." }]);
    const agent = await openAgent({ agent: { model, tools } });
    const turn = await agent.chat.say("Work");
    await begun.opened;
    const answer = await agent.tidings.turns.interrupt(turn.turn_id, { content: "Stop that" });
    expect(answer.outcome).toBe("interrupted");
    await agent.turnsOver(2);
    expect(aborted).toBe(true);
    expect(model.last()).toMatchObject([
      { role: "user", text: "Work" },
      { role: "assistant", calls: [{ name: "work" }] },
      { role: "tools", results: [{ is_error: true, output: expect.stringContaining("interrupted") }] },
      { role: "user", text: "Stop that" },
    ]);
  });

  test("of what is over, or only queued, says so", async () => {
    const agent = await openAgent();
    const turn = await agent.converse("Hello");
    expect(await agent.tidings.turns.interrupt(turn.turn_id, { content: "Late" })).toMatchObject({
      outcome: "completed",
      successor: null,
    });
    await agent.chat.pause();
    const queued = await agent.chat.say("Later");
    expect(await agent.tidings.turns.interrupt(queued.turn_id)).toMatchObject({ outcome: "removed" });
    expect(await agent.turns()).toHaveLength(2);
  });

  test("a message of the user goes before a turn that the user does not see, and is told what that held", async () => {
    const model = scripted([{ text: "Let me see.", until: NEVER }, { text: "Hello." }]);
    const agent = await openAgent({ agent: { model } });
    const heard = speaking(agent.tidings, { internal: true });
    const id = await agent.decides("a new version");
    await heard;
    const turn = await agent.converse("Hello");
    expect(turn).toMatchObject({ state: "completed", internal: false });
    expect(await agent.state(id)).toBe("DELIVERED");
    expect(model.last().map(blockOf).join("").split(id)).toHaveLength(2);
    expect(await agent.seen()).toEqual(["user: Hello", "assistant: Hello."]);
  });
});

describe("a paused thread", () => {
  test("takes messages for later, wakes for nothing, and goes on when it is resumed", async () => {
    const model = await recordedRehearsal();
    const agent = await openAgent({ agent: { model } });
    expect(await agent.chat.pause()).toMatchObject({ state: "paused" });
    const queued = await agent.chat.say("Hello");
    expect(queued.state).toBe("queued");
    const id = await agent.decides("a new version");
    await agent.lullaby();
    expect(model.requests).toHaveLength(0);
    expect(await agent.chat.resume()).toMatchObject({ state: "open" });
    await agent.tidings.turns.ended(queued.turn_id);
    await agent.becomes(id, "DELIVERED");
    expect(await agent.turns()).toHaveLength(1);
  });

  test("brings what runs to its end", async () => {
    const { begun, end, tool: working } = work();
    const model = scripted([{ calls: [{ name: "work" }] }, { text: "Done." }]);
    const agent = await openAgent({ agent: { model, tools: [working] } });
    const turn = await agent.chat.say("Work");
    await begun.opened;
    await agent.chat.pause();
    end.open();
    expect(await agent.tidings.turns.ended(turn.turn_id)).toMatchObject({ state: "completed" });
  });
});

describe("the end of a turn", () => {
  const working = (agent: () => Agent) =>
    tool("work", async () => {
      await agent().notify("low", { priority: "low", inject_at: "turn_end" });
      return "worked";
    });

  test("what is left for it rides with the next message", async () => {
    const model = scripted([{ calls: [{ name: "work" }] }, { text: "Done." }]);
    const agent: Agent = await openAgent({ agent: { model, tools: [working(() => agent)] } });
    await agent.converse("Work");
    expect(model.requests).toHaveLength(2);
    await agent.converse("And?");
    expect(blockOf(model.last().at(-1))).toContain(">low<");
  });

  test("or gets one more step, and only one, if the operator says so", async () => {
    const data = await temporaryFolder();
    await writeFile(join(data, "tidings.toml"), '[conversation.notifications]\nturn_end = "step"\n');
    const model = scripted([{ calls: [{ name: "work" }] }, { text: "Done." }, { calls: [{ name: "work" }] }]);
    const agent: Agent = await openAgent({ data, agent: { model, tools: [working(() => agent)] } });
    const turn = await agent.converse("Work");
    expect(turn.state).toBe("completed");
    expect(model.requests).toHaveLength(4);
    expect(model.requests[2]?.messages.at(-1)).toMatchObject({
      role: "user",
      text: expect.stringContaining("Before you end this turn"),
      block: { text: expect.stringContaining(">low<") },
    });
    await agent.converse("And?");
    expect(blockOf(model.last().at(-1))).toContain(">low<");
    expect(model.requests).toHaveLength(5);
  });
});

test("what the user is to be shown when a turn starts stands before it", async () => {
  const builds = {
    id: "builds",
    types: ["build.done"],
    routing: { address: "session", target: "user", handler: "system" },
    batch_window_ms: 10_000,
    content: () => "the build is done",
  } as const;
  const model = await recordedRehearsal();
  const agent = await openAgent({ subscribers: [builds], agent: { model } });
  await agent.tidings.emit({ type: "build.done", source: "ci", thread_id: CHAT });
  expect(await agent.seen()).toEqual([]);
  await agent.converse("Hello");
  expect((await agent.seen()).slice(0, 2)).toEqual(["notice: the build is done", "user: Hello"]);
  expect(blockOf(model.last()[0])).toContain("[SEEN]");
});

test("a thread that is closed while a turn runs: it is stopped, and nothing of it is lost", async () => {
  const model = scripted([{ text: "Well,", until: NEVER }]);
  const agent = await openAgent({ agent: { model } });
  const heard = speaking(agent.tidings);
  const narrated = await agent.mustNarrate("the card was refused");
  const passive = await agent.notify("passive");
  await heard;
  const queued = await agent.chat.say("Later");
  const decided = await agent.decides("a new version");
  const late = await agent.notify("too late");
  const pill = await agent.notify("a pill", { target: "user", handler: "system" });
  const [turn] = await agent.chat.turns();
  expect(await agent.chat.close()).toMatchObject({ state: "closed" });
  expect(await agent.tidings.turns.read(turn?.turn_id ?? "")).toMatchObject({ state: "stopped" });
  expect(await agent.tidings.turns.read(queued.turn_id)).toMatchObject({ state: "removed" });
  expect(await agent.read(narrated)).toMatchObject({ state: "ESCALATED", channel: "inbox" });
  expect(await agent.read(pill)).toMatchObject({ state: "DISPATCHED", channel: "inbox" });
  expect(await agent.state(passive)).toBe("DELIVERED");
  expect(await agent.state(decided)).toBe("SUPPRESSED expired");
  expect(await agent.state(late)).toBe("SUPPRESSED expired");
  await expect(agent.chat.say("Hello?")).rejects.toMatchObject({ code: "conflict" });
  await agent.lullaby();
  expect(model.requests).toHaveLength(1);
  expect(await agent.problems()).toEqual([]);
});

test("two users' threads run side by side, and neither sees the other's", async () => {
  const end = latch();
  const model = scripted([{ text: "Ada, well,", until: end.opened }, { text: "Ben!" }]);
  const agent = await openAgent({ agent: { model } });
  const ada = await started(agent, "ada");
  const ben = await started(agent, "ben");
  const heard = speaking(agent.tidings);
  const adas = await ada.thread.say("Hello from Ada");
  await heard;
  await ben.view.turns.ended((await ben.thread.say("Hello from Ben")).turn_id);
  expect(JSON.stringify(model.requests[1]?.messages)).not.toContain("Ada");
  await expect(ben.view.thread(ada.thread.id).read()).rejects.toMatchObject({ code: "not_found" });
  await expect(ben.view.thread(ada.thread.id).say("Hi")).rejects.toMatchObject({ code: "not_found" });
  expect(await ben.view.turns.read(adas.turn_id)).toMatchObject({ miss: "not_found" });
  end.open();
  await agent.tidings.turns.ended(adas.turn_id);
  expect((await ada.view.threads()).map(({ thread_id }) => thread_id)).toEqual([ada.thread.id]);
});

async function started(agent: Agent, name: string) {
  const view = agent.tidings.as(name);
  const { thread_id } = await view.startThread();
  return { view, thread: view.thread(thread_id) };
}
