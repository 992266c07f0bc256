import { z } from "zod";
import { ADDRESSES, CHANNELS, HANDLERS, TARGETS } from "../../domain/axes.js";
import { MATCH_OUTCOMES } from "../../domain/journal.js";
import { INJECTION_POINTS, PRIORITIES } from "../../domain/priority.js";
import { SEVERITIES } from "../../domain/severity.js";
import type { MatchView, ProblemView, SettingsView, SubscriberList, SubscriberView } from "../../intake/listing.js";
import type { PreviewAnswer } from "../../tidings.js";
import { axesResult } from "./notification.js";
import { schemaOf } from "./plain.js";
import { count, id, jsonObject, text, time } from "./words.js";

const match = schemaOf<MatchView>()(
  z.strictObject({
    at: time,
    event_id: id,
    event_type: text,
    outcome: z.enum(MATCH_OUTCOMES),
    notification_id: id,
  }),
);

const subscriber = schemaOf<SubscriberView>()(
  z.strictObject({
    id,
    name: text.nullable(),
    description: text.nullable(),
    version: text.nullable(),
    state: z.enum(["active", "disabled", "loaded", "broken"]),
    core: z.boolean().nullable(),
    core_reason: text.nullable(),
    enabled: z.boolean().nullable(),
    types: z.array(text).nullable(),
    sources: z.array(text).nullable(),
    severity_filter: z.enum(SEVERITIES).nullable(),
    priority: z.enum(PRIORITIES).nullable(),
    inject_at: z.enum(INJECTION_POINTS).nullable(),
    address: z.enum(ADDRESSES).nullable(),
    target: z.enum(TARGETS).nullable(),
    handler: z.enum(HANDLERS).nullable(),
    batch_window_ms: count.nullable(),
    max_batch_size: count.nullable(),
    dedupe_window_ms: count.nullable(),
    built_in: z.boolean(),
    file: text.nullable(),
    reason: text.nullable(),
    last_matches: z.array(match),
  }),
);

const problem = schemaOf<ProblemView>()(
  z.strictObject({
    file: text,
    subscriber_file: text,
    line: count.nullable(),
    column: count.nullable(),
    key: text.nullable(),
    reason: text,
    subscriber_id: text.nullable(),
    instead: z.enum(["last_good", "built_in", "all_on"]).nullable(),
    text,
  }),
);

export const subscribersResult = schemaOf<SubscriberList>()(
  z.strictObject({
    subscribers: z.array(subscriber),
    problems: z.array(problem),
    without_effect: z.array(text),
  }),
);

export const settingsResult = schemaOf<SettingsView>()(
  z.strictObject({ user_id: id, disabled_subscribers: z.array(id), unknown: z.array(id) }),
);

const rendered = z.strictObject({
  rows: z.int().min(1),
  content: text,
  degraded: text.nullable(),
  error: z.strictObject({ template: text, line: count.nullable(), reason: text }).nullable(),
  block: text.nullable(),
});

export const previewResult = schemaOf<PreviewAnswer>()(
  z.strictObject({
    subscriber_id: id,
    state: z.enum(["active", "disabled", "loaded"]),
    event: z.strictObject({
      type: text,
      source: text,
      severity: z.enum(SEVERITIES),
      timestamp: time,
      payload: jsonObject,
      thread_id: id.nullable(),
      subject: text.nullable(),
      dedupe_key: text.nullable(),
    }),
    sample: z.boolean(),
    outcome: z.enum(["matched", "not_matched", "filtered", "muted", "disabled"]),
    reason: text.nullable(),
    note: text.nullable(),
    axes: axesResult,
    channel: z.enum(CHANNELS),
    priority: z.enum(PRIORITIES),
    inject_at: z.enum(INJECTION_POINTS),
    directive: text.nullable(),
    dedupe_key: text.nullable(),
    dedupe_window_ms: count,
    batch_window_ms: count.nullable(),
    max_batch_size: count,
    single: rendered.nullable(),
    batch: rendered.nullable(),
  }),
);
