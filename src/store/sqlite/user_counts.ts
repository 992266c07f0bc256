import { type Channel, isSystemChannel, SYSTEM_CHANNELS } from "../../domain/axes.js";
import type { UserId } from "../../domain/ids.js";
import type { Delivery } from "../../domain/notification.js";
import type { Counts } from "../contract.js";
import type { Blocks, Range } from "./blocks.js";
import type { Connection, Statement } from "./connection.js";
import { liveFlag, unreadFlag } from "./ledger_tables.js";
import type { LiveBlocks } from "./live_blocks.js";

export const COUNT_CAP = 1_000;
/** Counting ends here: so many may go before it is done again. */
const COUNTED_MAX = 2 * COUNT_CAP;
const USERS_MAX = 10_000;

/** How many there are, or at least: counting ended before all were found. */
interface Amount {
  count: number;
  readonly all: boolean;
}

interface Known {
  readonly unacknowledged: Amount;
  readonly unread: Amount;
}

/**
 * How much each user has not acknowledged, and not read: counted when it is first asked for, block by block, and then
 * kept, since every change passes by here.
 */
export class UserCounts {
  readonly #blocks: Blocks;
  readonly #liveBlocks: LiveBlocks;
  readonly #shownIn: Statement;
  readonly #unreadIn: Statement;
  /** Whether nobody else changes what was counted. */
  readonly #writer: boolean;
  readonly #known = new Map<UserId, Known>();

  constructor(connection: Connection, blocks: Blocks, liveBlocks: LiveBlocks, writer: boolean) {
    this.#blocks = blocks;
    this.#liveBlocks = liveBlocks;
    this.#writer = writer;
    const count = (where: string) =>
      connection
        .prepare(`SELECT count(*) FROM deliveries WHERE number >= ? AND number <= ? AND user_id = ? AND ${where}`)
        .pluck();
    this.#shownIn = count("channel = ? AND live = 1 AND open_until IS NULL");
    this.#unreadIn = count(
      "instr('|inbox|floor|', '|' || channel || '|') AND (live = 1 AND open_until IS NULL OR unread = 1)",
    );
  }

  /** A delivery is what it was not before; without `was` it is new, without `next` it is gone. */
  changed(was: Delivery | undefined, next: Delivery | undefined): void {
    if (this.#known.size === 0) return;
    const user_id = (next ?? was)?.user_id;
    const known = user_id === undefined ? undefined : this.#known.get(user_id);
    if (known === undefined) return;
    const shown = shownFlag(next) - shownFlag(was);
    known.unacknowledged.count += shown;
    known.unread.count += shown + flag(next) - flag(was);
  }

  of(user_id: UserId): Counts {
    const { unacknowledged, unread } = this.#knownOf(user_id);
    const capped = ({ count }: Amount) => Math.min(COUNT_CAP, count);
    return { unacknowledged: capped(unacknowledged), unread: capped(unread), cap: COUNT_CAP };
  }

  #knownOf(user_id: UserId): Known {
    const before = this.#known.get(user_id);
    if (before !== undefined && isEnough(before.unacknowledged) && isEnough(before.unread)) return before;
    const known = { unacknowledged: this.#unacknowledged(user_id), unread: this.#unread(user_id) };
    if (!this.#writer) return known;
    if (this.#known.size >= USERS_MAX) this.#known.clear();
    this.#known.set(user_id, known);
    return known;
  }

  #unacknowledged(user_id: UserId): Amount {
    let count = 0;
    for (const channel of SYSTEM_CHANNELS) {
      for (const range of this.#blocks.descending(channel, user_id, Number.MAX_SAFE_INTEGER)) {
        count += this.#inBlock(this.#shownIn, channel, user_id, range);
        if (count >= COUNTED_MAX) return { count, all: false };
      }
    }
    return { count, all: true };
  }

  #unread(user_id: UserId): Amount {
    let count = 0;
    for (const range of this.#blocks.descending("unread", user_id, Number.MAX_SAFE_INTEGER)) {
      count += this.#inBlock(this.#unreadIn, "unread", user_id, range);
      if (count >= COUNTED_MAX) return { count, all: false };
    }
    return { count, all: true };
  }

  #inBlock(statement: Statement, kind: Channel | "unread", user_id: UserId, { from, to }: Range): number {
    const keys = kind === "unread" ? [] : [kind];
    const count = statement.get(from, to, user_id, ...keys) as number;
    if (count === 0) this.#liveBlocks.doubt(kind, user_id, from);
    return count;
  }
}

function isEnough({ count, all }: Amount): boolean {
  return all || count >= COUNT_CAP;
}

/** Whether the system shows it, and nobody has acknowledged it. What is open is not shown yet. */
function shownFlag(delivery: Delivery | undefined): 0 | 1 {
  if (delivery === undefined || !isSystemChannel(delivery.channel) || delivery.open_until !== null) return 0;
  return liveFlag(delivery);
}

function flag(delivery: Delivery | undefined): 0 | 1 {
  return delivery === undefined ? 0 : unreadFlag(delivery);
}
