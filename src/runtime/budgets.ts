/** What may be used: in one turn, in one thread, and by one user in a day (UTC). */
import { z } from "zod";
import { fieldsSchema } from "../domain/parse.js";
import type { Spent, ThreadBudgets } from "../domain/usage.js";
import type { UsageNow } from "../store/contract.js";
import type { AgentLimits } from "./limits.js";

/** What is not said is unlimited. */
export interface BudgetLimits {
  /** As the provider reports them, both ways. */
  readonly tokens?: number | undefined;
  /** Model calls. */
  readonly iterations?: number | undefined;
  /** In turns. */
  readonly time_ms?: number | undefined;
}

/** Of a turn see `AgentLimits`. */
export interface Budgets {
  readonly thread?: BudgetLimits | undefined;
  readonly day?: BudgetLimits | undefined;
}

const limitSchema = z.int().min(1).optional();
const scopeSchema = fieldsSchema({ tokens: limitSchema, iterations: limitSchema, time_ms: limitSchema }).optional();
export const budgetsSchema = fieldsSchema({ thread: scopeSchema, day: scopeSchema });

/** What whoever starts a thread may say of it. */
export const threadBudgetsSchema = z.strictObject({
  tokens: limitSchema,
  iterations: limitSchema,
  time_ms: limitSchema,
});

/** Null where nothing was said. */
export function threadBudgets({ tokens, iterations, time_ms }: BudgetLimits = {}): ThreadBudgets | null {
  if (tokens === undefined && iterations === undefined && time_ms === undefined) return null;
  return { tokens: tokens ?? null, iterations: iterations ?? null, time_ms: time_ms ?? null };
}

/** With what was said of one thread: of two limits the smaller one holds. */
export function narrowed(budgets: Budgets, own: ThreadBudgets | null): Budgets {
  if (own === null) return budgets;
  const { tokens, iterations, time_ms } = budgets.thread ?? {};
  const thread = {
    tokens: smaller(tokens, own.tokens),
    iterations: smaller(iterations, own.iterations),
    time_ms: smaller(time_ms, own.time_ms),
  };
  return { ...budgets, thread };
}

function smaller(one: number | undefined, other: number | null): number | undefined {
  return other === null ? one : Math.min(one ?? other, other);
}

export type Scope = "turn" | "thread" | "day";
/** In the words of the events. */
export type BudgetType = "token" | "iteration" | "timeout";

/** How one budget stands. */
export interface Standing {
  readonly scope: Scope;
  readonly budget_type: BudgetType;
  readonly current: number;
  readonly limit: number;
}

/** From which share on it runs low. */
const LOW: Readonly<Record<BudgetType, number>> = { token: 0.8, iteration: 0.7, timeout: 0.8 };

/** No room is left: what is used up makes no further call. */
export function isUsedUp({ current, limit }: Standing): boolean {
  return current >= limit;
}

/** From where on it runs low. */
export function lowFrom({ budget_type, limit }: Pick<Standing, "budget_type" | "limit">): number {
  return limit * LOW[budget_type];
}

export function runsLow(standing: Standing): boolean {
  return standing.current >= lowFrom(standing) && !isUsedUp(standing);
}

/** How all of them stand, what is nearest to the turn first. `usage`: with what the turn has used. */
export function standings(
  limits: Pick<AgentLimits, "iterations" | "tokens" | "time_ms">,
  turn: Spent,
  { thread = {}, day = {} }: Budgets,
  usage: UsageNow | null,
): Standing[] {
  const of = (scope: Scope, most: BudgetLimits, used: Spent): Standing[] => [
    ...one(scope, "iteration", used.calls, most.iterations),
    ...one(scope, "token", used.input + used.output, most.tokens),
    ...one(scope, "timeout", used.time_ms, most.time_ms),
  ];
  const wider = usage === null ? [] : [...of("thread", thread, usage.thread), ...of("day", day, usage.day)];
  // At its end a turn is cut off: it has no more.
  const time_ms = Math.min(turn.time_ms, limits.time_ms);
  return [...of("turn", limits, { ...turn, time_ms }), ...wider];
}

function one(scope: Scope, budget_type: BudgetType, current: number, limit: number | undefined): Standing[] {
  return limit === undefined ? [] : [{ scope, budget_type, current, limit }];
}

export function isLimited({ thread = {}, day = {} }: Budgets): boolean {
  return [...Object.values(thread), ...Object.values(day)].some((limit) => limit !== undefined);
}

const UNITS: Readonly<Record<BudgetType, string>> = {
  iteration: "model calls",
  token: "tokens",
  timeout: "milliseconds",
};

/** Why a turn is over, for its user. */
export function usedUpWords({ scope, budget_type, limit }: Standing): string {
  const what = `${limit} ${UNITS[budget_type]}`;
  switch (scope) {
    case "turn":
      return `the turn had its ${what}`;
    case "thread":
      return `the conversation had its ${what}; it goes on when its budget is raised, or in another one`;
    case "day":
      return `the day had its ${what}; it goes on after midnight (UTC), or when the budget is raised`;
  }
}
