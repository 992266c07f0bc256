/**
 * What is critical is told at once, but a storm of it makes bounded work: after some turns that the system opened by
 * itself in a row, what the agent would handle goes to the user, and the rest waits for the next message.
 */

/** So many turns may be forced one after the other. */
const FORCED_MAX = 3;
/** They are in a row if they come within this time. */
const ROW_MS = 60_000;
/** So many model calls of forced turns leave no room for a further such turn, */
const CALLS_MAX = 3;
/** within this time. */
const CALLS_MS = 10_000;

export class Storm {
  #forced: number[] = [];
  #calls: number[] = [];

  /** The user has spoken: it begins anew. */
  reset(): void {
    this.#forced = [];
    this.#calls = [];
  }

  forced(now: number): void {
    this.#forced = [...this.#forced.filter((at) => now - at < ROW_MS), now];
  }

  /** The model was called in a turn of the system's own accord. */
  called(now: number): void {
    this.#calls = [...this.#calls.filter((at) => now - at < CALLS_MS), now];
  }

  /** Whether nothing is to be forced now. */
  rages(now: number): boolean {
    const forced = this.#forced.filter((at) => now - at < ROW_MS);
    if (forced.length >= FORCED_MAX) return true;
    const recently = forced.some((at) => now - at < CALLS_MS);
    return recently && this.#calls.filter((at) => now - at < CALLS_MS).length >= CALLS_MAX;
  }
}
