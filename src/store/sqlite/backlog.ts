import { isSystemChannel } from "../../domain/axes.js";
import type { SubscriberId, UserId } from "../../domain/ids.js";
import type { Delivery, Notification } from "../../domain/notification.js";
import type { Priority } from "../../domain/priority.js";
import type { Connection, Statement } from "./connection.js";
import { placeOf, placeSql } from "./place.js";

const PLACE = placeSql("deliveries");

const TRACKED_MAX = 8_192;

/**
 * How much waits for agents, by place and by source. Counted once when it is first asked for, and then kept; whatever is
 * not asked for costs nothing.
 */
export class Backlog {
  readonly #inPlace: Statement;
  readonly #ofSource: Statement;
  readonly #oldestInPlace: Statement;
  readonly #oldestOfSource: Statement;
  readonly #ofSubscriber: Statement;
  readonly #counts = new Map<string, number>();

  constructor(connection: Connection) {
    this.#ofSubscriber = connection
      .prepare(
        `SELECT d.number FROM deliveries d JOIN notifications n ON n.number = d.number
         WHERE d.user_id = ? AND ${placeSql("d")} = ?
           AND d.state = 'PENDING' AND n.subscriber_id = ? LIMIT 1`,
      )
      .pluck();
    this.#inPlace = connection
      .prepare(`SELECT count(*) FROM deliveries WHERE user_id = ? AND ${PLACE} = ? AND state = 'PENDING'`)
      .pluck();
    this.#ofSource = connection
      .prepare("SELECT count(*) FROM deliveries WHERE user_id = ? AND source = ? AND state = 'PENDING'")
      .pluck();
    this.#oldestInPlace = connection
      .prepare(
        `SELECT number FROM deliveries WHERE user_id = ? AND ${PLACE} = ? AND priority = ? AND state = 'PENDING'
           AND open_until IS NULL AND effective NOT IN ('user/user/agent', 'session/user/agent')
         ORDER BY number LIMIT ?`,
      )
      .pluck();
    this.#oldestOfSource = connection
      .prepare(
        `SELECT number FROM deliveries WHERE user_id = ? AND source = ? AND priority = ? AND state = 'PENDING'
           AND open_until IS NULL AND effective NOT IN ('user/user/agent', 'session/user/agent')
         ORDER BY number LIMIT ?`,
      )
      .pluck();
  }

  /** The pending one of a subscriber in a place, if there is one. Looks through the place. */
  ofSubscriber(user_id: UserId, place: string, subscriber_id: SubscriberId): number | undefined {
    return this.#ofSubscriber.get(user_id, place, subscriber_id) as number | undefined;
  }

  /** Whether nothing is read to count what waits. */
  knows(user_id: UserId, place: string, source: string): boolean {
    return this.#counts.has(placeKey(user_id, place)) && this.#counts.has(sourceKey(user_id, source));
  }

  inPlace(user_id: UserId, place: string): number {
    return this.#count(placeKey(user_id, place), () => this.#inPlace.get(user_id, place) as number);
  }

  ofSource(user_id: UserId, source: string): number {
    return this.#count(sourceKey(user_id, source), () => this.#ofSource.get(user_id, source) as number);
  }

  /** Of those that may be folded: what is open, and what an agent must narrate, may not. */
  oldestInPlace(user_id: UserId, place: string, priority: Priority, limit: number): number[] {
    return this.#oldestInPlace.all(user_id, place, priority, limit) as number[];
  }

  oldestOfSource(user_id: UserId, source: string, priority: Priority, limit: number): number[] {
    return this.#oldestOfSource.all(user_id, source, priority, limit) as number[];
  }

  #count(key: string, read: () => number): number {
    const known = this.#counts.get(key);
    if (known !== undefined) return known;
    if (this.#counts.size >= TRACKED_MAX) this.#counts.clear();
    const count = read();
    this.#counts.set(key, count);
    return count;
  }

  /** A row was written: from `was` (undefined: it is new) to `next` (undefined: it is gone). */
  changed({ source }: Notification, was: Delivery | undefined, next: Delivery | undefined): void {
    this.#move(source, was, -1);
    this.#move(source, next, 1);
  }

  #move(source: string, delivery: Delivery | undefined, by: 1 | -1): void {
    if (delivery === undefined || delivery.state !== "PENDING" || this.#counts.size === 0) return;
    this.#add(placeKey(delivery.user_id, placeOf(delivery)), by);
    if (!isSystemChannel(delivery.channel)) this.#add(sourceKey(delivery.user_id, source), by);
  }

  #add(key: string, by: number): void {
    const count = this.#counts.get(key);
    if (count !== undefined) this.#counts.set(key, count + by);
  }
}

function placeKey(user_id: UserId, place: string): string {
  return `t\n${user_id}\n${place}`;
}

function sourceKey(user_id: UserId, source: string): string {
  return `s\n${user_id}\n${source}`;
}
