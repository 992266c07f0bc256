/** How much of something each key has in use, and whether that is enough. */
export class Budget {
  readonly #max: number;
  readonly #used = new Map<string, number>();

  /** `max` is for each key. */
  constructor(max: number) {
    this.#max = max;
  }

  isSpent(key: string): boolean {
    return (this.#used.get(key) ?? 0) >= this.#max;
  }

  take(key: string, amount: number): void {
    this.#used.set(key, (this.#used.get(key) ?? 0) + amount);
  }

  give(key: string, amount: number): void {
    const left = (this.#used.get(key) ?? 0) - amount;
    if (left > 0) this.#used.set(key, left);
    else this.#used.delete(key);
  }
}
