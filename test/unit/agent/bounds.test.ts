/** Nothing makes work for ever, and nothing is forgotten: failures, limits, and an idle agent that is woken. */
import { describe, expect, test } from "vitest";
import { ModelError } from "../../../src/providers/index.js";
import {
  type Agent,
  type Answer,
  blockOf,
  CHAT,
  latch,
  NEVER,
  openAgent,
  type Recorded,
  recordedRehearsal,
  scripted,
  speaking,
  tool,
} from "../../support/agent.js";
import { openWire, WIRES, type WireKind } from "../../support/agent_wire.js";
import { eventually, temporaryFolder } from "../../support/folder.js";

/** Retries and backoff, as short as they can be. */
const SOON = { limits: { retry_base_ms: 1 }, policy: { backoffMs: 1 } };
const REFUSED: Answer = { fails: new ModelError("bad_request", "no such model") };
const stopped = (handle_id: string) => ({
  type: "tool.stopped",
  source: "tools",
  thread_id: CHAT,
  subject: handle_id,
  payload: { tool_name: "build", handle_id },
});

describe.each(WIRES)("a provider that always fails: $name", (kind) => {
  async function failing() {
    const wire = await openWire(kind as WireKind);
    const { answers } = wire.server;
    for (let number = 0; number < 200; number += 1) answers.push({ error: { message: "out of order" }, status: 500 });
    const agent = await openAgent({ policy: SOON.policy, agent: { ...wire.agent, limits: SOON.limits } });
    return { agent, wire, calls: () => wire.server.recorder.requests.length, recovers: () => answers.splice(0) };
  }

  test("a user's message: so many calls, then it has failed, and what was to be told comes again", async () => {
    const { agent, wire, calls, recovers } = await failing();
    const passive = await agent.notify("passive");
    const turn = await agent.converse("Hello");
    expect(turn).toMatchObject({ state: "failed", note: expect.stringContaining("out of order") });
    expect(calls()).toBe(4);
    expect(agent.counters).toMatchObject({ model_calls: 4, retries: 3 });
    expect(await agent.state(passive)).toBe("PENDING");
    await agent.lullaby();
    expect(calls()).toBe(4);
    recovers();
    expect(await agent.converse("Again")).toMatchObject({ state: "completed" });
    expect(await agent.state(passive)).toBe("DELIVERED");
    // The user's own message is said again; what came to nobody is not, but now, once.
    const said = wire.newest().join("\n");
    expect(said).toContain("user Hello");
    expect(said.split(passive)).toHaveLength(2);
    expect(await agent.problems()).toEqual([]);
  });

  test("nobody there: what the agent handles goes to the user after three attempts, the rest waits in quiet", async () => {
    const { agent, calls, recovers } = await failing();
    const narrated = await agent.mustNarrate("the card was refused");
    await agent.becomes(narrated, "ESCALATED attempts");
    const decided = await agent.decides("a new version");
    await agent.becomes(decided, "ESCALATED attempts");
    expect((await agent.shown()).sort()).toEqual(["a new version", "the card was refused"]);
    expect(calls()).toBe(6);
    const { matches } = await agent.tidings.emit(stopped("h_1"));
    const context = matches[0]?.notification.id ?? "";
    await eventually(
      () => agent.read(context),
      ({ attempts }) => attempts === 3,
    );
    await agent.lullaby();
    expect(calls()).toBe(9);
    expect(await agent.state(context)).toBe("PENDING");
    recovers();
    await agent.lullaby();
    expect(calls()).toBe(9);
    await agent.converse("Hello");
    expect(await agent.state(context)).toBe("DELIVERED");
    expect(await agent.path(narrated)).toEqual([
      "PENDING",
      ...["DISPATCHED", "LOCKED", "PENDING"],
      ...["DISPATCHED", "LOCKED", "PENDING"],
      ...["DISPATCHED", "LOCKED", "PENDING"],
      ...["LOCKED", "ESCALATED"],
    ]);
    expect(await agent.problems()).toEqual([]);
  });

  test("something critical: the same bounds", async () => {
    const { agent, calls } = await failing();
    const known = await agent.critical("the disk is full");
    const narrated = await agent.critical("the card was refused", { target: "user", handler: "agent" });
    await eventually(
      () => agent.read(narrated),
      ({ state }) => state === "ESCALATED",
    );
    await agent.lullaby();
    expect(calls()).toBeLessThanOrEqual(6);
    const after = calls();
    await agent.lullaby();
    expect(calls()).toBe(after);
    expect(await agent.state(known)).toBe("PENDING");
    expect(await agent.problems()).toEqual([]);
  });
});

describe("a wake that always dies", () => {
  const NAMES = ["is refused", "hangs before it answers", "hangs in the middle of its answer"] as const;
  const DEATHS: Record<(typeof NAMES)[number], Answer> = {
    "is refused": REFUSED,
    "hangs before it answers": { before: NEVER },
    "hangs in the middle of its answer": { text: "Well,", until: NEVER },
  };

  test.each(NAMES)("because the model %s: three times, then the user is told", async (name) => {
    const model = scripted(Array.from({ length: 50 }, () => DEATHS[name]));
    const agent = await openAgent({ policy: SOON.policy, agent: { model, limits: { ...SOON.limits, time_ms: 60 } } });
    const narrated = await agent.mustNarrate("the card was refused");
    const decided = await agent.decides("a new version");
    await agent.becomes(narrated, "ESCALATED attempts");
    await agent.becomes(decided, "ESCALATED attempts");
    await agent.turnsOver(3);
    await agent.lullaby();
    expect(model.requests).toHaveLength(3);
    expect((await agent.turns()).map(({ state }) => state)).toEqual(["failed", "failed", "failed"]);
    expect(await agent.shown()).toEqual(expect.arrayContaining(["the card was refused", "a new version"]));
    expect(await agent.problems()).toEqual([]);
  });
});

describe("a user who always interrupts", () => {
  test("by stopping: a call for each message; what must be told goes to the user, the rest after three attempts", async () => {
    const model = scripted(Array.from({ length: 8 }, () => ({ text: "Well,", until: NEVER })));
    const agent = await openAgent({ agent: { model } });
    await agent.chat.pause();
    const narrated = await agent.mustNarrate("the card was refused");
    const decided = await agent.decides("a new version");
    const passive = await agent.notify("passive");
    const queued = await agent.chat.say("Message 0");
    const heard = speaking(agent.tidings);
    await agent.chat.resume();
    await heard;
    expect(await agent.tidings.turns.interrupt(queued.turn_id)).toMatchObject({ outcome: "interrupted" });
    expect(await agent.state(narrated)).toBe("ESCALATED stopped");
    expect(await agent.state(decided)).toBe("PENDING");
    expect(await agent.state(passive)).toBe("DELIVERED");
    await agent.lullaby();
    expect(model.requests).toHaveLength(1);
    for (let message = 1; message < 8; message += 1) {
      const words = speaking(agent.tidings);
      const turn = await agent.chat.say(`Message ${message}`);
      await words;
      await agent.tidings.turns.interrupt(turn.turn_id);
    }
    await agent.lullaby();
    expect(model.requests).toHaveLength(8);
    expect((await agent.turns()).map(({ state }) => state)).toEqual(Array(8).fill("stopped"));
    expect(await agent.state(decided)).toBe("ESCALATED attempts");
    expect(await agent.problems()).toEqual([]);
  });

  test("and then says something else: what waited is told with that", async () => {
    const model = scripted([{ text: "Well,", until: NEVER }]);
    const agent = await openAgent({ agent: { model } });
    const heard = speaking(agent.tidings, { internal: true });
    const decided = await agent.decides("a new version");
    await heard;
    const [turn] = await agent.chat.turns();
    await agent.tidings.turns.interrupt(turn?.turn_id ?? "");
    expect(await agent.state(decided)).toBe("PENDING");
    await agent.converse("Something else");
    expect(await agent.state(decided)).toBe("DELIVERED");
  });

  test("by a reply: a call for each, one hold all along, and it is told once", async () => {
    const model = scripted([
      ...Array.from({ length: 6 }, () => ({ text: "Well,", until: NEVER })),
      (request: Recorded["requests"][number]): Answer => {
        const ids = request.messages.flatMap((one) =>
          [...blockOf(one).matchAll(/^- `([\w-]+)`/gm)].map(([, id]) => id),
        );
        return { text: "The card.", calls: [{ name: "acknowledge_notifications", input: { acknowledged_ids: ids } }] };
      },
    ]);
    const agent = await openAgent({ agent: { model } });
    const heard = speaking(agent.tidings);
    const narrated = await agent.mustNarrate("the card was refused");
    await heard;
    const { lease_epoch } = await agent.read(narrated);
    let [turn] = await agent.chat.turns();
    for (let reply = 1; reply <= 6; reply += 1) {
      const words = speaking(agent.tidings);
      const answer = await agent.tidings.turns.interrupt(turn?.turn_id ?? "", { content: `No, ${reply}` });
      expect(answer).toMatchObject({ outcome: "interrupted", turn: { state: "interrupted" } });
      turn = answer.successor ?? undefined;
      await words;
    }
    await agent.turnsOver(7);
    expect(model.requests).toHaveLength(8);
    expect(await agent.read(narrated)).toMatchObject({ state: "DELIVERED", lease_epoch });
    expect(await agent.path(narrated)).toEqual(["PENDING", "DISPATCHED", "LOCKED", "DELIVERED"]);
    expect(model.last().map(blockOf).join("").split(narrated)).toHaveLength(2);
  });
});

describe("a turn's limit", () => {
  test.each([
    { what: "iteration", limits: { iterations: 3 }, payload: { current: 3, limit: 3 }, calls: 3 },
    { what: "token", limits: { tokens: 400 }, payload: { current: 500, limit: 400 }, calls: 1 },
    { what: "timeout", limits: { time_ms: 80 }, payload: { current: 80, limit: 80 }, calls: 1 },
  ] as const)("of $what ends it, with its event; the user is told, the agent learns it next", async (given) => {
    const { what, limits, payload, calls } = given;
    const answers: Record<typeof what, Answer> = {
      iteration: { calls: [{ name: "work" }] },
      token: { calls: [{ name: "work" }], usage: { input: 450, output: 50 } },
      timeout: { text: "Well,", until: NEVER },
    };
    const script = Array.from({ length: 10 }, () => () => (over ? { text: "Hello." } : answers[what]));
    let over = false;
    const model = scripted(script);
    const agent = await openAgent({ agent: { model, limits, tools: [tool("work", () => "worked")] } });
    const owed = await agent.notify("passive");
    const turn = await agent.converse("Go");
    expect(turn).toMatchObject({ state: "failed", note: expect.stringContaining("the turn had its") });
    expect(model.requests).toHaveLength(calls);
    const [event] = await eventually(
      () => agent.events(`budget.${what}.exceeded`),
      (events) => events.length === 1,
    );
    expect(event).toMatchObject({ budget_type: what, ...payload, turn_id: turn.turn_id });
    const notices = (await agent.seen()).filter((line) => line.startsWith("notice: "));
    expect(notices).toHaveLength(1);
    expect(await agent.state(owed)).toBe("DELIVERED");
    over = true;
    await agent.converse("And?");
    expect(blockOf(model.last().at(-1))).toContain("[SEEN] (shown, not yet seen)");
    const ends = await agent.events("agent.turn.end");
    expect(ends.map(({ status }) => status)).toEqual(["failed", "completed"]);
    if (what === "timeout")
      expect(model.last()[1]).toEqual({ role: "assistant", text: "Well,", calls: [], truncated: true });
  });

  test("of a tool: its result says so, its event too, and the agent is not told twice", async () => {
    const model = scripted([{ calls: [{ name: "sleep" }] }, { text: "It took too long." }]);
    const sleep = tool("sleep", () => NEVER.then(() => ""), { timeout_ms: 30 });
    const agent = await openAgent({ agent: { model, tools: [sleep] } });
    await agent.converse("Sleep");
    const results = model.last().flatMap((message) => (message.role === "tools" ? message.results : []));
    expect(results).toMatchObject([{ is_error: true, output: "timed out after 30 ms" }]);
    expect(await agent.events("tool.call.timeout")).toMatchObject([{ tool_name: "sleep", timeout_ms: 30 }]);
    await agent.converse("And?");
    expect(model.last().map(blockOf).join("")).toBe("");
  });
});

describe("an idle thread", () => {
  const KINDS = ["what it decides about", "what it must narrate", "a tool that it started"] as const;
  const waits = async (agent: Agent, what: (typeof KINDS)[number]): Promise<string> => {
    if (what === "what it decides about") return agent.decides("a new version");
    if (what === "what it must narrate") return agent.mustNarrate("the card was refused");
    return (await agent.tidings.emit(stopped("h_1"))).matches[0]?.notification.id ?? "";
  };

  test.each(KINDS)("begins a turn by itself for %s", async (what) => {
    const agent = await openAgent();
    const id = await waits(agent, what);
    await agent.becomes(id, "DELIVERED");
    expect(await agent.turnsOver(1)).toMatchObject([{ source: "system", state: "completed" }]);
    expect(agent.counters).toMatchObject({ wakes: 1, forced_turns: 0 });
  });

  test.each(KINDS)("also after a turn that the user stopped: %s", async (what) => {
    const agent = await openAgent();
    const heard = speaking(agent.tidings);
    const turn = await agent.chat.say("say slowly 400");
    await heard;
    const id = await waits(agent, what);
    await agent.tidings.turns.interrupt(turn.turn_id);
    await agent.becomes(id, "DELIVERED");
    expect((await agent.turnsOver(2)).map(({ state }) => state)).toEqual(["stopped", "completed"]);
  });

  test.each(KINDS)("also after a turn that failed: %s", async (what) => {
    const begun = latch();
    const model = await recordedRehearsal();
    const first = scripted([{ before: begun.opened, ...REFUSED }]);
    const stream = model.stream.bind(model);
    const failing = {
      ...model,
      stream: (request: Recorded["requests"][number]) =>
        (model.requests.length + first.requests.length === 0 ? first : { stream }).stream(request),
    };
    const agent = await openAgent({ policy: SOON.policy, agent: { model: failing } });
    const turn = await agent.chat.say("Hello");
    await eventually(
      async () => first.requests.length,
      (count) => count === 1,
    );
    const id = await waits(agent, what);
    begun.open();
    expect(await agent.tidings.turns.ended(turn.turn_id)).toMatchObject({ state: "failed" });
    await agent.becomes(id, "DELIVERED");
    expect((await agent.turnsOver(2)).map(({ source, state }) => `${source} ${state}`)).toEqual([
      "user failed",
      "system completed",
    ]);
  });

  test.each(KINDS)("also after a restart: %s", async (what) => {
    const data = await temporaryFolder();
    const before = await openAgent({ data, agent: { provider: "none" } });
    const id = await waits(before, what);
    await before.tidings.close();
    const agent = await openAgent({ data });
    await agent.becomes(id, "DELIVERED");
    expect(await agent.turnsOver(1)).toMatchObject([{ source: "system", state: "completed" }]);
  });

  test("also after a restart in the middle of the turn that held it", async () => {
    const data = await temporaryFolder();
    const model = scripted([{ text: "Well,", until: NEVER }]);
    const before = await openAgent({ data, policy: SOON.policy, agent: { model } });
    const heard = speaking(before.tidings);
    const id = await before.mustNarrate("the card was refused");
    await heard;
    const [turn] = await before.chat.turns();
    await before.tidings.close();
    const agent = await openAgent({ data, policy: SOON.policy });
    expect(await agent.tidings.turns.read(turn?.turn_id ?? "")).toMatchObject({ state: "failed" });
    await agent.becomes(id, "DELIVERED");
    expect((await agent.read(id)).attempts).toBe(1);
    expect(await agent.problems()).toEqual([]);
  });

  test("one wake for many", async () => {
    const agent = await openAgent();
    const ids = await Promise.all(Array.from({ length: 20 }, (_, number) => agent.decides(`version ${number}`)));
    for (const id of ids) await agent.becomes(id, "DELIVERED");
    expect(await agent.turnsOver(1)).toHaveLength(1);
    expect(agent.counters).toMatchObject({ wakes: 1, model_calls: 1 });
  });

  test("is not woken for what a message brought first, nor for what the agent has seen itself", async () => {
    const agent = await openAgent();
    const id = await agent.decides("a new version");
    expect(await agent.converse("Hello")).toMatchObject({ internal: false });
    expect(await agent.state(id)).toBe("DELIVERED");
    const { matches } = await agent.tidings.emit(stopped("h_7"));
    await agent.tidings.observe({ thread_id: CHAT, subject: "h_7" });
    expect(await agent.state(matches[0]?.notification.id ?? "")).toBe("SUPPRESSED observed");
    await agent.lullaby();
    expect(await agent.turns()).toHaveLength(1);
    expect(agent.counters).toMatchObject({ wakes: 0, model_calls: 1 });
  });

  test("is not woken for passive context", async () => {
    const agent = await openAgent();
    await agent.notify("passive", { priority: "high", severity: "error" });
    await agent.lullaby();
    expect(agent.counters).toMatchObject({ wakes: 0, model_calls: 0 });
  });
});
