import type { SubscriberId, ThreadId, UserId } from "../../domain/ids.js";
import type { Notification } from "../../domain/notification.js";
import type { Connection, Statement } from "./connection.js";

/** What is open for a user and a thread. */
interface Place {
  /** The newest of each subscriber; an older one goes another way, since its subscriber's file was changed. */
  readonly newest: Map<SubscriberId, number>;
  readonly open: Set<number>;
}

/** Whose: a subscriber's, for a user and a thread. */
type Owner = Pick<Notification, "subscriber_id" | "user_id" | "thread_id">;

/**
 * The notifications that are open for further rows. Membership and the end of the window are in the store; this is rebuilt
 * from it at boot.
 */
export class Batches {
  readonly #open: Statement;
  readonly #places = new Map<string, Place>();

  constructor(connection: Connection) {
    this.#open = connection.prepare(
      `SELECT d.number AS number, n.subscriber_id AS subscriber_id, d.user_id AS user_id, n.thread_id AS thread_id
       FROM deliveries d JOIN notifications n ON n.number = d.number WHERE d.open_until IS NOT NULL`,
    );
  }

  rebuild(): void {
    const open = this.#open.all() as (Owner & { number: number })[];
    open.sort((one, other) => one.number - other.number);
    for (const { number, ...owner } of open) this.opened(owner, number);
  }

  /** The one that takes further rows. */
  find({ subscriber_id, user_id, thread_id }: Owner): number | undefined {
    return this.#places.get(placeOf(user_id, thread_id))?.newest.get(subscriber_id);
  }

  opened({ subscriber_id, user_id, thread_id }: Owner, number: number): void {
    const key = placeOf(user_id, thread_id);
    let place = this.#places.get(key);
    if (place === undefined) {
      place = { newest: new Map(), open: new Set() };
      this.#places.set(key, place);
    }
    place.newest.set(subscriber_id, number);
    place.open.add(number);
  }

  closed({ subscriber_id, user_id, thread_id }: Owner, number: number): void {
    const key = placeOf(user_id, thread_id);
    const place = this.#places.get(key);
    if (place === undefined) return;
    place.open.delete(number);
    if (place.newest.get(subscriber_id) === number) place.newest.delete(subscriber_id);
    if (place.open.size === 0) this.#places.delete(key);
  }

  /** Of a user and thread, oldest first. */
  of(user_id: UserId, thread_id: ThreadId | null): number[] {
    const place = this.#places.get(placeOf(user_id, thread_id));
    return place === undefined ? [] : [...place.open].sort((one, other) => one - other);
  }

  /** Any of them, up to so many. */
  some(limit: number): number[] {
    const numbers: number[] = [];
    for (const { open } of this.#places.values()) {
      numbers.push(...open);
      if (numbers.length >= limit) break;
    }
    return numbers.slice(0, limit);
  }
}

function placeOf(user_id: UserId, thread_id: ThreadId | null): string {
  // Neither can hold a line break.
  return `${user_id}\n${thread_id ?? ""}`;
}
