import { assert } from "../../domain/errors.js";
import type { CarrierId, LeaseId, ThreadId } from "../../domain/ids.js";
import { numberInId } from "../../platform/ids.js";
import type { CarrierRecord } from "../contract.js";
import type { Connection, Statement } from "./connection.js";

export type CarrierRow = Omit<CarrierRecord, "items"> & {
  /** How far its block makes the agent aware of what the system has shown. */
  readonly aware_seq: number | null;
  readonly aware_inbox: number | null;
};
export type CarrierItem = CarrierRecord["items"][number];
type HeldCarrier = CarrierRow & { readonly lease_id: LeaseId };

const COLUMNS = "seq, id, user_id, thread_id, point, state, ended, lease_id, last_seq, turn_id, aware_seq, aware_inbox";

/** What agents were told, and what they hold. */
export class Carriers {
  readonly #insert: Statement;
  readonly #insertItem: Statement;
  readonly #one: Statement;
  readonly #items: Statement;
  readonly #end: Statement;
  readonly #send: Statement;
  readonly #under: Statement;
  readonly #setItem: Statement;
  readonly #holder: Statement;
  readonly #heldIn: Statement;
  readonly #expired: Statement;
  readonly #page: Statement;
  readonly #remove: readonly Statement[];

  constructor(connection: Connection) {
    this.#insert = connection.prepare(`INSERT INTO carriers (${COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`);
    this.#insertItem = connection.prepare(
      "INSERT INTO carrier_items (carrier, position, number, revision, lease_epoch, state) VALUES (?, ?, ?, ?, ?, ?)",
    );
    this.#one = connection.prepare(`SELECT ${COLUMNS} FROM carriers WHERE seq = ?`);
    this.#items = connection.prepare(
      "SELECT number, revision, lease_epoch, state FROM carrier_items WHERE carrier = ? ORDER BY position",
    );
    // Guarded: it ends once.
    this.#end = connection.prepare(
      `UPDATE carriers SET state = ?, ended = ?, lease_id = NULL, last_seq = ?
       WHERE seq = ? AND state = ? AND lease_id = ?`,
    );
    this.#send = connection.prepare(
      "UPDATE carriers SET state = 'sent', last_seq = ? WHERE seq = ? AND state = 'open' AND lease_id = ?",
    );
    this.#under = connection.prepare(`SELECT ${COLUMNS} FROM carriers WHERE lease_id = ? ORDER BY seq`);
    this.#setItem = connection.prepare("UPDATE carrier_items SET state = ? WHERE carrier = ? AND position = ?");
    this.#holder = connection.prepare(
      `SELECT l.owner AS owner, l.expires_at AS expires_at FROM carriers c JOIN leases l ON l.id = c.lease_id
       WHERE c.thread_id = ? AND c.lease_id IS NOT NULL AND c.state = 'open' AND l.owner <> ? AND l.expires_at > ?
       LIMIT 1`,
    );
    this.#heldIn = connection.prepare(
      `SELECT ${COLUMNS} FROM carriers WHERE thread_id = ? AND lease_id IS NOT NULL ORDER BY seq LIMIT ?`,
    );
    this.#expired = connection.prepare(
      `SELECT ${COLUMNS.split(", ")
        .map((column) => `c.${column}`)
        .join(", ")} FROM leases l CROSS JOIN carriers c ON c.lease_id = l.id
       WHERE l.expires_at <= ? ORDER BY l.expires_at LIMIT ?`,
    );
    this.#page = connection.prepare(`SELECT ${COLUMNS} FROM carriers WHERE seq > ? ORDER BY seq LIMIT ?`);
    this.#remove = [
      connection.prepare("DELETE FROM carrier_items WHERE carrier = ?"),
      connection.prepare("DELETE FROM carriers WHERE seq = ?"),
    ];
  }

  insert(row: CarrierRow, items: readonly CarrierItem[]): void {
    const { seq, id, user_id, thread_id, point, state, ended, lease_id, last_seq } = row;
    const { turn_id, aware_seq, aware_inbox } = row;
    this.#insert.run(
      seq,
      id,
      user_id,
      thread_id,
      point,
      state,
      ended,
      lease_id,
      last_seq,
      turn_id,
      aware_seq,
      aware_inbox,
    );
    for (const [position, item] of items.entries())
      this.#insertItem.run(seq, position, item.number, item.revision, item.lease_epoch, item.state);
  }

  byId(id: CarrierId): CarrierRow | undefined {
    const seq = numberInId(id);
    const row = seq === undefined ? undefined : (this.#one.get(seq) as CarrierRow | undefined);
    return row?.id === id ? row : undefined;
  }

  /** In the order in which they were collected. */
  items({ seq }: CarrierRow): CarrierItem[] {
    return this.#items.all(seq) as CarrierItem[];
  }

  /** Its hold ends; `items` are all of them, in their order. */
  end(before: CarrierRow, after: CarrierRow, items: readonly CarrierItem[]): void {
    const { changes } = this.#end.run(
      after.state,
      after.ended,
      after.last_seq,
      before.seq,
      before.state,
      before.lease_id,
    );
    assert(changes === 1, `carrier ${before.id} changed under the writer's hands`);
    for (const [position, { state }] of items.entries())
      if (state !== null) this.#setItem.run(state, before.seq, position);
  }

  /** It was sent, and its hold goes on. */
  send(before: CarrierRow, last_seq: number, items: readonly CarrierItem[]): void {
    const { changes } = this.#send.run(last_seq, before.seq, before.lease_id);
    assert(changes === 1, `carrier ${before.id} changed under the writer's hands`);
    for (const [position, { state }] of items.entries())
      if (state !== null) this.#setItem.run(state, before.seq, position);
  }

  /** Those that are held under one lease, oldest first. */
  under(lease_id: LeaseId): HeldCarrier[] {
    return this.#under.all(lease_id) as HeldCarrier[];
  }

  /** Somebody else who has an open one in this thread, under a lease that is not over. */
  otherHolder(thread_id: ThreadId, owner: string, at: number): { owner: string; expires_at: number } | undefined {
    return this.#holder.get(thread_id, owner, at) as { owner: string; expires_at: number } | undefined;
  }

  /** Those of a thread that are held, oldest first. */
  heldIn(thread_id: ThreadId, limit: number): HeldCarrier[] {
    return this.#heldIn.all(thread_id, limit) as HeldCarrier[];
  }

  /** Those whose lease is over. */
  expired(at: number, limit: number): HeldCarrier[] {
    return this.#expired.all(at, limit) as HeldCarrier[];
  }

  page(afterSeq: number, limit: number): CarrierRecord[] {
    const rows = this.#page.all(afterSeq, limit) as CarrierRow[];
    return rows.map((row) => ({ ...row, items: this.items(row) }));
  }

  /** With the entry that opened it. */
  remove(seq: number): void {
    for (const statement of this.#remove) statement.run(seq);
  }
}
