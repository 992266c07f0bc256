/** A bucket of tokens for each key: so many at once, refilled at a steady rate. */
import type { Clock } from "../platform/clock.js";

interface Bucket {
  left: number;
  at: number;
}

/** Beyond this many keys, those that are full again are forgotten. */
const KEYS_MAX = 10_000;

export class RateLimit {
  readonly #clock: Clock;
  readonly #perSecond: number;
  readonly #burst: number;
  readonly #buckets = new Map<string, Bucket>();

  constructor(clock: Clock, perSecond: number, burst: number) {
    this.#clock = clock;
    this.#perSecond = perSecond;
    this.#burst = burst;
  }

  /** Takes `cost`, or answers after how many milliseconds it could be taken. */
  take(key: string, cost: number): number {
    const bucket = this.#bucket(key);
    if (bucket.left >= cost) {
      bucket.left -= cost;
      return 0;
    }
    return this.#wait(bucket, cost);
  }

  /** How long until `cost` could be taken; takes nothing. */
  waitFor(key: string, cost: number): number {
    const bucket = this.#bucket(key);
    return bucket.left >= cost ? 0 : this.#wait(bucket, cost);
  }

  #wait(bucket: Bucket, cost: number): number {
    return Math.ceil(((Math.min(cost, this.#burst) - bucket.left) * 1_000) / this.#perSecond);
  }

  #bucket(key: string): Bucket {
    const now = this.#clock.monotonic();
    let bucket = this.#buckets.get(key);
    if (bucket === undefined) {
      if (this.#buckets.size >= KEYS_MAX) this.#forget(now);
      bucket = { left: this.#burst, at: now };
      this.#buckets.set(key, bucket);
    } else {
      bucket.left = this.#refilled(bucket, now);
      bucket.at = now;
    }
    return bucket;
  }

  #refilled({ left, at }: Bucket, now: number): number {
    return Math.min(this.#burst, left + ((now - at) * this.#perSecond) / 1_000);
  }

  #forget(now: number): void {
    for (const [key, bucket] of this.#buckets)
      if (this.#refilled(bucket, now) >= this.#burst) this.#buckets.delete(key);
  }
}
