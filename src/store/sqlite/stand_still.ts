/** Deadlines of what waits for an agent stand still while its thread is paused. */
import { isSystemChannel } from "../../domain/axes.js";
import type { Delivery } from "../../domain/notification.js";
import type { Transaction } from "./commit.js";
import type { Core } from "./core.js";
import type { Held } from "./held.js";
import { dueAt } from "./ledger_tables.js";

/** Whether it waits for the agent of one thread. */
export function standsStill({ state, channel, effective, thread_id }: Delivery): boolean {
  return state === "PENDING" && !isSystemChannel(channel) && effective.address === "session" && thread_id !== null;
}

/** How long its agent rested since it came. */
export function restedFor(core: Core, at: number, { notification, delivery }: Held): number {
  if (!standsStill(delivery) || delivery.thread_id === null) return 0;
  return core.pauses.within(delivery.thread_id, notification.created_at, at);
}

/** The watchdog is to look at it when its time is up; not at all while its thread is paused. */
export function keepDue(core: Core, transaction: Transaction, held: Held): void {
  const { delivery, number } = held;
  const due = dueAt(delivery);
  if (due === null) return;
  transaction.wrote = true;
  const thread = delivery.thread_id === null ? undefined : core.threads.get(delivery.thread_id);
  const paused = standsStill(delivery) && thread !== undefined && thread.paused_at !== null;
  const later = delivery.open_until === null ? due + restedFor(core, transaction.at, held) : due;
  // Its batch closes in any case.
  core.ledger.setDue(number, paused && delivery.open_until === null ? null : later);
}
