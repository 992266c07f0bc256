import type { LeaseId, UserId } from "../../domain/ids.js";
import type { Lease } from "../contract.js";
import type { Connection, Statement } from "./connection.js";

interface LeaseRow {
  id: LeaseId;
  user_id: UserId;
  owner: string;
  expires_at: number;
  held: number;
}

/** Who holds what, and until when. Renewals touch this table alone and are not journaled. */
export class Leases {
  readonly #insert: Statement;
  readonly #one: Statement;
  readonly #renew: Statement;
  readonly #hold: Statement;
  readonly #let: Statement;
  readonly #remove: Statement;
  readonly #expired: Statement;
  readonly #grace: Statement;

  constructor(connection: Connection) {
    this.#insert = connection.prepare(
      "INSERT INTO leases (id, user_id, owner, expires_at, held) VALUES (?, ?, ?, ?, ?)",
    );
    this.#one = connection.prepare("SELECT id, user_id, owner, expires_at, held FROM leases WHERE id = ?");
    this.#renew = connection.prepare("UPDATE leases SET expires_at = ? WHERE id = ?");
    this.#hold = connection.prepare("UPDATE leases SET held = held + ? WHERE id = ?");
    this.#let = connection.prepare("UPDATE leases SET held = held - 1 WHERE id = ?");
    this.#remove = connection.prepare("DELETE FROM leases WHERE id = ? AND held <= 0");
    this.#expired = connection
      .prepare("SELECT id FROM leases WHERE expires_at <= ? ORDER BY expires_at LIMIT ?")
      .pluck();
    this.#grace = connection.prepare("UPDATE leases SET expires_at = ? WHERE expires_at < ?");
  }

  open(lease: Lease, user_id: UserId, held: number): void {
    this.#insert.run(lease.id, user_id, lease.owner, lease.expires_at, held);
  }

  get(id: LeaseId): LeaseRow | undefined {
    return this.#one.get(id) as LeaseRow | undefined;
  }

  isExpired(id: LeaseId, at: number): boolean {
    const row = this.get(id);
    return row === undefined || row.expires_at <= at;
  }

  renew(id: LeaseId, expires_at: number): void {
    this.#renew.run(expires_at, id);
  }

  /** So many more are held under it. */
  hold(id: LeaseId, more: number): void {
    this.#hold.run(more, id);
  }

  /** One delivery less is held under it. */
  letGo(id: LeaseId): void {
    this.#let.run(id);
    this.#remove.run(id);
  }

  expired(at: number, limit: number): LeaseId[] {
    return this.#expired.all(at, limit) as LeaseId[];
  }

  /** After time jumped: nobody loses a lease before having had a moment to renew it. */
  grace(until: number): void {
    this.#grace.run(until, until);
  }
}
