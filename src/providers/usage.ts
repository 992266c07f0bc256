/** What a provider reports of tokens, taken in: servers leave out what they like, and send what they like. */
import type { Usage } from "./model.js";

/** What is no count is not reported: null if neither is one. */
export function usageFrom(input: unknown, output: unknown): Usage | null {
  const [taken, given] = [countFrom(input), countFrom(output)];
  return taken === null && given === null ? null : { input: taken ?? 0, output: given ?? 0 };
}

/** Null for what is no number, negative, or beyond all reason. A fraction is rounded up. */
export function countFrom(value: unknown): number | null {
  if (typeof value !== "number" || !(value >= 0)) return null;
  const count = Math.ceil(value);
  return count <= COUNT_MAX ? count : null;
}

/** So many of them add up without losing one. */
const COUNT_MAX = 1_000_000_000_000;
