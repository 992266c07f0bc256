import { assert } from "../../domain/errors.js";
import type { LeaseId, ThreadId, TurnId } from "../../domain/ids.js";
import { isTurnOver, type Turn } from "../../domain/turn.js";
import { numberInId } from "../../platform/ids.js";
import type { Connection, Statement } from "./connection.js";

/** A turn with its place in the store. */
export interface TurnRow extends Turn {
  readonly seq: number;
  /** While it is active. */
  readonly lease_id: LeaseId | null;
  readonly last_seq: number;
}

export type ActiveTurn = TurnRow & { readonly state: "active"; readonly lease_id: LeaseId };

type Raw = Omit<TurnRow, "internal"> & { readonly internal: 0 | 1 };

const COLUMNS =
  "seq, id, user_id, thread_id, state, source, internal, content, created_at, note, continued_by, lease_id, last_seq";

/** Turns of hosted agents. */
export class Turns {
  readonly #insert: Statement;
  readonly #one: Statement;
  readonly #update: Statement;
  readonly #ofThread: Statement;
  readonly #live: Statement;
  readonly #active: Statement;
  readonly #expired: Statement;
  readonly #page: Statement;
  readonly #remove: Statement;

  constructor(connection: Connection) {
    this.#insert = connection.prepare(
      `INSERT INTO turns (${COLUMNS}, live) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    );
    this.#one = connection.prepare(`SELECT ${COLUMNS} FROM turns WHERE seq = ?`);
    // Guarded: what is over stays so, and what is active stays under its lease.
    this.#update = connection.prepare(
      `UPDATE turns SET state = ?, internal = ?, content = ?, note = ?, continued_by = ?, lease_id = ?, last_seq = ?, live = ?
       WHERE seq = ? AND live = 1 AND state = ? AND lease_id IS ?`,
    );
    this.#ofThread = connection.prepare(`SELECT ${COLUMNS} FROM turns WHERE thread_id = ? AND live = 1 ORDER BY seq`);
    this.#live = connection.prepare(`SELECT ${COLUMNS} FROM turns WHERE live = 1 ORDER BY thread_id, seq`);
    this.#active = connection.prepare(
      `SELECT ${COLUMNS} FROM turns WHERE thread_id = ? AND live = 1 AND lease_id IS NOT NULL LIMIT 1`,
    );
    this.#expired = connection.prepare(
      `SELECT ${COLUMNS.split(", ")
        .map((column) => `t.${column}`)
        .join(", ")} FROM leases l CROSS JOIN turns t ON t.lease_id = l.id
       WHERE l.expires_at <= ? ORDER BY l.expires_at LIMIT ?`,
    );
    this.#page = connection.prepare(`SELECT ${COLUMNS} FROM turns WHERE seq > ? ORDER BY seq LIMIT ?`);
    this.#remove = connection.prepare("DELETE FROM turns WHERE seq = ?");
  }

  insert(row: TurnRow): void {
    const { seq, id, user_id, thread_id, state, source, internal, content, created_at, note, lease_id, last_seq } = row;
    const live = isTurnOver(state) ? 0 : 1;
    this.#insert.run(
      seq,
      id,
      user_id,
      thread_id,
      state,
      source,
      internal ? 1 : 0,
      content,
      created_at,
      note,
      row.continued_by,
      lease_id,
      last_seq,
      live,
    );
  }

  update(before: TurnRow, after: TurnRow): void {
    const { state, internal, content, note, continued_by, lease_id, last_seq } = after;
    const { changes } = this.#update.run(
      state,
      internal ? 1 : 0,
      content,
      note,
      continued_by,
      lease_id,
      last_seq,
      isTurnOver(state) ? 0 : 1,
      before.seq,
      before.state,
      before.lease_id,
    );
    assert(changes === 1, `turn ${before.id} changed under the writer's hands`);
  }

  byId(id: TurnId): TurnRow | undefined {
    const seq = numberInId(id);
    const row = seq === undefined ? undefined : (this.#one.get(seq) as Raw | undefined);
    return row?.id === id ? rowOf(row) : undefined;
  }

  /** Queued and active, oldest first. */
  liveIn(thread_id: ThreadId): TurnRow[] {
    return (this.#ofThread.all(thread_id) as Raw[]).map(rowOf);
  }

  /** Those of all threads. */
  live(): TurnRow[] {
    return (this.#live.all() as Raw[]).map(rowOf);
  }

  activeIn(thread_id: ThreadId): ActiveTurn | undefined {
    const row = this.#active.get(thread_id) as Raw | undefined;
    return row === undefined ? undefined : (rowOf(row) as ActiveTurn);
  }

  expired(at: number, limit: number): ActiveTurn[] {
    return (this.#expired.all(at, limit) as Raw[]).map((row) => rowOf(row) as ActiveTurn);
  }

  /** By the entry that made them. */
  page(afterSeq: number, limit: number): TurnRow[] {
    return (this.#page.all(afterSeq, limit) as Raw[]).map(rowOf);
  }

  /** With the entry that made it. */
  remove(seq: number): void {
    this.#remove.run(seq);
  }
}

function rowOf(row: Raw): TurnRow {
  return { ...row, internal: row.internal === 1 };
}

/** As the contract shows it. */
export function turnOf({ seq: _seq, lease_id: _lease, last_seq: _last, ...turn }: TurnRow): Turn {
  return turn;
}
