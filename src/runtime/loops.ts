/** Whether an agent repeats itself: the same calls with the same arguments, again and again, in a short time. */
import { z } from "zod";
import { canonicalJson } from "../domain/json.js";
import { fieldsSchema } from "../domain/parse.js";
import { sha256 } from "../platform/secret.js";
import type { AskedCall } from "./call.js";

export interface LoopOptions {
  /** How often a pattern comes before it is a loop. */
  readonly repetitions: number;
  /** All of it within this time. */
  readonly window_ms: number;
}

export const DEFAULT_LOOPS: LoopOptions = { repetitions: 3, window_ms: 60_000 };

/** So often, at most, a pattern is counted; what is kept in mind is bounded by it. */
export const REPETITIONS_MAX = 50;
export const WINDOW_MS_MAX = 86_400_000;

export const loopsSchema = fieldsSchema({
  repetitions: z.int().min(2).max(REPETITIONS_MAX).optional(),
  window_ms: z.int().min(1).max(WINDOW_MS_MAX).optional(),
});

export interface Loop {
  /** The tools of one round, in order: `search → parse`. */
  readonly pattern: string;
  readonly repetitions: number;
}

const PATTERN_MAX = 4;
const CALLS_MAX = PATTERN_MAX * REPETITIONS_MAX * 2;
/** Loops that are kept in mind as told. */
const TOLD_MAX = 64;
const NAME_CHARS_MAX = 100;

interface Seen {
  readonly name: string;
  /** Of the tool and its arguments. */
  readonly key: string;
  readonly at: number;
}

/** Of one thread. */
export class LoopDetector {
  /** The newest calls, oldest first. */
  #calls: Seen[] = [];
  /** For each length of a pattern: how many of the newest calls are the same as the one so many before. */
  #same: number[] = Array.from({ length: PATTERN_MAX }, () => 0);
  /** By the loop, wherever it begins: how often it had come when it was told, and when it was last seen. */
  readonly #told = new Map<string, { readonly repetitions: number; readonly at: number }>();

  /** Takes a call in; answers the loop that it is part of, if that is to be told now. */
  called(call: Pick<AskedCall, "name" | "input">, at: number, options: LoopOptions): Loop | null {
    this.#add({ name: call.name.slice(0, NAME_CHARS_MAX), key: keyOf(call), at });
    const within = this.#within(at - options.window_ms);
    for (let length = 1; length <= PATTERN_MAX; length += 1) {
      const run = Math.min((this.#same[length - 1] ?? 0) + length, within);
      const repetitions = Math.floor(run / length);
      if (repetitions < options.repetitions) continue;
      const round = this.#calls.slice(-length);
      if (isRepetition(round.map(({ key }) => key)) || !this.#isNews(round, repetitions, at, options)) continue;
      return { pattern: round.map(({ name }) => name).join(" → "), repetitions };
    }
    return null;
  }

  #add(call: Seen): void {
    const calls = this.#calls;
    this.#same = this.#same.map((same, index) => (calls.at(-1 - index)?.key === call.key ? same + 1 : 0));
    calls.push(call);
    if (calls.length > 2 * CALLS_MAX) this.#calls = calls.slice(-CALLS_MAX);
  }

  /** How many of the newest calls are so new. */
  #within(from: number): number {
    let count = 0;
    while (count < CALLS_MAX && (this.#calls.at(-1 - count)?.at ?? Number.NEGATIVE_INFINITY) >= from) count += 1;
    return count;
  }

  /** A loop is told when it is new, and again only when it has come twice as often. */
  #isNews(round: readonly Seen[], repetitions: number, at: number, { window_ms }: LoopOptions): boolean {
    const loop = rotated(round.map(({ key }) => key));
    const before = this.#told.get(loop);
    const known = before !== undefined && before.at >= at - window_ms ? before.repetitions : 0;
    const isNews = repetitions >= 2 * known;
    this.#told.delete(loop);
    this.#told.set(loop, { repetitions: isNews ? repetitions : known, at });
    for (const oldest of this.#told.keys()) {
      if (this.#told.size <= TOLD_MAX) break;
      this.#told.delete(oldest);
    }
    return isNews;
  }
}

function keyOf({ name, input }: Pick<AskedCall, "name" | "input">): string {
  return sha256(`${name}\n${canonicalJson(input)}`);
}

/** Whether it is itself a shorter pattern, some times over. */
function isRepetition(keys: readonly string[]): boolean {
  const { length } = keys;
  for (let shorter = 1; shorter < length; shorter += 1)
    if (length % shorter === 0 && keys.every((key, index) => key === keys[index % shorter])) return true;
  return false;
}

/** The same for a loop wherever one begins in it. */
function rotated(keys: readonly string[]): string {
  const [first = ""] = keys.map((_, index) => [...keys.slice(index), ...keys.slice(0, index)].join(" ")).sort();
  return first;
}
