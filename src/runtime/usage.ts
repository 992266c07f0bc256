/** What was used, as a program is shown it. */
import { dateOf, type Spent } from "../domain/usage.js";
import type { UsageNow } from "../store/contract.js";

export interface UsageView {
  /** As the provider has reported them, both ways; what it did not report is not in them. */
  tokens: number;
  input_tokens: number;
  output_tokens: number;
  /** Model calls. */
  iterations: number;
  /** In turns. */
  time_ms: number;
}

export interface UsageAnswer {
  /** The day in UTC, like `2026-01-03`. */
  date: string;
  day: UsageView;
  /** Null if none was asked for. */
  thread: UsageView | null;
}

export function usageAnswer({ day, ...used }: UsageNow["day"], thread: Spent | null): UsageAnswer {
  return { date: dateOf(day), day: viewOf(used), thread: thread === null ? null : viewOf(thread) };
}

function viewOf({ input, output, calls, time_ms }: Spent): UsageView {
  return { tokens: input + output, input_tokens: input, output_tokens: output, iterations: calls, time_ms };
}
