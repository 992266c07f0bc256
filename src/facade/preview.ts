/** What a subscriber would make of an event, as the border shows it. Nothing is stored. */
import { z } from "zod";
import { DEFAULT_BUDGET } from "../agent/block/budget.js";
import { composerFor } from "../agent/compose.js";
import { type Axes, type Channel, isSystemChannel } from "../domain/axes.js";
import { InvalidInputError, NotFoundError } from "../domain/errors.js";
import { type Event, type EventInput, eventSchema, type NewEvent, parseEvent } from "../domain/event.js";
import { eventId, notificationId, subscriberId, type UserId } from "../domain/ids.js";
import { LIMITS } from "../domain/limits.js";
import { didYouMean } from "../domain/nearest.js";
import type { Notification } from "../domain/notification.js";
import { wordSchema } from "../domain/parse.js";
import type { Principal } from "../domain/principal.js";
import type { InjectionPoint, Priority } from "../domain/priority.js";
import { create } from "../domain/reducer.js";
import type { Severity } from "../domain/severity.js";
import { draftFor } from "../intake/intake.js";
import { type InEffect, stateOf } from "../intake/listing.js";
import { asAccepted, batchSize, type PreviewedOutcome, previewedOutcome } from "../intake/preview.js";
import { sampleFor } from "../intake/samples.js";
import type { Subscriber } from "../intake/subscriber.js";
import { SUBSCRIBER_LIMITS } from "../intake/subscribers/schema.js";
import { problemLine } from "../intake/subscribers/set.js";
import type { TemplateFailure } from "../intake/words.js";
import type { Draft, Row, Stored } from "../store/contract.js";
import type { Shared } from "./shared.js";
import { withoutUndefined } from "./without_undefined.js";

export interface PreviewInput {
  user_id?: string | undefined;
  subscriber_id: string;
  /** As it would be emitted; or one of the user's; or, if neither is given, a sample. */
  event?: EventInput | undefined;
  event_id?: string | undefined;
  sample?: boolean | undefined;
  /** How many that differ make the batch. */
  count?: number | undefined;
}

/** In which words it would be told. */
export interface RenderedView {
  /** Events that differ, a row each. */
  rows: number;
  content: string;
  /** Why its words are general ones and not its template's. */
  degraded: string | null;
  error: TemplateFailure | null;
  /** The whole block in which an agent would be told; null where the system shows it. */
  block: string | null;
}

export interface PreviewAnswer {
  subscriber_id: string;
  /** For this user. */
  state: InEffect;
  /** What was looked at. */
  event: {
    type: string;
    source: string;
    severity: Severity;
    timestamp: string;
    payload: Event["payload"];
    thread_id: string | null;
    subject: string | null;
    dedupe_key: string | null;
  };
  sample: boolean;
  outcome: PreviewedOutcome["outcome"] | "disabled";
  /** Why it would not be told; null if it would. */
  reason: string | null;
  /** What its story would say of it beside the rest, like what is wrong with its payload. */
  note: string | null;
  /** As they would hold: what is addressed to a conversation, and has none, is addressed to the user. */
  axes: Axes;
  channel: Channel;
  priority: Priority;
  inject_at: InjectionPoint;
  directive: string | null;
  dedupe_key: string | null;
  dedupe_window_ms: number;
  /** Null: each is by itself. */
  batch_window_ms: number | null;
  max_batch_size: number;
  /** Both are null if it does not match. */
  single: RenderedView | null;
  /** Null where nothing is batched. */
  batch: RenderedView | null;
}

const word = wordSchema(LIMITS.idChars);

export const previewSchema = z.strictObject({
  user_id: word.optional(),
  subscriber_id: word,
  event: eventSchema.optional(),
  event_id: word.optional(),
  sample: z.literal(true).optional(),
  count: z.int().min(2).max(SUBSCRIBER_LIMITS.sizeMax).default(3),
});

type Asked = z.output<typeof previewSchema>;

export async function previewAnswer(
  shared: Shared,
  principal: Principal,
  user_id: UserId,
  asked: Asked,
): Promise<PreviewAnswer> {
  const { store, catalogue } = shared;
  const subscriber = catalogue.subscriber(subscriberId(asked.subscriber_id));
  if (subscriber === undefined) throw unknown(shared, asked.subscriber_id);
  const { event, sample } = await eventFor(shared, principal, user_id, subscriber, asked);
  const { disabled_subscribers } = await store.settings(principal, event.user_id);
  const now = store.now();
  const accepted = asAccepted(event, 0, now);
  const draft = draftFor(event, subscriber);
  const { priority, inject_at, directive, dedupe_key, dedupe_window_ms, note, batch } = draft;
  const muted = () => catalogue.held(accepted, subscriber.id, priority, disabled_subscribers);
  const { outcome, reason } = takenBy(subscriber, previewedOutcome(subscriber, event, muted));
  const routed = create(
    notificationOf(accepted, draft, "", now),
    { priority, ttl_ms: null, suppress: null },
    { at: now, policy: shared.policy },
  );
  const { effective, channel } = routed.next;
  const rendered = (rows: readonly Row[]) => render(shared, subscriber, draft, rows, now);
  const rows = rowsOf(accepted, Math.min(asked.count, batchSize(subscriber)));
  const { type, source, severity, timestamp, payload, thread_id, subject } = accepted;
  return {
    subscriber_id: subscriber.id,
    state: stateOf(subscriber, disabled_subscribers),
    event: { type, source, severity, timestamp, payload, thread_id, subject, dedupe_key: accepted.dedupe_key },
    sample,
    outcome,
    reason,
    note,
    axes: effective,
    channel,
    priority,
    inject_at,
    directive,
    dedupe_key,
    dedupe_window_ms,
    batch_window_ms: batch?.window_ms ?? null,
    max_batch_size: batchSize(subscriber),
    single: outcome === "not_matched" ? null : rendered(rowsOf(accepted, 1)),
    batch: outcome === "not_matched" || rows.length < 2 ? null : rendered(rows),
  };
}

function takenBy(
  { enabled }: Subscriber,
  { outcome, reason }: PreviewedOutcome,
): Pick<PreviewAnswer, "outcome" | "reason"> {
  if (enabled || outcome !== "matched") return { outcome, reason };
  return { outcome: "disabled", reason: "its file has enabled = false: it takes no events" };
}

function unknown({ catalogue }: Shared, id: string): InvalidInputError {
  const problems = catalogue.problems.filter(({ subscriber_id }) => subscriber_id === id).map(problemLine);
  if (problems.length > 0)
    return new InvalidInputError("subscriber_id", `the file of ${id} is broken: ${problems.join("; ")}`);
  const known = catalogue.subscribers.map((one) => one.id);
  return new InvalidInputError("subscriber_id", `there is no subscriber ${JSON.stringify(id)}${didYouMean(id, known)}`);
}

async function eventFor(
  { store }: Shared,
  principal: Principal,
  user_id: UserId,
  subscriber: Subscriber,
  { event, event_id, sample }: Asked,
): Promise<{ event: NewEvent; sample: boolean }> {
  if ([event, event_id, sample].filter((one) => one !== undefined).length > 1)
    throw new InvalidInputError("event", "give one of event, event_id and sample");
  if (event !== undefined) return { event: parseEvent({ ...withoutUndefined(event), user_id }), sample: false };
  if (event_id === undefined) return { event: parseEvent({ ...sampleFor(subscriber), user_id }), sample: true };
  const [found] = await store.events(principal, [eventId(event_id)]);
  if (found === undefined) throw new NotFoundError("event", event_id);
  return { event: found, sample: false };
}

/** Rows that differ in nothing that is shown, each of an event of its own. */
function rowsOf(event: Event, count: number): Row[] {
  return Array.from({ length: count }, (_, index) => ({
    event: { ...event, id: eventId(`event ${index + 1}`) },
    count: 1,
    since: event.timestamp,
  }));
}

function render(shared: Shared, subscriber: Subscriber, draft: Draft, rows: readonly Row[], now: number): RenderedView {
  const { content, degraded, error } = subscriber.tryWords(rows, now);
  const [first] = rows;
  const told =
    first === undefined ? null : blockOf(shared, notificationOf(first.event, draft, content, now), draft, now);
  return { rows: rows.length, content, degraded, error, block: told };
}

/** As if nothing else were to be told. */
function blockOf({ policy, agent }: Shared, notification: Notification, draft: Draft, now: number): string | null {
  const { priority, ttl_ms } = draft;
  const { next } = create(notification, { priority, ttl_ms, suppress: null }, { at: now, policy });
  if (isSystemChannel(next.channel)) return null;
  const stored: Stored = { notification, delivery: next, event_ids: [notification.event_id], seq: 0 };
  const compose = agent?.compose ?? composerFor(DEFAULT_BUDGET, () => "text");
  return compose([stored], 0, { seen: [], seen_more: 0, inbox: null }, now).text;
}

function notificationOf(event: Event, draft: Draft, content: string, now: number): Notification {
  const { subscriber_id, severity, inject_at, data, directive, axes, dedupe_key, wake_ms } = draft;
  return {
    id: notificationId(PREVIEWED),
    user_id: event.user_id,
    thread_id: event.thread_id,
    kind: event.type,
    source: event.source,
    subject: event.subject,
    ...{ subscriber_id, severity, inject_at, content, data, directive, axes, dedupe_key, wake_ms },
    degraded: null,
    dedupe_until: 0,
    created_at: now,
    event_id: event.id,
    redrive_of: null,
    linked_to: null,
  };
}

/** The id of what is nowhere. */
const PREVIEWED = "00000000-0000-0000-0000-000000000000";
