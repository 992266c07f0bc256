import type { SubscriberId, ThreadId, UserId } from "../../domain/ids.js";
import { LIMITS } from "../../domain/limits.js";
import type { Notification } from "../../domain/notification.js";
import type { Connection } from "./connection.js";

interface Window {
  readonly number: number;
  readonly until: number;
}

const SWEEP_AT_LEAST = 1_024;

/**
 * The dedup windows that are open: key to the notification that an event with that key merges into. Held in memory
 * and rebuilt at boot from the newest notifications, since a window is a minute at most.
 */
export class DedupeWindows {
  readonly #windows = new Map<string, Window>();
  #sweepAt = SWEEP_AT_LEAST;

  static keyOf(user_id: UserId, thread_id: ThreadId | null, subscriber_id: SubscriberId, key: string): string {
    // None of the parts can hold a line break.
    return `${user_id}\n${thread_id ?? ""}\n${subscriber_id}\n${key}`;
  }

  find(key: string, at: number): number | undefined {
    const window = this.#windows.get(key);
    if (window === undefined) return undefined;
    if (window.until > at) return window.number;
    this.#windows.delete(key);
    return undefined;
  }

  set(key: string, number: number, until: number, at: number): void {
    if (until <= at) return;
    this.#windows.set(key, { number, until });
    if (this.#windows.size >= this.#sweepAt) this.#sweep(at);
  }

  #sweep(at: number): void {
    for (const [key, window] of this.#windows) if (window.until <= at) this.#windows.delete(key);
    this.#sweepAt = Math.max(SWEEP_AT_LEAST, this.#windows.size * 2);
  }

  rebuild(connection: Connection, at: number): void {
    const newest = connection.prepare(
      "SELECT number, created_at, dedupe_key, dedupe_until, thread_id, subscriber_id, (SELECT user_id FROM deliveries d WHERE d.number = n.number) AS user_id FROM notifications n WHERE number < ? ORDER BY number DESC LIMIT 256",
    );
    for (let below = Number.MAX_SAFE_INTEGER; ; ) {
      const rows = newest.all(below) as (Notification & { number: number })[];
      for (const notification of rows) {
        if (notification.created_at + LIMITS.dedupeWindowMs <= at) return;
        below = notification.number;
        if (notification.dedupe_key === null || notification.dedupe_until <= at) continue;
        const { user_id, thread_id, subscriber_id, dedupe_key } = notification;
        const key = DedupeWindows.keyOf(user_id, thread_id, subscriber_id, dedupe_key);
        // Newest first: an older one with the same key was replaced by the newer.
        if (!this.#windows.has(key))
          this.#windows.set(key, { number: notification.number, until: notification.dedupe_until });
      }
      if (rows.length < 256) return;
    }
  }
}
