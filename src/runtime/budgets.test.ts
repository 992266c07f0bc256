import { expect, test } from "vitest";
import { isUsedUp, runsLow } from "./budgets.js";

test.each([
  ["token", 800],
  ["iteration", 700],
  ["timeout", 800],
] as const)("of 1000 a budget (%s) runs low at %i, not before, and until it is used up", (budget_type, low) => {
  const at = (current: number) => ({ scope: "thread", budget_type, current, limit: 1_000 }) as const;
  expect([low - 1, low, 999, 1_000].map((current) => runsLow(at(current)))).toEqual([false, true, true, false]);
  expect([999, 1_000].map((current) => isUsedUp(at(current)))).toEqual([false, true]);
});
