import { describe, expect, it } from "vitest";
import { JournalClock } from "./clock.js";
import { IdSource, numberInId } from "./ids.js";
import { ManualClock } from "./manual_clock.js";

const START_MS = Date.UTC(2026, 0, 3);
const DAY_MS = 86_400_000;

describe("the journal's clock (I20)", () => {
  it("follows the wall clock, and starts no earlier than the last entry", () => {
    const wall = new ManualClock(START_MS);
    expect(new JournalClock(wall, 0).now()).toBe(START_MS);
    expect(new JournalClock(wall, START_MS + 500).now()).toBe(START_MS + 500);
  });

  it("runs on by the monotonic clock when the wall clock jumps back", () => {
    const wall = new ManualClock(START_MS);
    const clock = new JournalClock(wall, 0);
    wall.jump(-DAY_MS);
    expect(clock.now()).toBe(START_MS);
    wall.advance(1_000);
    expect(clock.now()).toBe(START_MS + 1_000);
    expect(clock.takeJump()).toBe(0);
  });

  it("follows a jump ahead, and tells of it once", () => {
    const wall = new ManualClock(START_MS);
    const clock = new JournalClock(wall, 0);
    wall.jump(DAY_MS);
    expect(clock.now()).toBe(START_MS + DAY_MS);
    expect(clock.takeJump()).toBe(DAY_MS);
    expect(clock.takeJump()).toBe(0);
    wall.advance(10);
    expect(clock.now()).toBe(START_MS + DAY_MS + 10);
    expect(clock.takeJump()).toBe(0);
  });
});

describe("ids", () => {
  it("are UUIDv7 of their time, carry their number and do not repeat", () => {
    const ids = new IdSource();
    const made = Array.from({ length: 5_000 }, (_, index) => ids.numbered(START_MS, index));
    expect(new Set(made).size).toBe(5_000);
    for (const [index, id] of made.entries()) {
      expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
      expect(Number.parseInt(id.replaceAll("-", "").slice(0, 12), 16)).toBe(START_MS);
      expect(numberInId(id)).toBe(index);
    }
    expect(new Set(Array.from({ length: 1_000 }, () => ids.random(START_MS))).size).toBe(1_000);
  });

  it("of any other form carry none", () => {
    for (const text of ["", "x", "'; DROP TABLE journal", "00000000-0000-4000-8000-000000000001"])
      expect(numberInId(text)).toBeUndefined();
  });
});
