import { z } from "zod";
import type { AckAction } from "./action.js";
import type { Address, Axes, Channel, Handler, Target } from "./axes.js";
import { ADDRESSES, HANDLERS, TARGETS } from "./axes.js";
import type { Event } from "./event.js";
import { eventTypeSchema, takePayload } from "./event.js";
import type { EventId, LeaseId, NotificationId, SubscriberId, ThreadId, UserId } from "./ids.js";
import { LOCAL_USER, threadId, userId } from "./ids.js";
import type { JsonObject } from "./json.js";
import { LIMITS } from "./limits.js";
import { parseInput, textSchema, wordSchema } from "./parse.js";
import type { InjectionPoint, Priority } from "./priority.js";
import { INJECTION_POINTS, PRIORITIES, priorityFromSeverity } from "./priority.js";
import { SEVERITIES, type Severity } from "./severity.js";
import type { State } from "./transitions.js";

export { ACK_ACTIONS, type AckAction } from "./action.js";

/** What is delivered. Only a merge changes it, and then only its words. */
export interface Notification {
  readonly id: NotificationId;
  readonly user_id: UserId;
  /** As declared; the thread it is bound to now is the delivery's. */
  readonly thread_id: ThreadId | null;
  readonly subscriber_id: SubscriberId;
  readonly kind: string;
  readonly source: string;
  readonly subject: string | null;
  readonly severity: Severity;
  readonly inject_at: InjectionPoint;
  readonly content: string;
  readonly data: JsonObject | null;
  /** A granted instruction to the agent; never taken from an event's text. */
  readonly directive: string | null;
  /** Why its words are general ones and not its template's; null if they are the template's. */
  readonly degraded: string | null;
  /** As declared; never changes. What holds now is the delivery's `effective`. */
  readonly axes: Axes;
  readonly dedupe_key: string | null;
  /** Until when an event with the same key merges; 0 without a key. */
  readonly dedupe_until: number;
  /** How long it may wait for an idle agent to be woken for it; null: nobody is woken. */
  readonly wake_ms: number | null;
  readonly created_at: number;
  /** The first event behind it. */
  readonly event_id: EventId;
  /** The dead letter that this one sends again. */
  readonly redrive_of: NotificationId | null;
  /** The one with the same key that an agent held when this one came. */
  readonly linked_to: NotificationId | null;
}

export const SUPPRESS_REASONS = ["filtered", "muted", "superseded", "observed", "folded", "expired"] as const;
export type SuppressReason = (typeof SUPPRESS_REASONS)[number];

/** Why an agent item was taken to the user. */
export const ESCALATE_REASONS = [
  "deadline",
  "lease_expired",
  "attempts",
  "thread_closed",
  "promoted",
  "unacknowledged",
  "stopped",
  "paused",
  "storm",
] as const;
export type EscalateReason = (typeof ESCALATE_REASONS)[number];

export type Reason = SuppressReason | EscalateReason;

/** Who holds a LOCKED delivery. When the lease ends is kept with the lease, since renewals are not journaled. */
export interface LeaseRef {
  readonly id: LeaseId;
  readonly owner: string;
}

interface DeliveryFields {
  readonly id: NotificationId;
  readonly user_id: UserId;
  /** The thread it is bound to now. */
  readonly thread_id: ThreadId | null;
  /** Always `channelOf(effective)`. */
  readonly channel: Channel;
  readonly effective: Axes;
  readonly priority: Priority;
  readonly revision: number;
  /** Events behind it. */
  readonly count: number;
  /** Lines of it: events that differ. */
  readonly rows: number;
  readonly lease_epoch: number;
  readonly deadline: number;
  /** While its batch takes further rows: until when, at the latest. */
  readonly open_until: number | null;
  /** After a released claim: not before this time again. */
  readonly not_before: number;
  readonly attempts: number;
  /** Nobody is woken for it any more: it waits for the next message. */
  readonly quiet: boolean;
  readonly updated_at: number;
  readonly action: AckAction | null;
  readonly read_at: number | null;
  readonly reason: Reason | null;
}

export type LockedDelivery = DeliveryFields & { readonly state: "LOCKED"; readonly lease: LeaseRef };
export type UnlockedDelivery = DeliveryFields & { readonly state: Exclude<State, "LOCKED">; readonly lease: null };

/** The state and ownership of one notification. */
export type Delivery = LockedDelivery | UnlockedDelivery;

/** Whether the system has shown it in the conversation. */
export function isOnFloor({ channel, state }: Delivery): boolean {
  return channel === "floor" && state !== "PENDING" && state !== "SUPPRESSED";
}

/** Both together, as the store keeps them. */
export interface Kept {
  readonly notification: Notification;
  readonly delivery: Delivery;
}

/** The contract at the border: what the library, the CLI and the wire show. */
export interface NotificationView {
  id: NotificationId;
  revision: number;
  count: number;
  /** How many of the events behind it differ: the lines of a batch. */
  rows: number;
  state: State;
  channel: Channel;
  kind: string;
  severity: Severity;
  priority: Priority;
  inject_at: InjectionPoint;
  content: string;
  data: JsonObject | null;
  /** Why its words are general ones and not its template's. */
  degraded: string | null;
  address: Address;
  target: Target;
  handler: Handler;
  effective: Axes;
  directive: string | null;
  source: string;
  subject: string | null;
  dedupe_key: string | null;
  user_id: UserId;
  thread_id: ThreadId | null;
  created_at: string;
  updated_at: string;
  deadline: string | null;
  /** While its batch takes further events: until when, at the latest. */
  open_until: string | null;
  lease_epoch: number;
  attempts: number;
  action: AckAction | null;
  read_at: string | null;
  reason: Reason | null;
  subscriber_id: SubscriberId;
  event_ids: EventId[];
  redrive_of: NotificationId | null;
}

/** `read` shows the events behind a notification too. */
export type NotificationWithEvents = NotificationView & { events: Event[] };

/** What a caller of `notify()` sends. */
export interface NotifyInput {
  content: string;
  severity?: Severity | undefined;
  priority?: Priority | undefined;
  inject_at?: InjectionPoint | undefined;
  address?: Address | undefined;
  target?: Target | undefined;
  handler?: Handler | undefined;
  user_id?: string | undefined;
  thread_id?: string | undefined;
  dedupe_key?: string | undefined;
  dedupe_window_ms?: number | undefined;
  ttl_ms?: number | undefined;
  directive?: string | undefined;
  subject?: string | undefined;
  data?: JsonObject | undefined;
  kind?: string | undefined;
}

export const notifySchema = z
  .strictObject({
    content: textSchema(LIMITS.contentChars),
    severity: z.enum(SEVERITIES).default("info"),
    priority: z.enum(PRIORITIES).optional(),
    inject_at: z.enum(INJECTION_POINTS).default("next"),
    address: z.enum(ADDRESSES).optional(),
    target: z.enum(TARGETS).default("agent"),
    handler: z.enum(HANDLERS).default("system"),
    user_id: wordSchema(LIMITS.idChars).optional(),
    thread_id: wordSchema(LIMITS.idChars).optional(),
    dedupe_key: wordSchema(LIMITS.dedupeKeyChars).optional(),
    dedupe_window_ms: z.int().min(0).max(LIMITS.dedupeWindowMs).default(5_000),
    ttl_ms: z.int().min(1).max(LIMITS.ttlMsMax).optional(),
    directive: textSchema(LIMITS.directiveChars).optional(),
    subject: wordSchema(LIMITS.subjectChars).optional(),
    data: z.unknown().optional(),
    kind: eventTypeSchema.default("direct.notify"),
  })
  .refine((input) => input.inject_at !== "immediate" || priorityOf(input) === "critical", {
    path: ["inject_at"],
    message: "immediate needs priority critical",
  })
  .refine((input) => input.directive === undefined || input.handler === "agent", {
    path: ["directive"],
    message: "is only for items that the agent handles (handler agent)",
  });

function priorityOf(input: { severity: Severity; priority?: Priority | undefined }): Priority {
  return input.priority ?? priorityFromSeverity(input.severity);
}

export type ParsedNotify = ReturnType<typeof parseNotify>;

/** Parses and fills the defaults, or throws `InvalidInputError`. */
export function parseNotify(input: unknown) {
  const parsed = parseInput(notifySchema, input);
  const data = parsed.data === undefined ? null : takePayload(parsed.data, "data");
  return {
    ...parsed,
    data,
    priority: priorityOf(parsed),
    address: parsed.address ?? (parsed.thread_id === undefined ? "user" : "session"),
    user_id: parsed.user_id === undefined ? LOCAL_USER : userId(parsed.user_id),
    thread_id: parsed.thread_id === undefined ? null : threadId(parsed.thread_id),
  } as const;
}
