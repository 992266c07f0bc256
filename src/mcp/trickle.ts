import type { Clock } from "../platform/clock.js";

const MINUTE_MS = 60_000;

/** Lets so many through in a minute, and counts the others. */
export class Trickle {
  readonly #perMinute: number;
  readonly #clock: Clock;
  #times: number[] = [];
  #dropped = 0;

  constructor(perMinute: number, clock: Clock) {
    this.#perMinute = perMinute;
    this.#clock = clock;
  }

  /** How many were dropped since the last that was let through; null if this one is. */
  take(): number | null {
    const now = this.#clock.monotonic();
    this.#times = this.#times.filter((at) => now - at < MINUTE_MS);
    if (this.#times.length >= this.#perMinute) {
      this.#dropped += 1;
      return null;
    }
    this.#times.push(now);
    const dropped = this.#dropped;
    this.#dropped = 0;
    return dropped;
  }

  /** That nobody was told of yet. */
  get dropped(): number {
    return this.#dropped;
  }
}
