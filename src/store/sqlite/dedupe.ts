import type { SubscriberId, ThreadId, UserId } from "../../domain/ids.js";
import { LIMITS } from "../../domain/limits.js";
import type { Delivery, Notification } from "../../domain/notification.js";
import type { Connection } from "./connection.js";
import type { RowRecord } from "./rows.js";

/** A row of a notification, and until when an event with its key counts to it. */
interface Window {
  readonly number: number;
  readonly row: number;
  readonly until: number;
}

type Keyed = Pick<
  Notification & Delivery,
  "created_at" | "dedupe_key" | "dedupe_until" | "thread_id" | "subscriber_id" | "user_id" | "rows"
> & { readonly number: number };
type KeyedRow = Pick<RowRecord, "row" | "key" | "until">;

const SWEEP_AT_LEAST = 1_024;
const PAGE = 256;

/**
 * The dedup windows that are open: key to the row of a notification that an event with that key counts to. Held in memory
 * and rebuilt at boot from the newest notifications, since a window is a minute at most.
 */
export class DedupeWindows {
  readonly #windows = new Map<string, Window>();
  #sweepAt = SWEEP_AT_LEAST;

  static keyOf(user_id: UserId, thread_id: ThreadId | null, subscriber_id: SubscriberId, key: string): string {
    // None of the parts can hold a line break.
    return `${user_id}\n${thread_id ?? ""}\n${subscriber_id}\n${key}`;
  }

  find(key: string, at: number): { readonly number: number; readonly row: number } | undefined {
    const window = this.#windows.get(key);
    if (window === undefined) return undefined;
    if (window.until > at) return window;
    this.#windows.delete(key);
    return undefined;
  }

  set(key: string, number: number, row: number, until: number, at: number): void {
    if (until <= at) return;
    this.#windows.set(key, { number, row, until });
    if (this.#windows.size >= this.#sweepAt) this.#sweep(at);
  }

  #sweep(at: number): void {
    for (const [key, window] of this.#windows) if (window.until <= at) this.#windows.delete(key);
    this.#sweepAt = Math.max(SWEEP_AT_LEAST, this.#windows.size * 2);
  }

  /** From the newest notifications, and from what is open, however old it is. */
  rebuild(connection: Connection, at: number): void {
    const columns =
      "n.number, n.created_at, n.dedupe_key, n.dedupe_until, n.thread_id, n.subscriber_id, d.user_id, d.rows";
    const from = `SELECT ${columns} FROM`;
    const further = connection.prepare("SELECT row, key, until FROM notification_rows WHERE number = ? AND row > 0");
    const rowsOf = (number: number) => further.all(number) as KeyedRow[];
    const newest = connection.prepare(
      `${from} notifications n JOIN deliveries d ON d.number = n.number WHERE n.number < ? ORDER BY n.number DESC LIMIT ${PAGE}`,
    );
    for (let below = Number.MAX_SAFE_INTEGER, young = true; young; ) {
      const page = newest.all(below) as Keyed[];
      for (const keyed of page) {
        young = keyed.created_at + LIMITS.dedupeWindowMs > at;
        if (!young) break;
        this.#restore(keyed, rowsOf, at);
        below = keyed.number;
      }
      young &&= page.length === PAGE;
    }
    const open = connection.prepare(
      `${from} deliveries d JOIN notifications n ON n.number = d.number WHERE d.open_until IS NOT NULL`,
    );
    for (const keyed of open.all() as Keyed[]) this.#restore(keyed, rowsOf, at);
  }

  #restore(keyed: Keyed, rowsOf: (number: number) => KeyedRow[], at: number): void {
    const { number, user_id, thread_id, subscriber_id, dedupe_key, dedupe_until, rows } = keyed;
    const known = [{ row: 0, key: dedupe_key, until: dedupe_until }, ...(rows > 1 ? rowsOf(number) : [])];
    for (const { row, key: own, until } of known) {
      if (own === null || until <= at) continue;
      const key = DedupeWindows.keyOf(user_id, thread_id, subscriber_id, own);
      // Newest first: an older one with the same key was replaced by the newer.
      if (!this.#windows.has(key)) this.#windows.set(key, { number, row, until });
    }
  }
}
