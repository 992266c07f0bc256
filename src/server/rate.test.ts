import { expect, it } from "vitest";
import { ManualClock } from "../platform/manual_clock.js";
import { RateLimit } from "./rate.js";

const limit = (perSecond: number, burst: number) => {
  const clock = new ManualClock(0);
  return { clock, rate: new RateLimit(clock, perSecond, burst) };
};

it("gives what the bucket has, then says how long to wait, and that long is enough", () => {
  const { clock, rate } = limit(10, 20);
  for (let n = 0; n < 20; n += 1) expect(rate.take("a", 1)).toBe(0);
  const waitMs = rate.take("a", 1);
  expect(waitMs).toBe(100);
  clock.advance(waitMs - 1);
  expect(rate.take("a", 1)).toBeGreaterThan(0);
  clock.advance(1);
  expect(rate.take("a", 1)).toBe(0);
  expect(rate.take("a", 1)).toBe(100);
});

it("never has more than the burst, and one key is nothing to another", () => {
  const { clock, rate } = limit(10, 20);
  clock.advance(1_000_000);
  expect(rate.take("a", 20)).toBe(0);
  expect(rate.take("a", 1)).toBe(100);
  expect(rate.take("b", 20)).toBe(0);
});

it("what costs more than a full bucket is taken from a full one, and paid off afterwards", () => {
  const { clock, rate } = limit(10, 20);
  expect(rate.take("a", 50)).toBe(0);
  expect(rate.take("a", 1)).toBe(3_100);
  clock.advance(3_100);
  expect(rate.take("a", 1)).toBe(0);
  expect(rate.take("a", 50)).toBe(2_000);
});

it("holds a bounded number of keys: those that are used stay, and the quietest is forgotten", () => {
  const { rate } = limit(1, 1);
  expect(rate.take("quiet", 1)).toBe(0);
  expect(rate.take("busy", 1)).toBe(0);
  for (let n = 0; n < 30_000; n += 1) {
    rate.take(`key ${n}`, 1);
    if (n % 5_000 === 0) expect(rate.take("busy", 1)).toBeGreaterThan(0);
  }
  expect(rate.take("busy", 1)).toBeGreaterThan(0);
  expect(rate.take("quiet", 1)).toBe(0);
});
