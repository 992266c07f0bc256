import { z } from "zod";
import { STATES } from "../../domain/transitions.js";
import { CHAT_SOURCES, TURN_STATES } from "../../domain/turn.js";
import type { InterruptAnswer, ThreadPage, TurnView } from "../../runtime/conversation.js";
import type { ThreadItem } from "../../runtime/thread_items.js";
import type { ThreadAnswer, ThreadSummaryAnswer } from "../talk.js";
import { notificationResult } from "./notification.js";
import { schemaOf } from "./plain.js";
import { count, id, jsonObject, text, time } from "./words.js";

export const threadResult = schemaOf<ThreadAnswer>()(
  z.strictObject({
    thread_id: id,
    session_id: id,
    user_id: id,
    state: z.enum(["running", "paused", "closed"]),
    started_at: time,
    created_at: time,
    budgets: z
      .strictObject({ tokens: count.nullable(), iterations: count.nullable(), time_ms: count.nullable() })
      .nullable(),
  }),
);

const summary = schemaOf<ThreadSummaryAnswer>()(
  threadResult.extend({
    active_at: time,
    title: text.nullable(),
    active_turn_id: id.nullable(),
    queued: count,
    unread: count,
  }),
);

export const threadsResult = z.strictObject({ threads: z.array(summary), next: id.nullable() });

export const turnResult = schemaOf<TurnView>()(
  z.strictObject({
    turn_id: id,
    thread_id: id,
    state: z.enum(TURN_STATES),
    source: z.enum(CHAT_SOURCES),
    internal: z.boolean(),
    content: text,
    created_at: time,
    note: text.nullable(),
    continued_by: id.nullable(),
  }),
);

export const turnsResult = z.strictObject({ turns: z.array(turnResult) });

/** Of a turn that was begun just now, or waits. */
export const startedResult = turnResult.extend({ started_at: time.nullable() });

export const steeredResult = turnResult.extend({ accepted_items: count });

const delivered = { accepted_items: count };
export const deliveredResult = z.union([
  startedResult.extend({ how: z.enum(["started", "queued"]), ...delivered }),
  turnResult.extend({ how: z.literal("steered"), ...delivered }),
]);

const interrupt = schemaOf<InterruptAnswer>()(
  z.strictObject({
    turn: turnResult,
    outcome: z.enum(["cancel_requested", ...TURN_STATES]),
    unconsumed: z.array(text),
    successor: turnResult.nullable(),
  }),
);

export const interruptedResult = interrupt
  .omit({ outcome: true })
  .extend({ turn_id: id, thread_id: id, state: interrupt.shape.outcome, successor: startedResult.nullable() });

const fields = {
  item_id: id,
  thread_id: text,
  turn_id: id.nullable(),
  seq: count,
  timestamp: time,
  internal: z.literal(true).exactOptional(),
};
const words = z.strictObject({ text });

const itemResult = schemaOf<ThreadItem>()(
  z.union([
    z.strictObject({
      ...fields,
      type: z.literal("message"),
      role: z.enum(["user", "assistant", "system"]),
      status: z.enum(["completed", "interrupted"]),
      content: words.extend({ steered: z.literal(true).exactOptional() }),
    }),
    z.strictObject({
      ...fields,
      type: z.literal("queued"),
      role: z.literal("user"),
      status: z.literal("pending"),
      content: words,
    }),
    z.strictObject({
      ...fields,
      type: z.literal("steer"),
      role: z.literal("user"),
      status: z.literal("pending"),
      content: words,
    }),
    z.strictObject({
      ...fields,
      type: z.literal("tool_call"),
      status: z.enum(["pending", "completed", "failed"]),
      content: z.strictObject({ call_id: text, name: text, input: jsonObject, output: text.nullable() }),
    }),
    z.strictObject({
      ...fields,
      type: z.literal("notice"),
      role: z.literal("system"),
      status: z.enum(STATES),
      content: z.strictObject({ notification: notificationResult }),
    }),
    z.strictObject({
      ...fields,
      type: z.literal("observation"),
      role: z.literal("system"),
      status: z.enum(["open", "sent"]),
      content: z.strictObject({
        text,
        source: text,
        notification_id: id,
        revision: z.int().min(1),
        carrier_id: id,
      }),
    }),
  ]),
);

export const threadPageResult = schemaOf<Omit<ThreadPage, "thread"> & { thread: ThreadAnswer }>()(
  z.strictObject({
    thread: threadResult,
    items: z.array(itemResult),
    turns: z.array(turnResult.omit({ content: true })),
    next: count.nullable(),
    previous: count.nullable(),
    seq: count,
    saying: z.strictObject({ turn_id: id, text }).nullable(),
  }),
);
