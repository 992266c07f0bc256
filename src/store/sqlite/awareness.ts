/** What an agent knows of what the system has shown its user: each thread has a cursor, moved when a carrier is sent. */
import type { ThreadId, UserId } from "../../domain/ids.js";
import type { Aware, Shown, Stored } from "../contract.js";
import type { AwarenessOf, AwareTo } from "./aware.js";
import type { Connection, Statement } from "./connection.js";
import type { Ledger } from "./ledger.js";
import type { Lists } from "./list.js";

/** How many are listed, and how far the rest is counted. */
const SEEN_MAX = 10;
const COUNT_MAX = 200;

interface Place {
  readonly seq: number;
  readonly number: number;
}

export class Awareness implements AwarenessOf {
  readonly #ledger: Ledger;
  readonly #lists: Lists;
  readonly #cursor: Statement;
  readonly #since: Statement;
  readonly #after: Statement;
  readonly #rest: Statement;
  readonly #before: Statement;
  readonly #restBefore: Statement;

  constructor(connection: Connection, ledger: Ledger, lists: Lists) {
    this.#ledger = ledger;
    this.#lists = lists;
    this.#cursor = connection.prepare("SELECT aware_seq AS seq, aware_inbox AS inbox FROM threads WHERE id = ?");
    this.#since = connection.prepare(
      `SELECT seq, number FROM floor_items WHERE thread_id = ? AND seq > ? ORDER BY seq, number LIMIT ${COUNT_MAX}`,
    );
    this.#after = connection.prepare(
      "SELECT seq, number FROM floor_items WHERE thread_id = ? AND seq > ? ORDER BY seq, number LIMIT ?",
    );
    this.#rest = connection.prepare(
      "SELECT seq, number FROM floor_items WHERE thread_id = ? AND seq = ? AND number > ? ORDER BY number",
    );
    this.#before = connection.prepare(
      "SELECT seq, number FROM floor_items WHERE thread_id = ? AND seq < ? ORDER BY seq DESC, number DESC LIMIT ?",
    );
    this.#restBefore = connection.prepare(
      "SELECT seq, number FROM floor_items WHERE thread_id = ? AND seq = ? AND number < ? ORDER BY number DESC",
    );
  }

  of(thread_id: ThreadId, user_id: UserId): { aware: Aware; to: AwareTo } {
    const cursor = (this.#cursor.get(thread_id) as AwareTo | undefined) ?? { seq: 0, inbox: 0 };
    const rows = this.#since.all(thread_id, cursor.seq) as { seq: number; number: number }[];
    const seen = rows.slice(0, SEEN_MAX).flatMap(({ number }) => this.#stored(number) ?? []);
    const inbox = this.#inbox(user_id, cursor.inbox);
    return {
      aware: {
        seen,
        seen_more: rows.length - Math.min(rows.length, SEEN_MAX),
        inbox: inbox === null ? null : { unread: inbox.unread, newest: inbox.newest },
      },
      to: { seq: rows.at(-1)?.seq ?? cursor.seq, inbox: inbox?.number ?? cursor.inbox },
    };
  }

  #inbox(user_id: UserId, after: number): { unread: number; newest: Stored; number: number } | null {
    const found = this.#lists.unreadInbox(user_id, after);
    const newest = found === null ? undefined : this.#stored(found.number);
    return found === null || newest === undefined ? null : { ...found, newest };
  }

  floor(thread_id: ThreadId, after: number, limit: number): Shown[] {
    return this.#shown(whole(this.#after, this.#rest, thread_id, after, limit));
  }

  /** The newest before an entry, oldest first. */
  floorBefore(thread_id: ThreadId, before: number, limit: number): Shown[] {
    return this.#shown(whole(this.#before, this.#restBefore, thread_id, before, limit).reverse());
  }

  #shown(places: readonly Place[]): Shown[] {
    return places.flatMap(({ seq, number }) => {
      const stored = this.#stored(number);
      return stored === undefined ? [] : [{ seq, stored }];
    });
  }

  #stored(number: number): Stored | undefined {
    const held = this.#ledger.byNumber(number);
    return held === undefined ? undefined : this.#ledger.stored(held);
  }
}

/** A page; what one entry showed is not cut in two. */
function whole(page: Statement, rest: Statement, thread_id: ThreadId, from: number, limit: number): Place[] {
  const places = page.all(thread_id, from, limit) as Place[];
  const last = places.length === limit ? places.at(-1) : undefined;
  return last === undefined ? places : [...places, ...(rest.all(thread_id, last.seq, last.number) as Place[])];
}
