/** Where time comes from. Nothing outside this folder asks the machine. */
export interface Clock {
  /** Milliseconds since 1970 by the machine's clock, which may jump. */
  wall(): number;
  /** Milliseconds since some moment; never jumps, and stands still while the machine is suspended. */
  monotonic(): number;
}

export const systemClock: Clock = {
  wall: () => Date.now(),
  monotonic: () => performance.now(),
};

/** How far the wall clock must run ahead of the monotonic one between two readings to count as a jump. */
const JUMP_MS = 2_000;

/**
 * The time of a journal: starts no earlier than the last entry, never goes back, and always goes on. If the wall
 * clock jumps back, time runs on by the monotonic clock from where it was; if it jumps ahead (a suspend, or a
 * correction), time follows and says so once, so that leases get their grace.
 */
export class JournalClock {
  readonly #clock: Clock;
  #time: number;
  #monotonic: number;
  #wall: number;
  #jumpedMs = 0;

  constructor(clock: Clock, notBefore: number) {
    this.#clock = clock;
    this.#wall = clock.wall();
    this.#monotonic = clock.monotonic();
    this.#time = Math.max(this.#wall, notBefore);
  }

  now(): number {
    const wall = this.#clock.wall();
    const monotonic = this.#clock.monotonic();
    const elapsed = Math.max(0, monotonic - this.#monotonic);
    const ahead = wall - this.#wall - elapsed;
    if (ahead > JUMP_MS) this.#jumpedMs += ahead;
    const next = Math.max(this.#time + elapsed, wall);
    this.#time = next;
    this.#monotonic = monotonic;
    this.#wall = wall;
    return Math.floor(next);
  }

  /** How far time jumped ahead since the last call; 0 almost always. */
  takeJump(): number {
    const jumped = this.#jumpedMs;
    this.#jumpedMs = 0;
    return jumped;
  }
}
