/** Looks at what waits for agents, after each commit and when its time comes, and does what is to be done about it. */
import { ConflictError } from "../domain/errors.js";
import type { NotificationId, ThreadId, UserId } from "../domain/ids.js";
import { HOST } from "../domain/principal.js";
import { later } from "../platform/timers.js";
import type { Store, Waiting } from "../store/contract.js";
import { isClosed, Rests, retryRest } from "./rests.js";
import type { ThreadRunner, Woken } from "./runner.js";
import { tellTheUser } from "./tell.js";
import { decide } from "./wake.js";

const THREADS_LOOKED_AT = 50;

export class Waker {
  readonly #store: Store;
  readonly #runnerOf: (thread_id: ThreadId, user_id: UserId) => ThreadRunner;
  readonly #broke: (error: unknown) => void;
  readonly #agentRests: () => boolean;
  readonly #dirty = new Set<UserId>();
  readonly #rests = new Rests();
  /** Errors in a row, by the user who was looked at. */
  readonly #errors = new Map<UserId, number>();
  readonly #timers = new Map<UserId, { readonly at: number; readonly stop: () => void }>();
  #looking: Promise<void> | null = null;
  #stopped = false;

  constructor(
    store: Store,
    runnerOf: (thread_id: ThreadId, user_id: UserId) => ThreadRunner,
    broke: (error: unknown) => void,
    agentRests: () => boolean,
  ) {
    this.#store = store;
    this.#runnerOf = runnerOf;
    this.#broke = broke;
    this.#agentRests = agentRests;
  }

  /** All that waits, whoever it is for. */
  async lookAtAll(): Promise<void> {
    for (const { user_id } of await this.#store.waiting(HOST, null)) this.#dirty.add(user_id);
    this.#start();
  }

  /** Something of the user's was written. */
  committed(user_id: UserId): void {
    this.#rests.changed(user_id);
    this.look(user_id);
  }

  look(user_id: UserId): void {
    if (this.#stopped) return;
    this.#dirty.add(user_id);
    this.#start();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    for (const { stop } of this.#timers.values()) stop();
    this.#timers.clear();
    await this.#looking;
  }

  #start(): void {
    if (this.#looking !== null || this.#stopped) return;
    this.#looking = this.#run().finally(() => {
      this.#looking = null;
      if (this.#dirty.size > 0) this.#start();
    });
  }

  async #run(): Promise<void> {
    for (const user_id of this.#dirty) {
      if (this.#stopped) return;
      this.#dirty.delete(user_id);
      try {
        await this.#lookAt(user_id);
        this.#errors.delete(user_id);
      } catch (error) {
        this.#failed(user_id, error);
      }
    }
  }

  /** Nobody else is kept waiting by it, and it is tried again. A store that is closed has nobody to look at. */
  #failed(user_id: UserId, error: unknown): void {
    if (isClosed(error)) return;
    const errors = (this.#errors.get(user_id) ?? 0) + 1;
    this.#errors.set(user_id, errors);
    this.#lookLater(user_id, this.#store.now() + retryRest(errors));
    this.#broke(error);
  }

  async #lookAt(user_id: UserId): Promise<void> {
    const waiting = await this.#store.waiting(HOST, user_id);
    const errors: unknown[] = [];
    for (const [thread_id, items] of await this.#byThread(user_id, waiting))
      await this.#act(thread_id, user_id, items).catch((error: unknown) => errors.push(error));
    // The other threads had their turn.
    if (errors.length > 0) throw errors[0];
  }

  async #byThread(user_id: UserId, waiting: readonly Waiting[]): Promise<Map<ThreadId, Waiting[]>> {
    const groups = new Map<ThreadId, Waiting[]>();
    let home: ThreadId | undefined;
    for (const item of waiting) {
      if (item.thread_id === null) home ??= await this.#homeOf(user_id);
      const thread_id = item.thread_id ?? home;
      if (thread_id === undefined) continue;
      const group = groups.get(thread_id);
      if (group === undefined) groups.set(thread_id, [item]);
      else group.push(item);
    }
    return groups;
  }

  /** Where the user was last; a new thread for one who is nowhere. */
  async #homeOf(user_id: UserId): Promise<ThreadId> {
    const threads = await this.#store.threadsOf(HOST, user_id, null, THREADS_LOOKED_AT);
    const home = threads.find(({ state, paused_at }) => state === "open" && paused_at === null);
    return (home ?? (await this.#store.startThread(HOST, user_id, null))).id;
  }

  async #act(thread_id: ThreadId, user_id: UserId, items: readonly Waiting[]): Promise<void> {
    const thread = await this.#store.thread(HOST, thread_id);
    if (thread.state !== "open") return;
    const runner = this.#runnerOf(thread_id, user_id);
    const now = this.#store.now();
    const { activity, storm } = runner;
    const paused = thread.paused_at !== null || this.#agentRests();
    const decision = decide(items, { activity, paused, storm: storm.rages(now), now });
    switch (decision.do) {
      case "nothing":
        return;
      case "look":
        return this.#lookLater(user_id, decision.at);
      case "escalate":
        return this.#escalate(thread_id, user_id, decision);
      case "force":
      case "wake": {
        const until = this.#rests.until(thread_id, now);
        if (until !== null) return this.#lookLater(user_id, until);
        const woken = await (decision.do === "force" ? runner.force() : runner.wake());
        this.#restAfter(woken, thread_id, user_id);
      }
    }
  }

  #restAfter(woken: Woken, thread_id: ThreadId, user_id: UserId): void {
    if (woken === "refused") this.#lookLater(user_id, this.#rests.refused(thread_id, user_id, this.#store.now()));
    else this.#rests.woken(thread_id);
  }

  #lookLater(user_id: UserId, at: number): void {
    if (this.#stopped) return;
    const timer = this.#timers.get(user_id);
    if (timer !== undefined && timer.at <= at) return;
    timer?.stop();
    const look = () => {
      this.#timers.delete(user_id);
      this.look(user_id);
    };
    // An agent is about to be woken: a program that has nothing else to do waits for it.
    const stop = later(Math.max(1, at - this.#store.now()), look, true);
    this.#timers.set(user_id, { at, stop });
  }

  async #escalate(
    thread_id: ThreadId,
    user_id: UserId,
    {
      ids,
      shown,
      reason,
    }: { ids: readonly NotificationId[]; shown: readonly NotificationId[]; reason: "paused" | "storm" },
  ): Promise<void> {
    await Promise.all([
      this.#store.commandMany(
        HOST,
        ids.map((id) => ({ id, operation: "escalate", command: { column: "escalate", reason } })),
      ),
      ...shown.map((id) => this.#show(thread_id, user_id, id)),
    ]);
  }

  /** What can only be told to an agent, and must be known now: the user gets its words, and the agent is not told. */
  async #show(thread_id: ThreadId, user_id: UserId, id: NotificationId): Promise<void> {
    const stored = await this.#store.get(HOST, id);
    if (stored === undefined || stored.delivery.state !== "PENDING") return;
    const { kind, severity, content } = stored.notification;
    const key = `shown:${id}:${stored.delivery.revision}`;
    const note = "its thread was paused; its words were shown to the user";
    try {
      await tellTheUser(this.#store, { user_id, thread_id, kind, severity, content, key });
      await this.#store.commandMany(HOST, [
        { id, operation: "suppress", command: { column: "suppress", reason: "superseded", note } },
      ]);
    } catch (error) {
      if (!(error instanceof ConflictError)) throw error;
    }
  }
}
