import { mustNarrate } from "../../domain/axes.js";
import type { UserId } from "../../domain/ids.js";
import type { Waiting } from "../contract.js";
import type { Connection, Statement } from "./connection.js";
import { HELD_COLUMNS, type HeldRow, heldOf } from "./ledger.js";

/** Looked at together; part of the statements, since SQLite plans anew for a `LIMIT ?`. */
const MAX = 1_000;
/** Of what is critical and says nothing else. */
const WAIT_MS = 2_000;

/** What agents are to be woken for. */
export class Waitings {
  readonly #all: Statement;
  readonly #ofUser: Statement;

  constructor(connection: Connection) {
    const select = `SELECT ${HELD_COLUMNS} FROM deliveries d
      CROSS JOIN notifications n ON n.number = d.number WHERE d.wakes = 1 AND d.state = 'PENDING'`;
    this.#all = connection.prepare(`${select} ORDER BY d.user_id, d.number LIMIT ${MAX}`).raw();
    this.#ofUser = connection.prepare(`${select} AND d.user_id = ? ORDER BY d.number LIMIT ${MAX}`).raw();
  }

  all(): Waiting[] {
    return (this.#all.all() as HeldRow[]).map(waitingOf);
  }

  of(user_id: UserId): Waiting[] {
    return (this.#ofUser.all(user_id) as HeldRow[]).map(waitingOf);
  }
}

function waitingOf(row: HeldRow): Waiting {
  const { notification, delivery } = heldOf(row);
  return {
    id: delivery.id,
    user_id: delivery.user_id,
    thread_id: delivery.effective.address === "session" ? delivery.thread_id : null,
    channel: delivery.channel,
    priority: delivery.priority,
    must_narrate: mustNarrate(delivery.effective),
    created_at: notification.created_at,
    wait_ms: notification.wake_ms ?? WAIT_MS,
    not_before: delivery.not_before,
    open_until: delivery.open_until,
  };
}
