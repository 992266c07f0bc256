import { isSystemChannel, SYSTEM_CHANNELS } from "../../domain/axes.js";
import type { UserId } from "../../domain/ids.js";
import type { Delivery } from "../../domain/notification.js";
import type { Counts } from "../contract.js";
import type { Blocks } from "./blocks.js";
import { liveFlag, unreadFlag } from "./ledger_tables.js";
import type { LiveBlocks } from "./live_blocks.js";
import type { LiveKind, UserRow, UserRows } from "./user_rows.js";

export const COUNT_CAP = 1_000;
/** Counting ends here: so many may go before it is done again. */
const COUNTED_MAX = COUNT_CAP + 256;
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
  readonly #rows: UserRows;
  /** Whether nobody else changes what was counted. */
  readonly #writer: boolean;
  readonly #known = new Map<UserId, Known>();

  constructor(blocks: Blocks, rows: UserRows, liveBlocks: LiveBlocks, writer: boolean) {
    this.#blocks = blocks;
    this.#rows = rows;
    this.#liveBlocks = liveBlocks;
    this.#writer = writer;
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
    const known = this.#counted(user_id);
    if (!this.#writer) return known;
    if (this.#known.size >= USERS_MAX) this.#known.clear();
    this.#known.set(user_id, known);
    return known;
  }

  #counted(user_id: UserId): Known {
    let shown = 0;
    const unread = this.#count(user_id, ["unread"], ({ live }) => {
      shown += live;
    });
    // All of it was gone through, and so was what is not acknowledged.
    const unacknowledged = unread.all ? { count: shown, all: true } : this.#count(user_id, SYSTEM_CHANNELS);
    return { unacknowledged, unread };
  }

  #count(user_id: UserId, kinds: readonly LiveKind[], seen: (row: UserRow) => void = () => {}): Amount {
    let count = 0;
    for (const kind of kinds)
      for (const range of this.#blocks.descending(kind, user_id, Number.MAX_SAFE_INTEGER)) {
        let any = false;
        for (const row of this.#rows.of(kind, user_id, range)) {
          any = true;
          // What is open is not shown yet.
          if (row.open_until !== null) continue;
          count += 1;
          seen(row);
        }
        if (!any) this.#liveBlocks.doubt(kind, user_id, range.from);
        if (count >= COUNTED_MAX) return { count, all: false };
      }
    return { count, all: true };
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
