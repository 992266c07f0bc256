import type { UserId } from "../../domain/ids.js";

const MINUTE_MS = 60_000;
const KEPT_MAX = 4_096;

/** How many critical notifications each source has made lately, for each user. Not kept over a restart. */
export class CriticalQuota {
  readonly #perMinute: number;
  readonly #minutes = new Map<string, { readonly since: number; count: number }>();

  constructor(perMinute: number) {
    this.#perMinute = perMinute;
  }

  /** Whether one more may be critical. */
  allows(user_id: UserId, source: string, at: number): boolean {
    const minute = this.#minutes.get(keyOf(user_id, source));
    const made = minute === undefined || minute.since + MINUTE_MS <= at ? 0 : minute.count;
    return made < this.#perMinute;
  }

  /** One more was made. */
  count(user_id: UserId, source: string, at: number): void {
    const key = keyOf(user_id, source);
    const minute = this.#minutes.get(key);
    if (minute !== undefined && minute.since + MINUTE_MS > at) {
      minute.count += 1;
      return;
    }
    this.#makeRoom(at);
    this.#minutes.set(key, { since: at, count: 1 });
  }

  #makeRoom(at: number): void {
    if (this.#minutes.size < KEPT_MAX) return;
    for (const [key, { since }] of this.#minutes) if (since + MINUTE_MS <= at) this.#minutes.delete(key);
    // A storm of sources: the oldest are forgotten, and may be critical anew.
    while (this.#minutes.size >= KEPT_MAX) this.#minutes.delete(this.#minutes.keys().next().value ?? "");
  }
}

function keyOf(user_id: UserId, source: string): string {
  return `${user_id}\n${source}`;
}
