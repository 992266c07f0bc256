/** What turns have used: of the provider's tokens, of its calls, and of time. */

/** `input` and `output` are tokens as providers report them; what none has reported is in none of these numbers. */
export interface Spent {
  readonly input: number;
  readonly output: number;
  /** Model calls. */
  readonly calls: number;
  /** In turns. */
  readonly time_ms: number;
}

export const NOTHING: Spent = { input: 0, output: 0, calls: 0, time_ms: 0 };

export function isNothing({ input, output, calls, time_ms }: Spent): boolean {
  return input === 0 && output === 0 && calls === 0 && time_ms === 0;
}

export function sum(one: Spent, other: Spent): Spent {
  return {
    input: one.input + other.input,
    output: one.output + other.output,
    calls: one.calls + other.calls,
    time_ms: one.time_ms + other.time_ms,
  };
}

/** What the turns of one thread may use together, as whoever started it has said; null: as much as others may. */
export interface ThreadBudgets {
  /** As the provider reports them, both ways. */
  readonly tokens: number | null;
  /** Model calls. */
  readonly iterations: number | null;
  readonly time_ms: number | null;
}

export function sameBudgets(one: ThreadBudgets | null, other: ThreadBudgets | null): boolean {
  if (one === null || other === null) return one === other;
  return one.tokens === other.tokens && one.iterations === other.iterations && one.time_ms === other.time_ms;
}

const DAY_MS = 86_400_000;

/** A day of UTC: days since 1970. */
export function dayOf(at: number): number {
  return Math.floor(at / DAY_MS);
}

/** `2026-01-03`. */
export function dateOf(day: number): string {
  return new Date(day * DAY_MS).toISOString().slice(0, 10);
}
