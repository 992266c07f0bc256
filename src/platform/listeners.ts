/** Whoever wants to know of something. One that throws harms neither the others nor whoever tells them. */
export class Listeners<News> {
  readonly #listeners = new Set<(news: News) => void>();
  readonly #broke: (error: unknown) => void;

  constructor(broke: (error: unknown) => void) {
    this.#broke = broke;
  }

  add(listener: (news: News) => void): void {
    this.#listeners.add(listener);
  }

  clear(): void {
    this.#listeners.clear();
  }

  tell(news: News): void {
    for (const listener of this.#listeners)
      try {
        listener(news);
      } catch (error) {
        this.#report(error);
      }
  }

  #report(error: unknown): void {
    try {
      this.#broke(error);
    } catch {
      // Nobody is left to be told.
    }
  }
}
