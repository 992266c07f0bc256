/** What an agent is told at a delivery point of its thread. */
import { mustNarrate } from "../../domain/axes.js";
import type { Item } from "../../domain/conversation.js";
import { assert, ConflictError, isMiss } from "../../domain/errors.js";
import { carrierId, leaseId, type ThreadId, type TurnId, type UserId } from "../../domain/ids.js";
import type { Thread } from "../../domain/journal.js";
import { type Point, taken, takes } from "../../domain/points.js";
import type { Principal } from "../../domain/principal.js";
import type { Command } from "../../domain/reducer.js";
import { isNothing, NOTHING, type Spent } from "../../domain/usage.js";
import { crashPoint } from "../../platform/crashpoint.js";
import type { Collected, CollectRequest, Compose, Composed, Lease } from "../contract.js";
import type { Wanted } from "./agent_queue.js";
import type { AwareTo } from "./aware.js";
import { plan, write } from "./changes.js";
import { toTell } from "./claim.js";
import type { Transaction } from "./commit.js";
import type { Core } from "./core.js";
import { flushForPoint } from "./flush.js";
import type { Held } from "./ledger.js";
import { openOne, openThread, refuseOthers } from "./open_threads.js";

/** Of one item beside its texts. */
const ITEM_BYTES = 1_024;

/** Where, when, and how much of what waits there. */
export interface Telling {
  readonly user_id: UserId;
  readonly thread_id: ThreadId;
  readonly point: Point;
  readonly limit: number;
  readonly bytes_max?: number;
  readonly compose: Compose;
  /** With a user's message: what has waited for one is told, however short ago it failed. */
  readonly message?: boolean;
}

/** A carrier that is decided and not yet written. */
export interface Prepared {
  readonly telling: Telling;
  /** What it tells, as it was found. */
  readonly found: readonly Held[];
  readonly composed: ReturnType<Compose>;
  /** How many wait beyond what it tells. */
  readonly more: number;
  readonly aware: AwareTo;
}

/** Opens a carrier for an agent that is not ours. */
export function collect(
  core: Core,
  transaction: Transaction,
  principal: Principal,
  request: CollectRequest,
): Collected | null {
  const { owner, auto_settle, awareness_alone } = request;
  const { user_id } = threadFor(core, transaction, principal, request);
  const prepared = prepareCarrier(core, transaction, { ...request, user_id });
  if (prepared === null || (prepared.found.length === 0 && !awareness_alone)) return null;
  const { at } = transaction;
  const lease: Lease = { id: leaseId(core.ids.random(at)), owner, expires_at: at + request.lease_ms };
  return writeCarrier(core, transaction, prepared, {
    lease,
    opened: false,
    turn_id: null,
    items: [],
    auto_settle,
    spent: NOTHING,
  });
}

/** Closes the batches that the point takes, leaves out what is held back now, and words the most urgent. */
export function prepareCarrier(core: Core, transaction: Transaction, telling: Telling): Prepared | null {
  const { user_id, thread_id, point, compose } = telling;
  const { at } = transaction;
  for (const place of [thread_id, null])
    flushForPoint(core, transaction, user_id, place, (priority, inject_at) => takes(point, priority, inject_at));
  const wanted = { ...wantedBy(user_id, thread_id, point, at), message: telling.message === true };
  const { found: candidates, all } = mostUrgent(core, transaction, wanted, telling);
  const beyond = all ? 0 : core.queue.count(wanted) - candidates.length;
  const { aware, to } = core.awareness.of(thread_id, user_id);
  const stored = candidates.map((held) => core.ledger.stored(held));
  const composed = compose(stored, beyond, aware, at);
  if (composed.text === "") return null;
  const found = toldOf(candidates, composed);
  return { telling, found, composed, more: candidates.length - found.length + beyond, aware: to };
}

function toldOf(candidates: readonly Held[], { told }: Composed): Held[] {
  const ids = new Set(told.map(({ id }) => id));
  const found = candidates.filter(({ delivery }) => ids.has(delivery.id));
  assert(found.length === told.length, "what a carrier tells is among what waits");
  return found;
}

export interface Holding {
  readonly lease: Lease;
  /** Whether the lease is there already: a turn's. */
  readonly opened: boolean;
  readonly turn_id: TurnId | null;
  readonly items: readonly Item[];
  readonly auto_settle: boolean;
  /** By the turn, since it last said so. */
  readonly spent: Spent;
}

/** The carrier is one entry; what was closed or held back has entries of its own before it. */
export function writeCarrier(core: Core, transaction: Transaction, prepared: Prepared, holding: Holding): Collected {
  const { telling, found, composed, more, aware } = prepared;
  const { user_id, thread_id, point } = telling;
  const { lease, turn_id, items, auto_settle, spent } = holding;
  // From here on nothing else is journaled before this entry: its `seq` is in the carrier's id and in the links.
  const seq = core.journal.nextSeq;
  const id = carrierId(core.ids.numbered(transaction.at, seq));
  const plans = found.map((held) => {
    const planned = plan(core, transaction, held, commandsFor(held, lease, thread_id, auto_settle));
    assert(!isMiss(planned), "what waits for an agent can be collected");
    return planned;
  });
  const held = plans.filter((planned) => planned.held.delivery.state === "LOCKED").length;
  const state = auto_settle ? "sent" : "open";
  const ended = auto_settle && held === 0 ? "settled" : null;
  const steps = plans.flatMap((planned) => planned.steps);
  const changes = steps.map((step) => step.change);
  const block = { text: composed.text, form: composed.form };
  const said = { turn_id, items, embedded: composed.told, block, ...(isNothing(spent) ? {} : { spent }) };
  core.usage.add(user_id, thread_id, transaction.at, spent);
  const told = auto_settle ? ({ told: true } as const) : {};
  const body = { type: "carrier", carrier_id: id, state, point, ended, note: null, ...said, ...told, changes } as const;
  write(core, transaction, { user_id, thread_id }, body, steps);
  // The carrier itself holds the lease too: it stays until the carrier ends, whatever happens to its items.
  if (ended === null) {
    if (holding.opened) core.leases.hold(lease.id, held + 1);
    else core.leases.open(lease, user_id, held + 1);
  }
  const lease_id = ended === null ? lease.id : null;
  core.carriers.insert(
    {
      id,
      user_id,
      thread_id,
      point,
      state,
      ended,
      lease_id,
      seq,
      last_seq: seq,
      turn_id,
      aware_seq: aware.seq,
      aware_inbox: aware.inbox,
    },
    plans.map(({ held: { number, delivery } }) => ({
      number,
      revision: delivery.revision,
      lease_epoch: delivery.lease_epoch,
      state: delivery.state === "LOCKED" ? null : delivery.state,
    })),
  );
  core.figures.made(seq, block.text.length);
  if (state === "sent") core.figures.ended(seq, true);
  if (state === "sent") core.threads.setAware(thread_id, aware.seq, aware.inbox);
  crashPoint("claim.leased");
  return {
    id,
    thread_id,
    point,
    state,
    lease: ended === null ? lease : null,
    items: plans.map((planned) => core.ledger.stored(planned.held)),
    more,
    embedded: composed.told,
    block,
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
  refuseOthers(core, transaction, thread_id, owner);
  const turn = core.turns.activeIn(thread_id);
  if (turn !== undefined && !core.leases.isExpired(turn.lease_id, transaction.at))
    throw new ConflictError(
      "thread_held",
      `thread ${JSON.stringify(thread_id)} is held by the hosted agent, which is at work in it; collect again when its turn is over`,
    );
  return thread;
}

function wantedBy(user_id: UserId, thread_id: ThreadId, point: Point, at: number): Wanted {
  return { user_id, thread_id, at, points: (priority) => taken(point, priority), message: false };
}

/** By priority and then age, as many as go in, and whether that is all of it. */
function mostUrgent(
  core: Core,
  transaction: Transaction,
  wanted: Wanted,
  { limit, bytes_max = Number.POSITIVE_INFINITY }: Telling,
): { found: Held[]; all: boolean } {
  const found: Held[] = [];
  let room = bytes_max;
  for (const number of core.queue.byUrgency(wanted)) {
    const held = core.ledger.byNumber(number);
    const told = held === undefined ? null : toTell(core, transaction, held);
    if (told === null) continue;
    room -= sizeOf(told);
    if (found.length > 0 && (room < 0 || found.length === limit)) return { found, all: false };
    found.push(told);
  }
  return { found, all: true };
}

/** As JSON, about. */
function sizeOf({ notification: { content, directive, degraded } }: Held): number {
  return ITEM_BYTES + Buffer.byteLength(JSON.stringify([content, directive, degraded]));
}

function commandsFor(held: Held, { id, owner }: Lease, thread_id: ThreadId, auto_settle: boolean): Command[] {
  const { effective, lease_epoch } = held.delivery;
  const lock: Command = { column: "collect", lease: { id, owner }, thread_id };
  if (!auto_settle || mustNarrate(effective)) return [lock];
  return [lock, { column: "settle", epoch: lease_epoch + 1 }];
}

/** Whether a collect would find something that waits for nothing more. */
export function isReady(core: Core, at: number, principal: Principal, thread_id: ThreadId, point: Point): boolean {
  const { user_id } = openOne(core, principal, thread_id);
  return core.queue.isReady(wantedBy(user_id, thread_id, point, at));
}
