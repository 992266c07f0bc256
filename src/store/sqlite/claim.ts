import { isSystemChannel } from "../../domain/axes.js";
import { assert, ConflictError, InvalidInputError, isMiss, type Miss } from "../../domain/errors.js";
import { leaseId, type NotificationId } from "../../domain/ids.js";
import { mayAct, type Principal } from "../../domain/principal.js";
import { explainMiss, missNotFound } from "../../domain/reducer.js";
import { crashPoint } from "../../platform/crashpoint.js";
import type { Claim, ClaimRequest, Lease } from "../contract.js";
import { everyPoint } from "./agent_queue.js";
import { plan, type Step, write } from "./changes.js";
import type { Transaction } from "./commit.js";
import type { Core } from "./core.js";
import { flushForAgent, flushForPoint, judge } from "./flush.js";
import type { Held } from "./ledger.js";

/** Locks what is pending under one lease, in one entry. */
export function claim(core: Core, transaction: Transaction, principal: Principal, request: ClaimRequest): Claim {
  if (!mayAct(principal, request.user_id)) throw new InvalidInputError("user_id", "must be the caller's own");
  const thread = request.thread_id === undefined ? undefined : core.threads.owned(principal, request.thread_id);
  if (thread !== undefined && thread.user_id !== request.user_id)
    throw new InvalidInputError("thread_id", "must belong to the user");
  if (thread !== undefined && thread.state !== "open")
    throw new ConflictError("thread_closed", `thread ${JSON.stringify(thread.id)} is closed; nothing is told there`);

  const misses: Miss[] = [];
  const wanted =
    request.ids === undefined
      ? mostUrgent(core, transaction, request)
      : named(core, transaction, request, request.ids, misses);
  const lease: Lease = {
    id: leaseId(core.ids.random(transaction.at)),
    owner: request.owner,
    expires_at: transaction.at + request.lease_ms,
  };
  const steps: Step[] = [];
  const claimed: Held[] = [];
  for (const held of wanted) {
    const planned = plan(core, transaction, held, [
      {
        column: "collect",
        lease: { id: lease.id, owner: lease.owner },
        ...(request.thread_id === undefined ? {} : { thread_id: request.thread_id }),
      },
    ]);
    if (isMiss(planned)) {
      misses.push(planned);
      continue;
    }
    steps.push(...planned.steps);
    claimed.push(planned.held);
  }
  if (steps.length === 0) return { lease: null, claimed: [], misses };
  const owner = { user_id: request.user_id, thread_id: request.thread_id ?? null };
  const changes = steps.map((step) => step.change);
  write(core, transaction, owner, { type: "delivery", operation: "claim", changes }, steps);
  core.leases.open(lease, request.user_id, claimed.length);
  crashPoint("claim.leased");
  return { lease, claimed: claimed.map((held) => core.ledger.stored(held)), misses };
}

/** By priority and then age. */
function mostUrgent(core: Core, transaction: Transaction, { user_id, thread_id: thread, limit }: ClaimRequest): Held[] {
  const thread_id = thread ?? null;
  flushForPoint(core, transaction, user_id, null, () => true);
  if (thread_id !== null) flushForPoint(core, transaction, user_id, thread_id, () => true);
  const found: Held[] = [];
  for (const number of core.queue.byUrgency({ user_id, thread_id, at: transaction.at, points: everyPoint })) {
    const held = core.ledger.byNumber(number);
    const told = held === undefined ? null : toTell(core, transaction, held);
    if (told !== null) found.push(told);
    if (found.length === limit) break;
  }
  return found;
}

/** What of a pending one is to be told now, worded; null if nothing of it is, and it was suppressed. */
export function toTell(core: Core, transaction: Transaction, held: Held): Held | null {
  if (held.delivery.open_until === null) return judge(core, transaction, held);
  const flushed = flushForAgent(core, transaction, held);
  return flushed.delivery.state === "PENDING" ? flushed : null;
}

function named(
  core: Core,
  transaction: Transaction,
  request: ClaimRequest,
  ids: readonly NotificationId[],
  misses: Miss[],
): Held[] {
  return [...new Set(ids)].flatMap((id): Held[] => {
    const held = core.ledger.byId(id);
    const reachable =
      held !== undefined &&
      held.delivery.user_id === request.user_id &&
      (held.delivery.effective.address === "user" ||
        request.thread_id === undefined ||
        held.delivery.thread_id === request.thread_id);
    if (!reachable) {
      misses.push(missNotFound(id));
      return [];
    }
    if (held.delivery.state !== "PENDING" || isSystemChannel(held.delivery.channel)) return [held];
    const told = toTell(core, transaction, held);
    if (told !== null) return [told];
    const suppressed = core.ledger.byNumber(held.number);
    assert(suppressed !== undefined, `${id} is gone in the middle of a claim`);
    misses.push(explainMiss("terminal", suppressed.delivery, "collect"));
    return [];
  });
}
