/** How long what could not be done now rests before it is tried again. */
import { TidingsError } from "../domain/errors.js";
import type { ThreadId, UserId } from "../domain/ids.js";

const REST_MS = 500;
/** For a thread that could not be woken. */
const REST_MS_MAX = 5_000;
/** After errors. */
const ERROR_REST_MS_MAX = 30_000;

interface Rest {
  readonly user_id: UserId;
  readonly since: number;
  readonly until: number;
  readonly ms: number;
}

/** Threads that could not be woken: tried again after a while, then after twice as long. */
export class Rests {
  readonly #rests = new Map<ThreadId, Rest>();

  /** Until when it rests; null: it does not. */
  until(thread_id: ThreadId, now: number): number | null {
    const rest = this.#rests.get(thread_id);
    return rest !== undefined && rest.until > now ? rest.until : null;
  }

  /** It could not be woken. Answers until when it rests. */
  refused(thread_id: ThreadId, user_id: UserId, now: number): number {
    const before = this.#rests.get(thread_id)?.ms;
    const ms = before === undefined ? REST_MS : Math.min(before * 2, REST_MS_MAX);
    this.#rests.set(thread_id, { user_id, since: now, until: now + ms, ms });
    return now + ms;
  }

  woken(thread_id: ThreadId): void {
    this.#rests.delete(thread_id);
  }

  /** Something of the user's has changed: whoever was in the way may have gone. */
  changed(user_id: UserId): void {
    for (const [thread_id, rest] of this.#rests)
      if (rest.user_id === user_id && rest.until > rest.since + REST_MS)
        this.#rests.set(thread_id, { ...rest, until: rest.since + REST_MS });
  }
}

/** How long to rest after so many errors in a row. */
export function retryRest(errors: number): number {
  return Math.min(REST_MS * 2 ** Math.min(errors - 1, 10), ERROR_REST_MS_MAX);
}

/** It is over with the store: there is nothing to try again. */
export function isClosed(error: unknown): boolean {
  return error instanceof TidingsError && error.code === "closed";
}
