import { assert, type Miss } from "../../domain/errors.js";
import { type NotificationId, notificationId } from "../../domain/ids.js";
import type { Notification } from "../../domain/notification.js";
import { mayAct, type Principal } from "../../domain/principal.js";
import { closeCommands, create, decide, missNotFound } from "../../domain/reducer.js";
import { isTerminal } from "../../domain/transitions.js";
import type { Stored } from "../contract.js";
import type { Transaction } from "./commit.js";
import type { Connection, Statement } from "./connection.js";
import type { Core } from "./core.js";
import { linked } from "./journal.js";

/** Dead letters sent again, once each: the old one stays FAILED, the new one names it. */
export class Redrives {
  readonly #insert: Statement;
  readonly #of: Statement;

  constructor(connection: Connection) {
    this.#insert = connection.prepare("INSERT INTO redrives (number, redriven_as) VALUES (?, ?)");
    this.#of = connection.prepare("SELECT redriven_as FROM redrives WHERE number = ?").pluck();
  }

  of(number: number): NotificationId | null {
    return (this.#of.get(number) as NotificationId | undefined) ?? null;
  }

  redrive(core: Core, transaction: Transaction, principal: Principal, id: NotificationId): Stored | Miss {
    const dead = core.ledger.byId(id);
    if (dead === undefined || !mayAct(principal, dead.delivery.user_id)) return missNotFound(id);
    const { state, channel } = dead.delivery;
    if (!isTerminal(state))
      return {
        miss: "wrong_channel",
        id,
        message: `notification ${id} was not redriven: it is ${state} on the channel ${channel}, on its way still; only a FAILED one is redriven`,
      };
    if (state !== "FAILED")
      return {
        miss: "terminal",
        id,
        message: `notification ${id} was not redriven: it is ${state}; only a FAILED one is redriven`,
      };
    const before = this.of(dead.number);
    if (before !== null)
      return { miss: "terminal", id, message: `notification ${id} was redriven before, as ${before}` };

    const { at } = transaction;
    const context = { at, policy: core.policy };
    const notification: Notification = {
      ...dead.notification,
      id: notificationId(core.ids.numbered(at, core.ledger.nextNumber)),
      created_at: at,
      dedupe_until: 0,
      redrive_of: id,
      linked_to: null,
    };
    const created = create(notification, { priority: dead.delivery.priority, ttl_ms: null, suppress: null }, context);
    const changes = [linked(created.change, null)];
    let delivery = created.next;
    const thread = notification.thread_id === null ? undefined : core.threads.get(notification.thread_id);
    if (thread !== undefined && thread.state !== "open") {
      for (const command of closeCommands(delivery)) {
        const decision = decide({ notification, delivery }, command, context);
        assert(decision.outcome === "changed", `closing a new ${delivery.channel} item changes it`);
        changes.push(linked(decision.change, core.journal.nextSeq));
        delivery = decision.next;
      }
    }
    const { user_id, thread_id } = delivery;
    const seq = core.journal.append(transaction, user_id, thread_id, {
      type: "delivery",
      operation: "redrive",
      changes,
    });
    const held = core.ledger.insert({ notification, delivery }, seq);
    this.#insert.run(dead.number, notification.id);
    return core.ledger.stored(held);
  }
}
