/** What is done to a thread as a whole: start, close. */
import { ConflictError, isMiss, NotFoundError } from "../../domain/errors.js";
import { type ThreadId, threadId, type UserId } from "../../domain/ids.js";
import type { Thread, ThreadState } from "../../domain/journal.js";
import { mayAct, type Principal } from "../../domain/principal.js";
import { closeCommands } from "../../domain/reducer.js";
import { sameBudgets, type ThreadBudgets } from "../../domain/usage.js";
import { crashPoint } from "../../platform/crashpoint.js";
import { closeCarriers } from "./carrier_operations.js";
import { plan, type Step, write } from "./changes.js";
import type { Transaction } from "./commit.js";
import type { Core } from "./core.js";
import { openOne, openThread } from "./open_threads.js";
import { keepDue, standsStill } from "./stand_still.js";
import { closeTurns } from "./turn_operations.js";

/** Deliveries looked at in one operation. */
const SLICE = 64;

export function startThread(
  core: Core,
  transaction: Transaction,
  principal: Principal,
  user_id: UserId,
  wanted: ThreadId | null,
  budgets: ThreadBudgets | null,
): Thread {
  if (!mayAct(principal, user_id)) throw new NotFoundError("user", user_id);
  const id = wanted ?? threadId(core.ids.random(transaction.at));
  const known = core.threads.get(id);
  // Only the host chooses a thread's id: a user who could would learn by it which ids are taken.
  if (known === undefined && wanted !== null && principal.kind === "user") throw new NotFoundError("thread", id);
  if (known === undefined) return openThread(core, transaction, user_id, id, budgets);
  if (known.user_id !== user_id) throw new NotFoundError("thread", id);
  if (known.state !== "open")
    throw new ConflictError("thread_closed", `thread ${JSON.stringify(id)} is closed; start another`);
  if (budgets !== null && !sameBudgets(budgets, known.budgets))
    throw new ConflictError(
      "idempotency_mismatch",
      `thread ${JSON.stringify(id)} was started before, with other budgets; they are set when it is started`,
    );
  return known;
}

/** From now on nothing new goes into it; what is in it is moved by `moveOut`, in slices. */
export function beginClose(core: Core, transaction: Transaction, principal: Principal, id: ThreadId): Thread {
  const thread = core.threads.owned(principal, id);
  if (thread.state !== "open") return thread;
  setState(core, transaction, thread, "closing");
  crashPoint("thread.closing");
  return { ...thread, state: "closing" };
}

function setState(core: Core, transaction: Transaction, thread: Thread, state: ThreadState): void {
  core.journal.append(transaction, thread.user_id, thread.id, { type: "thread", state, changes: [] });
  core.threads.setState(thread.id, state);
}

/** Its agent rests: what waits for it waits, and its deadlines stand still. */
export function pauseThread(core: Core, transaction: Transaction, principal: Principal, id: ThreadId): Thread {
  const thread = openOne(core, principal, id);
  if (thread.paused_at !== null) return thread;
  const { user_id } = thread;
  core.journal.append(transaction, user_id, id, { type: "thread", state: "open", paused: true, changes: [] });
  core.threads.setPaused(id, transaction.at);
  core.pauses.begin(id, transaction.at);
  return { ...thread, paused_at: transaction.at };
}

export function resumeThread(core: Core, transaction: Transaction, principal: Principal, id: ThreadId): Thread {
  const thread = openOne(core, principal, id);
  if (thread.paused_at === null) return thread;
  core.journal.append(transaction, thread.user_id, id, { type: "thread", state: "open", changes: [] });
  core.threads.setPaused(id, null);
  core.pauses.end(id, transaction.at);
  for (let after = 0; ; ) {
    const live = core.threads.live(id, after, SLICE);
    for (const held of live) if (standsStill(held.delivery)) keepDue(core, transaction, held);
    const last = live.at(-1);
    if (last === undefined || live.length < SLICE) break;
    after = last.number;
  }
  return { ...thread, paused_at: null };
}

/** Moves one slice out of a closing thread; answers where to go on, or null when it is closed. */
export function moveOut(core: Core, transaction: Transaction, id: ThreadId, afterNumber: number): number | null {
  const thread = core.threads.get(id);
  if (thread === undefined || thread.state !== "closing") return null;
  closeTurns(core, transaction, id);
  if (closeCarriers(core, transaction, id) > 0) return afterNumber;
  const held = core.threads.live(id, afterNumber, SLICE);
  const steps: Step[] = [];
  for (const one of held) {
    const planned = plan(core, transaction, one, closeCommands(one.delivery));
    if (!isMiss(planned)) steps.push(...planned.steps);
  }
  if (steps.length > 0) {
    const changes = steps.map((step) => step.change);
    const owner = { user_id: thread.user_id, thread_id: id };
    write(core, transaction, owner, { type: "thread", state: "closing", changes }, steps);
  }
  const last = held.at(-1);
  if (last !== undefined && held.length === SLICE) return last.number;
  core.knownFiles.removeAll(id);
  setState(core, transaction, thread, "closed");
  return null;
}
