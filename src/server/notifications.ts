/**
 * Everything that the server tells by itself, with the form of its parameters. Names are constants of this table: what is
 * not here is not sent.
 */
import { z } from "zod";
import { CHAT_SOURCES } from "../domain/turn.js";
import { LOG_LEVELS } from "./log.js";

const id = z.string().min(1);
const time = z.iso.datetime();

/** Where it stands: in the journal, and after what in this client's view. */
const place = {
  seq: z.int().min(0),
  prev_seq: z.int().min(0).nullable(),
  /** Which of the frames of this entry it is, where there are several. */
  part: z.int().min(1).optional(),
  journal_id: id,
};

const notification = z.strictObject({
  notification: z.looseObject({ id, revision: z.int(), state: z.string() }),
  ...place,
});

const item = {
  item_id: id,
  item_type: z.enum(["message", "queued", "steer", "tool_call", "notice", "observation"]),
  role: z.enum(["user", "assistant", "system"]).optional(),
  timestamp: time,
  thread_id: id,
  turn_id: id.nullable(),
  ...place,
};
const itemWith = (type: "created" | "updated") =>
  z.strictObject({
    ...item,
    type: z.literal(type),
    status: z.string(),
    content: z.record(z.string(), z.unknown()),
  });

const thread = (type: string, state: string) =>
  z.strictObject({
    thread_id: id,
    type: z.literal(type),
    state: z.literal(state),
    started_at: time.optional(),
    ...place,
  });

const turn = (type: string, state: string, more: z.ZodRawShape) =>
  z.strictObject({
    turn_id: id,
    thread_id: id,
    type: z.literal(type),
    state: z.literal(state),
    started_at: time,
    ...more,
    ...place,
  });

const bounds = { journal_id: id, oldest_seq: z.int().min(1), newest_seq: z.int().min(0) };

/** Why a client has to read anew. */
export const RESET_REASONS = ["cursor_too_old", "other_journal", "cursor_ahead", "view_widened"] as const;
export type ResetReason = (typeof RESET_REASONS)[number];

export const NOTIFICATIONS = {
  "notification/created": {
    summary: "An item came to the inbox or the floor; or it waited there when the client connected (`waiting`).",
    // What waited is no place from which to go on.
    params: notification.extend({ waiting: z.literal(true).optional() }),
  },
  "notification/updated": { summary: "An item changed there.", params: notification },
  "inbox/counts": {
    summary: "How much waits for the user: a state, not a step.",
    params: z.strictObject({
      unacknowledged: z.int().min(0),
      unread: z.int().min(0),
      cap: z.int().min(0),
      seq: z.int().min(0),
      journal_id: id,
    }),
  },
  "thread/started": { summary: "A conversation was opened.", params: thread("started", "running") },
  "thread/resumed": { summary: "Its agent goes on.", params: thread("resumed", "running") },
  "thread/paused": { summary: "Its agent rests.", params: thread("paused", "paused") },
  "thread/closed": { summary: "It is over.", params: thread("closed", "closed") },
  "turn/started": {
    summary: "A turn begins.",
    params: turn("started", "active", { source: z.enum(CHAT_SOURCES) }),
  },
  "turn/completed": {
    summary: "The agent had its say.",
    params: turn("completed", "completed", { completed_at: time }),
  },
  "turn/interrupted": {
    summary: "It was cut short; `continued_by` is the turn that goes on.",
    params: turn("interrupted", "interrupted", { message: z.string().nullable(), continued_by: id.nullable() }),
  },
  "turn/failed": {
    summary: "It could not come to its end.",
    params: turn("failed", "failed", { message: z.string().nullable() }),
  },
  "turn/progress": {
    summary: "Text as the model says it. May be dropped; the whole is in the item.",
    params: z.strictObject({
      turn_id: id,
      thread_id: id,
      delta: z.string(),
      /** How many characters of the same answer came before it. */
      offset: z.int().min(0),
      /** The newest entry when it was said: an item of a later one holds it. */
      after_seq: z.int().min(0),
    }),
  },
  "item/created": { summary: "Something new in a conversation.", params: itemWith("created") },
  "item/updated": { summary: "It changed, or came to its end.", params: itemWith("updated") },
  "item/deleted": {
    summary: "It is no longer there.",
    params: z.strictObject({ ...item, type: z.literal("deleted"), status: z.literal("deleted") }),
  },
  "runtime/log": {
    summary: "A line of the server's log, for those who follow it. May be dropped.",
    params: z.strictObject({
      time,
      level: z.enum(LOG_LEVELS),
      message: z.string(),
      fields: z.record(z.string(), z.union([z.string(), z.number(), z.boolean(), z.null()])),
    }),
  },
  "stream/heartbeat": {
    summary:
      "The stream is alive: `seq` is the last one that was sent, and up to `up_to_seq` nothing else was to be told.",
    params: z.strictObject({ journal_id: id, seq: z.int().min(0).nullable(), up_to_seq: z.int().min(0) }),
  },
  "stream/reset": {
    summary: "What was asked for cannot be told without a gap: read anew. What comes after `newest_seq` is told.",
    params: z.strictObject({ reason: z.enum(RESET_REASONS), ...bounds }),
  },
} as const satisfies Readonly<Record<string, { readonly summary: string; readonly params: z.ZodType }>>;

export type NotificationName = keyof typeof NOTIFICATIONS;

export const NOTIFICATION_NAMES = Object.keys(NOTIFICATIONS) as [NotificationName, ...NotificationName[]];
