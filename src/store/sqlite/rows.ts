import type { EventId } from "../../domain/ids.js";
import type { Connection, Statement } from "./connection.js";
import type { Held } from "./ledger.js";

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

const COLUMNS = "row, key, until, event_id, count, since";

/** The rows of notifications. One that is alone and came once is in nobody's way: its notification says all of it. */
export class Rows {
  readonly #of: Statement;
  readonly #insert: Statement;
  readonly #again: Statement;

  constructor(connection: Connection) {
    this.#of = connection.prepare(`SELECT ${COLUMNS} FROM notification_rows WHERE number = ? ORDER BY row`);
    this.#insert = connection.prepare(
      `INSERT OR IGNORE INTO notification_rows (number, ${COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?)`,
    );
    this.#again = connection.prepare(
      "UPDATE notification_rows SET count = count + 1, event_id = ? WHERE number = ? AND row = ?",
    );
  }

  /** In the order in which they came. */
  of({ number, notification, delivery }: Held, since: () => string): readonly RowRecord[] {
    const found = delivery.count === 1 ? [] : (this.#of.all(number) as RowRecord[]);
    if (found.length > 0) return found;
    const { dedupe_key: key, dedupe_until: until, event_id } = notification;
    return [{ row: 0, key, until, event_id, count: delivery.count, since: since() }];
  }

  add(number: number, { row, key, until, event_id, count, since }: RowRecord): void {
    this.#insert.run(number, row, key, until, event_id, count, since);
  }

  /** One more event counts to it, and is shown from now on. */
  again(number: number, row: number, event_id: EventId): void {
    this.#again.run(event_id, number, row);
  }
}
