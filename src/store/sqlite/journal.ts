import type { Event } from "../../domain/event.js";
import type { EventId, ThreadId, UserId } from "../../domain/ids.js";
import type { Change, EntryBody, JournalEntry } from "../../domain/journal.js";
import type { Principal } from "../../domain/principal.js";
import type { NewChange } from "../../domain/reducer.js";
import { numberInId } from "../../platform/ids.js";
import { decodeEntry, type EntryRow, encodeEntry } from "../codec.js";
import type { JournalPage } from "../contract.js";
import type { Blocks } from "./blocks.js";
import type { Transaction } from "./commit.js";
import type { Connection, Statement } from "./connection.js";
import { Inserts } from "./inserts.js";
import type { Meta } from "./meta.js";

interface JournalRow extends EntryRow {
  readonly body: string;
}

/** The last digits of an event's id are those of its `seq`; so many say where it is kept at hand. */
const SLOT_HEX = 3;
/** How many of the events written last are kept at hand, and how long their entries are at most. */
const RECENT_MAX = 16 ** SLOT_HEX;
const RECENT_CHARS = 2_048;

const COLUMNS = "seq, at, type, user_id, thread_id, body";

/**
 * The append-only log. The writer assigns `seq`, one after the other. Entries are in the table before anybody reads it here, and
 * before the commit (`writeOut`).
 */
export class Journal {
  readonly #inserts: Inserts;
  readonly #one: Statement;
  readonly #after: Statement;
  readonly #ofUser: Statement;
  readonly #conversation: Statement;
  readonly #conversationBefore: Statement;
  readonly #last: Statement;
  readonly #blocks: Blocks;
  readonly #meta: Meta;
  readonly #pruned: { seq: number; at: number };
  /** Whom the entries since the last `takeUsers` are about. */
  #users = new Set<UserId>();
  /** Each event of a batch has the slot of its `seq`; only short ones, so that this stays small. */
  readonly #recent: (Event | undefined)[] = [];
  #lastSeq: number;

  constructor(connection: Connection, blocks: Blocks, meta: Meta) {
    this.#blocks = blocks;
    this.#meta = meta;
    this.#inserts = new Inserts(connection, `journal (${COLUMNS})`, "(?, ?, ?, ?, ?, ?)");
    this.#one = connection.prepare(`SELECT ${COLUMNS} FROM journal WHERE seq = ?`);
    this.#after = connection.prepare(`SELECT ${COLUMNS} FROM journal WHERE seq > ? ORDER BY seq LIMIT ?`);
    this.#ofUser = connection.prepare(
      `SELECT ${COLUMNS} FROM journal WHERE seq > ? AND seq BETWEEN ? AND ? AND user_id = ? ORDER BY seq LIMIT ?`,
    );
    this.#conversation = connection.prepare(
      `SELECT ${COLUMNS} FROM journal WHERE thread_id = ? AND ${CONVERSATION} AND seq > ? ORDER BY seq LIMIT ?`,
    );
    this.#conversationBefore = connection.prepare(
      `SELECT ${COLUMNS} FROM journal WHERE thread_id = ? AND ${CONVERSATION} AND seq < ? ORDER BY seq DESC LIMIT ?`,
    );
    this.#last = connection.prepare("SELECT seq, at FROM journal ORDER BY seq DESC LIMIT 1");
    this.#pruned = { seq: meta.number("last_seq"), at: meta.number("last_at") };
    this.#lastSeq = Math.max(this.last().seq, this.#pruned.seq);
  }

  writeOut(): void {
    this.#inserts.writeOut();
  }

  /** The newest entry that is or was in the database; a reader asks anew each time. */
  last(): { seq: number; at: number } {
    this.writeOut();
    const last = (this.#last.get() as { seq: number; at: number } | undefined) ?? this.#pruned;
    return { seq: Math.max(last.seq, this.#pruned.seq), at: Math.max(last.at, this.#pruned.at) };
  }

  get lastSeq(): number {
    return this.#lastSeq;
  }

  refresh(): number {
    this.#lastSeq = Math.max(this.#lastSeq, this.last().seq);
    return this.#lastSeq;
  }

  /** The `seq` that the next append will have, for links made before it. */
  get nextSeq(): number {
    return this.#lastSeq + 1;
  }

  append(transaction: Transaction, user_id: UserId, thread_id: ThreadId | null, body: EntryBody): number {
    const { at } = transaction;
    const text = encodeEntry(body, { at, user_id, thread_id });
    transaction.wrote = true;
    this.#lastSeq += 1;
    this.#inserts.add(this.#lastSeq, at, body.type, user_id, thread_id, text);
    this.#blocks.mark("j", user_id, this.#lastSeq);
    this.#users.add(user_id);
    if (body.type === "event")
      this.#recent[this.#lastSeq % RECENT_MAX] =
        text.length <= RECENT_CHARS && isRow(body.changes) ? body.event : undefined;
    return this.#lastSeq;
  }

  /** Whom the entries of a commit were about. */
  takeUsers(): ReadonlySet<UserId> {
    const users = this.#users;
    if (users.size > 0) this.#users = new Set();
    return users;
  }

  read(seq: number): JournalEntry | undefined {
    this.writeOut();
    const row = this.#one.get(seq) as JournalRow | undefined;
    return row === undefined ? undefined : entryOf(row);
  }

  /** The event, mostly without reading: those of batches that came last are at hand. */
  event(id: EventId): Event | undefined {
    const recent = this.#recent[Number.parseInt(id.slice(-SLOT_HEX), 16)];
    return recent?.id === id ? recent : this.ofEvent(id)?.event;
  }

  /** The entry that accepted an event: the event's id carries its `seq`. */
  ofEvent(id: EventId): Extract<JournalEntry, { type: "event" }> | undefined {
    const seq = numberInId(id);
    const entry = seq === undefined ? undefined : this.read(seq);
    return entry?.type === "event" && entry.event.id === id ? entry : undefined;
  }

  /** What was said and done in a thread. */
  conversation(thread_id: ThreadId, after: number, limit: number): JournalEntry[] {
    this.writeOut();
    return (this.#conversation.all(thread_id, after, limit) as JournalRow[]).map(entryOf);
  }

  /** The newest before an entry, oldest first. */
  conversationBefore(thread_id: ThreadId, before: number, limit: number): JournalEntry[] {
    this.writeOut();
    return (this.#conversationBefore.all(thread_id, before, limit) as JournalRow[]).map(entryOf).reverse();
  }

  page(principal: Principal, after: number, limit: number): JournalPage {
    const last = this.refresh();
    const floor = this.#meta.number("floor_seq", 1);
    if (principal.kind === "host") {
      const entries = (this.#after.all(after, limit) as JournalRow[]).map(entryOf);
      const end = entries.length < limit;
      return { entries, after: end ? Math.max(after, last) : (entries.at(-1)?.seq ?? after), end, floor };
    }
    const entries: JournalEntry[] = [];
    for (const range of this.#blocks.ascending("j", principal.user_id, after + 1)) {
      const rows = this.#ofUser.all(after, range.from, range.to, principal.user_id, limit - entries.length);
      for (const row of rows as JournalRow[]) entries.push(entryOf(row));
      if (entries.length >= limit) return { entries, after: entries.at(-1)?.seq ?? after, end: false, floor };
    }
    return { entries, after: Math.max(after, last), end: true, floor };
  }
}

/** With the same words as its index, so that SQLite sees that it may use it. */
const CONVERSATION = "(type = 'turn' OR type = 'carrier')";

/** Whether its event is soon to be read again: a batch is open that shows it, or a row that another may follow. */
function isRow(changes: readonly Change[]): boolean {
  for (const { row, set } of changes)
    if (row !== undefined || (set.open_until !== undefined && set.open_until !== null)) return true;
  return false;
}

function entryOf(row: JournalRow): JournalEntry {
  return decodeEntry(row, row.body);
}

export function linked(change: NewChange, prev: number | null): Change {
  // It was made for this one, and nobody else has it.
  if (prev !== null) (change as { prev: number | null }).prev = prev;
  return change;
}
