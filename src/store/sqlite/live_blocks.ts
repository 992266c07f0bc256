import type { UserId } from "../../domain/ids.js";
import type { Delivery } from "../../domain/notification.js";
import { type Blocks, blockOf, rangeOf } from "./blocks.js";
import { forgetFirst } from "./forget.js";
import { awaitsReader, liveFlag } from "./ledger_tables.js";
import type { LiveKind, UserRows } from "./user_rows.js";

/** Blocks of each kind whose tallies are kept. */
const BLOCKS_MAX = 128;
/** After so many have left a block of which nobody knows how many it has, they are counted. */
const LEFT_MAX = 8;
/** Doubts are settled by reading a block each: so many in a commit, and no more wait. */
const SETTLED_MAX = 16;
const DOUBTS_MAX = 1_024;

interface Doubt {
  readonly kind: LiveKind;
  readonly user_id: UserId;
  readonly block: number;
}

/** How many there are; below zero nobody knows, and `-1 - tally` have left since. */
type Tally = number;
const UNKNOWN: Tally = -1;

/**
 * Which blocks hold something of a user that is live on a channel, or that is shown to them and unread. A block is named
 * when the first comes, which is mostly when it is made, so that acknowledging an old one writes nothing here;
 * and the name goes with the last one, if it is known to be the last. Where that is not known, after a restart, the name
 * stays until a reader has looked in vain, some more have left, or retention takes it: it may lead to nothing, and is
 * never missing.
 */
export class LiveBlocks {
  readonly #blocks: Blocks;
  readonly #rows: UserRows;
  readonly #tallies = new Map<LiveKind, Map<number, Map<UserId, Tally>>>();
  /** The block that was asked for last, of any kind. */
  #latest = -1;
  readonly #doubts = new Map<string, Doubt>();

  constructor(blocks: Blocks, rows: UserRows) {
    this.#blocks = blocks;
    this.#rows = rows;
  }

  /** A delivery is what it was not before; without `was` it is new, without `next` it is gone. */
  changed(was: Delivery | undefined, next: Delivery | undefined, number: number): void {
    const wasLive = was !== undefined && liveFlag(was) === 1;
    const isLive = next !== undefined && liveFlag(next) === 1;
    const moved = was?.channel !== next?.channel;
    if (isLive && (!wasLive || moved)) this.#enter(next.channel, next.user_id, number);
    if (wasLive && (!isLive || moved)) this.#leave(was.channel, was.user_id, number);
    const waited = was !== undefined && awaitsReader(was);
    const waits = next !== undefined && awaitsReader(next);
    if (waits && !waited) this.#enter("unread", next.user_id, number);
    if (waited && !waits) this.#leave("unread", was.user_id, number);
  }

  /** A reader has found nothing where a block was named. */
  doubt(kind: LiveKind, user_id: UserId, number: number): void {
    const block = blockOf(number);
    if (this.#doubts.size >= DOUBTS_MAX || (this.#tallies.get(kind)?.get(block)?.get(user_id) ?? UNKNOWN) > 0) return;
    this.#doubts.set(`${kind} ${block} ${user_id}`, { kind, user_id, block });
  }

  /** In a transaction, when everything is in the tables: takes away the names of blocks that hold nothing. */
  settleDoubts(): void {
    let settled = 0;
    for (const [key, doubt] of this.#doubts) {
      if (settled === SETTLED_MAX) return;
      settled += 1;
      this.#doubts.delete(key);
      this.#settle(doubt);
    }
  }

  #settle({ kind, user_id, block }: Doubt): void {
    const tallies = this.#talliesOf(kind, block);
    let tally = tallies.get(user_id) ?? UNKNOWN;
    if (tally < 0) tally = this.#counted(kind, user_id, block);
    if (tally > 0) {
      tallies.set(user_id, tally);
      return;
    }
    tallies.delete(user_id);
    this.#blocks.unname(kind, user_id, block);
  }

  #counted(kind: LiveKind, user_id: UserId, block: number): number {
    let count = 0;
    for (const _ of this.#rows.of(kind, user_id, rangeOf(block))) count += 1;
    return count;
  }

  #enter(kind: LiveKind, user_id: UserId, number: number): void {
    const block = blockOf(number);
    const tallies = this.#talliesOf(kind, block);
    const tally = tallies.get(user_id);
    // A block that was not named held nothing.
    if (tally === undefined) tallies.set(user_id, this.#blocks.name(kind, user_id, block) ? 1 : UNKNOWN);
    else if (tally >= 0) tallies.set(user_id, tally + 1);
  }

  #leave(kind: LiveKind, user_id: UserId, number: number): void {
    const block = blockOf(number);
    const tallies = this.#talliesOf(kind, block);
    const tally = (tallies.get(user_id) ?? UNKNOWN) - 1;
    tallies.set(user_id, tally);
    if (tally === 0 || tally <= UNKNOWN - LEFT_MAX) this.doubt(kind, user_id, number);
  }

  #talliesOf(kind: LiveKind, block: number): Map<UserId, Tally> {
    let blocks = this.#tallies.get(kind);
    if (blocks === undefined) {
      blocks = new Map();
      this.#tallies.set(kind, blocks);
    }
    const known = blocks.get(block);
    if (known !== undefined && block === this.#latest) return known;
    this.#latest = block;
    // The one that was asked for last is the last to go.
    const tallies = known ?? new Map<UserId, Tally>();
    blocks.delete(block);
    if (blocks.size >= BLOCKS_MAX) forgetFirst(blocks);
    blocks.set(block, tallies);
    return tallies;
  }
}
