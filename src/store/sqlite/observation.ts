import { isMiss } from "../../domain/errors.js";
import type { ThreadId } from "../../domain/ids.js";
import type { Principal } from "../../domain/principal.js";
import { parseSubject } from "../../domain/subject.js";
import type { Stored } from "../contract.js";
import { plan, type Step, write } from "./changes.js";
import type { Transaction } from "./commit.js";
import type { Core } from "./core.js";
import { observedCommand } from "./judgement.js";
import type { Held } from "./ledger.js";

/** The agent has seen the subject by itself: what is pending about it is withdrawn, and what is still to come. */
export function observe(
  core: Core,
  transaction: Transaction,
  principal: Principal,
  id: ThreadId,
  subjectText: string,
): Stored[] {
  const thread = core.threads.owned(principal, id);
  const subject = parseSubject(subjectText);
  const steps: Step[] = [];
  const withdrawn: Held[] = [];
  transaction.wrote = true;
  core.threads.markObserved(id, subject);
  for (const one of [...core.threads.pendingAbout(id, subject.name), ...core.threads.pendingBatches(id)]) {
    const command = observedCommand(core, transaction.at, one);
    const planned = command === null ? null : plan(core, transaction, one, [command]);
    if (planned === null || isMiss(planned)) continue;
    steps.push(...planned.steps);
    if (planned.held.delivery.state === "SUPPRESSED") withdrawn.push(planned.held);
  }
  const changes = steps.map((step) => step.change);
  const owner = { user_id: thread.user_id, thread_id: id };
  const { name, generation } = subject;
  write(core, transaction, owner, { type: "observation", subject: name, generation, changes }, steps);
  return withdrawn.map((one) => core.ledger.stored(one));
}
