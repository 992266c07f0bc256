/**
 * Adds up what has happened over time, behind everybody's back: now and then, a slice at a time, and no more than one while
 * others write. Whoever asks waits until it has come to where the journal was then.
 */
import { StoreError, TidingsError } from "../domain/errors.js";
import { breathe, every } from "../platform/timers.js";
import type { Store } from "../store/contract.js";

const PERIOD_MS = 30_000;
const SLICE = 256;

export class SeriesFollower {
  readonly #store: Store;
  readonly #onError: (error: unknown) => void;
  #stop: (() => void) | undefined;
  #running: Promise<void> | undefined;

  constructor(store: Store, onError: (error: unknown) => void) {
    this.#store = store;
    this.#onError = onError;
  }

  start(): void {
    this.#stop = every(PERIOD_MS, async () => {
      this.#running = this.#follow().catch((error: unknown) => this.#failed(error));
      await this.#running;
    });
  }

  /** To the end of the journal, or until somebody else writes. */
  async #follow(): Promise<void> {
    for (;;) {
      const before = await this.#store.lastSeq();
      const { end } = await this.#store.addUp(SLICE);
      if (end || (await this.#store.lastSeq()) !== before || this.#stop === undefined) return;
      await breathe();
    }
  }

  #failed(error: unknown): void {
    // A closed or failed store has told its owner itself, and a busy one is asked again.
    if (error instanceof StoreError || (error instanceof TidingsError && error.code === "closed")) return;
    this.#onError(error);
  }

  async stop(): Promise<void> {
    this.#stop?.();
    this.#stop = undefined;
    await this.#running;
  }
}

/** Counts all that is in the journal now. */
export async function catchUp(store: Store): Promise<void> {
  const target = await store.lastSeq();
  for (;;) {
    const { seq, end } = await store.addUp(SLICE);
    if (end || seq >= target) return;
    await breathe();
  }
}
