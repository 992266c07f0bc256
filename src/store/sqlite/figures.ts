import { CHANNELS, type Channel } from "../../domain/axes.js";
import type { UserId } from "../../domain/ids.js";
import type { Delivery } from "../../domain/notification.js";
import { tokensIn } from "../../domain/series.js";
import { isTerminal, STATES, type State } from "../../domain/transitions.js";
import type { Accepted, StoreFigures } from "../contract.js";
import { type Blocks, blockOf, rangeOf } from "./blocks.js";
import type { Connection, Statement } from "./connection.js";
import { forgetFirst } from "./forget.js";
import { unreadFlag } from "./ledger_tables.js";

/** Upper bounds of what commits are sorted into, in milliseconds. */
const COMMIT_MS = [0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500] as const;
/** Names of blocks asked for at a time, on the way to the oldest on a channel. */
const BLOCKS_MAX = 64;
/** Carriers that are out and not yet sent, whose length is known. */
const OUT_MAX = 10_000;

type Place = Pick<Delivery, "state" | "channel">;
type Owned = Pick<Delivery, "state" | "channel" | "user_id" | "read_at">;
type Depth = Map<string, number>;
/** The blocks in which something is live, or unread, and all that is in them. */
const NAMED = namedBlocks(CHANNELS);
const NAMED_UNREAD = namedBlocks(["unread"]);
const IN_BLOCK = "number >= block * 1024 AND number < (block + 1) * 1024";
/** Of a notification, by its number. */
type CreatedAt = (number: number) => number | undefined;

/**
 * How much there is and what has happened since the store was opened, for whoever watches over it. What is live is counted once,
 * when it is first asked for, and then kept; nothing here is in the database.
 */
export class Figures {
  readonly #live: Statement;
  readonly #dead: Statement;
  readonly #liveOfUsers: Statement;
  readonly #deadOfUsers: Statement;
  readonly #allUnread: Statement;
  readonly #lowestOf: Statement;
  readonly #lowestIn: Statement;
  readonly #blocksFrom: Statement;
  /** Whether nobody else changes what was counted. */
  readonly #writer: boolean;
  readonly #events = { accepted: 0, duplicate: 0, unmatched: 0 };
  readonly #entered = Object.fromEntries(STATES.map((state) => [state, 0])) as Record<State, number>;
  readonly #commits = { count: 0, operations: 0, ms: 0, upTo: COMMIT_MS.map(() => 0) };
  /** The characters of blocks that are not sent yet, by the entry that opened their carrier. */
  readonly #out = new Map<number, number>();
  #blocks = 0;
  #tokens = 0;
  /** Nothing below this number is live on the channel. */
  readonly #liveFrom = new Map<Channel, number>();
  #depth: Depth | undefined;
  #unread: number | undefined;
  #ofUsers: Map<UserId, Depth> | undefined;

  constructor(connection: Connection, writer: boolean) {
    this.#writer = writer;
    const count = (columns: string, where: string) =>
      connection.prepare(`SELECT ${columns}, count(*) FROM ${where} GROUP BY ${columns}`).raw();
    const live = `${NAMED} WHERE ${IN_BLOCK} AND live = 1`;
    const dead = "deliveries WHERE state = 'FAILED'";
    this.#live = count("state, channel", live);
    this.#dead = count("state, channel", dead);
    this.#liveOfUsers = count("user_id, state, channel", live);
    this.#deadOfUsers = count("user_id, state, channel", dead);
    this.#allUnread = connection
      .prepare(`SELECT count(*) FROM ${NAMED_UNREAD} WHERE ${IN_BLOCK} AND unread = 1`)
      .pluck();
    const lowest = (where: string) =>
      connection
        .prepare(`SELECT min(number) FROM deliveries WHERE number >= ? AND number <= ? AND ${where} AND live = 1`)
        .pluck();
    this.#lowestOf = lowest("user_id = ? AND channel = ?");
    this.#lowestIn = lowest("channel = ?");
    this.#blocksFrom = connection
      .prepare(`SELECT DISTINCT block FROM blocks WHERE kind = ? AND block >= ? ORDER BY block LIMIT ${BLOCKS_MAX}`)
      .pluck();
  }

  accepted(outcome: Accepted["outcome"]): void {
    this.#events[outcome] += 1;
  }

  /** A delivery is what it was not before; without `next` it is gone. */
  changed(was: Owned | undefined, next: Owned | undefined, number: number): void {
    if (this.#unread !== undefined) this.#unread += flag(next) - flag(was);
    if (was?.state === next?.state && was?.channel === next?.channel) return;
    if (next !== undefined && was?.state !== next.state) this.#entered[next.state] += 1;
    this.#count(was, -1);
    this.#count(next, 1);
    if (next !== undefined && !isTerminal(next.state) && number < (this.#liveFrom.get(next.channel) ?? 0))
      this.#liveFrom.set(next.channel, number);
  }

  /** A block was made for an agent. */
  made(carrier_seq: number, chars: number): void {
    if (this.#out.size >= OUT_MAX) forgetFirst(this.#out);
    this.#out.set(carrier_seq, chars);
  }

  /** The carrier is no longer open: the agent was told, or not. */
  ended(carrier_seq: number, sent: boolean): void {
    const chars = this.#out.get(carrier_seq);
    if (chars === undefined) return;
    this.#out.delete(carrier_seq);
    if (!sent) return;
    this.#blocks += 1;
    this.#tokens += tokensIn(chars);
  }

  committed(ms: number, operations: number): void {
    this.#commits.count += 1;
    this.#commits.operations += operations;
    this.#commits.ms += ms;
    for (const [index, most] of COMMIT_MS.entries())
      if (ms <= most) this.#commits.upTo[index] = (this.#commits.upTo[index] ?? 0) + 1;
  }

  read(createdAt: CreatedAt): StoreFigures {
    const depth = this.#depths();
    const { count, operations, ms, upTo } = this.#commits;
    return {
      depth: listed(depth),
      oldest: this.#oldest(depth, createdAt),
      events: { ...this.#events },
      entered: { ...this.#entered },
      blocks_told: this.#blocks,
      tokens_told: this.#tokens,
      commits: {
        ...{ count, operations, ms },
        buckets: COMMIT_MS.map((most, index) => ({ ms: most, count: upTo[index] ?? 0 })),
      },
    };
  }

  /** What is live, and the dead letters: of one user, or of all. */
  depth(user_id: UserId | null): StoreFigures["depth"] {
    return listed(user_id === null ? this.#depths() : (this.#depthsOfUsers().get(user_id) ?? new Map()));
  }

  /** When the oldest that is live on each channel was made: of one user, or of all. */
  oldest(user_id: UserId | null, blocks: Blocks, createdAt: CreatedAt): StoreFigures["oldest"] {
    if (user_id === null) return this.#oldest(this.#depths(), createdAt);
    return this.#oldestOf(blocks, user_id, liveIn(this.#depthsOfUsers().get(user_id)), createdAt);
  }

  /** How many were acknowledged and not read, of all users. */
  unread(): number {
    if (this.#unread === undefined || !this.#writer) this.#unread = this.#allUnread.get() as number;
    return this.#unread;
  }

  #depths(): ReadonlyMap<string, number> {
    if (this.#depth !== undefined && this.#writer) return this.#depth;
    const rows = [...this.#live.all(), ...this.#dead.all()] as [State, Channel, number][];
    this.#depth = new Map(rows.map(([state, channel, count]) => [keyOf({ state, channel }), count]));
    return this.#depth;
  }

  #depthsOfUsers(): ReadonlyMap<UserId, ReadonlyMap<string, number>> {
    if (this.#ofUsers !== undefined && this.#writer) return this.#ofUsers;
    const found = new Map<UserId, Depth>();
    const rows = [...this.#liveOfUsers.all(), ...this.#deadOfUsers.all()] as [UserId, State, Channel, number][];
    for (const [user_id, state, channel, count] of rows)
      found.set(user_id, (found.get(user_id) ?? new Map()).set(keyOf({ state, channel }), count));
    this.#ofUsers = found;
    return found;
  }

  #count(place: Owned | undefined, by: number): void {
    if (place === undefined || !isCounted(place.state)) return;
    if (this.#depth !== undefined) adjust(this.#depth, place, by);
    if (this.#ofUsers === undefined) return;
    const own = this.#ofUsers.get(place.user_id) ?? new Map<string, number>();
    adjust(own, place, by);
    if (own.size === 0) this.#ofUsers.delete(place.user_id);
    else this.#ofUsers.set(place.user_id, own);
  }

  /** The coarse index names the blocks in which something of a user is live on a channel. */
  #oldestOf(
    blocks: Blocks,
    user_id: UserId,
    wanted: ReadonlySet<Channel>,
    createdAt: CreatedAt,
  ): { channel: Channel; created_at: number }[] {
    return CHANNELS.flatMap((channel) => {
      if (!wanted.has(channel)) return [];
      for (const { from, to } of blocks.ascending(channel, user_id, 0)) {
        const number = this.#lowestOf.get(from, to, user_id, channel) as number | null;
        const created_at = number === null ? undefined : createdAt(number);
        if (created_at !== undefined) return [{ channel, created_at }];
      }
      return [];
    });
  }

  /** Numbers grow with time: the lowest that is live on a channel is its oldest. */
  #oldest(depth: ReadonlyMap<string, number>, createdAt: CreatedAt): { channel: Channel; created_at: number }[] {
    const wanted = liveIn(depth);
    return CHANNELS.flatMap((channel) => {
      const number = wanted.has(channel) ? this.#lowest(channel) : undefined;
      const created_at = number === undefined ? undefined : createdAt(number);
      return created_at === undefined ? [] : [{ channel, created_at }];
    });
  }

  /** Sought from where it was last, since it only moves on, but for what comes to a channel from another. */
  #lowest(channel: Channel): number | undefined {
    const known = this.#writer ? this.#liveFrom.get(channel) : undefined;
    const number =
      known === undefined
        ? this.#lowestFrom(channel, 0)
        : (this.#lowestAt(channel, known) ?? this.#lowestFrom(channel, known));
    if (number !== undefined) this.#liveFrom.set(channel, number);
    return number;
  }

  #lowestAt(channel: Channel, from: number): number | undefined {
    const { to } = rangeOf(blockOf(from));
    return (this.#lowestIn.get(from, to, channel) as number | null) ?? undefined;
  }

  #lowestFrom(channel: Channel, from: number): number | undefined {
    for (let first = blockOf(from); ; ) {
      const blocks = this.#blocksFrom.all(channel, first) as number[];
      for (const block of blocks) {
        const number = this.#lowestAt(channel, rangeOf(block).from);
        if (number !== undefined) return number;
      }
      const last = blocks.at(-1);
      if (last === undefined || blocks.length < BLOCKS_MAX) return undefined;
      first = last + 1;
    }
  }
}

/** The channels on which something is live. */
function liveIn(depth: ReadonlyMap<string, number> | undefined): ReadonlySet<Channel> {
  const places = [...(depth?.keys() ?? [])].map(placeOf);
  return new Set(places.filter(({ state }) => !isTerminal(state)).map(({ channel }) => channel));
}

function namedBlocks(kinds: readonly string[]): string {
  const wanted = kinds.map((kind) => `'${kind}'`).join(", ");
  return `(SELECT DISTINCT block FROM blocks WHERE kind IN (${wanted})) CROSS JOIN deliveries`;
}

function flag(place: Owned | undefined): 0 | 1 {
  return place === undefined ? 0 : unreadFlag(place);
}

/** What waits for something; and dead letters, which wait for the operator. */
function isCounted(state: State): boolean {
  return !isTerminal(state) || state === "FAILED";
}

function adjust(depth: Depth, place: Place, by: number): void {
  const key = keyOf(place);
  const count = (depth.get(key) ?? 0) + by;
  if (count === 0) depth.delete(key);
  else depth.set(key, count);
}

function listed(depth: ReadonlyMap<string, number>): StoreFigures["depth"] {
  return [...depth].map(([key, count]) => ({ ...placeOf(key), count }));
}

function keyOf({ state, channel }: Place): string {
  return `${state} ${channel}`;
}

function placeOf(key: string): Place {
  const [state, channel] = key.split(" ");
  return { state: state as State, channel: channel as Channel };
}
