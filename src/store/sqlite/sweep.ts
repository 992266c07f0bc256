import { isMiss } from "../../domain/errors.js";
import { overdueCommand } from "../../domain/reducer.js";
import { rangeOf } from "./blocks.js";
import { expireCarriers } from "./carrier_operations.js";
import { plan, write } from "./changes.js";
import type { Transaction } from "./commit.js";
import type { Connection, Statement } from "./connection.js";
import type { Core } from "./core.js";
import { type DueHint, FIRST_HINT, hasPassed } from "./due.js";
import { flush } from "./flush.js";
import type { Held } from "./ledger.js";
import { dueAt } from "./ledger_tables.js";

/** Hints looked at in one transaction, and how many blocks of rows are read for them. */
const HINTS_MAX = 512;
const BLOCKS_MAX = 4;

/** What one transaction came to, and the hint to go on after; null when there is no more. */
export interface SweepStep {
  readonly acted: number;
  readonly after: DueHint | null;
}

interface Overdue {
  readonly numbers: readonly number[];
  /** Hints whose second has passed, and all that they stood for is among the numbers. */
  readonly spent: readonly DueHint[];
  readonly after: DueHint | null;
}

/** Finds and ends what is overdue, judged by the store's clock inside the transaction that acts on it. */
export class Sweep {
  readonly #dueIn: Statement;
  readonly #heldUnder: Statement;

  constructor(connection: Connection) {
    this.#dueIn = connection
      .prepare("SELECT number FROM deliveries WHERE number BETWEEN ? AND ? AND due_at <= ? ORDER BY number LIMIT ?")
      .pluck();
    this.#heldUnder = connection.prepare("SELECT number FROM deliveries WHERE lease_id = ? LIMIT ?").pluck();
  }

  /** Whether there is anything to do: read-only, so that an idle watchdog writes nothing. */
  isDue(core: Core, at: number): boolean {
    if (core.leases.expired(at, 1).length > 0) return true;
    for (let after: DueHint | null = FIRST_HINT; after !== null; ) {
      const { numbers, spent, after: next }: Overdue = this.#due(core, at, after, 1);
      if (numbers.length > 0 || spent.length > 0) return true;
      after = next;
    }
    return false;
  }

  /** One transaction's worth, of at most `limit` deliveries. */
  run(core: Core, transaction: Transaction, limit: number, from: DueHint): SweepStep {
    const { at } = transaction;
    const carriers = expireCarriers(core, transaction);
    const held = this.#expired(core, at, limit);
    const { numbers, spent, after } = this.#due(core, at, from, limit - held.length);
    if (spent.length > 0) {
      transaction.wrote = true;
      // First, since what is let go or put off below may want the same hint again.
      core.due.remove(spent);
    }
    let acted = carriers;
    for (const number of [...held, ...numbers]) {
      const one = core.ledger.byNumber(number);
      if (one === undefined) continue;
      if (this.#act(core, transaction, one)) acted += 1;
      else this.#keep(core, transaction, one);
    }
    return { acted, after };
  }

  #act(core: Core, transaction: Transaction, held: Held): boolean {
    const { delivery } = held;
    if (delivery.open_until !== null && delivery.open_until <= transaction.at && delivery.deadline > transaction.at) {
      flush(core, transaction, held, "watchdog");
      return true;
    }
    const leaseExpired = delivery.lease !== null && core.leases.isExpired(delivery.lease.id, transaction.at);
    const command = overdueCommand(delivery, leaseExpired, transaction.at);
    if (command === null) return false;
    const planned = plan(core, transaction, held, [command]);
    if (isMiss(planned)) return false;
    const changes = planned.steps.map((step) => step.change);
    write(core, transaction, delivery, { type: "delivery", operation: "watchdog", changes }, planned.steps);
    return true;
  }

  /** What could not be ended is not lost from sight. */
  #keep(core: Core, transaction: Transaction, { delivery, number }: Held): void {
    const due = dueAt(delivery);
    if (due === null) return;
    transaction.wrote = true;
    core.due.mark(due, number);
  }

  #expired(core: Core, at: number, limit: number): number[] {
    const numbers: number[] = [];
    for (const lease of core.leases.expired(at, limit)) {
      if (numbers.length >= limit) break;
      numbers.push(...(this.#heldUnder.all(lease, limit - numbers.length) as number[]));
    }
    return numbers;
  }

  /** Oldest hints first. A block is read once, however many hints name it: whatever is due in it is found. */
  #due(core: Core, at: number, from: DueHint, limit: number): Overdue {
    const numbers: number[] = [];
    const spent: DueHint[] = [];
    const read = new Set<number>();
    const hints = core.due.begun(at, from, HINTS_MAX);
    let after = from;
    for (const hint of hints) {
      if (!read.has(hint.block)) {
        if (numbers.length >= limit || read.size >= BLOCKS_MAX) return { numbers, spent, after };
        const { from: first, to } = rangeOf(hint.block);
        const found = this.#dueIn.all(first, to, at, limit - numbers.length) as number[];
        numbers.push(...found);
        // There may be more of it: the hint stays.
        if (numbers.length >= limit) return { numbers, spent, after };
        read.add(hint.block);
      }
      if (hasPassed(hint, at)) spent.push(hint);
      after = hint;
    }
    return { numbers, spent, after: hints.length < HINTS_MAX ? null : after };
  }
}
