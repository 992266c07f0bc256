import type { EventId } from "../../domain/ids.js";
import { LIMITS } from "../../domain/limits.js";
import { numberInId } from "../../platform/ids.js";
import type { Connection, Statement } from "./connection.js";
import type { Held } from "./held.js";
import { Inserts } from "./inserts.js";

/** A row as it is stored: which event it shows, how often one with its key came, and since when. */
export interface RowRecord {
  readonly row: number;
  readonly key: string | null;
  /** Until when an event with its key counts to it. */
  readonly until: number;
  readonly event_id: EventId;
  readonly count: number;
  readonly since: string;
}

/** The rows of a notification and the events behind it, as they are now; what of it is not yet written. */
interface Members {
  readonly number: number;
  readonly rows: RowRecord[];
  /** The latest of the events after the first, in the order in which they came. */
  readonly event_ids: EventId[];
  /** How many of the rows are written; those of them that have changed since. */
  written: number;
  readonly changed: Set<number>;
  /** Events that no row shows, not yet written. */
  readonly unshown: EventId[];
}

const COLUMNS = "row, key, until, event_id, count, since";
/** The first is always listed. */
const LISTED = LIMITS.eventIdsListed - 1;
/** How many notifications' members are kept at hand, and how many rows they have at most. */
const RECENT_MAX = 1_024;
const RECENT_ROWS = 32;

/**
 * The rows of notifications, and the events behind them. One that is alone and came once is in nobody's way: its
 * notification says all of it. An event is in one place: a row shows it, or it is the first, or it is in `merged_events`.
 * Written by `writeOut` at the end of a transaction, once for all that came in it.
 */
export class Rows {
  readonly #of: Statement;
  readonly #inserts: Inserts;
  readonly #again: Statement;
  readonly #insertUnshown: Statement;
  readonly #latestUnshown: Statement;
  readonly #shown: Statement;
  /** A ring, like that of the ledger. */
  readonly #recent: (Members | undefined)[];
  readonly #unwritten = new Map<number, Members>();

  /** `writer`: nobody else changes them, so what came last is known without asking. */
  constructor(connection: Connection, writer: boolean) {
    this.#recent = writer ? new Array<Members | undefined>(RECENT_MAX).fill(undefined) : [];
    this.#of = connection.prepare(`SELECT ${COLUMNS} FROM notification_rows WHERE number = ? ORDER BY row`);
    this.#inserts = new Inserts(connection, `notification_rows (number, ${COLUMNS})`, "(?, ?, ?, ?, ?, ?, ?)");
    this.#again = connection.prepare(
      "UPDATE notification_rows SET count = ?, event_id = ? WHERE number = ? AND row = ?",
    );
    this.#insertUnshown = connection.prepare("INSERT INTO merged_events (number, seq, event_id) VALUES (?, ?, ?)");
    this.#latestUnshown = connection
      .prepare(`SELECT event_id FROM merged_events WHERE number = ? ORDER BY seq DESC LIMIT ${LISTED}`)
      .pluck();
    this.#shown = connection.prepare("SELECT event_id FROM notification_rows WHERE number = ?").pluck();
  }

  /** In the order in which they came. */
  of(held: Held, since: () => string): readonly RowRecord[] {
    const { number, notification, delivery } = held;
    const found = delivery.count === 1 ? [] : (this.#known(number)?.rows ?? (this.#of.all(number) as RowRecord[]));
    if (found.length > 0) return found;
    const { dedupe_key: key, dedupe_until: until, event_id } = notification;
    return [{ row: 0, key, until, event_id, count: delivery.count, since: since() }];
  }

  /** The ids of the events behind it: the first, then the latest in the order in which they came. */
  eventIds({ number, notification, delivery }: Held): EventId[] {
    if (delivery.count === 1) return [notification.event_id];
    const further = this.#known(number)?.event_ids ?? this.#readLatest(number, notification.event_id);
    return [notification.event_id, ...(further.length > LISTED ? further.slice(-LISTED) : further)];
  }

  /** One event more of a notification that has no rows: its words were given. */
  add(before: Held, event_id: EventId): void {
    const members = this.#membersOf(before);
    members.unshown.push(event_id);
    this.#came(members, event_id);
  }

  /** A further row. `since` is when the only one before it came, if there was but one. */
  addRow(before: Held, since: () => string, record: RowRecord): void {
    const members = this.#membersOf(before);
    if (before.delivery.count === 1) members.rows.push(...this.of(before, since));
    members.rows.push(record);
    this.#came(members, record.event_id);
  }

  /** One more event counts to a row, and is shown from now on. */
  again(before: Held, since: () => string, row: number, event_id: EventId): void {
    const members = this.#membersOf(before);
    if (before.delivery.count === 1) members.rows.push(...this.of(before, since));
    const record = members.rows[row];
    if (record === undefined) members.unshown.push(event_id);
    else {
      if (record.event_id !== before.notification.event_id) members.unshown.push(record.event_id);
      members.rows[row] = { ...record, count: record.count + 1, event_id };
      if (row < members.written) members.changed.add(row);
    }
    this.#came(members, event_id);
  }

  #came(members: Members, event_id: EventId): void {
    const { event_ids } = members;
    event_ids.push(event_id);
    if (event_ids.length > 2 * LISTED) event_ids.splice(0, event_ids.length - LISTED);
    this.#unwritten.set(members.number, members);
  }

  #known(number: number): Members | undefined {
    const recent = this.#recent[number % RECENT_MAX];
    return recent?.number === number ? recent : this.#unwritten.get(number);
  }

  #membersOf({ number, notification, delivery }: Held): Members {
    const known = this.#known(number);
    if (known !== undefined) return known;
    const rows = delivery.count === 1 ? [] : (this.#of.all(number) as RowRecord[]);
    const event_ids = delivery.count === 1 ? [] : this.#readLatest(number, notification.event_id);
    const members = { number, rows, event_ids, written: rows.length, changed: new Set<number>(), unshown: [] };
    this.#recent[number % RECENT_MAX] = members;
    return members;
  }

  #readLatest(number: number, first: EventId): EventId[] {
    const shown = (this.#shown.all(number) as EventId[]).filter((id) => id !== first);
    const all = [...(this.#latestUnshown.all(number) as EventId[]), ...shown];
    return all.sort((one, other) => seqOf(one) - seqOf(other)).slice(-LISTED);
  }

  /** What has come since the last time. */
  writeOut(): void {
    if (this.#unwritten.size === 0) return;
    for (const members of this.#unwritten.values()) {
      this.#write(members);
      const slot = members.number % RECENT_MAX;
      if (members.rows.length > RECENT_ROWS && this.#recent[slot] === members) this.#recent[slot] = undefined;
    }
    this.#inserts.writeOut();
    this.#unwritten.clear();
  }

  #write(members: Members): void {
    const { number, rows, changed, unshown } = members;
    for (const event_id of unshown) this.#insertUnshown.run(number, seqOf(event_id), event_id);
    unshown.length = 0;
    for (const row of changed) {
      const record = rows[row];
      if (record !== undefined) this.#again.run(record.count, record.event_id, number, row);
    }
    changed.clear();
    for (let index = members.written; index < rows.length; index += 1) {
      const { row, key, until, event_id, count, since } = rows[index] as RowRecord;
      this.#inserts.add(number, row, key, until, event_id, count, since);
    }
    members.written = rows.length;
  }
}

/** The id of an event carries its place in the journal. */
function seqOf(id: EventId): number {
  return numberInId(id) ?? 0;
}
