import { isMiss } from "../../domain/errors.js";
import { overdueCommand } from "../../domain/reducer.js";
import { plan, write } from "./changes.js";
import type { Transaction } from "./commit.js";
import type { Connection, Statement } from "./connection.js";
import type { Core } from "./core.js";

/** Finds and ends what is overdue, judged by the store's clock inside the transaction that acts on it. */
export class Sweep {
  readonly #due: Statement;
  readonly #heldUnder: Statement;

  constructor(connection: Connection) {
    this.#due = connection
      .prepare("SELECT number FROM deliveries WHERE live = 1 AND due_at <= ? ORDER BY due_at LIMIT ?")
      .pluck();
    this.#heldUnder = connection.prepare("SELECT number FROM deliveries WHERE lease_id = ? LIMIT ?").pluck();
  }

  /** Whether there is anything to do: read-only, so that an idle watchdog writes nothing. */
  isDue(core: Core, at: number): boolean {
    return this.#overdue(core, at, 1).length > 0;
  }

  run(core: Core, transaction: Transaction, limit: number): number {
    let acted = 0;
    for (const number of this.#overdue(core, transaction.at, limit)) {
      const held = core.ledger.byNumber(number);
      if (held === undefined) continue;
      const { delivery } = held;
      const leaseExpired = delivery.lease !== null && core.leases.isExpired(delivery.lease.id, transaction.at);
      const command = overdueCommand(delivery, leaseExpired, transaction.at);
      if (command === null) continue;
      const planned = plan(core, transaction, held, [command]);
      if (isMiss(planned)) continue;
      const changes = planned.steps.map((step) => step.change);
      write(core, transaction, delivery, { type: "delivery", operation: "watchdog", changes }, planned.steps);
      acted += 1;
    }
    return acted;
  }

  #overdue(core: Core, at: number, limit: number): number[] {
    const numbers: number[] = [];
    for (const lease of core.leases.expired(at, limit)) {
      if (numbers.length >= limit) return numbers;
      numbers.push(...(this.#heldUnder.all(lease, limit - numbers.length) as number[]));
    }
    if (numbers.length < limit) numbers.push(...(this.#due.all(at, limit - numbers.length) as number[]));
    return numbers;
  }
}
