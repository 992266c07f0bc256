import { blockOf } from "./blocks.js";
import type { Connection, Statement } from "./connection.js";

const SECOND_MS = 1_000;
/** Seconds whose newest block is remembered. */
const REMEMBERED_MAX = 1_024;

/** In some second something in some block falls due. Ordered by both. */
export interface DueHint {
  readonly second: number;
  readonly block: number;
}

/** Before every hint. */
export const FIRST_HINT: DueHint = { second: -1, block: -1 };

/**
 * Where the watchdog has to look, and when: an index of deadlines by second and block of numbers. It is a hint: it is
 * written with the row, no settlement touches it, and the watchdog takes it away when its second has passed. A full
 * index of deadlines would be written twice for each of the many notifications whose deadline nobody waits for.
 */
export class DueHints {
  readonly #insert: Statement;
  readonly #remove: Statement;
  readonly #upTo: Statement;
  /** Second to the block that was marked last for it: rows are mostly written one after the other. */
  readonly #marked = new Map<number, number>();

  constructor(connection: Connection) {
    this.#insert = connection.prepare("INSERT OR IGNORE INTO due (second, block) VALUES (?, ?)");
    this.#remove = connection.prepare("DELETE FROM due WHERE second = ? AND block = ?");
    this.#upTo = connection.prepare(
      "SELECT second, block FROM due WHERE (second, block) > (?, ?) AND second <= ? ORDER BY second, block LIMIT ?",
    );
  }

  /** The delivery with this number falls due then. */
  mark(dueAt: number, number: number): void {
    const second = secondOf(dueAt);
    const block = blockOf(number);
    if (this.#marked.get(second) === block) return;
    if (this.#marked.size >= REMEMBERED_MAX) this.#marked.clear();
    this.#marked.set(second, block);
    this.#insert.run(second, block);
  }

  /** The hints after one whose second has begun. */
  begun(at: number, after: DueHint, limit: number): DueHint[] {
    return this.#upTo.all(after.second, after.block, secondOf(at), limit) as DueHint[];
  }

  remove(hints: readonly DueHint[]): void {
    for (const { second, block } of hints) {
      this.#remove.run(second, block);
      this.#marked.delete(second);
    }
  }
}

/** Whether nothing can fall due any more in the second of a hint. */
export function hasPassed({ second }: DueHint, at: number): boolean {
  return second < secondOf(at);
}

function secondOf(at: number): number {
  return Math.floor(at / SECOND_MS);
}
