import { CHANNELS, type Channel } from "../../domain/axes.js";
import type { UserId } from "../../domain/ids.js";
import type { Delivery } from "../../domain/notification.js";
import { tokensIn } from "../../domain/series.js";
import { isTerminal, STATES, type State } from "../../domain/transitions.js";
import type { Accepted, StoreFigures } from "../contract.js";
import { type Blocks, blockOf } from "./blocks.js";
import type { Connection, Statement } from "./connection.js";

/** Upper bounds of what commits are sorted into, in milliseconds. */
const COMMIT_MS = [0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500] as const;
/** Blocks that are looked through for the oldest on each channel. */
const BLOCKS_MAX = 64;
/** Carriers that are out and not yet sent, whose length is known. */
const OUT_MAX = 10_000;

type Place = Pick<Delivery, "state" | "channel">;
type Owned = Pick<Delivery, "state" | "channel" | "user_id">;
type Depth = Map<string, number>;
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
  readonly #lowest: Statement;
  readonly #nextBlock: Statement;
  readonly #inBlock: Statement;
  /** Whether nobody else changes what was counted. */
  readonly #writer: boolean;
  readonly #events = { accepted: 0, duplicate: 0, unmatched: 0 };
  readonly #entered = Object.fromEntries(STATES.map((state) => [state, 0])) as Record<State, number>;
  readonly #commits = { count: 0, operations: 0, ms: 0, upTo: COMMIT_MS.map(() => 0) };
  /** The characters of blocks that are not sent yet, by the entry that opened their carrier. */
  readonly #out = new Map<number, number>();
  #blocks = 0;
  #tokens = 0;
  #depth: Depth | undefined;
  #ofUsers: Map<UserId, Depth> | undefined;

  constructor(connection: Connection, writer: boolean) {
    this.#writer = writer;
    this.#live = connection
      .prepare("SELECT state, channel, count(*) FROM deliveries WHERE live = 1 GROUP BY state, channel")
      .raw();
    this.#dead = connection
      .prepare("SELECT state, channel, count(*) FROM deliveries WHERE state = 'FAILED' GROUP BY state, channel")
      .raw();
    const byUser = (where: string) =>
      connection
        .prepare(
          `SELECT user_id, state, channel, count(*) FROM deliveries WHERE ${where} GROUP BY user_id, state, channel`,
        )
        .raw();
    this.#liveOfUsers = byUser("live = 1");
    this.#deadOfUsers = byUser("state = 'FAILED'");
    this.#lowest = connection
      .prepare(
        "SELECT min(number) FROM deliveries WHERE number / 1024 = ? AND user_id = ? AND channel = ? AND live = 1",
      )
      .pluck();
    this.#nextBlock = connection
      .prepare(
        "SELECT number / 1024 FROM deliveries WHERE number / 1024 > ? AND live = 1 ORDER BY number / 1024 LIMIT 1",
      )
      .pluck();
    this.#inBlock = connection
      .prepare("SELECT number, channel FROM deliveries WHERE number / 1024 = ? AND live = 1")
      .raw();
  }

  accepted(outcome: Accepted["outcome"]): void {
    this.#events[outcome] += 1;
  }

  /** A delivery is what it was not before; without `next` it is gone. */
  changed(was: Owned | undefined, next: Owned | undefined): void {
    if (was?.state === next?.state && was?.channel === next?.channel) return;
    if (next !== undefined && was?.state !== next.state) this.#entered[next.state] += 1;
    this.#count(was, -1);
    this.#count(next, 1);
  }

  /** A block was made for an agent. */
  made(carrier_seq: number, chars: number): void {
    if (this.#out.size >= OUT_MAX) this.#out.delete(this.#out.keys().next().value ?? 0);
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
    return user_id === null ? this.#oldest(this.#depths(), createdAt) : this.#oldestOf(blocks, user_id, createdAt);
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
  #oldestOf(blocks: Blocks, user_id: UserId, createdAt: CreatedAt): { channel: Channel; created_at: number }[] {
    return CHANNELS.flatMap((channel) => {
      let left = BLOCKS_MAX;
      for (const { from } of blocks.ascending(channel, user_id, 0)) {
        const number = this.#lowest.get(blockOf(from), user_id, channel) as number | null;
        const created_at = number === null ? undefined : createdAt(number);
        if (created_at !== undefined) return [{ channel, created_at }];
        left -= 1;
        if (left === 0) break;
      }
      return [];
    });
  }

  /** Numbers grow with time: the lowest that is live on a channel is its oldest. */
  #oldest(depth: ReadonlyMap<string, number>, createdAt: CreatedAt): { channel: Channel; created_at: number }[] {
    const wanted = new Set(
      [...depth.keys()].map(placeOf).flatMap(({ state, channel }) => (isTerminal(state) ? [] : channel)),
    );
    const lowest = new Map<Channel, number>();
    let block = blockOf(0) - 1;
    for (let blocks = 0; blocks < BLOCKS_MAX && lowest.size < wanted.size; blocks += 1) {
      const next = this.#nextBlock.get(block) as number | undefined;
      if (next === undefined) break;
      block = next;
      const inBlock = new Map<Channel, number>();
      for (const [number, channel] of this.#inBlock.all(block) as [number, Channel][])
        inBlock.set(channel, Math.min(number, inBlock.get(channel) ?? number));
      for (const [channel, number] of inBlock) if (!lowest.has(channel)) lowest.set(channel, number);
    }
    return CHANNELS.flatMap((channel) => {
      const number = lowest.get(channel);
      const created_at = number === undefined ? undefined : createdAt(number);
      return created_at === undefined ? [] : [{ channel, created_at }];
    });
  }
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
