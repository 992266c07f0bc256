import { expect, test } from "vitest";
import { systemClock } from "../platform/clock.js";
import { rateLimitsOf } from "./rate_limits.js";

function resetsIn(reset: string): number | null {
  const headers = new Headers({
    "x-ratelimit-limit-requests": "60",
    "x-ratelimit-remaining-requests": "5",
    "x-ratelimit-reset-requests": reset,
  });
  const before = systemClock.wall();
  const [limit] = rateLimitsOf(headers);
  if (limit?.reset_at == null) return null;
  // To the next second: it is counted from now.
  return Math.floor((limit.reset_at - before) / 1_000);
}

test.each([
  ["1s", 1],
  ["6m0s", 360],
  ["1h2m3.5s", 3_723],
  ["1d", 86_400],
  ["2500ms", 2],
  ["17", 17],
])("a limit of OpenAI begins again in %s", (reset, seconds) => {
  expect(resetsIn(reset)).toBe(seconds);
});

test.each(["", "soon", "6x", "-3s", "999999999d", "9".repeat(400)])("%j says nothing of when", (reset) => {
  expect(resetsIn(reset)).toBeNull();
});

test("limits of Anthropic; what is not whole, or no number, is left out", () => {
  const headers = new Headers({
    "anthropic-ratelimit-requests-limit": "50",
    "anthropic-ratelimit-requests-remaining": "49",
    "anthropic-ratelimit-requests-reset": "2026-01-03T15:30:00Z",
    "anthropic-ratelimit-input-tokens-limit": "30000",
    "anthropic-ratelimit-input-tokens-remaining": "0",
    "anthropic-ratelimit-output-tokens-limit": "8000",
    "anthropic-ratelimit-tokens-limit": "many",
    "anthropic-ratelimit-tokens-remaining": "-1",
  });
  expect(rateLimitsOf(headers)).toEqual([
    { what: "requests", limit: 50, remaining: 49, reset_at: Date.parse("2026-01-03T15:30:00Z") },
    { what: "input tokens", limit: 30_000, remaining: 0, reset_at: null },
  ]);
  expect(rateLimitsOf(new Headers())).toEqual([]);
});
