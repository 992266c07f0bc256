import { mustNarrate } from "../domain/axes.js";
import type { CarrierState } from "../domain/carrier.js";
import type { Miss } from "../domain/errors.js";
import { isMiss } from "../domain/errors.js";
import type { CarrierId, EventId, LeaseId, NotificationId, SubscriberId, ThreadId } from "../domain/ids.js";
import type { Point } from "../domain/points.js";
import type { InjectionPoint, Priority } from "../domain/priority.js";
import type { Severity } from "../domain/severity.js";
import { isoTime } from "../domain/time.js";
import type { State } from "../domain/transitions.js";
import type { CarrierOutcome, Collected, Lease, Stored } from "../store/contract.js";

/** A notification as an agent is told it. */
export interface CarriedView {
  id: NotificationId;
  revision: number;
  count: number;
  kind: string;
  severity: Severity;
  priority: Priority;
  inject_at: InjectionPoint;
  content: string;
  /** How the block tells it: in full, or its beginning on one line. */
  form: "full" | "line";
  subscriber_id: SubscriberId;
  /** The agent must tell the user, in its own words, and acknowledge it by its id. */
  must_narrate: boolean;
  /** Why its words are general ones and not its template's. */
  degraded: string | null;
  /** A granted instruction; the content is none. */
  directive: string | null;
  created_at: string;
  /** The events behind it. Two notifications may be about the same one. */
  event_ids: EventId[];
}

export interface LeaseView {
  id: LeaseId;
  owner: string;
  expires_at: string;
}

/** How a carrier ended, and what became of what was in it. */
export interface CarrierEndView {
  carrier_id: CarrierId;
  state: CarrierState;
  /** `lost`: it had been taken from its holder before, and is where it is by somebody else's doing. */
  notifications: { id: NotificationId; state: State; lost?: true }[];
}

export type SettleAnswer = CarrierEndView & {
  /** Of `acknowledged_ids`, those that are not in the carrier: they count for nothing. */
  refused_ids: string[];
};

/** What is done with a carrier by its id. */
interface CarriersById {
  renew(carrier_id: string, lease_ms?: number): Promise<LeaseView | Miss>;
  settle(carrier_id: string, input: { acknowledged_ids?: readonly string[] }): Promise<SettleAnswer | Miss>;
  fail(carrier_id: string, reason?: string): Promise<CarrierEndView | Miss>;
}

/** What an agent is told at one delivery point, held under a lease until it says what became of it. */
export class Carrier {
  readonly id: CarrierId;
  readonly thread_id: ThreadId;
  readonly point: Point;
  state: CarrierState;
  /** Null if nothing of it is held: with `auto_settle`, all of it was settled when it was collected. */
  lease: LeaseView | null;
  /** By priority, then oldest first. */
  readonly notifications: readonly CarriedView[];
  /** How many more the delivery point would take, beyond the limit; capped. */
  readonly more: number;
  /**
   * All of it as text for the next model call, with what the system has shown the user meanwhile: what comes from outside
   * stands in a fence that it cannot close.
   */
  readonly block: string;
  readonly #carriers: CarriersById;

  constructor(carriers: CarriersById, collected: Collected) {
    const { id, thread_id, point, state, lease, items, more, embedded, block } = collected;
    this.#carriers = carriers;
    this.id = id;
    this.thread_id = thread_id;
    this.point = point;
    this.state = state;
    this.lease = lease === null ? null : leaseView(lease);
    this.notifications = items.map((stored, index) => carriedView(stored, embedded[index]?.form ?? "full"));
    this.more = more;
    this.block = block.text;
  }

  /**
   * The block as a message of the model's API: `developer` for OpenAI (before the user's message, or after the whole run of
   * tool results), `system` for Anthropic models that take one in the middle of a conversation, `user` for all others.
   */
  as(role: "developer" | "system" | "user"): { role: typeof role; content: string } {
    return { role, content: this.block };
  }

  /** Holds it longer. */
  async renew(lease_ms?: number): Promise<LeaseView | Miss> {
    const answer = await this.#carriers.renew(this.id, lease_ms);
    if (!isMiss(answer)) this.lease = answer;
    return answer;
  }

  /** The agent was told. What it must tell the user and has not acknowledged goes to the user now. */
  async settle(input: { acknowledged_ids?: readonly string[] } = {}): Promise<SettleAnswer | Miss> {
    return this.#ended(await this.#carriers.settle(this.id, input));
  }

  /** The agent was not told: what is in it comes again, and after some attempts goes to the user. */
  async fail(reason?: string): Promise<CarrierEndView | Miss> {
    return this.#ended(await this.#carriers.fail(this.id, reason));
  }

  #ended<Answer extends CarrierEndView>(answer: Answer | Miss): Answer | Miss {
    if (!isMiss(answer)) {
      this.state = answer.state;
      this.lease = null;
    }
    return answer;
  }
}

export function leaseView({ id, owner, expires_at }: Lease): LeaseView {
  return { id, owner, expires_at: isoTime(expires_at) };
}

export function endView({ id, state, items }: CarrierOutcome): CarrierEndView {
  const notifications = items.map((item) => ({
    id: item.id,
    state: item.state,
    ...(item.lost ? { lost: true as const } : {}),
  }));
  return { carrier_id: id, state, notifications };
}

function carriedView({ notification, delivery, event_ids }: Stored, form: CarriedView["form"]): CarriedView {
  return {
    id: notification.id,
    revision: delivery.revision,
    count: delivery.count,
    kind: notification.kind,
    severity: notification.severity,
    priority: delivery.priority,
    inject_at: notification.inject_at,
    content: notification.content,
    form,
    subscriber_id: notification.subscriber_id,
    must_narrate: mustNarrate(delivery.effective),
    degraded: notification.degraded,
    directive: notification.directive,
    created_at: isoTime(notification.created_at),
    event_ids: [...event_ids],
  };
}
