/** Threads that something can be told in. */
import { ConflictError } from "../../domain/errors.js";
import type { ThreadId, UserId } from "../../domain/ids.js";
import type { Thread } from "../../domain/journal.js";
import type { Principal } from "../../domain/principal.js";
import { isoTime } from "../../domain/time.js";
import type { ThreadBudgets } from "../../domain/usage.js";
import type { Transaction } from "./commit.js";
import type { Core } from "./core.js";

export function openThread(
  core: Core,
  transaction: Transaction,
  user_id: UserId,
  id: ThreadId,
  budgets: ThreadBudgets | null = null,
): Thread {
  const own = budgets === null ? {} : { budgets };
  core.journal.append(transaction, user_id, id, { type: "thread", state: "open", ...own, changes: [] });
  return core.threads.insert(id, user_id, transaction.at, budgets);
}

/** The thread, if it is the principal's and open. */
export function openOne(core: Core, principal: Principal, thread_id: ThreadId): Thread {
  const thread = core.threads.owned(principal, thread_id);
  if (thread.state === "open") return thread;
  throw new ConflictError("thread_closed", `thread ${JSON.stringify(thread_id)} is closed; nothing is told there`);
}

/** One agent at a time holds a thread. */
export function refuseOthers(core: Core, { at }: Transaction, thread_id: ThreadId, owner: string): void {
  const holder = core.carriers.otherHolder(thread_id, owner, at);
  if (holder === undefined) return;
  throw new ConflictError(
    "thread_held",
    `thread ${JSON.stringify(thread_id)} is held by ${JSON.stringify(holder.owner)} until ${isoTime(holder.expires_at)} at the latest; collect again when it has settled`,
  );
}
