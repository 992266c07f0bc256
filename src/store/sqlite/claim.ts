import { ConflictError, InvalidInputError, isMiss, type Miss } from "../../domain/errors.js";
import { leaseId, type NotificationId } from "../../domain/ids.js";
import { mayAct, type Principal } from "../../domain/principal.js";
import { PRIORITIES } from "../../domain/priority.js";
import { missNotFound } from "../../domain/reducer.js";
import { crashPoint } from "../../platform/crashpoint.js";
import type { Claim, ClaimRequest, Lease } from "../contract.js";
import { plan, type Step, write } from "./changes.js";
import type { Transaction } from "./commit.js";
import type { Connection, Statement } from "./connection.js";
import type { Core } from "./core.js";
import type { Held } from "./ledger.js";

/** The user's own items, which any of their threads may take. */
const ANY_THREAD = "";

export class Claims {
  readonly #pending: Statement;

  constructor(connection: Connection) {
    this.#pending = connection
      .prepare(
        `SELECT number FROM deliveries
         WHERE user_id = ? AND (CASE WHEN effective < 'user/' THEN thread_id ELSE '' END) = ? AND priority = ?
           AND state = 'PENDING' AND not_before <= ?
         ORDER BY number LIMIT ?`,
      )
      .pluck();
  }

  /** Locks what is pending under one lease, in one entry. */
  claim(core: Core, transaction: Transaction, principal: Principal, request: ClaimRequest): Claim {
    if (!mayAct(principal, request.user_id)) throw new InvalidInputError("user_id", "must be the caller's own");
    const thread = request.thread_id === undefined ? undefined : core.threads.owned(principal, request.thread_id);
    if (thread !== undefined && thread.user_id !== request.user_id)
      throw new InvalidInputError("thread_id", "must belong to the user");
    if (thread !== undefined && thread.state !== "open")
      throw new ConflictError("thread_closed", `thread ${JSON.stringify(thread.id)} is closed; nothing is told there`);

    const misses: Miss[] = [];
    const wanted =
      request.ids === undefined
        ? this.#mostUrgent(core, transaction, request)
        : named(core, request, request.ids, misses);
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

  /** By priority and then age. */
  #mostUrgent(core: Core, { at }: Transaction, { user_id, thread_id, limit }: ClaimRequest): Held[] {
    const places = thread_id === undefined ? [ANY_THREAD] : [thread_id, ANY_THREAD];
    const numbers: number[] = [];
    for (const priority of PRIORITIES) {
      const left = limit - numbers.length;
      if (left <= 0) break;
      const found = places.flatMap((place) => this.#pending.all(user_id, place, priority, at, left) as number[]);
      numbers.push(...found.sort((one, other) => one - other).slice(0, left));
    }
    return numbers.flatMap((number) => core.ledger.byNumber(number) ?? []);
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
