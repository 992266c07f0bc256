import { isSystemChannel } from "../../domain/axes.js";
import type { UserId } from "../../domain/ids.js";
import type { State } from "../../domain/transitions.js";
import type { Counts, Standing, StoreFigures } from "../contract.js";
import type { Connection, Statement } from "./connection.js";
import type { Core } from "./core.js";
import { COUNT_CAP, type Lists } from "./list.js";

/** In these the system has shown it, and nobody has acknowledged it. */
const SHOWN: ReadonlySet<State> = new Set<State>(["DISPATCHED", "ESCALATED"]);

/** How much there is now, of one user or of all. */
export class Standings {
  readonly #lists: Lists;
  readonly #unread: Statement;

  constructor(connection: Connection, lists: Lists) {
    this.#lists = lists;
    this.#unread = connection
      .prepare(`SELECT count(*) FROM (SELECT 1 FROM deliveries WHERE unread = 1 LIMIT ${COUNT_CAP})`)
      .pluck();
  }

  of({ figures, blocks, ledger }: Core, user_id: UserId | null): Standing {
    const depth = figures.depth(user_id);
    const oldest = figures.oldest(user_id, blocks, (number) => ledger.byNumber(number)?.notification.created_at);
    return { depth, oldest, counts: user_id === null ? this.#ofAll(depth) : this.#lists.countsOf(user_id) };
  }

  #ofAll(depth: StoreFigures["depth"]): Counts {
    const shown = depth.filter(({ state, channel }) => isSystemChannel(channel) && SHOWN.has(state));
    const unacknowledged = shown.reduce((sum, { count }) => sum + count, 0);
    const unread = unacknowledged + (this.#unread.get() as number);
    const capped = (count: number) => Math.min(COUNT_CAP, count);
    return { unacknowledged: capped(unacknowledged), unread: capped(unread), cap: COUNT_CAP };
  }
}
