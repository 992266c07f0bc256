/** A bucket of tokens for each key: so many at once, refilled at a steady rate. */
import type { Clock } from "../platform/clock.js";

interface Bucket {
  left: number;
  at: number;
}

/** Beyond this many keys, the one that was quiet for longest is forgotten: it starts with a full bucket again. */
const KEYS_MAX = 10_000;

export class RateLimit {
  readonly #clock: Clock;
  readonly #perSecond: number;
  readonly #burst: number;
  readonly #onRefused: () => void;
  readonly #buckets = new Map<string, Bucket>();

  /** `onRefused` is told of each that could not be taken. */
  constructor(clock: Clock, perSecond: number, burst: number, onRefused: () => void = () => {}) {
    this.#clock = clock;
    this.#perSecond = perSecond;
    this.#burst = burst;
    this.#onRefused = onRefused;
  }

  /**
   * Takes `cost`, or answers after how many milliseconds it could be taken. What costs more than a full bucket has is
   * taken from a full one, and paid off by what comes next.
   */
  take(key: string, cost: number): number {
    const bucket = this.#bucket(key);
    if (bucket.left >= Math.min(cost, this.#burst)) {
      bucket.left -= cost;
      return 0;
    }
    this.#onRefused();
    return this.#wait(bucket, cost);
  }

  #wait(bucket: Bucket, cost: number): number {
    return Math.ceil(((Math.min(cost, this.#burst) - bucket.left) * 1_000) / this.#perSecond);
  }

  /** Those that were asked for last stand last. */
  #bucket(key: string): Bucket {
    const now = this.#clock.monotonic();
    const known = this.#buckets.get(key);
    const bucket = known === undefined ? { left: this.#burst, at: now } : this.#refilled(known, now);
    if (known !== undefined) this.#buckets.delete(key);
    else if (this.#buckets.size >= KEYS_MAX) this.#buckets.delete(this.#buckets.keys().next().value ?? "");
    this.#buckets.set(key, bucket);
    return bucket;
  }

  #refilled({ left, at }: Bucket, now: number): Bucket {
    return { left: Math.min(this.#burst, left + ((now - at) * this.#perSecond) / 1_000), at: now };
  }
}
