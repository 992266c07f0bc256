import { z } from "zod";
import type { Changed } from "../../delivery/changed.js";
import type { Explanation, StoryLine } from "../../delivery/explain.js";
import { ACK_ACTIONS } from "../../domain/action.js";
import { ADDRESSES, type Axes, CHANNELS, HANDLERS, TARGETS } from "../../domain/axes.js";
import { CARRIER_STATES } from "../../domain/carrier.js";
import { BLOCK_FORMS } from "../../domain/conversation.js";
import type { Event } from "../../domain/event.js";
import { MATCH_OUTCOMES } from "../../domain/journal.js";
import {
  ESCALATE_REASONS,
  type NotificationView,
  type NotificationWithEvents,
  SUPPRESS_REASONS,
} from "../../domain/notification.js";
import { POINTS } from "../../domain/points.js";
import { INJECTION_POINTS, PRIORITIES } from "../../domain/priority.js";
import { SEVERITIES } from "../../domain/severity.js";
import { COLUMNS, STATES } from "../../domain/transitions.js";
import type { Counts } from "../../store/contract.js";
import type { EmitAnswer, ListAnswer, NotifyAnswer } from "../../tidings.js";
import { schemaOf } from "./plain.js";
import { count, id, jsonObject, text, time } from "./words.js";

export const axesResult = schemaOf<Axes>()(
  z.strictObject({ address: z.enum(ADDRESSES), target: z.enum(TARGETS), handler: z.enum(HANDLERS) }),
);

const reason = z.enum([...SUPPRESS_REASONS, ...ESCALATE_REASONS]);

export const notificationResult = schemaOf<NotificationView>()(
  z.strictObject({
    id,
    revision: z.int().min(1),
    count: z.int().min(1),
    rows: z.int().min(1),
    state: z.enum(STATES),
    channel: z.enum(CHANNELS),
    kind: text,
    severity: z.enum(SEVERITIES),
    priority: z.enum(PRIORITIES),
    inject_at: z.enum(INJECTION_POINTS),
    content: text,
    data: jsonObject.nullable(),
    degraded: text.nullable(),
    ...axesResult.shape,
    effective: axesResult,
    directive: text.nullable(),
    source: text,
    subject: text.nullable(),
    dedupe_key: text.nullable(),
    user_id: id,
    thread_id: id.nullable(),
    created_at: time,
    updated_at: time,
    deadline: time.nullable(),
    open_until: time.nullable(),
    lease_epoch: count,
    attempts: count,
    action: z.enum(ACK_ACTIONS).nullable(),
    read_at: time.nullable(),
    reason: reason.nullable(),
    subscriber_id: id,
    event_ids: z.array(id),
    redrive_of: id.nullable(),
  }),
);

const eventResult = schemaOf<Event>()(
  z.strictObject({
    id,
    producer_id: text.nullable(),
    type: text,
    source: text,
    severity: z.enum(SEVERITIES),
    timestamp: time,
    payload: jsonObject,
    dedupe_key: text.nullable(),
    user_id: id,
    thread_id: id.nullable(),
    subject: text.nullable(),
  }),
);

export const notificationWithEventsResult = schemaOf<NotificationWithEvents>()(
  notificationResult.extend({ events: z.array(eventResult) }),
);

export const listResult = schemaOf<ListAnswer>()(
  z.strictObject({ notifications: z.array(notificationResult), next: text.nullable() }),
);

export const emitResult = schemaOf<EmitAnswer>()(
  z.strictObject({
    id,
    seq: count,
    outcome: z.enum(["accepted", "duplicate", "unmatched"]),
    matches: z.array(
      z.strictObject({ subscriber_id: id, outcome: z.enum(MATCH_OUTCOMES), notification: notificationResult }),
    ),
  }),
);

export const notifyResult = schemaOf<NotifyAnswer>()(
  z.strictObject({ id, seq: count, state: z.enum(STATES), channel: z.enum(CHANNELS) }),
);

export const changedResult = schemaOf<Changed>()(
  z.strictObject({ notifications: z.array(notificationResult), next: text, more: z.boolean(), reset: z.boolean() }),
);

const OPERATIONS = [
  ...(["notify", "claim", "ack", "settle", "release", "escalate"] as const),
  ...(["suppress", "watchdog", "flush", "redrive"] as const),
] as const;

const storyLine = schemaOf<StoryLine>()(
  z.strictObject({
    seq: count,
    at: time,
    text,
    kind: z.enum(["create", ...COLUMNS, "event", "match", "carrier", "observation", "thread", "redriven"]),
    path: z.array(z.enum(STATES)).exactOptional(),
    operation: z.enum(OPERATIONS).exactOptional(),
    channel: z.enum(CHANNELS).exactOptional(),
    owner: text.nullable().exactOptional(),
    lease_epoch: count.exactOptional(),
    revision: count.exactOptional(),
    count: count.exactOptional(),
    attempts: count.exactOptional(),
    action: z.enum(ACK_ACTIONS).exactOptional(),
    reason: reason.exactOptional(),
    note: text.exactOptional(),
    event_id: id.exactOptional(),
    subscriber_id: id.exactOptional(),
    outcome: z.enum(MATCH_OUTCOMES).exactOptional(),
    notification_id: id.exactOptional(),
    carrier: z
      .strictObject({
        id,
        thread_id: id.nullable(),
        turn_id: id.nullable(),
        point: z.enum(POINTS),
        state: z.enum(CARRIER_STATES),
        block: z.strictObject({ text, form: z.enum(BLOCK_FORMS) }).nullable(),
      })
      .exactOptional(),
    acknowledged: z.strictObject({ turn_id: id.nullable() }).exactOptional(),
  }),
);

export const explanationResult = schemaOf<Explanation>()(
  z.strictObject({
    id,
    kind: z.enum(["event", "notification"]),
    summary: text,
    story: z.array(storyLine),
    event: eventResult.exactOptional(),
    notifications: z.array(notificationResult),
  }),
);

export const countsResult = schemaOf<Counts>()(z.strictObject({ unacknowledged: count, unread: count, cap: count }));
