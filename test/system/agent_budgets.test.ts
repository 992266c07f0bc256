/** What the agent may use: warned while there is room, stopped cleanly where there is none, and never forgotten. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { FixtureResponse } from "@copilotkit/aimock";
import { describe, expect, test } from "vitest";
import { ManualClock } from "../../src/platform/manual_clock.js";
import { ModelError } from "../../src/providers/index.js";
import { type Agent, blockOf, CHAT, NEVER, openAgent, scripted, speaking, tool } from "../support/agent.js";
import { openWire, WIRES, type Wire, type WireKind } from "../support/agent_wire.js";
import { eventually, temporaryFolder } from "../support/folder.js";
import { Host } from "../support/host.js";

const look = tool("look", () => "nothing new");

/** The answer of the server, with the tokens that it reports. */
function using(answer: object, input: number, output: number): FixtureResponse {
  const openai = { prompt_tokens: input, completion_tokens: output, total_tokens: input + output };
  return { ...answer, usage: { ...openai, input_tokens: input, output_tokens: output } } as FixtureResponse;
}

let asked = 0;
/** Calls `look` with an argument of its own each time, so that nobody takes it for a loop. */
function looking(input: number, output: number): FixtureResponse {
  asked += 1;
  return using({ toolCalls: [{ name: "look", arguments: `{"at":${asked}}` }] }, input, output);
}

function requests({ server }: Wire): string[] {
  return server.recorder.requests.map(({ body }) => body);
}

async function notices(agent: Agent): Promise<string[]> {
  return (await agent.seen()).filter((line) => line.startsWith("notice: "));
}

describe.each(WIRES)("the tokens of a turn: $name", (kind) => {
  test("at 80 % the agent is told in the same turn; at the limit the turn ends, and the user is told", async () => {
    const wire = await openWire(kind as WireKind);
    wire.server.answers.push(looking(300, 100), looking(400, 50), looking(100, 49), looking(1, 1));
    const agent = await openAgent({ agent: { ...wire.agent, tools: [look], limits: { tokens: 1_000 } } });
    const turn = await agent.converse("Look around");
    expect(turn).toMatchObject({ state: "failed", note: "the turn had its 1000 tokens" });

    // 400 of 1000, then 850: told with the results of the second call, while the turn goes on. 999 leave room for one more.
    const bodies = requests(wire);
    expect(bodies).toHaveLength(4);
    expect(bodies.findIndex((body) => body.includes("budget_warn: 85% tokens consumed (850/1000)"))).toBe(2);
    expect(wire.newest().filter((line) => line.includes("budget_warn"))).toHaveLength(1);
    wire.requests();
    expect(await agent.events("budget.token.warning")).toEqual([
      {
        budget_type: "token",
        current: 850,
        limit: 1_000,
        percentage: 85,
        remaining: 150,
        scope: "turn",
        turn_id: turn.turn_id,
      },
    ]);
    expect(await agent.events("budget.token.exceeded")).toMatchObject([
      { budget_type: "token", current: 1_001, limit: 1_000, percentage: 100, remaining: 0, scope: "turn" },
    ]);
    expect(await notices(agent)).toEqual([
      "notice: !critical: budget exceeded - turn will terminate\nbudget: 100% tokens consumed (1001/1000)",
    ]);
    expect((await agent.tidings.usage({ thread_id: CHAT })).thread).toMatchObject({
      tokens: 1_001,
      input_tokens: 801,
      output_tokens: 200,
      iterations: 4,
    });

    // The agent learns it at its next carrier.
    expect(await agent.converse("And now?")).toMatchObject({ state: "completed" });
    expect(requests(wire)).toHaveLength(5);
    const last = requests(wire).at(-1) ?? "";
    expect(last).toMatch(/\[SEEN\][^[]*budget exceeded/);
    expect(last).toContain("the turn had its 1000 tokens");
    expect(await agent.problems()).toEqual([]);
  });
});

describe("model calls and time", () => {
  test("at 70 % of its calls the agent is told, once", async () => {
    const model = scripted(Array.from({ length: 12 }, (_, at) => ({ calls: [{ name: "look", input: { at } }] })));
    const agent = await openAgent({ agent: { model, tools: [look], limits: { iterations: 10 } } });
    expect(await agent.converse("Go")).toMatchObject({ state: "failed", note: "the turn had its 10 model calls" });
    expect(model.requests).toHaveLength(10);
    const told = model.requests.map(({ messages }) =>
      blockOf(messages.at(-1)).includes("70% iterations consumed (7/10)"),
    );
    expect(told).toEqual([...Array.from({ length: 7 }, () => false), true, false, false]);
    expect(await agent.events("budget.iteration.warning")).toHaveLength(1);
  });

  test("at 80 % of its time the agent is told, while it still runs", async () => {
    const slow = tool("slow", async () => {
      await eventually(
        () => agent.events("budget.timeout.warning"),
        (events) => events.length > 0,
      );
      return "done";
    });
    const model = scripted([{ calls: [{ name: "slow" }] }, { text: "Well,", until: NEVER }]);
    const agent: Agent = await openAgent({ agent: { model, tools: [slow], limits: { time_ms: 1_500 } } });
    expect(await agent.converse("Go")).toMatchObject({ state: "failed", note: "the turn had its 1500 milliseconds" });
    expect(blockOf(model.requests[1]?.messages.at(-1))).toMatch(/budget_warn: 8\d% time consumed \(1[2-4]\d\d\/1500\)/);
    expect(await agent.events("budget.timeout.exceeded")).toMatchObject([{ scope: "turn", limit: 1_500 }]);
  });

  test("of a thread: what is left of it bounds the next turn", async () => {
    const model = scripted([{ text: "Well,", until: NEVER }, { text: "Never" }]);
    const agent = await openAgent({ agent: { model, budgets: { thread: { time_ms: 300 } } } });
    expect(await agent.converse("Go")).toMatchObject({
      state: "failed",
      note: expect.stringContaining("the conversation had its 300 milliseconds"),
    });
    expect(await agent.converse("Go on")).toMatchObject({ state: "failed" });
    expect(model.requests).toHaveLength(1);
    const { thread } = await agent.tidings.usage({ thread_id: CHAT });
    expect(thread?.time_ms).toBeGreaterThanOrEqual(300);
  });
});

describe("a thread", () => {
  test("warns once, is used up, and says so once; with a higher budget it goes on", async () => {
    const data = await temporaryFolder();
    const wire = await openWire(WIRES[0] as WireKind);
    const open = (tokens: number) => openAgent({ data, agent: { ...wire.agent, budgets: { thread: { tokens } } } });
    let agent = await open(1_000);
    wire.server.answers.push(using({ content: "One." }, 700, 100), using({ content: "Two." }, 50, 50));
    await agent.converse("First");
    expect(requests(wire).join()).not.toContain("budget_warn");
    // Nobody has forgotten after a restart, and nobody is warned twice.
    await agent.tidings.close();
    agent = await open(1_000);
    await agent.converse("Second");
    expect(wire.newest().join("\n")).toContain("budget_warn: 80% tokens consumed (800/1000) in this conversation");
    wire.server.answers.push(using({ content: "Three." }, 100, 100));
    await agent.converse("Third");
    expect(await agent.events("budget.token.warning")).toHaveLength(1);
    expect(requests(wire)).toHaveLength(3);

    // It is used up: no call, however often it is asked; and the user is told once.
    for (let number = 0; number < 5; number += 1)
      expect(await agent.converse(`Again ${number}`)).toMatchObject({
        state: "failed",
        note: "the conversation had its 1000 tokens; it goes on when its budget is raised, or in another one",
      });
    expect(requests(wire)).toHaveLength(3);
    expect(await notices(agent)).toEqual([
      "notice: !critical: budget exceeded - turn will terminate\nbudget: 110% tokens consumed (1100/1000) in this conversation",
    ]);
    // Another conversation has its own.
    await agent.tidings.startThread({ thread_id: "other" });
    const other = await agent.tidings.thread("other").say("Hello");
    expect(await agent.tidings.turns.ended(other.turn_id)).toMatchObject({ state: "completed" });

    await agent.tidings.close();
    agent = await open(5_000);
    expect(await agent.converse("Go on")).toMatchObject({ state: "completed" });
    const last = requests(wire).at(-1) ?? "";
    // What the user asked meanwhile was not lost, and of the five the agent hears once.
    expect(last).toContain("Again 4");
    expect(last).toMatch(/\[SEEN\][^[]*budget exceeded/);
    expect(last).not.toContain("agent_turn:");
    expect(await agent.problems()).toEqual([]);
  });

  test("of which the budget is used up wakes nobody for ever; what the agent was to handle goes to the user", async () => {
    const model = scripted([{ text: "One.", usage: { input: 100, output: 0 } }]);
    const agent = await openAgent({ policy: { backoffMs: 1 }, agent: { model, budgets: { thread: { tokens: 100 } } } });
    await agent.converse("First");
    const narrated = await agent.mustNarrate("the card was refused");
    await agent.becomes(narrated, "ESCALATED attempts");
    const critical = await agent.critical("the disk is full");
    await agent.lullaby();
    const turns = (await agent.turns()).length;
    expect(turns).toBeLessThanOrEqual(1 + 3 + 3);
    await agent.lullaby();
    expect((await agent.turns()).length).toBe(turns);
    expect(await agent.state(critical)).toBe("PENDING");
    expect(model.requests).toHaveLength(1);
    expect(await agent.events("budget.token.exceeded")).toHaveLength(1);
    expect(await agent.problems()).toEqual([]);
  });

  test("what an answer that was cut off has used is counted, as far as the provider has reported it", async () => {
    const anthropic = WIRES.find(({ provider }) => provider === "anthropic") as WireKind;
    const wire = await openWire(anthropic);
    wire.server.answers.push(using({ content: "A long story that nobody hears to its end." }, 70, 30));
    const agent = await openAgent({ agent: wire.agent });
    const held = wire.hold("text_delta");
    const heard = speaking(agent.tidings);
    const { turn_id } = await agent.chat.say("Tell me");
    await heard;
    await agent.tidings.turns.interrupt(turn_id);
    held.open();
    await agent.turnsOver(1);
    const { thread } = await agent.tidings.usage({ thread_id: CHAT });
    expect(thread).toMatchObject({ input_tokens: 70, iterations: 1 });
    const items = (await agent.entries("turn")).flatMap((entry) => entry.items);
    expect(items.at(-1)).toMatchObject({ type: "chat_response", truncated: true, usage: { input: 70 } });
  });

  test("a call that fails is a call, and has used no tokens", async () => {
    const model = scripted([{ fails: new ModelError("transient", "try later") }, { text: "Here." }]);
    const agent = await openAgent({ agent: { model, limits: { retry_base_ms: 1 } } });
    await agent.converse("Hello");
    const { thread } = await agent.tidings.usage({ thread_id: CHAT });
    expect(thread).toMatchObject({ tokens: 2, iterations: 2 });
  });
});

describe("a day", () => {
  test("is one for all conversations of a user, ends at midnight (UTC), and is nobody else's", async () => {
    const clock = new ManualClock(Date.parse("2026-01-03T23:00:00.000Z"));
    const model = scripted(
      Array.from({ length: 20 }, (_, at) => ({ text: `Answer ${at}.`, usage: { input: 400, output: 0 } })),
    );
    const agent = await openAgent({ clock, agent: { model, budgets: { day: { tokens: 1_000 } } } });
    const say = async (thread_id: string, user_id = "local") => {
      await agent.tidings.startThread({ thread_id, user_id });
      const { turn_id } = await agent.tidings.thread(thread_id).say("Hello");
      return agent.tidings.turns.ended(turn_id);
    };
    expect([await say("one"), await say("two")]).toMatchObject([{ state: "completed" }, { state: "completed" }]);
    expect(await agent.events("budget.token.warning")).toMatchObject([{ scope: "day", current: 800 }]);
    expect(await agent.tidings.usage()).toMatchObject({ date: "2026-01-03", day: { tokens: 800 }, thread: null });
    expect(await say("one")).toMatchObject({ state: "completed" });
    expect(await agent.events("budget.token.warning"), "and where it is spent next").toMatchObject([
      { scope: "day", current: 800, day: "2026-01-03" },
      { scope: "day", current: 800, day: "2026-01-03" },
    ]);
    const { items } = await agent.tidings.thread("one").read({ observe: true });
    const told = items.flatMap((item) => (item.type === "observation" ? [item.content.text] : []));
    expect(told).toEqual([expect.stringContaining("80% tokens consumed (800/1000) on 2026-01-03 (UTC)")]);
    // Both are told, once each.
    for (const thread_id of ["one", "two", "one", "two"])
      expect(await say(thread_id)).toMatchObject({
        state: "failed",
        note: "the day had its 1000 tokens; it goes on after midnight (UTC), or when the budget is raised",
      });
    expect(await agent.events("budget.token.exceeded")).toHaveLength(2);
    expect(model.requests).toHaveLength(3);
    expect(await say("bobs", "bob")).toMatchObject({ state: "completed" });

    expect(await agent.tidings.as("bob").usage()).toMatchObject({ day: { tokens: 400 } });
    clock.advance(3_600_000);
    expect(await say("one")).toMatchObject({ state: "completed" });
    expect(await agent.tidings.usage()).toMatchObject({ date: "2026-01-04", day: { tokens: 400 } });
    expect((await agent.tidings.usage({ thread_id: "one" })).thread).toMatchObject({ tokens: 1_200 });
    await expect(agent.tidings.as("bob").usage({ thread_id: "one" })).rejects.toThrow("no thread");
    expect(await agent.problems()).toEqual([]);
  });

  test("is not forgotten by a process that was killed", async () => {
    const data = await temporaryFolder();
    const wire = await openWire(WIRES[1] as WireKind);
    const agent = { ...wire.agent, budgets: { day: { tokens: 500 } } };
    wire.server.answers.push(using({ content: "One." }, 400, 200));
    const host = await Host.start();
    await host.open({ data, agent });
    await host.command("say", "one", "Hello");
    host.kill("SIGKILL");
    await host.ended;
    const again = await Host.start();
    await again.open({ data, agent });
    expect(await again.call("usage", { thread_id: "one" })).toMatchObject({
      day: { tokens: 600, iterations: 1 },
      thread: { tokens: 600 },
    });
    await again.command("say", "two", "Hello");
    expect(requests(wire)).toHaveLength(1);
    expect(await again.call("audit")).toMatchObject({ problems: [] });
  });
});

describe("tidings.toml", () => {
  test("sets the budgets, and a change of it takes effect at once", async () => {
    const data = await temporaryFolder();
    const file = join(data, "tidings.toml");
    await writeFile(file, "[agent.budgets.turn]\niterations = 2\n[agent.budgets.thread]\ntokens = 10\n");
    const model = scripted([
      ...[1, 2, 3].map((at) => ({ calls: [{ name: "look", input: { at } }] })),
      { text: "Used up.", usage: { input: 20, output: 0 } },
    ]);
    const agent = await openAgent({ data, watch: true, agent: { model, tools: [look] } });
    expect(await agent.converse("Go")).toMatchObject({ state: "failed", note: "the turn had its 2 model calls" });
    await writeFile(file, "[agent.budgets.thread]\ntokens = 10\n");
    await eventually(
      () => agent.events("config.reloaded"),
      (events) => events.length > 0,
    );
    expect(await agent.events("config.reloaded")).toMatchObject([{ changed: ["agent.budgets.turn.iterations"] }]);
    expect(await agent.converse("Go on")).toMatchObject({ state: "completed" });
    // And the agent was told that its configuration has changed.
    expect(blockOf(model.requests[2]?.messages.at(-1))).toMatch(/config: .*tidings\.toml reloaded/);
    expect(blockOf(model.requests[2]?.messages.at(-1))).toContain("agent.budgets.turn.iterations");
    expect(await agent.converse("Again")).toMatchObject({ state: "failed" });
    await writeFile(file, "[agent.budgets.thread]\ntokens = 10000\n");
    await eventually(
      () => agent.converse("Again"),
      ({ state }) => state === "completed",
    );
  });

  test("nonsense in the program's own options is refused, with its place", async () => {
    for (const [budgets, field] of [
      [{ day: { tokens: 0 } }, "agent.budgets.day.tokens"],
      [{ thread: { tokens: 1.5 } }, "agent.budgets.thread.tokens"],
      [{ week: {} }, "agent.budgets.week"],
      [{ day: { token: 1 } }, "agent.budgets.day.token"],
    ] as const)
      await expect(openAgent({ agent: { budgets: budgets as never } })).rejects.toMatchObject({ field });
    await expect(openAgent({ agent: { loops: { repetitions: 1 } } })).rejects.toMatchObject({
      code: "invalid_input",
    });
  });
});
