/** From a command to written rows: decide on what is there, journal it as one entry, then write each step. */
import { assert, isMiss, type Miss } from "../../domain/errors.js";
import type { Change, EntryBody, Operation } from "../../domain/journal.js";
import type { Delivery } from "../../domain/notification.js";
import { mayAct, type Principal } from "../../domain/principal.js";
import { afterRelease, type Command, decide, explainMiss, missNotFound } from "../../domain/reducer.js";
import type { Column } from "../../domain/transitions.js";
import { crashPoint } from "../../platform/crashpoint.js";
import type { CommandRequest, Stored } from "../contract.js";
import type { Transaction } from "./commit.js";
import type { Core, Owner } from "./core.js";
import { linked } from "./journal.js";
import { flushCommand, judgeCommand, observedCommand } from "./judgement.js";
import type { Held } from "./ledger.js";

/** One change of one delivery, decided and not yet written. */
export interface Step {
  readonly before: Held;
  readonly change: Change;
  readonly next: Delivery;
}

/** What a command comes to: steps (none if it changes nothing), and what the delivery will then be. */
export interface Plan {
  readonly steps: readonly Step[];
  readonly held: Held;
}

/** Whoever is told something of an open batch, or what became of it, is told all of it. */
const NEEDS_WORDS: ReadonlySet<Column> = new Set(["dispatch", "collect", "ack", "escalate", "expire"]);

/** An open batch is closed before it is told; and what goes from an agent to the user is told to somebody new. */
function beforeTelling(core: Core, at: number, held: Held, { column }: Command): Command | null {
  const { delivery } = held;
  if (delivery.open_until !== null) return NEEDS_WORDS.has(column) ? flushCommand(core, at, held, true) : null;
  if (column !== "escalate" || delivery.state !== "PENDING") return null;
  const command = judgeCommand(core, at, held);
  return command === null || decide(held, command, { at, policy: core.policy }).outcome !== "changed" ? null : command;
}

export function plan(core: Core, transaction: Transaction, held: Held, commands: readonly Command[]): Plan | Miss {
  const steps: Step[] = [];
  const queue = [...commands];
  let current = held;
  for (let command = queue.shift(); command !== undefined; command = queue.shift()) {
    const first = beforeTelling(core, transaction.at, current, command);
    if (first !== null) {
      // Nothing of it is to be told: it ends here.
      if (first.column === "suppress") queue.length = 0;
      else queue.unshift(command);
      command = first;
    }
    const decision = decide(current, command, { at: transaction.at, policy: core.policy });
    if (decision.outcome === "miss") return decision.miss;
    if (decision.outcome === "same") continue;
    const change = linked(decision.change, current.last_seq);
    const { number } = current;
    const notification =
      change.words === undefined ? current.notification : { ...current.notification, ...change.words };
    steps.push({ before: current, change, next: decision.next });
    current = { notification, delivery: decision.next, number, last_seq: core.journal.nextSeq };
    if (command.column === "release" && queue.length === 0) queue.push(...afterLetGo(core, transaction.at, current));
  }
  return { steps, held: current };
}

/** What was let go: withdrawn if the agent has seen it by itself meanwhile, to the user after too many attempts. */
function afterLetGo(core: Core, at: number, held: Held): Command[] {
  const seen = observedCommand(core, at, held);
  if (seen?.column === "suppress") return [seen];
  const further = afterRelease(held.delivery, core.policy);
  return [...(seen === null ? [] : [seen]), ...(further === null ? [] : [further])];
}

/** A holder whose lease ran out by the store's clock changes nothing, even if nobody has taken over yet. */
function staleLease(core: Core, transaction: Transaction, held: Held, command: Command): Miss | undefined {
  const { delivery } = held;
  if (delivery.state !== "LOCKED" || !("epoch" in command) || command.epoch === undefined) return undefined;
  if (command.epoch !== delivery.lease_epoch) return undefined;
  if (!core.leases.isExpired(delivery.lease.id, transaction.at)) return undefined;
  return explainMiss("stale_lease", delivery, command.column);
}

/** Journals the steps as one entry and writes them. */
export function write(
  core: Core,
  transaction: Transaction,
  owner: Owner,
  body: EntryBody,
  steps: readonly Step[],
): number {
  const seq = core.journal.append(transaction, owner.user_id, owner.thread_id, body);
  crashPoint("change.journaled");
  writeSteps(core, steps, seq);
  crashPoint("change.written");
  return seq;
}

export function writeSteps(core: Core, steps: readonly Step[], seq: number): void {
  for (const { before, change, next } of steps) {
    const held = core.ledger.update(before, next, seq);
    if (change.words !== undefined) core.ledger.rewrite(held, { ...before.notification, ...change.words });
    const let_go = before.delivery.lease;
    if (let_go !== null && next.lease === null) core.leases.letGo(let_go.id);
  }
}

/** One operation on one notification. */
export function runCommand(
  core: Core,
  transaction: Transaction,
  principal: Principal,
  { id, command, operation }: CommandRequest,
): Stored | Miss {
  const held = core.ledger.byId(id);
  if (held === undefined || !mayAct(principal, held.delivery.user_id)) return missNotFound(id);
  const planned = staleLease(core, transaction, held, command) ?? plan(core, transaction, held, [command]);
  if (isMiss(planned)) return planned;
  if (planned.steps.length > 0) {
    const changes = planned.steps.map((step) => step.change);
    write(core, transaction, held.delivery, { type: "delivery", operation, changes }, planned.steps);
  }
  return core.ledger.stored(planned.held);
}

/** One operation on one or more notifications: an entry for each user concerned. */
export function runCommands(
  core: Core,
  transaction: Transaction,
  principal: Principal,
  requests: readonly CommandRequest[],
): (Stored | Miss)[] {
  const current = new Map<string, Held>();
  const entries = new Map<string, { owner: Owner; operation: Operation; steps: Step[] }>();
  const answers = requests.map(({ id, command, operation }): Held | Miss => {
    const held = current.get(id) ?? core.ledger.byId(id);
    if (held === undefined || !mayAct(principal, held.delivery.user_id)) return missNotFound(id);
    const planned = staleLease(core, transaction, held, command) ?? plan(core, transaction, held, [command]);
    if (isMiss(planned)) return planned;
    current.set(id, planned.held);
    if (planned.steps.length > 0) {
      const { user_id, thread_id } = held.delivery;
      const entry = entries.get(user_id) ?? { owner: { user_id, thread_id }, operation, steps: [] };
      entry.steps.push(...planned.steps);
      entries.set(user_id, entry);
    }
    return planned.held;
  });
  assert(entries.size <= 1 || principal.kind === "host", "a user's operation changed another user's notification");
  if (entries.size > 1) return runApart(core, transaction, principal, requests);
  for (const { owner, operation, steps } of entries.values()) {
    const changes = steps.map((step) => step.change);
    write(core, transaction, owner, { type: "delivery", operation, changes }, steps);
  }
  return answers.map((answer) => (isMiss(answer) ? answer : core.ledger.stored(answer)));
}

/** The host settles several users' at once: each is an operation of its own, since links name the next `seq`. */
function runApart(
  core: Core,
  transaction: Transaction,
  principal: Principal,
  requests: readonly CommandRequest[],
): (Stored | Miss)[] {
  return requests.map((request) => runCommand(core, transaction, principal, request));
}
