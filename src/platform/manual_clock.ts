import type { Clock } from "./clock.js";

/** A clock that moves only when told, for programs that replay or simulate. */
export class ManualClock implements Clock {
  #wall: number;
  #monotonic = 0;

  constructor(startMs: number) {
    this.#wall = startMs;
  }

  wall(): number {
    return this.#wall;
  }

  monotonic(): number {
    return this.#monotonic;
  }

  /** Time passes. */
  advance(ms: number): void {
    this.#wall += ms;
    this.#monotonic += ms;
  }

  /** The wall clock is set, or the machine was suspended: no time passed by the monotonic clock. */
  jump(ms: number): void {
    this.#wall += ms;
  }
}
