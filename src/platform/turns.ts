/**
 * Long work of many in one process: it is done in slices, of which one fits between two looks at what else there is to
 * do, and those who have more of it take turns.
 */
import { systemClock } from "./clock.js";

/** How long a slice is. */
const SLICE_MS = 4;

export class Turns {
  readonly #waiting: (() => void)[] = [];
  /** When the slice is over that was begun since the last look at everything else; undefined before it is. */
  #until: number | undefined = undefined;
  /** How often everything else was looked at, as far as somebody worked between. */
  #round = 0;

  /** For one piece of work. So many steps are free each time that everybody else has had their turn. */
  enter(free = 0): Turn {
    return new Turn(this, free);
  }

  get round(): number {
    this.#begin();
    return this.#round;
  }

  /** Until when a slice goes that begins now; undefined where it has to wait. */
  slice(): number | undefined {
    const until = this.#begin();
    return this.#waiting.length === 0 && systemClock.monotonic() < until ? until : undefined;
  }

  wait(begin: (until: number) => void): void {
    this.#begin();
    this.#waiting.push(() => begin(this.#begin()));
  }

  #begin(): number {
    if (this.#until === undefined) {
      this.#until = systemClock.monotonic() + SLICE_MS;
      setImmediate(() => this.#next());
    }
    return this.#until;
  }

  #next(): void {
    this.#until = undefined;
    this.#round += 1;
    this.#waiting.shift()?.();
  }
}

export class Turn {
  readonly #turns: Turns;
  readonly #free: number;
  #until = 0;
  #round = -1;
  #steps = 0;

  constructor(turns: Turns, free: number) {
    this.#turns = turns;
    this.#free = free;
  }

  /** Asked before each step: undefined where it may be taken at once. */
  step(): Promise<void> | undefined {
    if (this.#isFree() || systemClock.monotonic() < this.#until) return undefined;
    const until = this.#turns.slice();
    if (until !== undefined) {
      this.#until = until;
      return undefined;
    }
    return new Promise((resolve) =>
      this.#turns.wait((end) => {
        this.#until = end;
        resolve();
      }),
    );
  }

  #isFree(): boolean {
    if (this.#free === 0) return false;
    const { round } = this.#turns;
    if (round !== this.#round) {
      this.#round = round;
      this.#steps = 0;
    }
    this.#steps += 1;
    return this.#steps <= this.#free;
  }
}
