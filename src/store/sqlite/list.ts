/**
 * Lists without scans: each filter has a source of rows, newest first, that comes from an index over what is dead, or
 * live in a thread, or from the coarse blocks of a user or thread. What the source cannot filter is filtered here, and
 * a call visits a bounded number of rows: a filter that matches little answers a short page and where to go on. Blocks
 * whose name leads to nothing come on top of that.
 */
import { CHANNELS, SYSTEM_CHANNELS } from "../../domain/axes.js";
import { InvalidInputError } from "../../domain/errors.js";
import type { ThreadId, UserId } from "../../domain/ids.js";
import { LIMITS } from "../../domain/limits.js";
import type { Principal } from "../../domain/principal.js";
import type { Severity } from "../../domain/severity.js";
import { isTerminal, type State } from "../../domain/transitions.js";
import type { Counts, ListFilter, Page } from "../contract.js";
import type { Statement } from "./connection.js";
import type { CoreBase } from "./core.js";
import type { Held } from "./ledger.js";
import { COUNT_CAP } from "./user_counts.js";
import { CHUNK, chunked, type LiveKind, ROW_COLUMNS, type UserRow } from "./user_rows.js";

const INBOX_CAP = 100;
/** Each may have to be read whole. */
const ACKNOWLEDGED_BLOCKS = 64;

/** Rows below a number, newest first. */
type Source = Generator<UserRow>;

/** A severity stands with the words, so each has to be looked up: so many by one call. */
const LOOKED_UP_MAX = 2_000;

/** What is asked for, each as the set of what is wanted. */
interface Wanted extends Omit<ListFilter, "channel" | "state" | "severity"> {
  readonly channel: ReadonlySet<string> | undefined;
  readonly state: ReadonlySet<State> | undefined;
  readonly severity: ReadonlySet<Severity> | undefined;
}

export class Lists {
  readonly #core: CoreBase;
  readonly #liveOfThread: Statement;
  readonly #dead: Statement;
  readonly #deadOfUser: Statement;
  readonly #rangeOfThread: Statement;
  readonly #all: Statement;

  constructor(core: CoreBase) {
    this.#core = core;
    const { connection } = core;
    const select = (where: string) =>
      connection.prepare(`SELECT ${ROW_COLUMNS} FROM deliveries WHERE ${where} ORDER BY number DESC LIMIT ${CHUNK}`);
    this.#liveOfThread = select("thread_id = ? AND live = 1 AND number < ?");
    this.#dead = select("state = 'FAILED' AND number < ?");
    this.#deadOfUser = select("user_id = ? AND state = 'FAILED' AND number < ?");
    this.#rangeOfThread = select("number >= ? AND thread_id = ? AND number < ?");
    this.#all = select("number < ?");
  }

  list(principal: Principal, asked: ListFilter): Page {
    const scoped = this.#scoped(principal, asked);
    if (scoped === undefined) return this.#page([], null);
    const filter = wantedOf(scoped);
    const before = cursorOf(filter.after);
    const found: Held[] = [];
    let visits = 0;
    let lookedUp = 0;
    let last = before;
    for (const row of merged(this.#sources(filter, before))) {
      if (visits >= LIMITS.listVisits || lookedUp >= LOOKED_UP_MAX) return this.#page(found, last);
      visits += 1;
      last = row.number;
      if (!matches(row, filter)) continue;
      lookedUp += 1;
      const held = this.#core.ledger.byNumber(row.number);
      if (held !== undefined && filter.severity?.has(held.notification.severity) !== false) found.push(held);
      if (found.length >= filter.limit) return this.#page(found, last);
    }
    return this.#page(found, null);
  }

  /** A user sees their own, whatever they ask for; asking for another's, or another's thread, finds nothing. */
  #scoped(principal: Principal, filter: ListFilter): ListFilter | undefined {
    if (principal.kind === "host") return filter;
    if (filter.user_id !== undefined && filter.user_id !== principal.user_id) return undefined;
    if (filter.thread_id !== undefined && this.#core.threads.get(filter.thread_id)?.user_id !== principal.user_id)
      return undefined;
    return { ...filter, user_id: principal.user_id };
  }

  #page(found: readonly Held[], last: number | null): Page {
    return {
      stored: found.map((held) => this.#core.ledger.stored(held)),
      next: last === null ? null : String(last),
      seq: this.#core.journal.refresh(),
    };
  }

  #sources(filter: Wanted, before: number): Source[] {
    const { user_id, thread_id, state, channel } = filter;
    if (filter.unread === true || filter.unacknowledged === true) {
      if (user_id === undefined)
        throw new InvalidInputError(filter.unread === true ? "unread" : "unacknowledged", "needs a user_id");
      if (filter.unacknowledged !== true) return [this.#liveOf(user_id, "unread", before)];
      return SYSTEM_CHANNELS.map((one) => this.#liveOf(user_id, one, before));
    }
    if (state?.size === 1 && state.has("FAILED"))
      return [user_id === undefined ? chunked(this.#dead, [], before) : chunked(this.#deadOfUser, [user_id], before)];
    const live = state !== undefined && ![...state].some(isTerminal);
    if (live && thread_id !== undefined) return [chunked(this.#liveOfThread, [thread_id], before)];
    if (live && user_id !== undefined)
      return CHANNELS.filter((one) => channel?.has(one) !== false).map((one) => this.#liveOf(user_id, one, before));
    if (thread_id !== undefined) return [this.#allOfThread(thread_id, before)];
    if (user_id !== undefined) return [this.#allOf(user_id, before)];
    return [chunked(this.#all, [], before)];
  }

  *#allOfThread(thread_id: ThreadId, before: number): Source {
    const newest = Math.min(before - 1, this.#core.ledger.refresh());
    for (const { from, to } of this.#core.blocks.descending("t", thread_id, newest))
      yield* chunked(this.#rangeOfThread, [from, thread_id], Math.min(before, to + 1));
  }

  *#allOf(user_id: UserId, before: number): Source {
    const { blocks, ledger, userRows } = this.#core;
    const newest = Math.min(before - 1, ledger.refresh());
    for (const range of blocks.descending("u", user_id, newest)) yield* userRows.of("all", user_id, range, before);
  }

  /** What is live on a channel, or what is shown to a user, or will be, and is not read. */
  *#liveOf(user_id: UserId, kind: LiveKind, before: number): Source {
    const { blocks, userRows, liveBlocks } = this.#core;
    for (const range of blocks.descending(kind, user_id, before - 1)) {
      let any = false;
      for (const row of userRows.of(kind, user_id, range, before)) {
        any = true;
        yield row;
      }
      if (!any && range.to < before) liveBlocks.doubt(kind, user_id, range.from);
    }
  }

  /** What was acknowledged on a channel and not read, in the newest blocks that hold anything unread. */
  *#acknowledgedOf(user_id: UserId, channel: "inbox" | "floor"): Source {
    const { blocks, userRows } = this.#core;
    let left = ACKNOWLEDGED_BLOCKS;
    for (const range of blocks.descending("unread", user_id, Number.MAX_SAFE_INTEGER)) {
      yield* userRows.of(`acknowledged ${channel}`, user_id, range);
      left -= 1;
      if (left === 0) return;
    }
  }

  /** The newest of the inbox that nobody has read, if its number is above `after`, and how many there are; capped. */
  unreadInbox(user_id: UserId, after: number): { number: number; unread: number } | null {
    const before = Number.MAX_SAFE_INTEGER;
    let newest: number | undefined;
    let unread = 0;
    for (const row of merged([this.#liveOf(user_id, "inbox", before), this.#acknowledgedOf(user_id, "inbox")])) {
      if (newest === undefined && row.number <= after) return null;
      if (row.state === "PENDING") continue;
      newest ??= row.number;
      unread += 1;
      if (unread === INBOX_CAP) break;
    }
    return newest === undefined ? null : { number: newest, unread };
  }

  /** How much of what is shown in conversations is unread, by thread; of the newest that are unread, capped. */
  unreadByThread(user_id: UserId): Map<ThreadId, number> {
    const before = Number.MAX_SAFE_INTEGER;
    const found = new Map<ThreadId, number>();
    let visits = 0;
    for (const row of merged([this.#liveOf(user_id, "floor", before), this.#acknowledgedOf(user_id, "floor")])) {
      visits += 1;
      if (visits > COUNT_CAP) break;
      if (row.state === "PENDING" || row.thread_id === null) continue;
      found.set(row.thread_id, (found.get(row.thread_id) ?? 0) + 1);
    }
    return found;
  }

  counts(principal: Principal, user_id: UserId): Counts {
    if (principal.kind === "user" && principal.user_id !== user_id)
      return { unacknowledged: 0, unread: 0, cap: COUNT_CAP };
    return this.#core.userCounts.of(user_id);
  }
}

function wantedOf({ channel, state, severity, ...rest }: ListFilter): Wanted {
  return { ...rest, channel: setOf(channel), state: setOf(state), severity: setOf(severity) };
}

function setOf<Word extends string>(words: Word | readonly Word[] | undefined): ReadonlySet<Word> | undefined {
  return words === undefined ? undefined : new Set(typeof words === "string" ? [words] : words);
}

function matches(row: UserRow, filter: Wanted): boolean {
  return (
    (filter.user_id === undefined || row.user_id === filter.user_id) &&
    (filter.thread_id === undefined || row.thread_id === filter.thread_id) &&
    filter.channel?.has(row.channel) !== false &&
    filter.state?.has(row.state) !== false &&
    // What is open is not shown yet.
    !((filter.unacknowledged === true || filter.unread === true) && row.state === "PENDING")
  );
}

function cursorOf(after: string | undefined): number {
  if (after === undefined) return Number.MAX_SAFE_INTEGER;
  if (!/^[0-9]{1,15}$/.test(after)) throw new InvalidInputError("after", "must be the `next` of an earlier page");
  return Number(after);
}

/** Several sources as one, newest first; their rows are distinct. */
function* merged(sources: readonly Source[]): Source {
  const [only, ...others] = sources;
  if (only !== undefined && others.length === 0) {
    yield* only;
    return;
  }
  const heads = sources.map((source) => ({ source, head: source.next() }));
  for (;;) {
    let newest: (typeof heads)[number] | undefined;
    for (const one of heads) {
      if (one.head.done) continue;
      if (newest === undefined || newest.head.done || one.head.value.number > newest.head.value.number) newest = one;
    }
    if (newest === undefined || newest.head.done) return;
    yield newest.head.value;
    newest.head = newest.source.next();
  }
}
