import type { SubscriberId, UserId } from "../../domain/ids.js";
import { type JournalEntry, matchesOf } from "../../domain/journal.js";
import { LIMITS } from "../../domain/limits.js";
import type { Connection, Statement } from "./connection.js";

/** The newest events that each subscriber took for a user, by their entries; kept by whoever adds up the series. */
export class SubscriberMatches {
  readonly #read: Statement;
  readonly #write: Statement;

  constructor(connection: Connection) {
    this.#read = connection
      .prepare("SELECT seqs FROM subscriber_matches WHERE user_id = ? AND subscriber_id = ?")
      .pluck();
    this.#write = connection.prepare(
      `INSERT INTO subscriber_matches (user_id, subscriber_id, seqs) VALUES (?, ?, ?)
       ON CONFLICT (user_id, subscriber_id) DO UPDATE SET seqs = excluded.seqs`,
    );
  }

  /** Oldest first, and newer than all that were added before. */
  add(entries: readonly JournalEntry[]): void {
    const found = new Map<string, { user_id: UserId; subscriber_id: SubscriberId; seqs: number[] }>();
    for (const { type, user_id, seq, changes } of entries) {
      if (type !== "event") continue;
      for (const { subscriber_id } of matchesOf(changes)) {
        const key = JSON.stringify([subscriber_id, user_id]);
        const known = found.get(key) ?? { user_id, subscriber_id, seqs: [] };
        found.set(key, known);
        known.seqs.push(seq);
      }
    }
    for (const { user_id, subscriber_id, seqs } of found.values()) {
      const kept = [...seqs.reverse(), ...this.newest(user_id, subscriber_id)].slice(0, LIMITS.matchesKept);
      this.#write.run(user_id, subscriber_id, JSON.stringify(kept));
    }
  }

  /** Newest first. */
  newest(user_id: UserId, subscriber_id: SubscriberId): number[] {
    const seqs = this.#read.get(user_id, subscriber_id) as string | undefined;
    return seqs === undefined ? [] : (JSON.parse(seqs) as number[]);
  }
}
