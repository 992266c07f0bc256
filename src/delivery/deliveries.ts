import { z } from "zod";
import type { Miss } from "../domain/errors.js";
import { isMiss } from "../domain/errors.js";
import { type LeaseId, LOCAL_USER, leaseId, notificationId, threadId, userId } from "../domain/ids.js";
import type { Operation } from "../domain/journal.js";
import { LIMITS } from "../domain/limits.js";
import type { NotificationView } from "../domain/notification.js";
import { parseInput, wordSchema } from "../domain/parse.js";
import type { DeliveryPolicy } from "../domain/policy.js";
import type { Principal } from "../domain/principal.js";
import type { Command } from "../domain/reducer.js";
import { isoTime } from "../domain/time.js";
import { viewOf } from "../domain/view.js";
import type { Store, Stored } from "../store/contract.js";

export interface ClaimInput {
  user_id?: string | undefined;
  /** Items of this thread and the user's own; without it, only the latter. */
  thread_id?: string | undefined;
  /** Exactly these; without it, what is pending, the most urgent first. */
  ids?: readonly string[] | undefined;
  limit?: number | undefined;
  /** Who holds it, for `explain`. */
  owner?: string | undefined;
  lease_ms?: number | undefined;
}

/** A lease and what is held under it. Each item's `lease_epoch` is the fence that settles or releases it. */
export interface ClaimAnswer {
  lease: { id: LeaseId; owner: string; expires_at: string } | null;
  notifications: NotificationView[];
  misses: Miss[];
}

/** One held item: its id and the epoch under which it was claimed. */
export interface HeldItem {
  id: string;
  epoch: number;
}

const claimSchema = z.strictObject({
  user_id: wordSchema(LIMITS.idChars).optional(),
  thread_id: wordSchema(LIMITS.idChars).optional(),
  ids: z.array(wordSchema(LIMITS.idChars)).max(LIMITS.claimLimit).optional(),
  limit: z.int().min(1).max(LIMITS.claimLimit).default(10),
  owner: wordSchema(LIMITS.idChars).default("agent"),
  lease_ms: z.int().min(1).max(LIMITS.leaseMsMax).optional(),
});

const leaseSchema = wordSchema(LIMITS.idChars);
const leaseMsSchema = z.int().min(1).max(LIMITS.leaseMsMax);
const noteSchema = wordSchema(LIMITS.subjectChars);

const heldSchema = z
  .array(z.strictObject({ id: wordSchema(LIMITS.idChars), epoch: z.int().min(0) }))
  .max(LIMITS.claimLimit);

/** Ownership by an agent: claim under a lease, renew it, and then settle, release or promote, fenced by the epoch. */
export class Deliveries {
  readonly #store: Store;
  readonly #principal: Principal;
  readonly #policy: DeliveryPolicy;

  constructor(store: Store, principal: Principal, policy: DeliveryPolicy) {
    this.#store = store;
    this.#principal = principal;
    this.#policy = policy;
  }

  async claim(input: ClaimInput = {}): Promise<ClaimAnswer> {
    const parsed = parseInput(claimSchema, input);
    const own = this.#principal.kind === "user" ? this.#principal.user_id : LOCAL_USER;
    const claim = await this.#store.claim(this.#principal, {
      user_id: parsed.user_id === undefined ? own : userId(parsed.user_id),
      ...(parsed.thread_id === undefined ? {} : { thread_id: threadId(parsed.thread_id) }),
      ...(parsed.ids === undefined ? {} : { ids: parsed.ids.map(notificationId) }),
      limit: parsed.limit,
      owner: parsed.owner,
      lease_ms: parsed.lease_ms ?? this.#policy.leaseMs,
    });
    const lease = claim.lease === null ? null : { ...claim.lease, expires_at: isoTime(claim.lease.expires_at) };
    return { lease, notifications: claim.claimed.map(viewOf), misses: [...claim.misses] };
  }

  async renew(lease: string, lease_ms: number = this.#policy.leaseMs) {
    const parsed = parseInput(leaseMsSchema, lease_ms);
    const answer = await this.#store.renew(this.#principal, leaseId(parseInput(leaseSchema, lease)), parsed);
    return isMiss(answer) ? answer : { ...answer, expires_at: isoTime(answer.expires_at) };
  }

  /** The agent was told: DELIVERED. */
  settle(items: readonly HeldItem[]): Promise<(NotificationView | Miss)[]> {
    return this.#each(items, "settle", ({ epoch }) => ({ column: "settle", epoch }));
  }

  /** The agent was not told: PENDING again after a pause, and after some attempts to the user. */
  release(items: readonly HeldItem[]): Promise<(NotificationView | Miss)[]> {
    return this.#each(items, "release", ({ epoch }) => ({ column: "release", epoch }));
  }

  /** The holder hands it to the user, and says why (the external tool that it calls). */
  promote(items: readonly HeldItem[], note: string): Promise<(NotificationView | Miss)[]> {
    const said = parseInput(noteSchema, note);
    return this.#each(items, "escalate", ({ epoch }) => ({
      column: "escalate",
      reason: "promoted",
      epoch,
      note: said,
    }));
  }

  async #each(items: readonly HeldItem[], operation: Operation, command: (item: HeldItem) => Command) {
    const parsed = parseInput(heldSchema, items);
    const requests = parsed.map((item) => ({ id: notificationId(item.id), command: command(item), operation }));
    const answers = await this.#store.commandMany(this.#principal, requests);
    return answers.map((answer) => (isMiss(answer) ? answer : viewOf(answer)));
  }
}

/** The answer of an operation that may miss, as the border shows it. */
export function viewOrMiss(answer: Stored | Miss): NotificationView | Miss {
  return isMiss(answer) ? answer : viewOf(answer);
}
