/** What a turn uses, as it goes on: told to the store with what it writes, and held against the budgets. */
import { TidingsError } from "../domain/errors.js";
import type { ThreadId } from "../domain/ids.js";
import { HOST } from "../domain/principal.js";
import type { Turn } from "../domain/turn.js";
import { dayOf, isNothing, NOTHING, type Spent, sum, type ThreadBudgets } from "../domain/usage.js";
import { systemClock } from "../platform/clock.js";
import { later } from "../platform/timers.js";
import type { Usage } from "../providers/model.js";
import type { UsageNow } from "../store/contract.js";
import { isLimited, isUsedUp, lowFrom, narrowed, runsLow, type Scope, type Standing, standings } from "./budgets.js";
import { budgetWarning } from "./events.js";
import type { Setting } from "./setting.js";

export class Spending {
  readonly #setting: Setting;
  readonly #turn: Turn;
  readonly #since = systemClock.monotonic();
  #used: Spent = NOTHING;
  /** What of it the store knows. */
  #told: Spent = NOTHING;
  readonly #warned = new Set<string>();
  #ownBudgets: ThreadBudgets | null | undefined;
  #stop: () => void = () => undefined;
  #stopped = false;

  constructor(setting: Setting, turn: Turn) {
    this.#setting = setting;
    this.#turn = turn;
  }

  /** The model is asked. */
  called(): void {
    this.#used = { ...this.#used, calls: this.#used.calls + 1 };
  }

  /** The provider has reported it. */
  reported({ input, output }: Usage): void {
    this.#used = { ...this.#used, input: this.#used.input + input, output: this.#used.output + output };
  }

  /** Whether the model was asked at all. */
  get hasCalled(): boolean {
    return this.#used.calls > 0;
  }

  /** What the store does not know yet; from here on it does. */
  take(): { readonly spent?: Spent } {
    const used = this.#now();
    const spent = difference(used, this.#told);
    this.#told = used;
    return isNothing(spent) ? {} : { spent };
  }

  /** The first budget that leaves no room for a further call; null if all do. */
  async usedUp(): Promise<Standing | null> {
    return (await this.#standings()).find(isUsedUp) ?? null;
  }

  /** Tells what runs low, once; resolves when it can be collected. Never rejects: a store that is over ends the turn by itself. */
  async warn(scopes: readonly Scope[] = ["turn", "thread", "day"]): Promise<void> {
    const standing = await this.#standings().catch(() => []);
    const low = standing.filter((one) => scopes.includes(one.scope) && runsLow(one));
    await Promise.allSettled(low.map((one) => this.#warnOf(one)));
  }

  async #warnOf(standing: Standing): Promise<void> {
    const key = `${standing.scope} ${standing.budget_type} ${standing.limit}`;
    if (this.#warned.has(key)) return;
    this.#warned.add(key);
    // Of a thread or a day the store knows whether it was told before, and refuses it then.
    await this.#setting.emit(budgetWarning(this.#turn, standing, dayOf(this.#setting.store.now())));
  }

  /** Watches the time until `stop`: warns when it runs low, and says so once when there is none left. */
  watch(outOfTime: (standing: Standing) => void): void {
    const look = async (): Promise<void> => {
      const times = (await this.#standings()).filter(({ budget_type }) => budget_type === "timeout");
      if (this.#stopped) return;
      const over = times.find(isUsedUp);
      if (over !== undefined) return outOfTime(over);
      await Promise.allSettled(times.filter(runsLow).map((standing) => this.#warnOf(standing)));
      if (this.#stopped) return;
      const next = times.map((one) => (runsLow(one) ? one.limit : lowFrom(one)) - one.current);
      this.#stop = later(Math.min(LOOK_MS_MAX, Math.max(1, Math.ceil(Math.min(...next)))), again);
    };
    const again = () => void look().catch(() => undefined);
    again();
  }

  stop(): void {
    this.#stopped = true;
    this.#stop();
  }

  #now(): Spent {
    return { ...this.#used, time_ms: Math.round(systemClock.monotonic() - this.#since) };
  }

  async #standings(): Promise<Standing[]> {
    const { limits } = this.#setting;
    const budgets = narrowed(this.#setting.budgets, await this.#own());
    return standings(limits, this.#now(), budgets, isLimited(budgets) ? await this.#usage() : null);
  }

  /** They never change. */
  async #own(): Promise<ThreadBudgets | null> {
    if (this.#ownBudgets === undefined)
      this.#ownBudgets = (await this.#setting.store.thread(HOST, this.#turn.thread_id)).budgets;
    return this.#ownBudgets;
  }

  /** What the store knows, and what it does not know yet. */
  async #usage(): Promise<UsageNow> {
    const { thread, day } = await this.#setting.store.usage(HOST, this.#turn.thread_id);
    const untold = difference(this.#now(), this.#told);
    return { thread: sum(thread, untold), day: { ...sum(day, untold), day: day.day } };
  }
}

/**
 * Tells a conversation that the day runs low before a turn of it begins: others of its user have spent it. Never rejects: a store
 * that is over says so to whoever begins the turn.
 */
export async function warnOfDay({ store, budgets, limits, emit }: Setting, thread_id: ThreadId): Promise<void> {
  const { day } = budgets;
  if (day === undefined || !isLimited({ day })) return;
  try {
    const { user_id } = await store.thread(HOST, thread_id);
    const usage = await store.usage(HOST, thread_id);
    const low = standings(limits, NOTHING, { day }, usage).filter((one) => one.scope === "day" && runsLow(one));
    await Promise.allSettled(low.map(async (one) => emit(budgetWarning({ user_id, thread_id }, one, usage.day.day))));
  } catch (error) {
    if (!(error instanceof TidingsError)) throw error;
  }
}

/** Others of the same user spend too, and midnight comes: it is looked at now and then. */
const LOOK_MS_MAX = 60_000;

function difference(one: Spent, other: Spent): Spent {
  return {
    input: one.input - other.input,
    output: one.output - other.output,
    calls: one.calls - other.calls,
    time_ms: Math.max(0, one.time_ms - other.time_ms),
  };
}
