/** How many bytes each token has under way: bodies until they are answered, answers until they are read. */
import type { ServerResponse } from "node:http";

export class Budget {
  readonly #max: number;
  readonly #used = new Map<string, number>();

  /** `max` is for each token. */
  constructor(max: number) {
    this.#max = max;
  }

  /** For one request: until its answer has gone out, or its connection has ended. */
  hold(key: string, response: ServerResponse): Hold {
    const hold = new Hold(this, key);
    response.on("close", () => hold.end());
    return hold;
  }

  isSpent(key: string): boolean {
    return (this.#used.get(key) ?? 0) >= this.#max;
  }

  add(key: string, bytes: number): void {
    const used = (this.#used.get(key) ?? 0) + bytes;
    if (used > 0) this.#used.set(key, used);
    else this.#used.delete(key);
  }
}

/** What one request has of its token's budget. */
export class Hold {
  readonly #budget: Budget;
  readonly #key: string;
  #bytes = 0;
  #ended = false;

  constructor(budget: Budget, key: string) {
    this.#budget = budget;
    this.#key = key;
  }

  /** The token has too much under way already. */
  get isSpent(): boolean {
    return this.#budget.isSpent(this.#key);
  }

  take(bytes: number): void {
    if (this.#ended || bytes === 0) return;
    this.#bytes += bytes;
    this.#budget.add(this.#key, bytes);
  }

  end(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#budget.add(this.#key, -this.#bytes);
  }
}
