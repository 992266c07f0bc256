/** Every open connection, by user; one reading of the journal for all of them. */
import { AssertionError } from "../domain/errors.js";
import type { UserId } from "../domain/ids.js";
import { every, later } from "../platform/timers.js";
import type { Progress } from "../runtime/setting.js";
import type { ShownBatch, Tidings } from "../tidings.js";
import { type Audience, CLOSE, type Connection } from "./connection.js";
import { countsFrame, PushFrame, progressFrame } from "./frames.js";
import type { ServerLimits } from "./limits.js";

const TICK_MS = 1_000;
/** Counts are a state: under load, one of them stands for many. */
const COUNTS_MS = 250;
/** Pieces of answers that wait for the journal to be pushed up to where they belong; what is more is dropped. */
const PROGRESS_MAX = 1_000;

export class Hub implements Audience {
  readonly #tidings: Tidings;
  readonly #limits: ServerLimits;
  readonly #onDefect: (error: unknown) => void;
  readonly #byUser = new Map<UserId, Set<Connection>>();
  /** Those of them who follow conversations. */
  readonly #followers = new Map<UserId, Set<Connection>>();
  /** Users whose counts were sent a moment ago, and whether they have changed since. */
  readonly #counted = new Map<UserId, { changed: boolean }>();
  readonly #stopTicking: () => void;
  readonly #stopListening: () => void;
  /** Who waits until the journal has been pushed up to somewhere. */
  #awaiting: { readonly seq: number; readonly resolve: () => void }[] = [];
  #progressing: Promise<void> = Promise.resolve();
  #progresses = 0;
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
    this.#stopListening = tidings.onProgress((progress) => {
      if (progress.type === "text") this.#progress(progress);
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
    this.#unfollow(connection);
    if (this.#size > 0) return;
    this.#reading?.abort();
    this.#reading = undefined;
    this.#wake(Number.POSITIVE_INFINITY);
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
      this.#wake(Number.POSITIVE_INFINITY);
      // They connect again and are told what they have missed.
      for (const connection of this.#connections()) connection.close(CLOSE.internal, "an error of the server itself");
    });
  }

  async #follow(signal: AbortSignal): Promise<void> {
    const wants = (user_id: UserId) => this.#byUser.has(user_id);
    for await (const batch of this.#tidings.feed(wants, signal, (user_id) => this.#followers.has(user_id))) {
      this.#push(batch);
      this.#seq = batch.seq;
      this.#wake(batch.seq);
      for (const token_id of batch.revoked)
        for (const connection of this.#connections())
          if (connection.caller.token_id === token_id) connection.close(CLOSE.policy, "the token was revoked");
      for (const user_id of new Set(batch.pushes.map((push) => push.user_id))) this.#count(user_id);
    }
  }

  viewed(connection: Connection): void {
    const { user_id } = connection.caller;
    if (!connection.followsConversations) this.#unfollow(connection);
    else if (this.#byUser.get(user_id)?.has(connection) === true)
      this.#followers.set(user_id, (this.#followers.get(user_id) ?? new Set()).add(connection));
  }

  #unfollow(connection: Connection): void {
    const { user_id } = connection.caller;
    const followers = this.#followers.get(user_id);
    if (followers?.delete(connection) === true && followers.size === 0) this.#followers.delete(user_id);
  }

  /** In the order of the journal. */
  #push({ pushes, conversations }: ShownBatch): void {
    const { journal_id } = this.#tidings;
    let next = 0;
    const upTo = (seq: number) => {
      for (let push = conversations[next]; push !== undefined && push.seq < seq; push = conversations[next]) {
        const frame = PushFrame.ofThread(push, journal_id);
        for (const connection of this.#followers.get(push.user_id) ?? [])
          connection.pushOfThread(frame, push.observation);
        next += 1;
      }
    };
    for (const push of pushes) {
      upTo(push.seq);
      const frame = PushFrame.ofNotification(push, journal_id);
      for (const connection of this.#byUser.get(push.user_id) ?? []) {
        if (connection.caller.user_id !== push.notification.user_id)
          throw new AssertionError("a push was about to go to another user");
        connection.push(frame);
      }
    }
    upTo(Number.POSITIVE_INFINITY);
  }

  /** Resolves when all that is committed now was pushed to those who are connected. */
  async pushed(): Promise<void> {
    await this.#reached(await this.#tidings.lastSeq());
  }

  #reached(seq: number): Promise<void> | undefined {
    if (this.#seq >= seq || this.#reading === undefined) return undefined;
    return new Promise((resolve) => this.#awaiting.push({ seq, resolve }));
  }

  #wake(upTo: number): void {
    if (this.#awaiting.length === 0) return;
    const awaiting = this.#awaiting;
    this.#awaiting = awaiting.filter(({ seq }) => seq > upTo);
    for (const { seq, resolve } of awaiting) if (seq <= upTo) resolve();
  }

  /** A piece of an answer, after all that was journaled before it. */
  #progress(progress: Progress & { readonly type: "text" }): void {
    const { user_id } = progress;
    if (this.#progresses >= PROGRESS_MAX || !this.#followers.has(user_id)) return;
    this.#progresses += 1;
    // It fails where the store has been closed meanwhile.
    const before = this.#tidings.lastSeq().catch(() => 0);
    this.#progressing = this.#progressing.then(async () => {
      await this.#reached(await before);
      this.#progresses -= 1;
      const frame = progressFrame(progress);
      for (const connection of this.#followers.get(user_id) ?? []) connection.pushDroppable(frame);
    });
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
    this.#stopListening();
    this.#reading?.abort();
    this.#wake(Number.POSITIVE_INFINITY);
    for (const connection of this.#connections()) connection.close(CLOSE.goingAway, "the server is going away");
  }
}
