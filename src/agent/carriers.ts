import { z } from "zod";
import { isMiss, type Miss } from "../domain/errors.js";
import { carrierId, notificationId, threadId, type UserId } from "../domain/ids.js";
import { LIMITS } from "../domain/limits.js";
import { parseInput, textSchema, wordSchema } from "../domain/parse.js";
import { POINTS, type Point } from "../domain/points.js";
import type { DeliveryPolicy } from "../domain/policy.js";
import type { Principal } from "../domain/principal.js";
import type { Store } from "../store/contract.js";
import { Carrier, type CarrierEndView, endView, type LeaseView, leaseView, type SettleAnswer } from "./carrier.js";
import { composerFor } from "./compose.js";
import { collectWithin } from "./wait.js";

export interface CollectOptions {
  /**
   * Who collects, for `explain`; while one holds an open carrier of a thread, another is refused. Give each agent a name of
   * its own: those of one name are one. Default `agent`.
   */
  owner?: string | undefined;
  lease_ms?: number | undefined;
  /** How many notifications at most; default 10. */
  limit?: number | undefined;
  /** How many tokens, estimated, they may come to in full; the rest is told in a line each. Default 1,000. */
  max_tokens?: number | undefined;
  /** How long to wait for the first one if there is none. */
  wait_ms?: number | undefined;
  /** What needs no acknowledgement counts as told at once: for callers that print it and are gone. */
  auto_settle?: boolean | undefined;
  /** Ends the waiting; what was collected for one who is gone is let go. */
  signal?: AbortSignal | undefined;
}

export type CollectInput = Omit<CollectOptions, "signal"> & { thread_id: string; point: Point };

const word = wordSchema(LIMITS.idChars);
const leaseMs = z.int().min(1).max(LIMITS.leaseMsMax);

export const collectSchema = z.strictObject({
  thread_id: word,
  point: z.enum(POINTS),
  owner: word.default("agent"),
  lease_ms: leaseMs.optional(),
  limit: z.int().min(1).max(LIMITS.claimLimit).default(10),
  max_tokens: z.int().min(0).max(LIMITS.blockTokens).default(1_000),
  wait_ms: z.int().min(0).max(LIMITS.waitMsMax).default(0),
  auto_settle: z.boolean().default(false),
});

export const renewSchema = z.strictObject({ carrier_id: word, lease_ms: leaseMs.optional() });
export const settleSchema = z.strictObject({
  carrier_id: word,
  acknowledged_ids: z.array(word).max(LIMITS.claimLimit).default([]),
});
/** The words of whatever failed may be long; so many characters of them are kept. */
export const failSchema = z.strictObject({ carrier_id: word, reason: textSchema(LIMITS.contentChars).optional() });

/** What an agent is told, and what it says became of it. */
export class Carriers {
  readonly #store: Store;
  readonly #principal: Principal;
  readonly #policy: DeliveryPolicy;
  readonly #ended: AbortSignal;

  constructor(store: Store, principal: Principal, policy: DeliveryPolicy, ended: AbortSignal) {
    this.#store = store;
    this.#principal = principal;
    this.#policy = policy;
    this.#ended = ended;
  }

  /** `opens`: whose thread it is to be if nobody has opened it. `bytes_max`: of the texts of the answer, about. */
  async collect(
    input: CollectInput,
    more: { signal?: AbortSignal | undefined; opens?: UserId; bytes_max?: number } = {},
  ): Promise<Carrier | null> {
    const { wait_ms, lease_ms, max_tokens, ...parsed } = parseInput(collectSchema, input);
    const { limit } = parsed;
    const request = {
      ...parsed,
      thread_id: threadId(parsed.thread_id),
      user_id: more.opens ?? null,
      lease_ms: lease_ms ?? this.#policy.leaseMs,
      // Nobody is kept waiting for it, nor called to listen to it.
      awareness_alone: wait_ms === 0 && (parsed.point === "turn_start" || parsed.point === "user_message"),
      // Whoever runs the loop says in which form it tells its model.
      compose: composerFor({ items: limit, tokens: max_tokens, lines: limit }, () => "text"),
      ...(more.bytes_max === undefined ? {} : { bytes_max: more.bytes_max }),
    };
    const waiting = { wait_ms, gone: more.signal, ended: this.#ended };
    const collected = await collectWithin(this.#store, this.#principal, request, waiting);
    return collected === null ? null : new Carrier(this, collected);
  }

  async renew(carrier_id: string, lease_ms: number = this.#policy.leaseMs): Promise<LeaseView | Miss> {
    const parsed = parseInput(renewSchema, { carrier_id, lease_ms });
    const answer = await this.#store.renewCarrier(
      this.#principal,
      carrierId(parsed.carrier_id),
      parsed.lease_ms ?? lease_ms,
    );
    return isMiss(answer) ? answer : leaseView(answer);
  }

  async settle(carrier_id: string, input: { acknowledged_ids?: readonly string[] } = {}): Promise<SettleAnswer | Miss> {
    const parsed = parseInput(settleSchema, { carrier_id, ...input });
    const acknowledged = new Set(parsed.acknowledged_ids.map(notificationId));
    const answer = await this.#store.settleCarrier(this.#principal, carrierId(parsed.carrier_id), acknowledged);
    if (isMiss(answer)) return answer;
    const carried = new Set<string>(answer.items.map(({ id }) => id));
    return { ...endView(answer), refused_ids: [...acknowledged].filter((id) => !carried.has(id)) };
  }

  async fail(carrier_id: string, reason?: string): Promise<CarrierEndView | Miss> {
    const parsed = parseInput(failSchema, { carrier_id, reason });
    const note = parsed.reason?.slice(0, LIMITS.subjectChars).toWellFormed() ?? null;
    const answer = await this.#store.failCarrier(this.#principal, carrierId(parsed.carrier_id), note);
    return isMiss(answer) ? answer : endView(answer);
  }
}
