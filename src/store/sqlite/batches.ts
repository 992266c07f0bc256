import type { SubscriberId, ThreadId, UserId } from "../../domain/ids.js";
import type { Notification } from "../../domain/notification.js";
import type { Connection, Statement } from "./connection.js";

/** Whose: a subscriber's, for a user and a thread. */
type Place = Pick<Notification, "subscriber_id" | "user_id" | "thread_id">;

/**
 * The notifications that are open for further rows. Membership and the end of the window are in the store; this is rebuilt
 * from it at boot.
 */
export class Batches {
  readonly #open: Statement;
  /** By user and thread, then by subscriber: the number of the notification. */
  readonly #places = new Map<string, Map<SubscriberId, number>>();

  constructor(connection: Connection) {
    this.#open = connection.prepare(
      `SELECT d.number AS number, n.subscriber_id AS subscriber_id, d.user_id AS user_id, n.thread_id AS thread_id
       FROM deliveries d JOIN notifications n ON n.number = d.number WHERE d.open_until IS NOT NULL`,
    );
  }

  rebuild(): void {
    for (const { number, ...place } of this.#open.all() as (Place & { number: number })[]) this.opened(place, number);
  }

  find({ subscriber_id, user_id, thread_id }: Place): number | undefined {
    return this.#places.get(placeOf(user_id, thread_id))?.get(subscriber_id);
  }

  opened({ subscriber_id, user_id, thread_id }: Place, number: number): void {
    const place = placeOf(user_id, thread_id);
    const open = this.#places.get(place);
    if (open === undefined) this.#places.set(place, new Map([[subscriber_id, number]]));
    else open.set(subscriber_id, number);
  }

  closed({ subscriber_id, user_id, thread_id }: Place, number: number): void {
    const place = placeOf(user_id, thread_id);
    const open = this.#places.get(place);
    if (open?.get(subscriber_id) !== number) return;
    open.delete(subscriber_id);
    if (open.size === 0) this.#places.delete(place);
  }

  /** Of a user and thread, oldest first. */
  of(user_id: UserId, thread_id: ThreadId | null): number[] {
    const open = this.#places.get(placeOf(user_id, thread_id));
    return open === undefined ? [] : [...open.values()].sort((one, other) => one - other);
  }

  /** Any of them, up to so many. */
  some(limit: number): number[] {
    const numbers: number[] = [];
    for (const open of this.#places.values()) {
      numbers.push(...open.values());
      if (numbers.length >= limit) break;
    }
    return numbers.slice(0, limit);
  }
}

function placeOf(user_id: UserId, thread_id: ThreadId | null): string {
  // Neither can hold a line break.
  return `${user_id}\n${thread_id ?? ""}`;
}
