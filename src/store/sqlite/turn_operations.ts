/** Turns of hosted agents: begin, go on, end. */
import { isSystemChannel, mustNarrate } from "../../domain/axes.js";
import type { ChatRequest, Item } from "../../domain/conversation.js";
import { ConflictError, isMiss, type Miss, NotFoundError } from "../../domain/errors.js";
import { leaseId, type ThreadId, type TurnId, turnId, type UserId } from "../../domain/ids.js";
import { mayAct, type Principal } from "../../domain/principal.js";
import type { Command } from "../../domain/reducer.js";
import type { Turn } from "../../domain/turn.js";
import { isNothing, NOTHING, type Spent } from "../../domain/usage.js";
import { crashPoint } from "../../platform/crashpoint.js";
import type { BeginTurn, BegunTurn, Collected, EndTurn, Lease, TurnStep } from "../contract.js";
import { endCarriersUnder } from "./carrier_operations.js";
import { type Prepared, prepareCarrier, writeCarrier } from "./collect.js";
import type { Transaction } from "./commit.js";
import type { Core } from "./core.js";
import { flush } from "./flush.js";
import type { Held } from "./held.js";
import { wakesFlag } from "./ledger_tables.js";
import { observe } from "./observation.js";
import { openOne, refuseOthers } from "./open_threads.js";
import { type ActiveTurn, type TurnRow, turnOf } from "./turns.js";

export function beginTurn(
  core: Core,
  transaction: Transaction,
  principal: Principal,
  request: BeginTurn,
): BegunTurn | null {
  const { thread_id, source, point, limit, compose, succeeds, owner } = request;
  const { at } = transaction;
  const { user_id, paused_at } = openOne(core, principal, thread_id);
  if (paused_at !== null)
    throw new ConflictError("thread_paused", `thread ${JSON.stringify(thread_id)} is paused; resume it first`);
  refuseOthers(core, transaction, thread_id, owner);
  const before = predecessor(core, transaction, thread_id, succeeds?.turn_id ?? null);
  const queued = request.turn_id === null ? null : queuedOne(core, thread_id, request.turn_id);
  for (const subject of succeeds?.observed ?? []) observe(core, transaction, principal, thread_id, subject);
  showFirst(core, transaction, user_id, thread_id);
  const telling = { user_id, thread_id, point, limit, compose, message: source === "user" };
  const prepared = prepareCarrier(core, transaction, telling);
  if (source === "system" && before === null && !isWorthATurn(prepared)) return null;

  const lease = leaseFor(core, transaction, before, request);
  // The entry that ends the turn before comes first.
  const id = queued?.id ?? turnId(core.ids.numbered(at, core.journal.nextSeq + (before === null ? 0 : 1)));
  if (before !== null && succeeds !== null) passOn(core, transaction, before, succeeds, id);
  const internal = source === "system" && before?.internal !== false && isInternal(prepared);
  const told = (prepared?.found ?? []).map((held) => core.ledger.stored(held));
  const worded = typeof request.content === "string" ? request.content : request.content(told);
  const content = queued?.content ?? worded;
  const turn = startedTurn(core, transaction, queued, {
    id,
    user_id,
    thread_id,
    source: queued?.source ?? source,
    internal,
    content,
    lease_id: lease.id,
  });
  if (before === null) core.leases.open(lease, user_id, 1);
  else core.leases.renew(lease.id, lease.expires_at);
  const message: ChatRequest = { type: "chat_request", content, source: turn.source };
  const carrier = say(core, transaction, turn, prepared, [message], lease);
  core.threads.setActive(thread_id, at);
  crashPoint("change.written");
  return { turn: turnOf(turn), lease, items: [message], carrier };
}

/** What the system is about to show the user it shows before the turn begins, so that what was first stands first. */
function showFirst(core: Core, transaction: Transaction, user_id: UserId, thread_id: ThreadId): void {
  for (const place of [thread_id, null])
    for (const number of core.batches.of(user_id, place)) {
      const held = core.ledger.byNumber(number);
      if (held !== undefined && isSystemChannel(held.delivery.channel)) flush(core, transaction, held, "flush");
    }
}

/** The active turn that is to be succeeded; null if there is none, and none is named. */
function predecessor(core: Core, { at }: Transaction, thread_id: ThreadId, wanted: TurnId | null): ActiveTurn | null {
  const active = core.turns.activeIn(thread_id);
  if (active !== undefined && active.id !== wanted)
    throw new ConflictError("turn_active", `turn ${active.id} is active in thread ${JSON.stringify(thread_id)}`);
  if (wanted === null) return null;
  if (active === undefined || core.leases.isExpired(active.lease_id, at))
    throw new ConflictError("turn_not_active", `turn ${wanted} is not active; start another`);
  return active;
}

function queuedOne(core: Core, thread_id: ThreadId, id: TurnId): TurnRow {
  const turn = core.turns.byId(id);
  if (turn?.thread_id !== thread_id) throw new NotFoundError("turn", id);
  if (turn.state !== "queued") throw new ConflictError("turn_not_active", `turn ${id} is ${turn.state}, not queued`);
  return turn;
}

/** Whether the system has a reason to speak up. */
function isWorthATurn(prepared: Prepared | null): boolean {
  if (prepared === null || prepared.found.length === 0) return false;
  return (
    prepared.more > 0 || prepared.found.some(({ notification, delivery }) => wakesFlag(notification, delivery) === 1)
  );
}

/** Nothing of it concerns the user: it is all for the agent to decide about, or rides along. */
function isInternal(prepared: Prepared | null): boolean {
  return (prepared?.found ?? []).every(({ delivery, notification }) => {
    if (delivery.priority === "critical") return false;
    return delivery.channel === "context" ? notification.wake_ms === null : !mustNarrate(delivery.effective);
  });
}

function leaseFor(core: Core, { at }: Transaction, before: ActiveTurn | null, { owner, lease_ms }: BeginTurn): Lease {
  const expires_at = at + lease_ms;
  return { id: before?.lease_id ?? leaseId(core.ids.random(at)), owner, expires_at };
}

/** The turn ends, and what it holds goes on under the same lease. */
function passOn(
  core: Core,
  transaction: Transaction,
  before: ActiveTurn,
  { items, note, spent }: NonNullable<BeginTurn["succeeds"]>,
  continued_by: TurnId,
): void {
  const ended: TurnRow = { ...before, state: "interrupted", note, continued_by, lease_id: null };
  const last_seq = entry(core, transaction, ended, items, spent === undefined ? {} : { spent });
  core.turns.update(before, { ...ended, last_seq });
}

type Begins = Pick<TurnRow, "id" | "user_id" | "thread_id" | "source" | "internal" | "content" | "lease_id">;

function startedTurn(core: Core, transaction: Transaction, queued: TurnRow | null, begins: Begins): TurnRow {
  const state = "active";
  if (queued !== null) {
    const turn: TurnRow = { ...queued, ...begins, state };
    const last_seq = entry(core, transaction, turn, [], { source: turn.source });
    core.turns.update(queued, { ...turn, last_seq });
    return { ...turn, last_seq };
  }
  const turn = newTurn(core, transaction, { ...begins, state });
  entry(core, transaction, turn, [], { source: turn.source });
  core.turns.insert(turn);
  return turn;
}

function newTurn(core: Core, { at }: Transaction, turn: Begins & Pick<TurnRow, "state">): TurnRow {
  const seq = core.journal.nextSeq;
  return { ...turn, seq, created_at: at, note: null, continued_by: null, last_seq: seq };
}

function entry(
  core: Core,
  transaction: Transaction,
  { id, user_id, thread_id, state, internal, note, continued_by }: TurnRow,
  items: readonly Item[],
  more: { readonly source?: Turn["source"]; readonly content?: string; readonly spent?: Spent } = {},
): number {
  const { source = null, content = null, spent = NOTHING } = more;
  const facts = { turn_id: id, state, source, internal, content, note, continued_by, ...spentOf(spent) };
  core.usage.add(user_id, thread_id, transaction.at, spent);
  return core.journal.append(transaction, user_id, thread_id, { type: "turn", ...facts, items, changes: [] });
}

/** Left out where it is nothing. */
function spentOf(spent: Spent): { readonly spent?: Spent } {
  return isNothing(spent) ? {} : { spent };
}

/** With what is told, if something is; else as it is. */
function say(
  core: Core,
  transaction: Transaction,
  turn: TurnRow,
  prepared: Prepared | null,
  items: readonly Item[],
  lease: Lease,
  spent: Spent = NOTHING,
): Collected | null {
  if (prepared !== null)
    return writeCarrier(core, transaction, prepared, {
      lease,
      opened: true,
      turn_id: turn.id,
      items,
      auto_settle: false,
      spent,
    });
  if (items.length > 0 || !isNothing(spent)) entry(core, transaction, turn, items, { spent });
  return null;
}

/** The turn, if it is the principal's, active and under a lease that is not over. */
function active(core: Core, { at }: Transaction, principal: Principal, id: TurnId): ActiveTurn | Miss {
  const turn = core.turns.byId(id);
  if (turn === undefined || !mayAct(principal, turn.user_id)) return missed("not_found", id);
  if (turn.state !== "active" || turn.lease_id === null || core.leases.isExpired(turn.lease_id, at))
    return missed("stale_lease", id);
  return turn as ActiveTurn;
}

function missed(miss: "not_found" | "stale_lease", id: TurnId): Miss {
  const message =
    miss === "not_found"
      ? `no turn ${JSON.stringify(id)} for this user`
      : `turn ${JSON.stringify(id)} was not changed: it is not active, or its lease is over`;
  return { miss, id, message };
}

export function stepTurn(
  core: Core,
  transaction: Transaction,
  principal: Principal,
  { turn_id, items, collect, spent, observed = [] }: TurnStep,
): { readonly carrier: Collected | null } | Miss {
  const turn = active(core, transaction, principal, turn_id);
  if (isMiss(turn)) return turn;
  const { user_id, thread_id } = turn;
  for (const subject of observed) observe(core, transaction, principal, thread_id, subject);
  const message = collect?.point === "user_message";
  const telling = collect === null ? null : { user_id, thread_id, ...collect, message };
  const prepared = telling === null ? null : prepareCarrier(core, transaction, telling);
  const lease = core.leases.get(turn.lease_id);
  if (lease === undefined) return missed("stale_lease", turn_id);
  return { carrier: say(core, transaction, turn, prepared, items, lease, spent) };
}

export function renewTurn(
  core: Core,
  transaction: Transaction,
  principal: Principal,
  id: TurnId,
  lease_ms: number,
): Lease | Miss {
  const turn = active(core, transaction, principal, id);
  const lease = isMiss(turn) ? undefined : core.leases.get(turn.lease_id);
  if (isMiss(turn)) return turn;
  if (lease === undefined) return missed("stale_lease", id);
  const expires_at = Math.max(lease.expires_at, transaction.at + lease_ms);
  transaction.wrote = true;
  core.leases.renew(lease.id, expires_at);
  return { id: lease.id, owner: lease.owner, expires_at };
}

export function endTurn(core: Core, transaction: Transaction, principal: Principal, end: EndTurn): Turn | Miss {
  const turn = active(core, transaction, principal, end.turn_id);
  if (isMiss(turn)) return turn;
  for (const subject of end.observed ?? []) observe(core, transaction, principal, turn.thread_id, subject);
  return turnOf(over(core, transaction, turn, end));
}

/** What it said last, its state, and then what becomes of what it holds. */
function over(
  core: Core,
  transaction: Transaction,
  turn: ActiveTurn,
  { state, items, note, spent = NOTHING }: Pick<EndTurn, "state" | "items" | "note" | "spent">,
): TurnRow {
  const last_seq = entry(core, transaction, { ...turn, state, note }, items, { spent });
  const ended: TurnRow = { ...turn, state, note, lease_id: null, last_seq };
  core.turns.update(turn, ended);
  endCarriersUnder(core, transaction, turn.lease_id, (held, sent) => settlement(state, held, sent));
  core.leases.letGo(turn.lease_id);
  core.threads.setActive(turn.thread_id, transaction.at);
  return ended;
}

/** What becomes of one that it held, by how it ended. */
function settlement(state: EndTurn["state"], { delivery }: Held, sent: boolean): Command {
  const { lease_epoch: epoch, effective } = delivery;
  const release: Command = { column: "release", epoch };
  switch (state) {
    case "completed":
      if (!sent) return release;
      return mustNarrate(effective)
        ? { column: "escalate", reason: "unacknowledged", epoch }
        : { column: "settle", epoch };
    case "failed":
      return release;
    case "stopped":
      return mustNarrate(effective) ? { column: "escalate", reason: "stopped", epoch } : { ...release, quiet: true };
  }
}

/** Those whose lease ran out: their host is gone, or was away too long. Answers how many. */
export function expireTurns(core: Core, transaction: Transaction, limit: number): number {
  const turns = core.turns.expired(transaction.at, limit);
  for (const turn of turns) failed(core, transaction, turn, "its lease ran out");
  return turns.length;
}

/** Ends those of a thread that is closed; what they held is ended with its carriers. */
export function closeTurns(core: Core, transaction: Transaction, thread_id: ThreadId): void {
  for (const turn of core.turns.liveIn(thread_id)) {
    if (turn.lease_id !== null) failed(core, transaction, turn as ActiveTurn, "its thread was closed");
    else remove(core, transaction, turn, "its thread was closed");
  }
}

/** It is over; its carriers are ended by others. */
function failed(core: Core, transaction: Transaction, turn: ActiveTurn, note: string): void {
  const last_seq = entry(core, transaction, { ...turn, state: "failed", note }, []);
  core.turns.update(turn, { ...turn, state: "failed", note, lease_id: null, last_seq });
  core.leases.letGo(turn.lease_id);
}

export function queueTurn(
  core: Core,
  transaction: Transaction,
  principal: Principal,
  thread_id: ThreadId,
  content: string,
): Turn {
  const { user_id } = openOne(core, principal, thread_id);
  const id = turnId(core.ids.numbered(transaction.at, core.journal.nextSeq));
  const begins = { id, user_id, thread_id, source: "user", internal: false, content, lease_id: null } as const;
  const turn = newTurn(core, transaction, { ...begins, state: "queued" });
  entry(core, transaction, turn, [], { source: "user", content });
  core.turns.insert(turn);
  return turnOf(turn);
}

export function editQueued(
  core: Core,
  transaction: Transaction,
  principal: Principal,
  id: TurnId,
  content: string | null,
): Turn | Miss {
  const turn = core.turns.byId(id);
  if (turn === undefined || !mayAct(principal, turn.user_id)) return missed("not_found", id);
  if (turn.state !== "queued")
    return { miss: "terminal", id, message: `turn ${id} is ${turn.state}; only a queued one can be changed` };
  if (content === null) return turnOf(remove(core, transaction, turn, null));
  const last_seq = entry(core, transaction, { ...turn, content }, [], { content });
  core.turns.update(turn, { ...turn, content, last_seq });
  return turnOf({ ...turn, content });
}

function remove(core: Core, transaction: Transaction, turn: TurnRow, note: string | null): TurnRow {
  const last_seq = entry(core, transaction, { ...turn, state: "removed", note }, []);
  const removed: TurnRow = { ...turn, state: "removed", note, last_seq };
  core.turns.update(turn, removed);
  return removed;
}
