/** How many events were taken in over the wire since the server started: of everybody, and of each user. */
export class EventCounts {
  #all = 0;
  readonly #byUser = new Map<string, number>();

  get all(): number {
    return this.#all;
  }

  of(user_id: string): number {
    return this.#byUser.get(user_id) ?? 0;
  }

  add(user_id: string): void {
    this.#all += 1;
    this.#byUser.set(user_id, this.of(user_id) + 1);
  }
}
