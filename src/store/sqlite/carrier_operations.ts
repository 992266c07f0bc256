/** How a carrier ends: by its holder, by the watchdog, or with its thread. */
import { mustNarrate } from "../../domain/axes.js";
import type { CarrierEnd, CarrierState } from "../../domain/carrier.js";
import type { BlockForm, CarrierBlock } from "../../domain/conversation.js";
import { isMiss, type Miss, type MissCode } from "../../domain/errors.js";
import type { CarrierId, LeaseId, NotificationId, ThreadId } from "../../domain/ids.js";
import { mayAct, type Principal } from "../../domain/principal.js";
import { type Command, closeCommands, overdueCommand } from "../../domain/reducer.js";
import type { CarriedItem, CarrierOutcome, Lease } from "../contract.js";
import type { CarrierItem, CarrierRow } from "./carriers.js";
import { plan, type Step, write } from "./changes.js";
import type { Transaction } from "./commit.js";
import type { Core } from "./core.js";
import type { Held } from "./ledger.js";

/** Each of at most a hundred items. */
const CARRIERS_MAX = 4;

/** The agent was told. */
export function settleCarrier(
  core: Core,
  transaction: Transaction,
  principal: Principal,
  id: CarrierId,
  acknowledged: ReadonlySet<NotificationId>,
): CarrierOutcome | Miss {
  const carrier = core.carriers.byId(id);
  if (carrier === undefined || !mayAct(principal, carrier.user_id)) return missed("not_found", id);
  if (carrier.ended === "settled") return outcomeOf(core, carrier, core.carriers.items(carrier));
  const lease_id = heldUnder(core, transaction, carrier);
  if (lease_id === undefined) return missed("stale_lease", id);
  return end(core, transaction, carrier, lease_id, { state: "sent", ended: "settled" }, ({ delivery }) => {
    const { lease_epoch: epoch, effective } = delivery;
    if (!mustNarrate(effective) || acknowledged.has(delivery.id)) return [{ column: "settle", epoch }];
    return [{ column: "escalate", reason: "unacknowledged", epoch }];
  });
}

/** The agent was not told. */
export function failCarrier(
  core: Core,
  transaction: Transaction,
  principal: Principal,
  id: CarrierId,
  note: string | null,
): CarrierOutcome | Miss {
  const carrier = core.carriers.byId(id);
  if (carrier === undefined || !mayAct(principal, carrier.user_id)) return missed("not_found", id);
  if (carrier.ended === "failed") return outcomeOf(core, carrier, core.carriers.items(carrier));
  if (carrier.state === "sent") return missed("terminal", id);
  const lease_id = heldUnder(core, transaction, carrier);
  if (lease_id === undefined) return missed("stale_lease", id);
  return end(core, transaction, carrier, lease_id, { state: "void", ended: "failed", note }, ({ delivery }) => [
    { column: "release", epoch: delivery.lease_epoch },
  ]);
}

/** The agent was told: what needs no more is DELIVERED, what it handles is held on. */
export function sendCarrier(
  core: Core,
  transaction: Transaction,
  principal: Principal,
  id: CarrierId,
  form: BlockForm | null,
): CarrierOutcome | Miss {
  const carrier = core.carriers.byId(id);
  if (carrier === undefined || !mayAct(principal, carrier.user_id)) return missed("not_found", id);
  if (carrier.state === "sent") return outcomeOf(core, carrier, core.carriers.items(carrier));
  const lease_id = heldUnder(core, transaction, carrier);
  if (lease_id === undefined) return missed("stale_lease", id);
  const opened = form === null ? undefined : core.journal.read(carrier.seq);
  const text = opened?.type === "carrier" ? opened.block?.text : undefined;
  const block = form === null || text === undefined ? null : { text, form };
  return end(core, transaction, carrier, lease_id, { state: "sent", ended: "settled", block }, ({ delivery }) =>
    delivery.channel === "context" ? [{ column: "settle", epoch: delivery.lease_epoch }] : [],
  );
}

/** Ends all that are held under a lease; `commandFor` says what becomes of each, and whether it was sent. */
export function endCarriersUnder(
  core: Core,
  transaction: Transaction,
  lease_id: LeaseId,
  commandFor: (held: Held, sent: boolean) => Command,
): void {
  for (const carrier of core.carriers.under(lease_id)) {
    const sent = carrier.state === "sent";
    const how = sent ? ({ state: "sent", ended: "settled" } as const) : ({ state: "void", ended: "failed" } as const);
    end(core, transaction, carrier, lease_id, how, (held) => [commandFor(held, sent)]);
  }
}

export function renewCarrier(
  core: Core,
  transaction: Transaction,
  principal: Principal,
  id: CarrierId,
  lease_ms: number,
): Lease | Miss {
  const carrier = core.carriers.byId(id);
  if (carrier === undefined || !mayAct(principal, carrier.user_id)) return missed("not_found", id);
  const lease_id = heldUnder(core, transaction, carrier);
  const lease = lease_id === undefined ? undefined : core.leases.get(lease_id);
  if (lease === undefined) return missed("stale_lease", id);
  const expires_at = Math.max(lease.expires_at, transaction.at + lease_ms);
  transaction.wrote = true;
  core.leases.renew(lease.id, expires_at);
  return { id: lease.id, owner: lease.owner, expires_at };
}

/** Ends some of those whose lease ran out: agent items go to the user, context items wait on. Answers how many. */
export function expireCarriers(core: Core, transaction: Transaction): number {
  const carriers = core.carriers.expired(transaction.at, CARRIERS_MAX);
  for (const carrier of carriers)
    end(core, transaction, carrier, carrier.lease_id, endedBy(carrier, "lease_expired"), ({ delivery }) => {
      const command = overdueCommand(delivery, true, transaction.at);
      return command === null ? [] : [command];
    });
  return carriers.length;
}

/** Ends some of those that are held in a thread that is closed; answers how many. */
export function closeCarriers(core: Core, transaction: Transaction, thread_id: ThreadId): number {
  const carriers = core.carriers.heldIn(thread_id, CARRIERS_MAX);
  for (const carrier of carriers)
    end(core, transaction, carrier, carrier.lease_id, endedBy(carrier, "thread_closed"), ({ delivery }) =>
      closeCommands(delivery),
    );
  return carriers.length;
}

/** What was sent stays sent, also if the rest of it was taken from its holder. */
function endedBy({ state }: CarrierRow, ended: CarrierEnd): { state: CarrierState; ended: CarrierEnd } {
  return { state: state === "sent" ? "sent" : "void", ended };
}

/** The lease, unless it is over by the store's clock: then nothing is changed, even if nobody has taken over yet. */
function heldUnder(core: Core, { at }: Transaction, { lease_id }: CarrierRow): LeaseId | undefined {
  return lease_id === null || core.leases.isExpired(lease_id, at) ? undefined : lease_id;
}

/**
 * Ends the hold in one entry. Only what is still as it was collected is touched; the rest was lost before. One that is sent
 * goes on while something in it is held.
 */
function end(
  core: Core,
  transaction: Transaction,
  carrier: CarrierRow,
  lease_id: LeaseId,
  how: {
    readonly state: CarrierState;
    readonly ended: CarrierEnd;
    readonly note?: string | null;
    readonly block?: CarrierBlock | null;
  },
  commandsFor: (held: Held) => readonly Command[],
): CarrierOutcome {
  const steps: Step[] = [];
  let holds = false;
  const items = core.carriers.items(carrier).map((item): CarrierItem => {
    const held = item.state === null ? core.ledger.byNumber(item.number) : undefined;
    if (held?.delivery.lease?.id !== lease_id || held.delivery.lease_epoch !== item.lease_epoch) return item;
    const commands = commandsFor(held);
    if (commands.length === 0) holds = true;
    const planned = plan(core, transaction, held, commands);
    if (isMiss(planned) || commands.length === 0) return item;
    steps.push(...planned.steps);
    return { ...item, state: planned.held.delivery.state };
  });
  const { id, point } = carrier;
  const { state, note = null, block = null } = how;
  const goesOn = holds && state === "sent";
  const ended = goesOn ? null : how.ended;
  const changes = steps.map((step) => step.change);
  const { turn_id } = carrier;
  const said = { turn_id, items: [], embedded: [], block };
  const told = state === "sent" && carrier.state === "open" ? ({ told: true } as const) : {};
  const body = { type: "carrier", carrier_id: id, state, point, ended, note, ...said, ...told, changes } as const;
  const last_seq = write(core, transaction, carrier, body, steps);
  if (state === "sent" && carrier.state === "open" && carrier.aware_seq !== null)
    core.threads.setAware(carrier.thread_id, carrier.aware_seq, carrier.aware_inbox ?? 0);
  if (carrier.state === "open") core.figures.ended(carrier.seq, state === "sent");
  const after: CarrierRow = { ...carrier, state, ended, lease_id: goesOn ? lease_id : null, last_seq };
  if (goesOn) core.carriers.send(carrier, last_seq, items);
  else {
    core.carriers.end(carrier, after, items);
    core.leases.letGo(lease_id);
  }
  return outcomeOf(core, after, items);
}

function outcomeOf(core: Core, { id, state }: CarrierRow, items: readonly CarrierItem[]): CarrierOutcome {
  const carried = items.flatMap((item): CarriedItem[] => {
    const held = core.ledger.byNumber(item.number);
    if (held === undefined) return [];
    const { delivery } = held;
    return [{ id: delivery.id, state: item.state ?? delivery.state, lost: item.state === null }];
  });
  return { id, state, items: carried };
}

const WHY: Record<Extract<MissCode, "not_found" | "stale_lease" | "terminal">, (id: string) => string> = {
  not_found: (id) => `no carrier ${id} for this user`,
  stale_lease: (id) => `carrier ${id} was not changed: its lease is over; collect again for what is pending`,
  terminal: (id) => `carrier ${id} was not failed: it was sent, which never changes`,
};

function missed(code: keyof typeof WHY, id: CarrierId): Miss {
  return { miss: code, id, message: WHY[code](JSON.stringify(id)) };
}
