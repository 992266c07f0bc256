import type { ThreadId } from "../../domain/ids.js";
import { later } from "../../platform/timers.js";

/** That something has changed in a thread, for those who wait for it. */
export class Changes {
  readonly #waiters = new Map<ThreadId, Set<() => void>>();

  happened(thread_id: ThreadId): void {
    for (const waiter of [...(this.#waiters.get(thread_id) ?? [])]) waiter();
  }

  /** What `judged` answers, asked again whenever something changes in the thread; null when the time is over. */
  async until<Value>(
    thread_id: ThreadId,
    judged: () => Promise<Value | null>,
    timeout_ms: number,
    stop: AbortSignal,
  ): Promise<Value | null> {
    let over = timeout_ms === 0 || stop.aborted;
    let wake: () => void = () => undefined;
    const end = () => {
      over = true;
      wake();
    };
    const changed = () => wake();
    const waiters = this.#waiters.get(thread_id) ?? new Set();
    this.#waiters.set(thread_id, waiters.add(changed));
    const stopTimer = later(timeout_ms, end);
    stop.addEventListener("abort", end, { once: true });
    try {
      for (;;) {
        const next = new Promise<void>((resolve) => {
          wake = resolve;
        });
        const value = await judged();
        if (value !== null || over) return value;
        await next;
      }
    } finally {
      stopTimer();
      stop.removeEventListener("abort", end);
      waiters.delete(changed);
      if (waiters.size === 0) this.#waiters.delete(thread_id);
    }
  }
}
