/**
 * Lists without scans: each filter has a source of rows, newest first, that comes from an index over what is dead, or
 * live in a thread, or from the coarse blocks of a user or thread. What the source cannot filter is filtered here, and
 * a call visits a bounded number of rows: a filter that matches little answers a short page and where to go on.
 */
import { CHANNELS, type Channel, SYSTEM_CHANNELS } from "../../domain/axes.js";
import { InvalidInputError } from "../../domain/errors.js";
import type { ThreadId, UserId } from "../../domain/ids.js";
import { LIMITS } from "../../domain/limits.js";
import type { Principal } from "../../domain/principal.js";
import type { Severity } from "../../domain/severity.js";
import { isTerminal, type State } from "../../domain/transitions.js";
import type { Counts, ListFilter, Page } from "../contract.js";
import type { Range } from "./blocks.js";
import type { Statement } from "./connection.js";
import type { CoreBase } from "./core.js";
import type { Held } from "./ledger.js";
import type { LiveKind } from "./live_blocks.js";
import { COUNT_CAP } from "./user_counts.js";

/** Rows asked for at a time. Part of the statements, since SQLite plans anew whenever a `LIMIT ?` is bound. */
const CHUNK = 256;
const INBOX_CAP = 100;

interface Row {
  number: number;
  user_id: UserId;
  thread_id: ThreadId | null;
  channel: string;
  state: State;
}

/** Rows below a number, newest first. */
type Source = Generator<Row>;

const COLUMNS = "number, user_id, thread_id, channel, state";

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
  readonly #live: Statement;
  readonly #liveOfThread: Statement;
  readonly #unread: Statement;
  readonly #dead: Statement;
  readonly #deadOfUser: Statement;
  readonly #rangeOfUser: Statement;
  readonly #rangeOfThread: Statement;
  readonly #all: Statement;

  constructor(core: CoreBase) {
    this.#core = core;
    const { connection } = core;
    const select = (where: string) =>
      connection.prepare(`SELECT ${COLUMNS} FROM deliveries WHERE ${where} ORDER BY number DESC LIMIT ${CHUNK}`);
    this.#live = select("number >= ? AND user_id = ? AND channel = ? AND live = 1 AND number < ?");
    this.#liveOfThread = select("thread_id = ? AND live = 1 AND number < ?");
    this.#unread = select(
      "number >= ? AND user_id = ? AND instr('|inbox|floor|', '|' || channel || '|') AND (live = 1 OR unread = 1) AND number < ?",
    );
    this.#dead = select("state = 'FAILED' AND number < ?");
    this.#deadOfUser = select("user_id = ? AND state = 'FAILED' AND number < ?");
    this.#rangeOfUser = select("number >= ? AND user_id = ? AND number < ?");
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
      if (filter.unacknowledged !== true) return [this.#unreadOf(user_id, before)];
      return SYSTEM_CHANNELS.map((one) => this.#liveOf(user_id, one, before));
    }
    if (state?.size === 1 && state.has("FAILED"))
      return [user_id === undefined ? chunked(this.#dead, [], before) : chunked(this.#deadOfUser, [user_id], before)];
    const live = state !== undefined && ![...state].some(isTerminal);
    if (live && thread_id !== undefined) return [chunked(this.#liveOfThread, [thread_id], before)];
    if (live && user_id !== undefined)
      return CHANNELS.filter((one) => channel?.has(one) !== false).map((one) => this.#liveOf(user_id, one, before));
    if (thread_id !== undefined) return [this.#blocked("t", thread_id, before)];
    if (user_id !== undefined) return [this.#blocked("u", user_id, before)];
    return [chunked(this.#all, [], before)];
  }

  *#blocked(kind: "u" | "t", key: string, before: number): Source {
    const newest = Math.min(before - 1, this.#core.ledger.refresh());
    const statement = kind === "u" ? this.#rangeOfUser : this.#rangeOfThread;
    for (const range of this.#core.blocks.descending(kind, key, newest))
      yield* chunked(statement, [range.from, key], upTo(range, before));
  }

  *#liveOf(user_id: UserId, channel: Channel, before: number): Source {
    for (const range of this.#core.blocks.descending(channel, user_id, before - 1))
      yield* this.#named(
        channel,
        user_id,
        range,
        before,
        chunked(this.#live, [range.from, user_id, channel], upTo(range, before)),
      );
  }

  /** What is shown to a user, or will be, and is not read. */
  *#unreadOf(user_id: UserId, before: number): Source {
    for (const range of this.#core.blocks.descending("unread", user_id, before - 1))
      yield* this.#named(
        "unread",
        user_id,
        range,
        before,
        chunked(this.#unread, [range.from, user_id], upTo(range, before)),
      );
  }

  /** The rows of a block that was named; a name that leads to nothing is doubted. */
  *#named(kind: LiveKind, user_id: UserId, { from, to }: Range, before: number, rows: Source): Source {
    let any = false;
    for (const row of rows) {
      any = true;
      yield row;
    }
    if (!any && to < before) this.#core.liveBlocks.doubt(kind, user_id, from);
  }

  /** The newest of the inbox that nobody has read, if its number is above `after`, and how many there are; capped. */
  unreadInbox(user_id: UserId, after: number): { number: number; unread: number } | null {
    const before = Number.MAX_SAFE_INTEGER;
    let newest: number | undefined;
    let unread = 0;
    for (const row of this.#unreadOf(user_id, before)) {
      if (newest === undefined && row.number <= after) return null;
      if (row.channel !== "inbox" || row.state === "PENDING") continue;
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
    for (const row of this.#unreadOf(user_id, before)) {
      visits += 1;
      if (visits > COUNT_CAP) break;
      if (row.channel !== "floor" || row.state === "PENDING" || row.thread_id === null) continue;
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

function matches(row: Row, filter: Wanted): boolean {
  return (
    (filter.user_id === undefined || row.user_id === filter.user_id) &&
    (filter.thread_id === undefined || row.thread_id === filter.thread_id) &&
    filter.channel?.has(row.channel) !== false &&
    filter.state?.has(row.state) !== false &&
    // What is open is not shown yet.
    !((filter.unacknowledged === true || filter.unread === true) && row.state === "PENDING")
  );
}

/** The number below which a block is read, of what comes before `before`. */
function upTo({ to }: Range, before: number): number {
  return Math.min(before, to + 1);
}

function cursorOf(after: string | undefined): number {
  if (after === undefined) return Number.MAX_SAFE_INTEGER;
  if (!/^[0-9]{1,15}$/.test(after)) throw new InvalidInputError("after", "must be the `next` of an earlier page");
  return Number(after);
}

function* chunked(statement: Statement, keys: readonly unknown[], before: number): Source {
  for (let below = before; ; ) {
    const rows = statement.all(...keys, below) as Row[];
    yield* rows;
    const last = rows.at(-1);
    if (last === undefined || rows.length < CHUNK) return;
    below = last.number;
  }
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
