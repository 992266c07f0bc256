/** Which limits of a provider run low: told once until they begin again. */
import type { ThreadId } from "../domain/ids.js";
import type { RateLimit } from "../providers/model.js";

const LOW_SHARE = 0.1;
/** Where the provider does not say when it begins again. */
const PERIOD_MS = 60_000;
const TOLD_MAX = 1_000;

export class RateLimits {
  /** Until when a thread's agent knows of one. */
  readonly #told = new Map<string, number>();

  /** Those of a response that its agent is to be told of now. */
  low(thread_id: ThreadId, limits: readonly RateLimit[], now: number): RateLimit[] {
    return limits.filter((limit) => {
      const key = `${limit.what} ${thread_id}`;
      if (limit.limit <= 0 || limit.remaining >= limit.limit * LOW_SHARE) return false;
      if ((this.#told.get(key) ?? 0) > now) return false;
      this.#told.delete(key);
      this.#told.set(key, Math.max(limit.reset_at ?? now + PERIOD_MS, now + 1));
      for (const oldest of this.#told.keys()) {
        if (this.#told.size <= TOLD_MAX) break;
        this.#told.delete(oldest);
      }
      return true;
    });
  }
}
