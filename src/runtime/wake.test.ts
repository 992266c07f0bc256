import { describe, expect, test } from "vitest";
import { notificationId, userId } from "../domain/ids.js";
import type { Waiting } from "../store/contract.js";
import { Storm } from "./storm.js";
import { type Decision, decide, type Situation } from "./wake.js";

const NOW = 100_000;

function waiting(more: Partial<Waiting> = {}): Waiting {
  return {
    id: notificationId("n1"),
    user_id: userId("ada"),
    thread_id: null,
    channel: "agent",
    priority: "normal",
    must_narrate: true,
    created_at: NOW - 10_000,
    wait_ms: 2_000,
    not_before: 0,
    open_until: null,
    ...more,
  };
}

const idle: Situation = { activity: "idle", paused: false, storm: false, now: NOW };
const critical = { priority: "critical" } as const;
const context = { channel: "context" } as const;
const NOTHING: Decision = { do: "nothing" };
const FORCE: Decision = { do: "force" };
const escalate = (reason: "paused" | "storm", ids: string[], shown: string[]) => ({
  do: "escalate",
  reason,
  ids,
  shown,
});

describe("what is done about what waits", () => {
  test.each<[string, Partial<Waiting>, Partial<Situation>, object]>([
    ["idle", {}, {}, { do: "wake" }],
    ["idle, just now", { created_at: NOW - 100 }, {}, { do: "look", at: NOW + 150 }],
    ["idle, in a hurry", { created_at: NOW - 100, wait_ms: 120 }, {}, { do: "look", at: NOW + 20 }],
    ["idle, after a failure", { not_before: NOW + 4_000 }, {}, { do: "look", at: NOW + 4_000 }],
    ["idle, an open batch", { created_at: NOW - 500, open_until: NOW + 900 }, {}, { do: "look", at: NOW + 900 }],
    ["idle, a long batch", { created_at: NOW - 500, open_until: NOW + 9_000 }, {}, { do: "look", at: NOW + 1_500 }],
    ["calling", {}, { activity: "calling" }, NOTHING],
    ["tools", {}, { activity: "tools" }, NOTHING],
    ["between", {}, { activity: "between" }, NOTHING],
    ["paused", {}, { paused: true }, NOTHING],
    ["storm, idle", {}, { storm: true }, escalate("storm", ["n1"], [])],
    ["storm, busy", {}, { storm: true, activity: "calling" }, NOTHING],
    ["critical, idle", critical, {}, FORCE],
    ["critical, calling", critical, { activity: "calling" }, FORCE],
    ["critical, just now", { ...critical, created_at: NOW - 60 }, {}, { do: "look", at: NOW + 40 }],
    [
      "critical, calling, just now",
      { ...critical, created_at: NOW - 60 },
      { activity: "calling" },
      { do: "look", at: NOW + 40 },
    ],
    ["critical, after a failure", { ...critical, not_before: NOW + 1 }, {}, { do: "look", at: NOW + 1 }],
    ["critical, tools", critical, { activity: "tools" }, NOTHING],
    ["critical, between", critical, { activity: "between" }, NOTHING],
    ["critical, paused", critical, { paused: true }, escalate("paused", ["n1"], [])],
    ["critical, paused, running", critical, { paused: true, activity: "calling" }, escalate("paused", ["n1"], [])],
    ["critical, storm", critical, { storm: true, activity: "calling" }, escalate("storm", ["n1"], [])],
    ["critical context, idle", { ...critical, ...context }, {}, FORCE],
    ["critical context, paused", { ...critical, ...context }, { paused: true }, escalate("paused", [], ["n1"])],
    ["critical context, storm", { ...critical, ...context }, { storm: true }, NOTHING],
    ["context that wakes, idle", context, {}, { do: "wake" }],
    ["context that wakes, paused", context, { paused: true }, NOTHING],
    ["context that wakes, storm", context, { storm: true }, { do: "wake" }],
    [
      "context that wakes, storm, just now",
      { ...context, created_at: NOW - 500 },
      { storm: true },
      { do: "look", at: NOW + 1_500 },
    ],
    ["context that wakes, storm, busy", context, { storm: true, activity: "calling" }, NOTHING],
  ])("%s", (_name, item, situation, decision) => {
    expect(decide([waiting(item)], { ...idle, ...situation })).toEqual(decision);
  });

  test("nothing waits", () => expect(decide([], idle)).toEqual(NOTHING));

  test("of many the first that is due counts", () => {
    const items = [
      waiting({ not_before: NOW + 500 }),
      waiting({ created_at: NOW - 100 }),
      waiting({ ...critical, created_at: NOW }),
    ];
    expect(decide(items, idle)).toEqual({ do: "look", at: NOW + 100 });
    expect(decide(items, { ...idle, now: NOW + 100 })).toEqual(FORCE);
  });
});

describe("a storm", () => {
  test("rages after three forced turns in a row, and for as long as they are one", () => {
    const storm = new Storm();
    for (const at of [0, 20_000, 40_000]) {
      expect(storm.rages(at)).toBe(false);
      storm.forced(at);
    }
    expect(storm.rages(40_000)).toBe(true);
    expect(storm.rages(59_999)).toBe(true);
    expect(storm.rages(60_000)).toBe(false);
  });

  test("rages after three calls of forced turns in ten seconds", () => {
    const storm = new Storm();
    storm.forced(0);
    for (const at of [1, 2]) storm.called(at);
    expect(storm.rages(3)).toBe(false);
    storm.called(3);
    expect(storm.rages(4)).toBe(true);
    expect(storm.rages(10_001)).toBe(false);
  });

  test("is none without anything forced, and over when the user speaks", () => {
    const storm = new Storm();
    for (const at of [1, 2, 3, 4]) storm.called(at);
    expect(storm.rages(5)).toBe(false);
    for (const at of [5, 6, 7]) storm.forced(at);
    storm.reset();
    expect(storm.rages(8)).toBe(false);
  });
});
