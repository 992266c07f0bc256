import { describe, expect, test } from "vitest";
import { backoff } from "./backoff.js";

const many = (number: number) => Array.from({ length: 500 }, () => backoff(number, 1_000, 30_000));

describe("backoff", () => {
  test.each([
    [0, 1_000],
    [1, 2_000],
    [4, 16_000],
    [5, 30_000],
    [10_000, 30_000],
  ])("before attempt %i it is from half of to all of %i ms", (number, whole) => {
    const waits = many(number);
    expect(Math.min(...waits)).toBeGreaterThanOrEqual(whole / 2);
    expect(Math.max(...waits)).toBeLessThanOrEqual(whole);
  });

  test("is never the same for all: it is spread over the whole half", () => {
    const waits = many(3);
    expect(new Set(waits).size).toBeGreaterThan(100);
    expect(Math.min(...waits)).toBeLessThan(4_800);
    expect(Math.max(...waits)).toBeGreaterThan(7_200);
  });
});
