import { InvalidInputError, isMiss, type Miss } from "../../domain/errors.js";
import { leaseId, type NotificationId } from "../../domain/ids.js";
import { mayAct, type Principal } from "../../domain/principal.js";
import { type Priority, priorityRank } from "../../domain/priority.js";
import { missNotFound } from "../../domain/reducer.js";
import { crashPoint } from "../../platform/crashpoint.js";
import type { Claim, ClaimRequest, Lease } from "../contract.js";
import { plan, type Step, write } from "./changes.js";
import type { Transaction } from "./commit.js";
import type { Connection, Statement } from "./connection.js";
import type { Core } from "./core.js";
import type { Held } from "./ledger.js";

/** Pending items looked at to find the most urgent. */
const CANDIDATES = 500;

interface Candidate {
  number: number;
  priority: Priority;
}

export class Claims {
  readonly #ofThread: Statement;
  readonly #ofUser: Statement;

  constructor(connection: Connection) {
    this.#ofThread = connection.prepare(
      `SELECT number, priority FROM deliveries
       WHERE thread_id = ? AND live = 1 AND state = 'PENDING' AND user_id = ? AND channel IN ('agent', 'context')
         AND effective < 'user/' AND not_before <= ?
       ORDER BY number LIMIT ?`,
    );
    this.#ofUser = connection.prepare(
      `SELECT number, priority FROM deliveries
       WHERE user_id = ? AND channel = ? AND live = 1 AND state = 'PENDING' AND effective >= 'user/' AND not_before <= ?
       ORDER BY number LIMIT ?`,
    );
  }

  /** Locks what is pending under one lease, in one entry. */
  claim(core: Core, transaction: Transaction, principal: Principal, request: ClaimRequest): Claim {
    if (!mayAct(principal, request.user_id)) throw new InvalidInputError("user_id", "must be the caller's own");
    const thread = request.thread_id === undefined ? undefined : core.threads.owned(principal, request.thread_id);
    if (thread !== undefined && thread.user_id !== request.user_id)
      throw new InvalidInputError("thread_id", "must belong to the user");

    const misses: Miss[] = [];
    const wanted =
      request.ids === undefined ? this.#pending(core, transaction, request) : named(core, request, request.ids, misses);
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
    core.leases.open(lease, request.user_id, steps.length);
    crashPoint("claim.leased");
    return { lease, claimed: claimed.map((held) => core.ledger.stored(held)), misses };
  }

  #pending(core: Core, transaction: Transaction, request: ClaimRequest): Held[] {
    const { at } = transaction;
    const { user_id, thread_id } = request;
    const found = [
      ...(thread_id === undefined ? [] : this.#ofThread.all(thread_id, user_id, at, CANDIDATES)),
      ...this.#ofUser.all(user_id, "agent", at, CANDIDATES),
      ...this.#ofUser.all(user_id, "context", at, CANDIDATES),
    ] as Candidate[];
    found.sort((one, other) => priorityRank(one.priority) - priorityRank(other.priority) || one.number - other.number);
    return found.slice(0, request.limit).flatMap(({ number }) => core.ledger.byNumber(number) ?? []);
  }
}

function named(core: Core, request: ClaimRequest, ids: readonly NotificationId[], misses: Miss[]): Held[] {
  return [...new Set(ids)].flatMap((id) => {
    const held = core.ledger.byId(id);
    const reachable =
      held !== undefined &&
      held.delivery.user_id === request.user_id &&
      (held.delivery.effective.address === "user" ||
        request.thread_id === undefined ||
        held.delivery.thread_id === request.thread_id);
    if (reachable) return [held];
    misses.push(missNotFound(id));
    return [];
  });
}
