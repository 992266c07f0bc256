/** What is critical reaches the agent within one call of the model, wherever the conversation is; a storm makes bounded work. */
import { describe, expect, test } from "vitest";
import type { ThreadItem } from "../../../src/index.js";
import {
  type Agent,
  blockOf,
  CHAT,
  latch,
  NEVER,
  openAgent,
  type Recorded,
  recordedRehearsal,
  scripted,
  speaking,
  toldInCall,
  tool,
} from "../../support/agent.js";
import { eventually } from "../../support/folder.js";

const PLENTY = { criticalPerMinute: 1_000 };
const WHOM = [
  { whom: "the agent, to know", axes: {} },
  { whom: "the agent, to decide", axes: { target: "agent", handler: "agent" } },
  { whom: "the user, by the agent", axes: { target: "user", handler: "agent" } },
] as const;

describe("idle", () => {
  test.each(WHOM)("a turn of the system's own accord, with all that is pending ($whom)", async ({ axes }) => {
    const model = await recordedRehearsal();
    const agent = await openAgent({ agent: { model } });
    const low = await agent.notify("low", { priority: "low", inject_at: "turn_end" });
    const id = await agent.critical("the disk is full", axes);
    await agent.becomes(id, "DELIVERED");
    const [turn] = await agent.turnsOver(1);
    expect(turn).toMatchObject({ source: "system", internal: false, state: "completed" });
    expect(turn?.content).toContain("something critical has happened");
    expect(toldInCall(model, id)).toBe(1);
    expect(await agent.state(low)).toBe("DELIVERED");
    expect(agent.counters).toMatchObject({ forced_turns: 1, wakes: 0, retries: 0 });
    expect(spoken(await messages(agent)).join()).toContain("the disk is full");
    expect(await agent.problems()).toEqual([]);
  });

  test("those that come together share one turn", async () => {
    const model = await recordedRehearsal();
    const agent = await openAgent({ agent: { model } });
    const ids = await Promise.all(["one", "two", "three"].map((content) => agent.critical(content)));
    for (const id of ids) await agent.becomes(id, "DELIVERED");
    expect(ids.map((id) => toldInCall(model, id))).toEqual([1, 1, 1]);
    expect(await agent.turnsOver(1)).toHaveLength(1);
  });

  test("on the user's own channels nothing is forced", async () => {
    const agent = await openAgent();
    await agent.critical("a pill", { target: "user", handler: "system" });
    await agent.tidings.notify({ content: "an inbox item", severity: "critical", target: "user", handler: "system" });
    await agent.lullaby();
    expect(await agent.turns()).toEqual([]);
    expect((await agent.shown()).sort()).toEqual(["a pill", "an inbox item"]);
  });
});

describe("streaming", () => {
  test.each(WHOM)("the answer is cut off and kept, and what was asked is finished next ($whom)", async ({ axes }) => {
    const model = await recordedRehearsal();
    const agent = await openAgent({ agent: { model } });
    const heard = speaking(agent.tidings);
    const turn = await agent.chat.say("say slowly 50");
    await heard;
    const id = await agent.critical("the disk is full", axes);
    const cut = await agent.tidings.turns.ended(turn.turn_id);
    expect(cut).toMatchObject({ state: "interrupted", note: expect.stringContaining("critical") });
    const turns = await agent.turnsOver(2);
    expect(turns[1]).toMatchObject({ source: "system", internal: false, state: "completed" });
    expect(turns[1]?.content).toContain("what the user had asked is still open");
    expect(cut.continued_by).toBe(turns[1]?.turn_id);
    expect(toldInCall(model, id)).toBe(2);
    expect(await agent.state(id)).toBe("DELIVERED");
    const said = await messages(agent);
    expect(said.map(({ role, status }) => `${role} ${status}`)).toEqual([
      "user completed",
      "assistant interrupted",
      "system completed",
      "assistant completed",
    ]);
    expect(said[1]?.content.text).toMatch(/^word-1 /);
    const words = spoken(said)
      .join(" ")
      .match(/word-\d+/g);
    expect(words).toEqual(Array.from({ length: 50 }, (_, index) => `word-${index + 1}`));
    // One more where it acknowledges.
    expect(agent.counters).toMatchObject({ retries: 0, forced_turns: 1 });
    expect(model.requests).toHaveLength("target" in axes && axes.target === "user" ? 3 : 2);
    expect(await agent.problems()).toEqual([]);
  });

  test("the model has its own words before it, as they were cut off; a half-made call is dropped", async () => {
    let runs = 0;
    const model = scripted([
      { text: "The answer is", until: NEVER, calls: [{ name: "work" }] },
      { text: "Careful: the disk. And: 42." },
    ]);
    const agent = await openAgent({ agent: { model, tools: [tool("work", () => String(++runs))] } });
    const passive = await agent.notify("passive");
    const heard = speaking(agent.tidings);
    await agent.chat.say("What is the answer?");
    await heard;
    const id = await agent.critical("the disk is full");
    await agent.turnsOver(2);
    expect(model.requests).toHaveLength(2);
    expect(model.last().map(({ role }) => role)).toEqual(["user", "assistant", "user"]);
    expect(model.last()[1]).toEqual({ role: "assistant", text: "The answer is", calls: [], truncated: true });
    expect(blockOf(model.last()[0])).toContain(passive);
    expect(blockOf(model.last()[2])).toContain(id);
    expect(blockOf(model.last()[2])).not.toContain(passive);
    expect(runs).toBe(0);
    expect(await agent.state(passive)).toBe("DELIVERED");
  });

  test("before the provider has begun to answer: what was to be told is told by the next", async () => {
    const model = scripted([{ before: NEVER }, { text: "All done." }]);
    const agent = await openAgent({ agent: { model } });
    const passive = await agent.notify("passive");
    const decided = await agent.decides("yours", { inject_at: "turn_start" });
    await agent.chat.say("Hello");
    await eventually(
      async () => model.requests.length,
      (count) => count === 1,
    );
    const id = await agent.critical("the disk is full");
    await agent.turnsOver(2);
    expect(model.requests).toHaveLength(2);
    const blocks = model.last().map(blockOf).join();
    for (const one of [passive, decided, id]) {
      expect(blocks.split(one)).toHaveLength(2);
      expect(await agent.state(one)).toBe("DELIVERED");
    }
    expect(model.last().flatMap((message) => (message.role === "user" ? [message.text] : []))[0]).toBe("Hello");
    expect(await agent.problems()).toEqual([]);
  });

  test("what the cut-off turn held goes on to the next one, under the same hold", async () => {
    const model = scripted([
      { text: "Your card", until: NEVER },
      (request) => {
        const ids = request.messages.flatMap((one) => [...blockOf(one).matchAll(/- `([\w-]+)`/g)].map(([, id]) => id));
        return { text: "All of it.", calls: [{ name: "acknowledge_notifications", input: { acknowledged_ids: ids } }] };
      },
    ]);
    const agent = await openAgent({ agent: { model } });
    const heard = speaking(agent.tidings);
    const owed = await agent.mustNarrate("the card was refused");
    await heard;
    const { lease_epoch } = await agent.read(owed);
    await agent.critical("the disk is full");
    await agent.turnsOver(2);
    expect(await agent.read(owed)).toMatchObject({ state: "DELIVERED", lease_epoch });
    expect(await agent.path(owed)).toEqual(["PENDING", "DISPATCHED", "LOCKED", "DELIVERED"]);
    expect(await agent.shown()).toEqual([]);
  });
});

test("tools running: it goes with their results, and nothing is cut off", async () => {
  const started = latch();
  const done = latch();
  const work = tool("work", () => {
    started.open();
    return done.opened.then(() => "worked");
  });
  const model = scripted([{ calls: [{ name: "work" }] }, { text: "Both." }]);
  const agent = await openAgent({ agent: { model, tools: [work] } });
  const turn = await agent.chat.say("Work");
  await started.opened;
  const id = await agent.critical("the disk is full");
  await agent.lullaby();
  expect(await agent.state(id)).toBe("PENDING");
  done.open();
  expect(await agent.tidings.turns.ended(turn.turn_id)).toMatchObject({ state: "completed" });
  expect(await agent.turns()).toHaveLength(1);
  expect(model.requests[1]?.messages.at(-1)).toMatchObject({ role: "tools", results: [{ output: "worked" }] });
  expect(blockOf(model.requests[1]?.messages.at(-1))).toContain(id);
  expect(await agent.state(id)).toBe("DELIVERED");
});

test("paused: to the user at once; the rest waits, and is told when the thread goes on", async () => {
  const model = await recordedRehearsal();
  const agent = await openAgent({ agent: { model } });
  await agent.chat.pause();
  const [known = "", decided = "", narrated = ""] = await Promise.all(
    WHOM.map(({ whom, axes }) => agent.critical(`critical for ${whom}`, axes)),
  );
  const normal = await agent.mustNarrate("not urgent");
  await agent.becomes(known, "SUPPRESSED superseded");
  await agent.becomes(decided, "ESCALATED paused");
  await agent.becomes(narrated, "ESCALATED paused");
  expect((await agent.shown()).sort()).toEqual(WHOM.map(({ whom }) => `critical for ${whom}`).sort());
  expect((await agent.seen()).sort()).toEqual(WHOM.map(({ whom }) => `notice: critical for ${whom}`).sort());
  expect(model.requests).toHaveLength(0);
  expect(await agent.state(normal)).toBe("PENDING");
  await agent.chat.resume();
  await agent.becomes(normal, "DELIVERED");
  expect(await agent.problems()).toEqual([]);
});

describe("during a system turn", () => {
  test("a visible one: told with one more call, and what was asked first is still finished", async () => {
    const model = await recordedRehearsal();
    const agent = await openAgent({ agent: { model } });
    const heard = speaking(agent.tidings);
    await agent.chat.say("say slowly 60");
    await heard;
    const first = await agent.critical("first");
    await agent.becomes(first, "DELIVERED");
    const second = await agent.critical("second");
    await agent.becomes(second, "DELIVERED");
    const turns = await agent.turnsOver(3);
    expect(turns.map(({ source, state }) => `${source} ${state}`)).toEqual([
      "user interrupted",
      "system interrupted",
      "system completed",
    ]);
    expect([first, second].map((id) => toldInCall(model, id))).toEqual([2, 3]);
    const words = spoken(await messages(agent))
      .join(" ")
      .match(/word-\d+/g);
    expect(words).toEqual(Array.from({ length: 60 }, (_, index) => `word-${index + 1}`));
  });

  test("one that a wake opened, and that the user does not see: it becomes a visible one", async () => {
    const model = scripted([{ text: "Let me see.", until: NEVER }, { text: "The disk is full." }]);
    const agent = await openAgent({ agent: { model } });
    const heard = speaking(agent.tidings, { internal: true });
    const decided = await agent.decides("a new version");
    await heard;
    const id = await agent.critical("the disk is full");
    const turns = await agent.turnsOver(2);
    expect(turns.map(({ internal, state }) => ({ internal, state }))).toEqual([
      { internal: true, state: "interrupted" },
      { internal: false, state: "completed" },
    ]);
    expect(toldInCall(model, id)).toBe(2);
    expect(await agent.state(id)).toBe("DELIVERED");
    expect(await agent.state(decided)).toBe("DELIVERED");
    expect(spoken(await messages(agent))).toEqual(["The disk is full."]);
  });

  test("it can be interrupted like any other", async () => {
    const model = scripted([{ text: "The disk", until: NEVER }]);
    const agent = await openAgent({ agent: { model } });
    const heard = speaking(agent.tidings);
    const id = await agent.critical("the disk is full");
    await heard;
    const [turn] = await agent.chat.turns();
    const { outcome } = await agent.tidings.turns.interrupt(turn?.turn_id ?? "");
    expect(outcome).toBe("interrupted");
    expect((await agent.turnsOver(1))[0]).toMatchObject({ state: "stopped" });
    expect(await agent.state(id)).toBe("DELIVERED");
  });
});

describe("a hundred at once", () => {
  test.each(WHOM)("make four calls at most, and none is lost ($whom)", async ({ axes }) => {
    const model = await recordedRehearsal();
    const agent = await openAgent({ policy: PLENTY, agent: { model } });
    const ids = await Promise.all(
      Array.from({ length: 100 }, (_, number) => agent.critical(`critical ${number}`, axes)),
    );
    await settled(agent, model);
    expect(agent.counters.model_calls).toBeLessThanOrEqual(4);
    await accounted(agent, ids, "handler" in axes);
  });

  test.each(WHOM)("one after the other, while the agent speaks: the same ($whom)", async ({ axes }) => {
    const model = await recordedRehearsal();
    const agent = await openAgent({ policy: PLENTY, agent: { model } });
    const heard = speaking(agent.tidings);
    await agent.chat.say("say slowly 40");
    await heard;
    const ids: string[] = [];
    for (let number = 0; number < 100; number += 1) ids.push(await agent.critical(`critical ${number}`, axes));
    await settled(agent, model);
    expect(agent.counters.model_calls).toBeLessThanOrEqual(5);
    expect(agent.counters.forced_turns).toBeLessThanOrEqual(3);
    await accounted(agent, ids, "handler" in axes);
    const words = spoken(await messages(agent))
      .join(" ")
      .match(/word-\d+/g);
    expect(words).toEqual(Array.from({ length: 40 }, (_, index) => `word-${index + 1}`));
  });

  test("one more with each call of the model: the calls end", async () => {
    const ids: string[] = [];
    const model = scripted(
      Array.from({ length: 50 }, () => () => {
        void opened?.critical(`critical ${ids.length}`).then((id) => ids.push(id));
        return { text: "I see.", until: Promise.race([more.opened, NEVER]) };
      }),
    );
    const more = latch();
    const opened = await openAgent({ policy: PLENTY, agent: { model } });
    ids.push(await opened.critical("the first"));
    await eventually(
      async () => opened.counters.forced_turns,
      (count) => count >= 3,
    );
    more.open();
    await opened.turnsOver(3);
    await settled(opened, model);
    expect(opened.counters.model_calls).toBeLessThanOrEqual(4);
    const states = await Promise.all(ids.map((id) => opened.state(id)));
    expect(states.filter((state) => state !== "DELIVERED" && state !== "PENDING")).toEqual([]);
  });

  test("and a model that takes its time, and acknowledges only what it was told last: four calls at most", async () => {
    const end = latch();
    const model = scripted(
      Array.from({ length: 20 }, () => ({ messages }: Recorded["requests"][number]) => {
        const ids = [...blockOf(messages.at(-1)).matchAll(/^- `([\w-]+)`/gm)].map(([, id]) => id);
        if (ids.length === 0) return { text: "That is all." };
        const calls = [{ name: "acknowledge_notifications", input: { acknowledged_ids: ids } }];
        return { text: "Fire.", until: end.opened, calls };
      }),
    );
    const agent = await openAgent({ policy: PLENTY, agent: { model } });
    const ids: string[] = [];
    for (let turn = 1; turn <= 3; turn += 1) {
      ids.push(await agent.critical(`fire ${turn}`, { target: "user", handler: "agent" }));
      await eventually(
        async () => model.requests.length,
        (count) => count === turn,
      );
    }
    const fourth = await agent.critical("fire 4", { target: "user", handler: "agent" });
    await agent.becomes(fourth, "ESCALATED storm");
    end.open();
    await agent.turnsOver(3);
    await settled(agent, model);
    for (const id of ids) expect(["DELIVERED", "ESCALATED unacknowledged"]).toContain(await agent.state(id));
    expect(agent.counters.forced_turns).toBe(3);
    expect(agent.counters.model_calls).toBeLessThanOrEqual(4);
  });

  test("a storm does not keep the agent from what it is woken for later", async () => {
    const model = await recordedRehearsal();
    const agent = await openAgent({ policy: PLENTY, agent: { model } });
    for (const content of ["one", "two", "three"]) await agent.becomes(await agent.critical(content), "DELIVERED");
    await agent.turnsOver(3);
    const { matches } = await agent.tidings.emit({
      type: "tool.stopped",
      source: "tools",
      thread_id: CHAT,
      payload: { tool_name: "build", handle_id: "h_1" },
    });
    const id = matches[0]?.notification.id ?? "";
    await agent.becomes(id, "DELIVERED");
  });

  test("the user's word ends it", async () => {
    const model = await recordedRehearsal();
    const agent = await openAgent({ policy: PLENTY, agent: { model } });
    for (const content of ["one", "two", "three"]) await agent.becomes(await agent.critical(content), "DELIVERED");
    const fourth = await agent.critical("four");
    await agent.lullaby();
    expect(await agent.state(fourth)).toBe("PENDING");
    await agent.converse("Hello");
    expect(await agent.state(fourth)).toBe("DELIVERED");
    await agent.becomes(await agent.critical("five"), "DELIVERED");
    expect(agent.counters.forced_turns).toBe(4);
  });
});

test("so many of one source in a minute; a further one is high, says so, and forces nothing", async () => {
  const model = await recordedRehearsal();
  const agent = await openAgent({ policy: { criticalPerMinute: 2 }, agent: { model } });
  const ids = await Promise.all(["one", "two", "three"].map((content) => agent.critical(content)));
  await agent.becomes(ids[0] ?? "", "DELIVERED");
  await agent.turnsOver(1);
  const priorities = await Promise.all(ids.map(async (id) => (await agent.read(id)).priority));
  expect(priorities).toEqual(["critical", "critical", "high"]);
  const later = await agent.critical("four");
  await agent.lullaby();
  expect(await agent.read(later)).toMatchObject({ priority: "high", severity: "critical", state: "PENDING" });
  expect(await agent.story(later)).toMatch(/critical/);
  expect(await agent.turns()).toHaveLength(1);
  await agent.converse("Hello");
  expect(await agent.state(later)).toBe("DELIVERED");
});

type Said = Extract<ThreadItem, { type: "message" }>;

async function messages(agent: Agent): Promise<Said[]> {
  return (await agent.chat.read()).items.flatMap((item) => (item.type === "message" ? [item] : []));
}

function spoken(said: readonly Said[]): string[] {
  return said.flatMap(({ role, content }) => (role === "assistant" ? [content.text] : []));
}

/** Nothing runs, and nobody is woken any more. */
async function settled(agent: Agent, model: Recorded): Promise<void> {
  await eventually(
    async () => {
      const before = model.requests.length;
      await agent.lullaby();
      return model.requests.length === before && (await agent.chat.turns()).length === 0;
    },
    (quiet) => quiet,
    60_000,
  );
}

/** Each ended where it should, or waits for the next message and is told then. */
async function accounted(agent: Agent, ids: readonly string[], escalates: boolean): Promise<void> {
  const states = await Promise.all(ids.map((id) => agent.state(id)));
  // A storm leaves no room for a reminder: what was told and not acknowledged goes to the user at once.
  const shownIn = ["ESCALATED storm", "ESCALATED unacknowledged"];
  const allowed = escalates ? ["DELIVERED", ...shownIn] : ["DELIVERED", "PENDING"];
  expect(states.filter((state) => !allowed.includes(state))).toEqual([]);
  expect(states).toContain("DELIVERED");
  for (let message = 0; message < 5; message += 1) await agent.converse("And?");
  const after = await Promise.all(ids.map((id) => agent.state(id)));
  expect(after.filter((state) => state === "PENDING")).toEqual([]);
  const shown = after.filter((state) => shownIn.includes(state)).length;
  expect(await agent.shown()).toHaveLength(shown);
  expect(await agent.problems()).toEqual([]);
}
