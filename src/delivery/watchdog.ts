/**
 * The watchdog ends what nobody took, and the windows of batches: it looks when it starts and then ten times a second. What
 * is overdue is judged by the store's clock, inside the transaction that acts.
 */
import { StoreError, TidingsError } from "../domain/errors.js";
import { every } from "../platform/timers.js";
import type { Store } from "../store/contract.js";

const PERIOD_MS = 100;
const SLICE = 64;

export class Watchdog {
  readonly #store: Store;
  readonly #onError: (error: unknown) => void;
  #stop: (() => void) | undefined;
  #running: Promise<void> | undefined;

  constructor(store: Store, onError: (error: unknown) => void) {
    this.#store = store;
    this.#onError = onError;
  }

  /** Acts once on all that is overdue now, then goes on by itself. */
  async start(): Promise<void> {
    await this.#look();
    this.#stop = every(PERIOD_MS, async () => {
      this.#running = this.#look().catch((error: unknown) => this.#failed(error));
      await this.#running;
    });
  }

  async #look(): Promise<void> {
    while ((await this.#store.sweep(SLICE)) >= SLICE);
  }

  #failed(error: unknown): void {
    // A busy database is tried again at the next tick; a closed or failed store has told its owner itself.
    if (error instanceof StoreError || (error instanceof TidingsError && error.code === "closed")) return;
    this.#onError(error);
  }

  async stop(): Promise<void> {
    this.#stop?.();
    await this.#running;
  }
}
