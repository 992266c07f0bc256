/** Where an item waits for an agent: in its thread, or, bound to none, with its user, whose threads may all take it. */
import type { Delivery } from "../../domain/notification.js";

export const ANY_THREAD = "";

/** As `deliveries_pending` is indexed by it; written the same everywhere, or SQLite does not find the index. */
export function placeSql(table: "deliveries" | "d"): string {
  return `(CASE WHEN ${table}.effective < 'user/' THEN ${table}.thread_id ELSE '' END)`;
}

export function placeOf({ effective, thread_id }: Delivery): string {
  return effective.address === "session" && thread_id !== null ? thread_id : ANY_THREAD;
}
