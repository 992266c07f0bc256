/** That what turns have used is the sum of what the journal says of it. */
import type { ThreadId } from "../domain/ids.js";
import type { JournalEntry, ThreadState } from "../domain/journal.js";
import { dateOf, dayOf, NOTHING, type Spent, sum } from "../domain/usage.js";
import type { DayPlace, Store } from "./contract.js";

type Report = (rule: string, subject: string, message: string) => void;

const PAGE = 250;

export class UsageAudit {
  readonly #floor: number;
  readonly #threads = new Map<string, Spent>();
  /** By user, then by day. */
  readonly #days = new Map<string, Map<number, Spent>>();
  /** Of this day, and of those before, retention may have removed something. */
  #prunedDay: number;

  constructor(floor_seq: number) {
    this.#floor = floor_seq;
    this.#prunedDay = floor_seq > 1 ? Number.POSITIVE_INFINITY : Number.NEGATIVE_INFINITY;
  }

  take(entry: JournalEntry): void {
    if (entry.seq >= this.#floor && this.#prunedDay === Number.POSITIVE_INFINITY) this.#prunedDay = dayOf(entry.at);
    if ((entry.type !== "turn" && entry.type !== "carrier") || entry.spent === undefined) return;
    const { thread_id, user_id, spent } = entry;
    if (thread_id !== null) this.#threads.set(thread_id, sum(this.#threads.get(thread_id) ?? NOTHING, spent));
    const days = this.#days.get(user_id) ?? new Map<number, Spent>();
    const day = dayOf(entry.at);
    this.#days.set(user_id, days.set(day, sum(days.get(day) ?? NOTHING, spent)));
  }

  async finish(store: Store, states: ReadonlyMap<string, ThreadState>, report: Report): Promise<void> {
    for (let after: ThreadId | null = null; ; ) {
      const page = await store.threadUsage(after, PAGE);
      for (const { thread_id, ...used } of page) {
        after = thread_id;
        const told = this.#threads.get(thread_id) ?? NOTHING;
        this.#threads.delete(thread_id);
        // An open one keeps its whole story.
        compare(`thread ${thread_id}`, used, told, states.get(thread_id) === "open", report);
      }
      if (page.length < PAGE) break;
    }
    for (const [id, told] of this.#threads)
      if (states.get(id) === "open") compare(`thread ${id}`, NOTHING, told, true, report);
    await this.#finishDays(store, report);
  }

  async #finishDays(store: Store, report: Report): Promise<void> {
    for (let after: DayPlace | null = null; ; ) {
      const page = await store.dayUsage(after, PAGE);
      for (const { user_id, day, ...used } of page) {
        after = { user_id, day };
        const told = this.#days.get(user_id)?.get(day) ?? NOTHING;
        this.#days.get(user_id)?.delete(day);
        compare(`${user_id} on ${dateOf(day)}`, used, told, day > this.#prunedDay, report);
      }
      if (page.length < PAGE) break;
    }
    for (const [user_id, days] of this.#days)
      for (const [day, told] of days)
        if (day > this.#prunedDay) compare(`${user_id} on ${dateOf(day)}`, NOTHING, told, true, report);
  }
}

/** `whole`: all of it is in the journal still; else what is kept is no less than what is left there. */
function compare(subject: string, used: Spent, told: Spent, whole: boolean, report: Report): void {
  const wrong = (["input", "output", "calls", "time_ms"] as const).some((what) =>
    whole ? used[what] !== told[what] : used[what] < told[what],
  );
  if (wrong) report("I5", subject, `used ${words(used)}, and the journal says ${words(told)}`);
}

function words({ input, output, calls, time_ms }: Spent): string {
  return `${input} + ${output} tokens, ${calls} calls, ${time_ms} ms`;
}
