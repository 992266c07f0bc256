import type { ThreadId, UserId } from "../../domain/ids.js";
import { dayOf, isNothing, NOTHING, type Spent } from "../../domain/usage.js";
import type { DayPlace, DayUsage, ThreadUsage } from "../contract.js";
import type { Connection, Statement } from "./connection.js";

const COLUMNS = "input, output, calls, time_ms";
const ADDED = COLUMNS.split(", ")
  .map((column) => `${column} = ${column} + excluded.${column}`)
  .join(", ");

/** What turns have used: sums, kept in the transaction of the entry that says so. */
export class Usage {
  readonly #addThread: Statement;
  readonly #addDay: Statement;
  readonly #thread: Statement;
  readonly #day: Statement;
  readonly #threads: Statement;
  readonly #days: Statement;
  readonly #removeThread: Statement;
  readonly #removeDays: Statement;

  constructor(connection: Connection) {
    this.#addThread = connection.prepare(
      `INSERT INTO thread_usage (thread_id, ${COLUMNS}) VALUES (?, ?, ?, ?, ?) ON CONFLICT (thread_id) DO UPDATE SET ${ADDED}`,
    );
    this.#addDay = connection.prepare(
      `INSERT INTO day_usage (user_id, day, ${COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)
       ON CONFLICT (user_id, day) DO UPDATE SET ${ADDED}`,
    );
    this.#thread = connection.prepare(`SELECT ${COLUMNS} FROM thread_usage WHERE thread_id = ?`);
    this.#day = connection.prepare(`SELECT ${COLUMNS} FROM day_usage WHERE user_id = ? AND day = ?`);
    this.#threads = connection.prepare(
      `SELECT thread_id, ${COLUMNS} FROM thread_usage WHERE thread_id > ? ORDER BY thread_id LIMIT ?`,
    );
    this.#days = connection.prepare(
      `SELECT user_id, day, ${COLUMNS} FROM day_usage WHERE (user_id, day) > (?, ?) ORDER BY user_id, day LIMIT ?`,
    );
    this.#removeThread = connection.prepare("DELETE FROM thread_usage WHERE thread_id = ?");
    this.#removeDays = connection.prepare("DELETE FROM day_usage WHERE day < ?");
  }

  add(user_id: UserId, thread_id: ThreadId, at: number, spent: Spent): void {
    if (isNothing(spent)) return;
    const { input, output, calls, time_ms } = spent;
    this.#addThread.run(thread_id, input, output, calls, time_ms);
    this.#addDay.run(user_id, dayOf(at), input, output, calls, time_ms);
  }

  ofThread(thread_id: ThreadId): Spent {
    return (this.#thread.get(thread_id) as Spent | undefined) ?? NOTHING;
  }

  ofDay(user_id: UserId, day: number): Spent {
    return (this.#day.get(user_id, day) as Spent | undefined) ?? NOTHING;
  }

  threads(after: ThreadId | null, limit: number): ThreadUsage[] {
    return this.#threads.all(after ?? "", limit) as ThreadUsage[];
  }

  days(after: DayPlace | null, limit: number): DayUsage[] {
    return this.#days.all(after?.user_id ?? "", after?.day ?? 0, limit) as DayUsage[];
  }

  removeThread(thread_id: ThreadId): void {
    this.#removeThread.run(thread_id);
  }

  /** Those before this one. */
  removeDays(day: number): void {
    this.#removeDays.run(day);
  }
}
