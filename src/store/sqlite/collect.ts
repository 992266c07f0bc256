/** What an agent is told at a delivery point of its thread. */
import { mustNarrate } from "../../domain/axes.js";
import { assert, ConflictError, isMiss } from "../../domain/errors.js";
import { carrierId, leaseId, type ThreadId, type UserId } from "../../domain/ids.js";
import type { Thread } from "../../domain/journal.js";
import { type Point, taken, takes } from "../../domain/points.js";
import type { Principal } from "../../domain/principal.js";
import type { Command } from "../../domain/reducer.js";
import { isoTime } from "../../domain/time.js";
import { crashPoint } from "../../platform/crashpoint.js";
import type { Collected, CollectRequest, Lease } from "../contract.js";
import type { AgentQueue, Wanted } from "./agent_queue.js";
import { plan, write } from "./changes.js";
import { toTell } from "./claim.js";
import type { Transaction } from "./commit.js";
import type { Core } from "./core.js";
import { flushForPoint } from "./flush.js";
import type { Held } from "./ledger.js";
import { openThread } from "./thread_operations.js";

/** Of one item beside its texts. */
const ITEM_BYTES = 1_024;

/**
 * Opens a carrier: closes the batches that the point takes, leaves out what is held back now, and locks the most urgent
 * under one lease. The carrier is one entry; what was closed or held back has entries of its own before it.
 */
export function collect(
  core: Core,
  transaction: Transaction,
  queue: AgentQueue,
  principal: Principal,
  request: CollectRequest,
): Collected | null {
  const { thread_id, point, owner, auto_settle } = request;
  const { at } = transaction;
  const { user_id } = threadFor(core, transaction, principal, request);
  for (const place of [thread_id, null])
    flushForPoint(core, transaction, user_id, place, (priority, inject_at) => takes(point, priority, inject_at));
  const wanted = wantedBy(user_id, thread_id, point, at);
  const found = mostUrgent(core, transaction, queue, wanted, request);
  if (found.length === 0) return null;

  // From here on nothing else is journaled before this entry: its `seq` is in the carrier's id and in the links.
  const seq = core.journal.nextSeq;
  const id = carrierId(core.ids.numbered(at, seq));
  const lease: Lease = { id: leaseId(core.ids.random(at)), owner, expires_at: at + request.lease_ms };
  const plans = found.map((held) => {
    const planned = plan(core, transaction, held, commandsFor(held, lease, request));
    assert(!isMiss(planned), "what waits for an agent can be collected");
    return planned;
  });
  const held = plans.filter((planned) => planned.held.delivery.state === "LOCKED").length;
  const state = auto_settle ? "sent" : "open";
  const ended = held === 0 ? "settled" : null;
  const steps = plans.flatMap((planned) => planned.steps);
  const changes = steps.map((step) => step.change);
  const body = { type: "carrier", carrier_id: id, state, point, ended, note: null, changes } as const;
  write(core, transaction, { user_id, thread_id }, body, steps);
  // The carrier itself holds the lease too: it stays until the carrier ends, whatever happens to its items.
  if (ended === null) core.leases.open(lease, user_id, held + 1);
  const lease_id = ended === null ? lease.id : null;
  core.carriers.insert(
    { id, user_id, thread_id, point, state, ended, lease_id, seq, last_seq: seq },
    plans.map(({ held: { number, delivery } }) => ({
      number,
      revision: delivery.revision,
      lease_epoch: delivery.lease_epoch,
      state: delivery.state === "LOCKED" ? null : delivery.state,
    })),
  );
  crashPoint("claim.leased");
  return {
    id,
    thread_id,
    point,
    state,
    lease: ended === null ? lease : null,
    items: plans.map((planned) => core.ledger.stored(planned.held)),
    more: queue.count(wanted),
  };
}

/** The thread, open and nobody else's; the host opens one by naming it. */
function threadFor(
  core: Core,
  transaction: Transaction,
  principal: Principal,
  { thread_id, user_id, owner }: CollectRequest,
): Thread {
  if (principal.kind === "host" && user_id !== null && core.threads.get(thread_id) === undefined)
    return openThread(core, transaction, user_id, thread_id);
  const thread = openOne(core, principal, thread_id);
  const holder = core.carriers.otherHolder(thread_id, owner, transaction.at);
  if (holder === undefined) return thread;
  throw new ConflictError(
    "thread_held",
    `thread ${JSON.stringify(thread_id)} is held by ${JSON.stringify(holder.owner)} until ${isoTime(holder.expires_at)} at the latest; collect again when it has settled`,
  );
}

function openOne(core: Core, principal: Principal, thread_id: ThreadId): Thread {
  const thread = core.threads.owned(principal, thread_id);
  if (thread.state === "open") return thread;
  throw new ConflictError("thread_closed", `thread ${JSON.stringify(thread_id)} is closed; nothing is told there`);
}

function wantedBy(user_id: UserId, thread_id: ThreadId, point: Point, at: number): Wanted {
  return { user_id, thread_id, at, points: (priority) => taken(point, priority) };
}

/** By priority and then age, as many as go in. */
function mostUrgent(
  core: Core,
  transaction: Transaction,
  queue: AgentQueue,
  wanted: Wanted,
  { limit, bytes_max = Number.POSITIVE_INFINITY }: CollectRequest,
): Held[] {
  const found: Held[] = [];
  let room = bytes_max;
  for (const number of queue.byUrgency(wanted)) {
    const held = core.ledger.byNumber(number);
    const told = held === undefined ? null : toTell(core, transaction, held);
    if (told === null) continue;
    room -= sizeOf(told);
    if (room < 0 && found.length > 0) break;
    found.push(told);
    if (found.length === limit) break;
  }
  return found;
}

/** As JSON, about. */
function sizeOf({ notification: { content, directive, degraded } }: Held): number {
  return ITEM_BYTES + Buffer.byteLength(JSON.stringify([content, directive, degraded]));
}

function commandsFor(held: Held, { id, owner }: Lease, { thread_id, auto_settle }: CollectRequest): Command[] {
  const { effective, lease_epoch } = held.delivery;
  const lock: Command = { column: "collect", lease: { id, owner }, thread_id };
  if (!auto_settle || mustNarrate(effective)) return [lock];
  return [lock, { column: "settle", epoch: lease_epoch + 1 }];
}

/** Whether a collect would find something that waits for nothing more. */
export function isReady(
  core: Core,
  at: number,
  queue: AgentQueue,
  principal: Principal,
  thread_id: ThreadId,
  point: Point,
): boolean {
  const { user_id } = openOne(core, principal, thread_id);
  return queue.isReady(wantedBy(user_id, thread_id, point, at));
}
