import type { ThreadId } from "../../domain/ids.js";
import type { Connection, Statement } from "./connection.js";

/** When the agents of threads rested: what waited for them had its deadline stand still. */
export class Pauses {
  readonly #begin: Statement;
  readonly #end: Statement;
  readonly #overlap: Statement;

  constructor(connection: Connection) {
    // Twice in one millisecond: the same one goes on.
    this.#begin = connection.prepare(
      `INSERT INTO pauses (thread_id, from_at, until_at) VALUES (?, ?, NULL)
       ON CONFLICT (thread_id, from_at) DO UPDATE SET until_at = NULL`,
    );
    this.#end = connection.prepare("UPDATE pauses SET until_at = ? WHERE thread_id = ? AND until_at IS NULL");
    this.#overlap = connection
      .prepare(
        `SELECT coalesce(sum(max(0, min(coalesce(until_at, ?), ?) - max(from_at, ?))), 0)
         FROM pauses WHERE thread_id = ?`,
      )
      .pluck();
  }

  begin(thread_id: ThreadId, at: number): void {
    this.#begin.run(thread_id, at);
  }

  end(thread_id: ThreadId, at: number): void {
    this.#end.run(at, thread_id);
  }

  /** For how long its agent rested since `since`. */
  within(thread_id: ThreadId, since: number, at: number): number {
    return this.#overlap.get(at, at, since, thread_id) as number;
  }
}
