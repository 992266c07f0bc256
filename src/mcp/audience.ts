/**
 * Who is told of a server. Servers belong to the host, conversations to users: news goes to the threads that have used the server
 * lately, and where none has, to the operator, whose next turn takes it up. What a server says of its work may hold what somebody
 * has asked of it, and is nobody else's.
 */
import type { ThreadId, UserId } from "../domain/ids.js";
import { HOST } from "../domain/principal.js";
import type { Clock } from "../platform/clock.js";
import type { Emit } from "../runtime/events.js";
import type { Store } from "../store/contract.js";
import type { News } from "./events.js";
import { MCP_LIMITS, MCP_TIMES } from "./limits.js";

interface Place {
  readonly thread_id: ThreadId;
  readonly user_id: UserId;
}

export class Audience {
  readonly #store: Store;
  readonly #emit: Emit;
  readonly #clock: Clock;
  /** The most recent user of it last. */
  readonly #used = new Map<ThreadId, { readonly user_id: UserId; readonly at: number }>();
  /** Calls under way. */
  readonly #calling = new Map<ThreadId, number>();
  /** Who has used it last, and whether anybody else ever has. */
  #user: UserId | null = null;
  #isShared = false;
  #telling: Promise<void> = Promise.resolve();

  constructor(store: Store, emit: Emit, clock: Clock) {
    this.#store = store;
    this.#emit = emit;
    this.#clock = clock;
  }

  /** A thread calls it. The function that is returned says that the call is over. */
  calls(thread_id: ThreadId): () => void {
    this.#calling.set(thread_id, (this.#calling.get(thread_id) ?? 0) + 1);
    return () => {
      const left = (this.#calling.get(thread_id) ?? 1) - 1;
      if (left > 0) this.#calling.set(thread_id, left);
      else this.#calling.delete(thread_id);
    };
  }

  /** Whether more than one user has used it. */
  get isShared(): boolean {
    return this.#isShared;
  }

  used(thread_id: ThreadId, user_id: UserId): void {
    if (this.#user !== null && this.#user !== user_id) this.#isShared = true;
    this.#user = user_id;
    this.#used.delete(thread_id);
    this.#used.set(thread_id, { user_id, at: this.#clock.monotonic() });
    const [oldest] = this.#used.keys();
    if (this.#used.size > MCP_LIMITS.threadsTold && oldest !== undefined) this.#used.delete(oldest);
  }

  /** In the order in which it is called. Resolves when it is on disk; never rejects: it may be too late. */
  tell(news: News): Promise<void> {
    return this.#emitTo(news, () => this.#threads());
  }

  /** To the thread that alone has a call under way, if nobody else has ever used the server; else to the operator. */
  tellCaller(news: News): Promise<void> {
    const [caller, ...others] = this.#calling.keys();
    const alone = others.length === 0 && !this.#isShared ? caller : undefined;
    return this.#emitTo(news, async () => (await this.#threads()).filter(({ thread_id }) => thread_id === alone));
  }

  #emitTo(news: News, whom: () => Promise<readonly Place[]>): Promise<void> {
    this.#telling = this.#telling.then(async () => {
      try {
        const threads = await whom();
        if (threads.length === 0) await this.#emit(news);
        for (const one of threads) await this.#emit({ ...news, ...one });
      } catch {
        // The plane is closed, or has failed: whoever has opened it is told so.
      }
    });
    return this.#telling;
  }

  async #threads(): Promise<Place[]> {
    const since = this.#clock.monotonic() - MCP_TIMES.usedWithinMs;
    const open: Place[] = [];
    for (const [thread_id, { user_id, at }] of [...this.#used]) {
      const thread = at < since ? null : await this.#store.thread(HOST, thread_id).catch(() => null);
      if (thread?.state === "open") open.push({ thread_id, user_id });
      else this.#used.delete(thread_id);
    }
    return open;
  }
}
