/** What bounds an agent: what its program says, and for the rest what the configuration says at the moment. */
import { z } from "zod";
import { parseInput } from "../domain/parse.js";
import { type Budgets, budgetsSchema } from "./budgets.js";
import type { AgentLimits } from "./limits.js";
import { type LoopOptions, loopsSchema } from "./loops.js";
import { limitsSchema } from "./options.js";

export interface BoundsInput {
  /** What bounds one turn. */
  limits?: Partial<AgentLimits>;
  /** What may be used in one thread, and by one user in a day; unlimited unless said here or in the configuration. */
  budgets?: Budgets;
  /** When the agent is told that it repeats itself: 3 times within 60 s, unless said otherwise; false: never. */
  loops?: false | Partial<LoopOptions>;
}

interface ConfiguredBudget {
  readonly tokens?: number;
  readonly iterations?: number;
  readonly time_secs?: number;
}

/** As `tidings.toml` has it. */
export interface ConfiguredBounds {
  readonly budgets: {
    readonly turn: ConfiguredBudget;
    readonly thread: ConfiguredBudget;
    readonly day: ConfiguredBudget;
  };
  readonly loops: { readonly enable?: boolean; readonly repetitions?: number; readonly window_secs?: number };
}

export interface Bounds {
  limits(): Partial<AgentLimits>;
  budgets(): Budgets;
  loops(): Partial<LoopOptions> | null;
}

const inputSchema = z.object({
  agent: z.object({
    limits: limitsSchema.optional(),
    budgets: budgetsSchema.default({}),
    loops: loopsSchema.or(z.literal(false)).optional(),
  }),
});

export function boundsOf({ limits, budgets, loops }: BoundsInput, configured: () => ConfiguredBounds): Bounds {
  const { agent: given } = parseInput(inputSchema, { agent: { limits, budgets, loops } });
  return {
    limits: () => ({ ...inMs(configured().budgets.turn), ...said(given.limits) }),
    budgets: () => ({
      thread: { ...inMs(configured().budgets.thread), ...said(given.budgets.thread) },
      day: { ...inMs(configured().budgets.day), ...said(given.budgets.day) },
    }),
    loops: () => {
      const { enable = true, window_secs, ...rest } = configured().loops;
      if (given.loops === false || (given.loops === undefined && !enable)) return null;
      const window = window_secs === undefined ? {} : { window_ms: window_secs * 1_000 };
      return { ...rest, ...window, ...said(given.loops) };
    },
  };
}

function inMs({ time_secs, ...rest }: ConfiguredBudget): { tokens?: number; iterations?: number; time_ms?: number } {
  return time_secs === undefined ? rest : { ...rest, time_ms: time_secs * 1_000 };
}

type Said<T> = { [Key in keyof T]?: Exclude<T[Key], undefined> };

function said<T extends object>(input: T | undefined): Said<T> {
  return Object.fromEntries(Object.entries(input ?? {}).filter(([, value]) => value !== undefined)) as Said<T>;
}
