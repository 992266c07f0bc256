/** Closing batches: when their window ends, when somebody comes for them, and at the end of the process. */
import { isSystemChannel } from "../../domain/axes.js";
import { isMiss } from "../../domain/errors.js";
import type { ThreadId, UserId } from "../../domain/ids.js";
import type { Operation } from "../../domain/journal.js";
import type { InjectionPoint, Priority } from "../../domain/priority.js";
import type { Command } from "../../domain/reducer.js";
import { plan, write } from "./changes.js";
import type { Transaction } from "./commit.js";
import type { Core } from "./core.js";
import { flushCommand, judgeCommand } from "./judgement.js";
import type { Held } from "./ledger.js";

/** Closes an open one and words it; on a system channel it is shown from now on, else it waits for its agent. */
export function flush(core: Core, transaction: Transaction, held: Held, operation: Operation): Held {
  const shown = isSystemChannel(held.delivery.channel);
  const command = flushCommand(core, transaction.at, held, shown);
  const commands: Command[] = shown && command.column === "flush" ? [command, { column: "dispatch" }] : [command];
  return run(core, transaction, held, commands, operation);
}

/** Closes an open one for an agent that has come for it. */
export function flushForAgent(core: Core, transaction: Transaction, held: Held): Held {
  return run(core, transaction, held, [flushCommand(core, transaction.at, held, true)], "flush");
}

/** The open ones of a thread, or of the user's own without one, that whoever comes now takes. */
export function flushForPoint(
  core: Core,
  transaction: Transaction,
  user_id: UserId,
  thread_id: ThreadId | null,
  takes: (priority: Priority, inject_at: InjectionPoint) => boolean,
): void {
  for (const number of core.batches.of(user_id, thread_id)) {
    const held = core.ledger.byNumber(number);
    if (held === undefined || isSystemChannel(held.delivery.channel)) continue;
    if (takes(held.delivery.priority, held.notification.inject_at)) flushForAgent(core, transaction, held);
  }
}

/** What is to be told of it now; null if nothing is, and it was suppressed. */
export function judge(core: Core, transaction: Transaction, held: Held): Held | null {
  const command = judgeCommand(core, transaction.at, held);
  if (command === null) return held;
  const judged = run(core, transaction, held, [command], "flush");
  return judged.delivery.state === "SUPPRESSED" ? null : judged;
}

/** Some of all that are open; answers whether there may be more. */
export function flushSome(core: Core, transaction: Transaction, limit: number): boolean {
  const numbers = core.batches.some(limit);
  for (const number of numbers) {
    const held = core.ledger.byNumber(number);
    if (held !== undefined) flush(core, transaction, held, "flush");
  }
  return numbers.length === limit;
}

function run(
  core: Core,
  transaction: Transaction,
  held: Held,
  commands: readonly Command[],
  operation: Operation,
): Held {
  const planned = plan(core, transaction, held, commands);
  if (isMiss(planned) || planned.steps.length === 0) return held;
  const changes = planned.steps.map((step) => step.change);
  write(core, transaction, held.delivery, { type: "delivery", operation, changes }, planned.steps);
  return planned.held;
}
