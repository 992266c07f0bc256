import { isSystemChannel } from "../../domain/axes.js";
import type { UserId } from "../../domain/ids.js";
import type { State } from "../../domain/transitions.js";
import type { Counts, Standing, StoreFigures } from "../contract.js";
import type { Core } from "./core.js";
import { COUNT_CAP } from "./user_counts.js";

/** In these the system has shown it, and nobody has acknowledged it. */
const SHOWN: ReadonlySet<State> = new Set<State>(["DISPATCHED", "ESCALATED"]);

/** How much there is now, of one user or of all. */
export function standingOf({ figures, blocks, ledger, userCounts }: Core, user_id: UserId | null): Standing {
  const depth = figures.depth(user_id);
  const oldest = figures.oldest(user_id, blocks, (number) => ledger.byNumber(number)?.notification.created_at);
  return { depth, oldest, counts: user_id === null ? countsOfAll(depth, figures.unread()) : userCounts.of(user_id) };
}

function countsOfAll(depth: StoreFigures["depth"], acknowledgedUnread: number): Counts {
  const shown = depth.filter(({ state, channel }) => isSystemChannel(channel) && SHOWN.has(state));
  const unacknowledged = shown.reduce((sum, { count }) => sum + count, 0);
  const capped = (count: number) => Math.min(COUNT_CAP, count);
  return {
    unacknowledged: capped(unacknowledged),
    unread: capped(unacknowledged + acknowledgedUnread),
    cap: COUNT_CAP,
  };
}
