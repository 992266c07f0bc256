import { mustNarrate } from "../../domain/axes.js";
import type { UserId } from "../../domain/ids.js";
import { PRIORITIES } from "../../domain/priority.js";
import type { Waiting } from "../contract.js";
import type { Connection, Statement } from "./connection.js";
import { HELD_COLUMNS, type HeldRow, heldOf } from "./ledger.js";
import { placeSql } from "./place.js";

/** Of one priority in one place; part of the statements, since SQLite plans anew for a `LIMIT ?`. */
const MAX = 64;
/** Of what is critical and says nothing else. */
const WAIT_MS = 2_000;

/** What agents are to be woken for. Nobody's many keep another's one from being seen: each place is looked at by itself. */
export class Waitings {
  readonly #nextUser: Statement;
  readonly #nextPlace: Statement;
  readonly #in: Statement;

  constructor(connection: Connection) {
    const wakes = "d.wakes = 1 AND d.state = 'PENDING'";
    const place = placeSql("d");
    this.#nextUser = connection
      .prepare(`SELECT d.user_id FROM deliveries d WHERE ${wakes} AND d.user_id > ? ORDER BY d.user_id LIMIT 1`)
      .pluck();
    this.#nextPlace = connection
      .prepare(
        `SELECT ${place} AS place FROM deliveries d WHERE ${wakes} AND d.user_id = ? AND ${place} > ?
         ORDER BY place LIMIT 1`,
      )
      .pluck();
    this.#in = connection
      .prepare(
        `SELECT ${HELD_COLUMNS} FROM deliveries d CROSS JOIN notifications n ON n.number = d.number
         WHERE ${wakes} AND d.user_id = ? AND ${place} = ? AND d.priority = ? ORDER BY d.number LIMIT ${MAX}`,
      )
      .raw();
  }

  all(): Waiting[] {
    const found: Waiting[] = [];
    let user_id = this.#nextUser.get("") as UserId | undefined;
    while (user_id !== undefined) {
      found.push(...this.of(user_id));
      user_id = this.#nextUser.get(user_id) as UserId | undefined;
    }
    return found;
  }

  of(user_id: UserId): Waiting[] {
    const found = this.#inPlace(user_id, "");
    let place = this.#nextPlace.get(user_id, "") as string | undefined;
    while (place !== undefined) {
      found.push(...this.#inPlace(user_id, place));
      place = this.#nextPlace.get(user_id, place) as string | undefined;
    }
    return found;
  }

  #inPlace(user_id: UserId, place: string): Waiting[] {
    return PRIORITIES.flatMap((priority) => (this.#in.all(user_id, place, priority) as HeldRow[]).map(waitingOf));
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
