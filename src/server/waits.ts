/** How many calls wait for something to happen, of everybody and of one user. */
import { OverloadedError } from "../domain/errors.js";
import type { UserId } from "../domain/ids.js";

const RETRY_MS = 1_000;

export class Waits {
  readonly #max: number;
  readonly #perUser: number;
  readonly #byUser = new Map<UserId, number>();
  #all = 0;

  constructor(max: number, perUser: number) {
    this.#max = max;
    this.#perUser = perUser;
  }

  /** One more; the function that is returned lets it go. */
  hold(user_id: UserId): () => void {
    const own = this.#byUser.get(user_id) ?? 0;
    if (own >= this.#perUser || this.#all >= this.#max)
      throw new OverloadedError("too many calls wait already; end some of them, or ask without wait_ms", RETRY_MS);
    this.#byUser.set(user_id, own + 1);
    this.#all += 1;
    return () => {
      this.#all -= 1;
      const left = (this.#byUser.get(user_id) ?? 1) - 1;
      if (left === 0) this.#byUser.delete(user_id);
      else this.#byUser.set(user_id, left);
    };
  }
}
