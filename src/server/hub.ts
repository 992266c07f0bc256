/** Every open connection, by user; one reading of the journal for all of them. */
import type { Pace } from "../delivery/feed.js";
import { AssertionError, ConflictError } from "../domain/errors.js";
import type { UserId } from "../domain/ids.js";
import { every, later } from "../platform/timers.js";
import type { Turns } from "../platform/turns.js";
import type { Progress } from "../runtime/setting.js";
import type { ShownBatch, Tidings } from "../tidings.js";
import type { Audience, Connection, Widened } from "./connection.js";
import { type Cursor, isAfter } from "./cursor.js";
import { type Bounds, countsFrame, framesOf, progressFrame } from "./frames.js";
import type { ServerLimits } from "./limits.js";
import type { Resumption } from "./method.js";
import type { Metrics } from "./metrics.js";
import type { ResetReason } from "./notifications.js";
import { CLOSE } from "./transport.js";
import { wants, wantsAnyPush } from "./view.js";

const TICK_MS = 1_000;
/** Counts are a state: under load, one of them stands for many. */
const COUNTS_MS = 250;
/** Pieces of answers that wait for the journal to be pushed up to where they belong; what is more is dropped. */
const PROGRESS_MAX = 1_000;

export interface HubParts {
  readonly tidings: Tidings;
  readonly limits: ServerLimits;
  readonly onDefect: (error: unknown) => void;
  readonly metrics: Metrics;
  readonly turns: Turns;
}

/** It has gone away, so that nothing more is read for it. */
class GoneError extends Error {}

export class Hub implements Audience {
  readonly #tidings: Tidings;
  readonly #limits: ServerLimits;
  readonly #onDefect: (error: unknown) => void;
  readonly #metrics: Metrics;
  readonly #turns: Turns;
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
  /** Clients that are being told what they have missed. */
  #resuming = 0;
  /** Up to where the journal has been pushed. */
  #seq = 0;
  #reading: AbortController | undefined;
  #closed = false;

  constructor({ tidings, limits, onDefect, metrics, turns }: HubParts) {
    this.#tidings = tidings;
    this.#limits = limits;
    this.#onDefect = onDefect;
    this.#metrics = metrics;
    this.#turns = turns;
    const tickMs = Math.min(TICK_MS, limits.pingMs, limits.pongMs, limits.heartbeatMs);
    this.#stopTicking = every(tickMs, async () => {
      for (const connection of this.#connections()) connection.tick(tidings.journal_id, this.#seq);
    });
    this.#stopListening = tidings.onProgress((progress) => {
      if (progress.type === "text") this.#progress(progress);
    });
  }

  get size(): number {
    return this.#size;
  }

  get resuming(): number {
    return this.#resuming;
  }

  sizeOf(user_id: UserId): number {
    return this.#byUser.get(user_id)?.size ?? 0;
  }

  /** Bytes that wait for the client that is furthest behind. */
  get mostWaiting(): number {
    let most = 0;
    for (const { outlet } of this.#connections()) most = Math.max(most, outlet.waiting);
    return most;
  }

  *#connections(): Generator<Connection> {
    for (const connections of this.#byUser.values()) yield* connections;
  }

  /**
   * Takes a client in: it hears of everything from now on, and is told first what has happened since the cursor that it
   * comes with, or, without one that is any good, what waits already.
   */
  async add(connection: Connection, cursor: Cursor | null = null): Promise<void> {
    if (this.#closed) {
      connection.close(CLOSE.goingAway, "the server is going away");
      return;
    }
    const { user_id } = connection.caller;
    const connections = this.#byUser.get(user_id) ?? new Set();
    this.#byUser.set(user_id, connections.add(connection));
    this.#size += 1;
    this.viewed(connection);
    this.#read();
    try {
      const resumption = cursor === null ? null : await this.canResume(cursor);
      if (cursor !== null && resumption?.reset === null) {
        await this.resume(connection, cursor);
        return;
      }
      if (resumption !== null && resumption.reset !== null) connection.reset(resumption.reset, resumption);
      const { items, counts, seq } = await connection.caller.as(user_id).inbox(this.#limits.itemsAtConnect);
      // After a reset everything is told that comes after its `newest_seq`, also what has come since.
      const upTo = resumption?.newest_seq ?? seq;
      const waiting = { items: items.filter((item) => item.seq <= upTo), counts, seq: upTo };
      await connection.welcome(waiting, this.#tidings.journal_id);
    } catch (error) {
      this.#onDefect(error);
      connection.close(CLOSE.internal, "an error of the server itself");
    }
  }

  left(connection: Connection): void {
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
      if (this.#reading === reading) this.#reading = undefined;
      this.#wake(Number.POSITIVE_INFINITY);
      if (isTooOld(error)) {
        void this.#startAnew();
        return;
      }
      this.#onDefect(error);
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

  shed(): void {
    this.#metrics.shed.add();
  }

  slow(): void {
    this.#metrics.slow.add();
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
  #push(batch: ShownBatch): void {
    for (const { user_id, frame } of framesOf(batch, this.#tidings.journal_id))
      for (const connection of this.#byUser.get(user_id as UserId) ?? []) {
        mustBeFor(connection, user_id);
        connection.push(frame);
      }
  }

  /** Retention went faster than the reading: everybody is told that something may be missing, and reads anew. */
  async #startAnew(): Promise<void> {
    for (const connection of this.#connections()) {
      if (connection.outlet.isLevel) connection.catchUp(null);
      // It is being told something else from the journal, which would have to fit.
      else connection.close(CLOSE.internal, "retention has removed what was about to be told; connect again");
      connection.outlet.hold();
    }
    const behind = [...this.#connections()];
    if (this.#size > 0) this.#read();
    try {
      const bounds = await this.#bounds();
      for (const connection of behind) resetTo(connection, "cursor_too_old", bounds);
    } catch (error) {
      if (!this.#closed) this.#onDefect(error);
    }
  }

  async #bounds(): Promise<Bounds> {
    const { floor_seq, last_seq } = await this.#tidings.facts();
    return { journal_id: this.#tidings.journal_id, oldest_seq: floor_seq, newest_seq: last_seq };
  }

  async canResume({ journal_id, after_seq, after_part }: Cursor): Promise<Resumption> {
    const bounds = await this.#bounds();
    const first = after_part === undefined ? after_seq + 1 : after_seq;
    const reset =
      journal_id !== bounds.journal_id
        ? "other_journal"
        : after_seq > bounds.newest_seq
          ? "cursor_ahead"
          : first < bounds.oldest_seq
            ? "cursor_too_old"
            : null;
    return { ...bounds, reset };
  }

  /**
   * From the journal, at the pace of the client, and in slices: others who are served, or resume too, have theirs
   * between. What comes meanwhile is kept only for the last piece of the way.
   */
  async resume(connection: Connection, cursor: Cursor, widened?: Widened): Promise<void> {
    connection.catchUp(cursor);
    this.#resuming += 1;
    try {
      await this.#tellMissed(connection, cursor, widened);
    } catch (error) {
      if (error instanceof GoneError) return;
      if (!isTooOld(error)) throw error;
      await this.#cutOff(connection, "cursor_too_old");
    } finally {
      this.#resuming -= 1;
    }
  }

  async #tellMissed(connection: Connection, cursor: Cursor, widened?: Widened): Promise<void> {
    const { user_id } = connection.caller;
    const { journal_id } = this.#tidings;
    const since = widened?.since ?? cursor;
    const missed = this.#tidings.replay(user_id, await this.#missedFrom(connection, since), {
      conversations: connection.followsConversations,
      pace: this.#paceFor(connection),
    });
    let holds = false;
    for await (const batch of missed) {
      this.#metrics.replayed.add({}, batch.entries.length);
      for (const { user_id: whose, frame } of framesOf(batch, journal_id)) {
        mustBeFor(connection, whose);
        if (!isAfter(frame, since) || !connection.wants(frame)) continue;
        if (isAfter(frame, cursor)) await connection.outlet.older(frame);
        // What was told already stands after it.
        else if (widened !== undefined && !wants(widened.before, frame)) {
          await this.#cutOff(connection, "view_widened");
          return;
        }
        if (connection.outlet.isClosing) return;
      }
      if (!batch.end) continue;
      if (holds) {
        connection.caughtUp(batch.seq);
        const counts = await this.#tidings.counts(user_id);
        connection.counts(countsFrame(counts, batch.seq, journal_id));
        return;
      }
      connection.outlet.hold();
      holds = true;
    }
  }

  /** A client that wants nothing of what the journal has to tell is not read for. */
  async #missedFrom(connection: Connection, since: Cursor): Promise<number> {
    if (!wantsAnyPush(connection.view)) return this.#tidings.lastSeq();
    return since.after_part === undefined ? since.after_seq : Math.max(0, since.after_seq - 1);
  }

  #paceFor({ outlet }: Connection): Pace {
    const turn = this.#turns.enter();
    return () => {
      if (outlet.isClosing) throw new GoneError();
      return turn.step();
    };
  }

  /** It cannot be told what it has missed. */
  async #cutOff(connection: Connection, reason: ResetReason): Promise<void> {
    connection.outlet.hold();
    resetTo(connection, reason, await this.#bounds());
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
    if (!this.#followers.has(user_id)) return;
    if (this.#progresses >= PROGRESS_MAX) {
      this.shed();
      return;
    }
    this.#progresses += 1;
    // It fails where the store has been closed meanwhile.
    const before = this.#tidings.lastSeq().catch(() => 0);
    this.#progressing = this.#progressing.then(async () => {
      const after_seq = await before;
      await this.#reached(after_seq);
      this.#progresses -= 1;
      const frame = progressFrame(progress, after_seq);
      for (const connection of this.#followers.get(user_id) ?? []) connection.progress(frame);
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

  /** Takes nobody in any more, and ends each client when its calls are answered. Resolves when all are. */
  async drain(): Promise<void> {
    this.#closed = true;
    await Promise.all([...this.#connections()].map((connection) => connection.drain()));
  }

  /** Whoever is still there is ended as they are. */
  close(): void {
    this.#closed = true;
    this.#stopTicking();
    this.#stopListening();
    this.#reading?.abort();
    this.#wake(Number.POSITIVE_INFINITY);
    for (const connection of this.#connections()) connection.close(CLOSE.goingAway, "the server is going away");
  }
}

function isTooOld(error: unknown): boolean {
  return error instanceof ConflictError && error.reason === "cursor_too_old";
}

function resetTo(connection: Connection, reason: ResetReason, bounds: Bounds): void {
  connection.reset(reason, bounds);
  connection.caughtUp(bounds.newest_seq);
}

function mustBeFor(connection: Connection, user_id: string): void {
  if (connection.caller.user_id !== user_id) throw new AssertionError("a push was about to go to another user");
}
