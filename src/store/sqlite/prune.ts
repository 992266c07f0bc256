/**
 * Retention. Everything below the floor goes, except what is still wanted: live notifications, dead letters, and what
 * belongs to a thread that is not closed keep their whole story. What is left of the journal therefore still replays
 * to the ledger; below the floor it has gaps, and a change there about a notification that is gone means nothing.
 */
import { CHANNELS } from "../../domain/axes.js";
import type { ThreadId } from "../../domain/ids.js";
import type { JournalEntry } from "../../domain/journal.js";
import { isTerminal } from "../../domain/transitions.js";
import { dayOf } from "../../domain/usage.js";
import type { PruneStep } from "../contract.js";
import { blockOf } from "./blocks.js";
import type { Transaction } from "./commit.js";
import type { Connection, Statement } from "./connection.js";
import type { Core } from "./core.js";
import type { Held } from "./ledger.js";
import type { Meta } from "./meta.js";

const SLICE = 256;

export interface PruneCursor {
  readonly floor: number;
  readonly after: number;
  readonly done: PruneStep;
}

export class Prune {
  readonly #meta: Meta;
  readonly #firstAt: Statement;
  readonly #deleteEntry: Statement;
  readonly #deleteProducerId: Statement;
  readonly #deleteRows: readonly Statement[];
  readonly #deleteObservations: Statement;
  readonly #staleBlocks: readonly Statement[];

  constructor(connection: Connection, meta: Meta) {
    this.#meta = meta;
    this.#firstAt = connection.prepare("SELECT seq, at FROM journal WHERE seq >= ? ORDER BY seq LIMIT 1");
    this.#deleteEntry = connection.prepare("DELETE FROM journal WHERE seq = ?");
    this.#deleteProducerId = connection.prepare(
      "DELETE FROM producer_ids WHERE user_id = ? AND source = ? AND producer_id = ?",
    );
    this.#deleteRows = [
      "merged_events",
      "notification_rows",
      "floor_items",
      "redrives",
      "deliveries",
      "notifications",
    ].map((table) => connection.prepare(`DELETE FROM ${table} WHERE number = ?`));
    this.#deleteObservations = connection.prepare("DELETE FROM observations WHERE thread_id = ?");
    const stale = (kind: string, table: string, column: string) =>
      connection.prepare(
        `DELETE FROM blocks WHERE kind = '${kind}' AND block < ? AND NOT EXISTS (
           SELECT 1 FROM ${table} WHERE ${column} BETWEEN block * 1024 AND block * 1024 + 1023)`,
      );
    this.#staleBlocks = [
      stale("j", "journal", "seq"),
      stale("u", "notifications", "number"),
      stale("t", "notifications", "number"),
      ...[...CHANNELS, "unread"].map((kind) => stale(kind, "notifications", "number")),
    ];
  }

  floorSeq(): number {
    return this.#meta.number("floor_seq", 1);
  }

  /** The first entry that is young enough to stay; found by halving, since time never decreases along the journal. */
  floorFor(core: Core, cutoff: number): number {
    core.journal.writeOut();
    let low = this.floorSeq();
    let high = core.journal.lastSeq + 1;
    while (low < high) {
      const middle = Math.floor((low + high) / 2);
      const row = this.#firstAt.get(middle) as { seq: number; at: number } | undefined;
      if (row === undefined || row.at >= cutoff) high = middle;
      else low = row.seq + 1;
    }
    return Math.max(low, this.floorSeq());
  }

  begin(core: Core, transaction: Transaction, cutoff: number): PruneCursor {
    const floor = this.floorFor(core, cutoff);
    transaction.wrote = true;
    this.#meta.set("floor_seq", floor);
    // Today's is still counted on, whatever goes of the journal.
    core.usage.removeDays(dayOf(Math.min(cutoff, transaction.at)));
    this.#meta.set("last_seq", core.journal.lastSeq);
    this.#meta.set("last_at", core.journal.last().at);
    this.#meta.set("last_number", core.ledger.lastNumber);
    return { floor, after: 0, done: { entries: 0, notifications: 0, visited: 0 } };
  }

  /** One slice; null when nothing is left below the floor. */
  slice(core: Core, transaction: Transaction, cursor: PruneCursor): PruneCursor | null {
    const { entries } = core.journal.page({ kind: "host" }, cursor.after, SLICE);
    const below = entries.filter((entry) => entry.seq < cursor.floor);
    const last = below.at(-1);
    if (last === undefined) return null;
    transaction.wrote = true;
    let removedEntries = 0;
    let removedNotifications = 0;
    for (const entry of below) {
      const about = [...new Set(entry.changes.map((change) => change.notification_id))].flatMap(
        (id) => core.ledger.byId(id) ?? [],
      );
      if (about.some((held) => !this.#mayGo(core, held, cursor.floor))) continue;
      if (!this.#threadIsOver(core, entry.thread_id)) continue;
      for (const held of about) {
        for (const statement of this.#deleteRows) statement.run(held.number);
        core.ledger.removed(held);
        removedNotifications += 1;
      }
      this.#removeEntry(core, entry);
      removedEntries += 1;
    }
    const done: PruneStep = {
      entries: cursor.done.entries + removedEntries,
      notifications: cursor.done.notifications + removedNotifications,
      visited: cursor.done.visited + below.length,
    };
    return { floor: cursor.floor, after: last.seq, done };
  }

  #removeEntry(core: Core, entry: JournalEntry): void {
    this.#deleteEntry.run(entry.seq);
    if (entry.type === "carrier" && core.carriers.byId(entry.carrier_id)?.seq === entry.seq)
      core.carriers.remove(entry.seq);
    if (entry.type === "turn" && core.turns.byId(entry.turn_id)?.seq === entry.seq) core.turns.remove(entry.seq);
    if (entry.type === "event") {
      const { event } = entry;
      if (event.producer_id !== null) this.#deleteProducerId.run(event.user_id, event.source, event.producer_id);
    }
    // The thread's own row stays: an id never comes to belong to another user.
    if (entry.type === "thread" && entry.state === "closed" && entry.thread_id !== null)
      this.#removeThread(core, entry.thread_id);
  }

  #removeThread(core: Core, id: ThreadId): void {
    this.#deleteObservations.run(id);
    core.handles.removeAll(id);
    core.usage.removeThread(id);
  }

  /** Settled, not a dead letter, untouched since the floor, and of no thread that goes on. */
  #mayGo(core: Core, held: Held, floor: number): boolean {
    const { state, thread_id } = held.delivery;
    if (!isTerminal(state) || state === "FAILED" || held.last_seq >= floor) return false;
    return this.#threadIsOver(core, thread_id);
  }

  #threadIsOver(core: Core, id: JournalEntry["thread_id"]): boolean {
    if (id === null) return true;
    const thread = core.threads.get(id);
    return thread === undefined || thread.state === "closed";
  }

  finish(transaction: Transaction, core: Core, floor: number): void {
    transaction.wrote = true;
    const [journal, ...notifications] = this.#staleBlocks;
    journal?.run(blockOf(floor));
    for (const stale of notifications) stale.run(blockOf(core.ledger.lastNumber));
  }
}
