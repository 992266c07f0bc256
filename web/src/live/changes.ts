/**
 * What changes in the ledger, also what nobody is pushed: asked for by a call that waits at the server until there is
 * something. One for all who want it.
 */
import type { NotificationView, TidingsClient } from "tidings/client";

interface Hearer {
  /** As they are now. */
  changed(notifications: readonly NotificationView[]): void;
  /** Something may be missing: what is shown has to be read anew. */
  reset(): void;
}

const WAIT_MS = 20_000;
const LIMIT = 500;
/** A burst comes in few pieces rather than one by one. */
const PACE_MS = 200;
const RETRY_MS = 2_000;
/** Whoever comes back at once finds it running. */
const LINGER_MS = 1_000;

export class Changes {
  readonly #client: TidingsClient;
  readonly #user_id: string | undefined;
  readonly #hearers = new Set<Hearer>();
  #running: AbortController | undefined;
  #begun: Promise<void> = Promise.resolve();
  #linger: ReturnType<typeof setTimeout> | undefined;

  constructor(client: TidingsClient, user_id: string | undefined) {
    this.#client = client;
    this.#user_id = user_id;
  }

  /** Whoever reads after `begun` misses nothing. */
  hear(hearer: Hearer): { readonly begun: Promise<void>; readonly stop: () => void } {
    this.#hearers.add(hearer);
    clearTimeout(this.#linger);
    if (this.#running === undefined) this.#begun = this.#begin();
    const stop = () => {
      this.#hearers.delete(hearer);
      if (this.#hearers.size > 0) return;
      clearTimeout(this.#linger);
      this.#linger = setTimeout(() => this.#end(), LINGER_MS);
    };
    return { begun: this.#begun, stop };
  }

  #end(): void {
    if (this.#hearers.size > 0) return;
    this.#running?.abort();
    this.#running = undefined;
  }

  async #begin(): Promise<void> {
    const running = new AbortController();
    this.#running = running;
    const { signal } = running;
    const stopListening = this.#client.listen(({ method }) => {
      if (method === "stream/reset") for (const hearer of this.#hearers) hearer.reset();
    });
    signal.addEventListener("abort", stopListening);
    let after: string | undefined;
    while (after === undefined && !signal.aborted)
      try {
        ({ next: after } = await this.#client.call("notification/changed", this.#params(), { signal }));
      } catch {
        await pause(RETRY_MS, signal);
      }
    if (after !== undefined) void this.#follow(after, signal);
  }

  #params(): { user_id?: string } {
    return this.#user_id === undefined ? {} : { user_id: this.#user_id };
  }

  async #follow(start: string, signal: AbortSignal): Promise<void> {
    for (let after = start; !signal.aborted; )
      try {
        const asked = { ...this.#params(), after, limit: LIMIT, wait_ms: WAIT_MS };
        const { notifications, next, more, reset } = await this.#client.call("notification/changed", asked, { signal });
        after = next;
        for (const hearer of this.#hearers)
          if (reset) hearer.reset();
          else if (notifications.length > 0) hearer.changed(notifications);
        if (!more) await pause(PACE_MS, signal);
      } catch {
        // It is asked again from where it was, as often as need be.
        await pause(RETRY_MS, signal);
      }
  }
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal.addEventListener("abort", done);
  });
}

const known = new WeakMap<TidingsClient, Map<string | undefined, Changes>>();

/** Of one user; without one, of all that the token may see. */
export function changesOf(client: TidingsClient, user_id: string | undefined): Changes {
  const ofClient = known.get(client) ?? new Map<string | undefined, Changes>();
  known.set(client, ofClient);
  const changes = ofClient.get(user_id) ?? new Changes(client, user_id);
  ofClient.set(user_id, changes);
  return changes;
}
