/** An agent that repeats itself is told so while it still does. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { defineTool } from "../../../src/index.js";
import { ManualClock } from "../../../src/platform/manual_clock.js";
import {
  type Agent,
  type Answer,
  blockOf,
  latch,
  openAgent,
  type Recorded,
  scripted,
  tool,
} from "../../support/agent.js";
import { openWire, WIRES, type WireKind } from "../../support/agent_wire.js";
import { temporaryFolder } from "../../support/folder.js";

const anything = { input: z.record(z.string(), z.unknown()) };
const search = tool("search", () => "found nothing", anything);
const parse = tool("parse", () => "not parsed", anything);
const TOOLS = [search, parse];

function calling(...names: string[]): Answer {
  return { calls: names.map((name) => ({ name, input: { query: "cat" } })) };
}

/** In which calls of the model the newest message tells of a loop, counted from one. */
function toldIn(model: Recorded): number[] {
  return model.requests.flatMap(({ messages }, at) =>
    blockOf(messages.at(-1)).includes("loop detected") ? [at + 1] : [],
  );
}

describe.each(WIRES)("the same call three times: $name", (kind) => {
  test("is told with the results of the third, in the turn that goes on", async () => {
    const wire = await openWire(kind as WireKind);
    const again = { toolCalls: [{ name: "search", arguments: '{"query":"cat"}' }] };
    wire.server.answers.push(again, again, again, { content: "I stop." });
    const agent = await openAgent({ agent: { ...wire.agent, tools: TOOLS } });
    expect(await agent.converse("Find the cat")).toMatchObject({ state: "completed" });
    const bodies = wire.server.recorder.requests.map(({ body }) => body);
    expect(bodies.map((body) => body.includes("loop detected - same pattern 3 times"))).toEqual([
      ...[false, false, false],
      true,
    ]);
    expect(bodies[3]).toMatch(/pattern: search\\n/);
    expect(bodies[3]).toContain("window_seconds: 60");
    wire.requests();
    expect(await agent.events("agent.loop.detected")).toMatchObject([
      { pattern: "search", repetitions: 3, window_seconds: 60 },
    ]);
    expect(await agent.problems()).toEqual([]);
  });
});

test("the event is there before the third call has come to its end", async () => {
  const go = latch();
  let runs = 0;
  const slow = tool("slow", async () => {
    runs += 1;
    if (runs === 3) await go.opened;
    return "";
  });
  const model = scripted([1, 2, 3].map(() => ({ calls: [{ name: "slow" }] })));
  const agent = await openAgent({ agent: { model, tools: [slow] } });
  const { turn_id } = await agent.chat.say("Go");
  for await (const entry of agent.tidings.watch({ after: 0 }))
    if (entry.type === "event" && entry.event.type === "agent.loop.detected") break;
  go.open();
  await agent.tidings.turns.ended(turn_id);
  expect(toldIn(model)).toEqual([4]);
});

test("it is told with the results however much others have to say at the moment", async () => {
  const crowd = () => {
    const events = Array.from({ length: 1_000 }, () => ({ type: "a.crowd", source: "agent", user_id: "somebody" }));
    void agent.tidings.emitMany(events);
    return { ...calling("search"), usage: { input: 900, output: 0 } };
  };
  const model = scripted([calling("search"), calling("search"), crowd]);
  const agent: Agent = await openAgent({ agent: { model, tools: TOOLS, limits: { tokens: 1_000 } } });
  await agent.converse("Go");
  expect(toldIn(model)).toEqual([4]);
  expect(blockOf(model.requests[3]?.messages.at(-1))).toContain("90% tokens consumed (904/1000)");
});

test("a pattern of several is one loop; it is told again only when it has come twice as often", async () => {
  const rounds = Array.from({ length: 12 }, (_, at) => calling(at % 2 === 0 ? "search" : "parse"));
  const model = scripted(rounds);
  const agent = await openAgent({ agent: { model, tools: TOOLS } });
  await agent.converse("Go");
  expect(await agent.events("agent.loop.detected")).toMatchObject([
    { pattern: "search → parse", repetitions: 3 },
    { pattern: "search → parse", repetitions: 6 },
  ]);
  expect(toldIn(model)).toEqual([7, 13]);
});

test("other arguments each time, or another tool, are no loop; the same arguments in another order are the same", async () => {
  const different = Array.from({ length: 6 }, (_, at) => ({
    calls: [{ name: "search", input: { query: `cat ${at}` } }],
  }));
  const turned = [
    { a: 1, b: 2 },
    { b: 2, a: 1 },
    { a: 1, b: 2 },
  ].map((input) => ({ calls: [{ name: "parse", input }] }));
  const model = scripted([...different, ...turned]);
  const agent = await openAgent({ agent: { model, tools: TOOLS } });
  await agent.converse("Go");
  expect(await agent.events("agent.loop.detected")).toMatchObject([{ pattern: "parse", repetitions: 3 }]);
  expect(toldIn(model)).toEqual([10]);
});

test("it is seen from turn to turn, within its time; what is built in is none", async () => {
  const clock = new ManualClock(Date.UTC(2026, 0, 3));
  const one = [calling("search"), { text: "Nothing." }];
  const notified = { calls: [{ name: "read_notifications", input: { which: "pending" } }] };
  const model = scripted([...one, ...one, ...one, ...one, ...one, notified, notified, notified, notified]);
  const agent = await openAgent({ clock, agent: { model, tools: TOOLS } });
  await agent.converse("One");
  await agent.converse("Two");
  clock.advance(61_000);
  await agent.converse("Three");
  await agent.converse("Four");
  expect(await agent.events("agent.loop.detected")).toEqual([]);
  await agent.converse("Five");
  expect(await agent.events("agent.loop.detected")).toMatchObject([{ pattern: "search", repetitions: 3 }]);
  await agent.converse("Six");
  expect(await agent.events("agent.loop.detected")).toHaveLength(1);
});

test("to fetch one handle again and again is a loop, to wait for it is none", async () => {
  const build = defineTool({
    name: "build",
    description: "Builds.",
    input: z.object({}),
    spawn: (_, handle) =>
      new Promise<string>((resolve) => handle.signal.addEventListener("abort", () => resolve("ended"))),
  });
  const act = (action: string) => ({
    calls: [{ name: "build", input: { action, handle: "b1", ...(action === "spawn" ? { input: {} } : {}) } }],
  });
  const wait = { calls: [{ name: "await", input: { all: ["b1"], timeout_secs: 0.05 } }] };
  const model = scripted([act("spawn"), wait, wait, wait, wait, act("fetch"), wait, act("fetch"), wait, act("fetch")]);
  const agent = await openAgent({ agent: { model, tools: [build] } });
  await agent.converse("Go");
  expect(await agent.events("agent.loop.detected")).toMatchObject([{ pattern: "build", repetitions: 3 }]);
  expect(toldIn(model)).toEqual([11]);
});

test("the operator and the program say how often, within which time, or that nobody looks", async () => {
  const data = await temporaryFolder();
  await writeFile(join(data, "tidings.toml"), "[agent.loops]\nrepetitions = 2\nwindow_secs = 30\n");
  const four = () => scripted([1, 2, 3, 4].map(() => calling("search")));
  const by = async (options: Parameters<typeof openAgent>[0]) => {
    const agent = await openAgent({ ...options, agent: { model: four(), tools: TOOLS, ...options?.agent } });
    await agent.converse("Go");
    return agent.events("agent.loop.detected");
  };
  expect(await by({ data })).toMatchObject([
    { repetitions: 2, window_seconds: 30 },
    { repetitions: 4, window_seconds: 30 },
  ]);
  expect(await by({ agent: { loops: { repetitions: 4 } } })).toMatchObject([{ repetitions: 4, window_seconds: 60 }]);
  expect(await by({ agent: { loops: false } })).toEqual([]);
  const off = await temporaryFolder();
  await writeFile(join(off, "tidings.toml"), "[agent.loops]\nenable = false\n");
  expect(await by({ data: off })).toEqual([]);
});
