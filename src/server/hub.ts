/** Every open connection, by user; one reading of the journal for all of them. */
import { AssertionError } from "../domain/errors.js";
import type { UserId } from "../domain/ids.js";
import { every, later } from "../platform/timers.js";
import type { Tidings } from "../tidings.js";
import { CLOSE, type Connection } from "./connection.js";
import { countsFrame, PushFrame } from "./frames.js";
import type { ServerLimits } from "./limits.js";

const TICK_MS = 1_000;
/** Counts are a state: under load, one of them stands for many. */
const COUNTS_MS = 250;

export class Hub {
  readonly #tidings: Tidings;
  readonly #limits: ServerLimits;
  readonly #onDefect: (error: unknown) => void;
  readonly #byUser = new Map<UserId, Set<Connection>>();
  /** Users whose counts were sent a moment ago, and whether they have changed since. */
  readonly #counted = new Map<UserId, { changed: boolean }>();
  readonly #stopTicking: () => void;
  #size = 0;
  /** Up to where the journal has been pushed. */
  #seq = 0;
  #reading: AbortController | undefined;
  #closed = false;

  constructor(tidings: Tidings, limits: ServerLimits, onDefect: (error: unknown) => void) {
    this.#tidings = tidings;
    this.#limits = limits;
    this.#onDefect = onDefect;
    const tickMs = Math.min(TICK_MS, limits.pingMs, limits.pongMs);
    this.#stopTicking = every(tickMs, async () => {
      for (const connection of this.#connections()) connection.tick();
    });
  }

  get size(): number {
    return this.#size;
  }

  sizeOf(user_id: UserId): number {
    return this.#byUser.get(user_id)?.size ?? 0;
  }

  *#connections(): Generator<Connection> {
    for (const connections of this.#byUser.values()) yield* connections;
  }

  /** Takes a client in: it hears of everything from now on, and is told what waits already. */
  async add(connection: Connection): Promise<void> {
    if (this.#closed) {
      connection.close(CLOSE.goingAway, "the server is going away");
      return;
    }
    const { user_id } = connection.caller;
    const connections = this.#byUser.get(user_id) ?? new Set();
    this.#byUser.set(user_id, connections.add(connection));
    this.#size += 1;
    connection.onClose(() => this.#remove(connection));
    this.#read();
    try {
      const inbox = await connection.caller.as(user_id).inbox(this.#limits.itemsAtConnect);
      await connection.welcome(inbox, this.#tidings.journal_id);
    } catch (error) {
      this.#onDefect(error);
      connection.close(CLOSE.internal, "an error of the server itself");
    }
  }

  #remove(connection: Connection): void {
    const connections = this.#byUser.get(connection.caller.user_id);
    if (connections?.delete(connection) !== true) return;
    this.#size -= 1;
    if (connections.size === 0) this.#byUser.delete(connection.caller.user_id);
    if (this.#size > 0) return;
    this.#reading?.abort();
    this.#reading = undefined;
  }

  /** Reads the journal for as long as somebody is connected. */
  #read(): void {
    if (this.#reading !== undefined) return;
    const reading = new AbortController();
    this.#reading = reading;
    this.#follow(reading.signal).catch((error: unknown) => {
      if (reading.signal.aborted) return;
      this.#onDefect(error);
      if (this.#reading === reading) this.#reading = undefined;
      // They connect again and are told what they have missed.
      for (const connection of this.#connections()) connection.close(CLOSE.internal, "an error of the server itself");
    });
  }

  async #follow(signal: AbortSignal): Promise<void> {
    const { journal_id } = this.#tidings;
    for await (const batch of this.#tidings.feed((user_id) => this.#byUser.has(user_id), signal)) {
      const changed = new Set<UserId>();
      for (const push of batch.pushes) {
        changed.add(push.user_id);
        const frame = new PushFrame(push, journal_id);
        for (const connection of this.#byUser.get(push.user_id) ?? []) {
          if (connection.caller.user_id !== push.notification.user_id)
            throw new AssertionError("a push was about to go to another user");
          connection.push(frame);
        }
      }
      this.#seq = batch.seq;
      for (const token_id of batch.revoked)
        for (const connection of this.#connections())
          if (connection.caller.token_id === token_id) connection.close(CLOSE.policy, "the token was revoked");
      for (const user_id of changed) this.#count(user_id);
    }
  }

  /** Sends a user's counts, at once if none were sent a moment ago. */
  #count(user_id: UserId): void {
    const counted = this.#counted.get(user_id);
    if (counted !== undefined) {
      counted.changed = true;
      return;
    }
    const state = { changed: false };
    this.#counted.set(user_id, state);
    later(COUNTS_MS, () => {
      this.#counted.delete(user_id);
      if (state.changed && !this.#closed) this.#count(user_id);
    });
    this.#sendCounts(user_id).catch((error: unknown) => {
      if (!this.#closed) this.#onDefect(error);
    });
  }

  async #sendCounts(user_id: UserId): Promise<void> {
    const seq = this.#seq;
    const connections = this.#byUser.get(user_id);
    if (connections === undefined) return;
    const frame = countsFrame(await this.#tidings.counts(user_id), seq, this.#tidings.journal_id);
    for (const connection of connections) connection.counts(frame);
  }

  close(): void {
    this.#closed = true;
    this.#stopTicking();
    this.#reading?.abort();
    for (const connection of this.#connections()) connection.close(CLOSE.goingAway, "the server is going away");
  }
}
