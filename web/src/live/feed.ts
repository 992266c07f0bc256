/** A list that stays true: pages as they are asked for, and on top of them what changes. Nothing is missed or doubled. */
import { useEffect, useMemo, useSyncExternalStore } from "react";
import type { NotificationView, TidingsClient } from "tidings/client";
import { useClient, useWhenBack } from "../session/session.js";
import { changesOf } from "./changes.js";
import { type Filter, type Row, Rows, rowOf } from "./rows.js";

export interface Listed {
  readonly rows: readonly Row[];
  /** Until the first page is there. */
  readonly isLoading: boolean;
  /** There are older ones than those that were read. */
  readonly hasMore: boolean;
  readonly error: Error | null;
}

const PAGE = 300;
const SHOWN_MS = 250;
const EMPTY: Listed = { rows: [], isLoading: true, hasMore: true, error: null };

export class Feed {
  readonly #client: TidingsClient;
  readonly #filter: Filter;
  readonly #scope: string | undefined;
  readonly #listeners = new Set<() => void>();
  #rows = new Rows();
  /** Undefined before the first page. */
  #next: string | null | undefined;
  #reading: Promise<void> | undefined;
  /** What has changed while a page was read: the page may have an earlier form of it. */
  #heard: Row[] = [];
  /** While all of it is read: when it was shown last how far that is. */
  #shownAt: number | undefined;
  /** Which reading counts: an answer to an earlier one does not. */
  #round = 0;
  #listed: Listed = EMPTY;

  /** `scope`: as which user; without one, all that the token may see. */
  constructor(client: TidingsClient, filter: Filter, scope: string | undefined) {
    this.#client = client;
    this.#filter = filter;
    this.#scope = scope;
  }

  readonly listed = (): Listed => this.#listed;

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => {
      this.#listeners.delete(listener);
    };
  };

  /** Keeps it true from now on; returns the function that ends that. */
  open(): () => void {
    const { begun, stop } = changesOf(this.#client, this.#scope).hear({
      changed: (notifications) => this.#put(notifications),
      reset: () => this.reload(),
    });
    void begun.then(() => this.reload());
    return () => {
      this.#round += 1;
      stop();
    };
  }

  /** From the newest on; what is shown stays until that is there. */
  readonly reload = (): void => {
    this.#round += 1;
    this.#next = undefined;
    this.#reading = undefined;
    this.more();
  };

  /** The next page, if there is one and nobody has asked for it yet. */
  readonly more = (): void => {
    if (this.#next === null || this.#reading !== undefined) return;
    const reading = this.#read(this.#round).finally(() => {
      if (this.#reading === reading) this.#reading = undefined;
    });
    this.#reading = reading;
  };

  /** All that there is, page after page, until it is there or not wanted any more. Answers whether it is there. */
  readonly readAll = async (signal: AbortSignal): Promise<boolean> => {
    const round = this.#round;
    this.#shownAt = 0;
    while (this.#next !== null && !signal.aborted && round === this.#round && this.#listed.error === null) {
      this.more();
      await this.#reading;
    }
    this.#shownAt = undefined;
    if (round === this.#round && this.#next !== undefined && this.#listed.error === null) this.#say(null);
    return this.#next === null && !signal.aborted && round === this.#round;
  };

  async #read(round: number): Promise<void> {
    const isFirst = this.#next === undefined;
    const after = this.#next ?? undefined;
    this.#heard = [];
    try {
      const page = await this.#client.call("notification/list", { ...this.#filter, limit: PAGE, after });
      if (round !== this.#round) return;
      if (isFirst) this.#rows = new Rows();
      this.#rows.put(page.notifications.map(rowOf), this.#filter);
      this.#rows.put(this.#heard, this.#filter);
      this.#next = page.next;
      this.#sayPage();
    } catch (error) {
      if (round === this.#round) this.#say(error instanceof Error ? error : new Error(String(error)));
    }
  }

  #put(notifications: readonly NotificationView[]): void {
    const rows = notifications.map(rowOf);
    if (this.#reading !== undefined) this.#heard.push(...rows);
    if (this.#rows.put(rows, this.#filter) && this.#next !== undefined) this.#say(null);
  }

  /** Of hundreds of pages not each is drawn. */
  #sayPage(): void {
    if (this.#shownAt !== undefined) {
      if (performance.now() - this.#shownAt < SHOWN_MS) return;
      this.#shownAt = performance.now();
    }
    this.#say(null);
  }

  #say(error: Error | null): void {
    const isLoading = this.#next === undefined && error === null;
    this.#listed = { rows: this.#rows.sorted, isLoading, hasMore: this.#next !== null, error };
    for (const listener of this.#listeners) listener();
  }
}

export function useFeed(filter: Filter, scope: string | undefined): Listed & Pick<Feed, "more" | "readAll" | "reload"> {
  const client = useClient();
  const key = JSON.stringify(filter);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the filter is compared by what is in it
  const feed = useMemo(() => new Feed(client, filter, scope), [client, key, scope]);
  useEffect(() => feed.open(), [feed]);
  const listed = useSyncExternalStore(feed.subscribe, feed.listed);
  useWhenBack(listed.error !== null, feed.reload);
  const { more, readAll, reload } = feed;
  return { ...listed, more, readAll, reload };
}
