import fc from "fast-check";
import { expect, it } from "vitest";
import { ADDRESSES, CHANNELS, HANDLERS, TARGETS } from "../domain/axes.js";
import { CARRIER_ENDS, CARRIER_STATES } from "../domain/carrier.js";
import { BLOCK_FORMS } from "../domain/conversation.js";
import type { Event } from "../domain/event.js";
import { HANDLE_STATES } from "../domain/handle.js";
import type { Change, EntryBody } from "../domain/journal.js";
import type { JsonObject } from "../domain/json.js";
import { APPROVALS } from "../domain/mcp.js";
import type { Notification } from "../domain/notification.js";
import { POINTS } from "../domain/points.js";
import { PRIORITIES } from "../domain/priority.js";
import { SEVERITIES } from "../domain/severity.js";
import { COLUMNS, STATES } from "../domain/transitions.js";
import { TURN_STATES } from "../domain/turn.js";
import { decodeEntry, encodeEntry } from "./codec.js";

/** Any text, also with quotes, line breaks, separators and lone surrogates' escapes. */
const text = fc.string({ unit: "binary", maxLength: 40 }).filter((value) => value.isWellFormed());
const id = fc.uuid({ version: 7 });
const time = fc.integer({ min: 0, max: 4_000_000_000_000 });
const optional = <Value>(value: fc.Arbitrary<Value>) => fc.option(value, { nil: null });
const json = fc.dictionary(text, fc.jsonValue({ maxDepth: 3 })) as fc.Arbitrary<JsonObject>;
const axes = fc.record({
  address: fc.constantFrom(...ADDRESSES),
  target: fc.constantFrom(...TARGETS),
  handler: fc.constantFrom(...HANDLERS),
});

const rowOf = fc.record({ at: time, user_id: text, thread_id: optional(text) });
type Row = { at: number; user_id: string; thread_id: string | null };

const eventOf = (row: Row) =>
  fc.record({
    id,
    producer_id: optional(text),
    type: fc.constantFrom("tool.call.failure", "a.b"),
    source: text,
    severity: fc.constantFrom(...SEVERITIES),
    timestamp: fc.constantFrom(new Date(row.at).toISOString(), "2026-01-03T15:30:00.000Z"),
    payload: json,
    dedupe_key: optional(text),
    user_id: fc.constant(row.user_id),
    thread_id: fc.constant(row.thread_id),
    subject: optional(text),
  }) as unknown as fc.Arbitrary<Event>;

/** A notification that says what its event says, or something else, field by field. */
const notificationOf = (row: Row, event: Event | undefined) => {
  const usually = <Value>(usual: Value | undefined, other: fc.Arbitrary<Value>) =>
    usual === undefined ? other : fc.oneof(fc.constant(usual), other);
  return fc.record({
    id,
    user_id: fc.constant(row.user_id),
    thread_id: usually(row.thread_id, optional(text)),
    subscriber_id: text,
    kind: usually(event?.type, fc.constant("c.d")),
    source: usually(event?.source, text),
    subject: usually(event?.subject, optional(text)),
    severity: usually(event?.severity, fc.constantFrom(...SEVERITIES)),
    inject_at: fc.constantFrom("next", "turn_end"),
    content: text,
    data: optional(json),
    directive: optional(text),
    degraded: optional(text),
    axes,
    dedupe_key: usually(event?.dedupe_key, optional(text)),
    dedupe_until: time,
    wake_ms: fc.option(time),
    created_at: usually(row.at, time),
    event_id: usually(event?.id, id as never),
    redrive_of: optional(id),
    linked_to: optional(id),
  }) as unknown as fc.Arbitrary<Notification>;
};

const changeOf = (row: Row, event: Event | undefined): fc.Arbitrary<Change> => {
  const set = fc.record(
    {
      priority: fc.constantFrom(...PRIORITIES),
      deadline: time,
      effective: axes,
      channel: fc.constantFrom(...CHANNELS),
      lease: optional(fc.record({ id, owner: text })),
      lease_epoch: fc.nat(),
      thread_id: optional(text),
    },
    { requiredKeys: [] },
  );
  const common = { path: fc.array(fc.constantFrom(...STATES), { maxLength: 3 }), prev: optional(fc.nat()), set };
  const created = notificationOf(row, event).chain((notification) =>
    fc.record({
      ...common,
      command: fc.constant("create"),
      notification: fc.constant(notification),
      notification_id: fc.constant(notification.id),
    }),
  );
  const changed = fc.record({
    ...common,
    command: fc.constantFrom(...COLUMNS.filter((column) => column !== "merge")),
    notification_id: id,
  });
  const merged = fc.record(
    {
      ...common,
      command: fc.constant("merge"),
      notification_id: id,
      event_id: event === undefined ? id : fc.oneof(fc.constant(event.id as string), id),
      subscriber_id: text,
      words: fc.record({ content: text, data: optional(json) }),
      note: text,
    },
    { requiredKeys: ["path", "prev", "set", "command", "notification_id", "event_id"] },
  );
  return fc.oneof(created, changed, merged) as unknown as fc.Arbitrary<Change>;
};

const item = fc.oneof(
  fc.record({ type: fc.constant("chat_request"), content: text, source: fc.constantFrom("user", "system") }),
  fc.record({ type: fc.constant("chat_response"), content: text, truncated: fc.constant(true) }),
  fc.record({ type: fc.constant("tool_call_request"), id: text, name: text, input: json }),
  fc.record({
    type: fc.constant("tool_call_response"),
    id: text,
    name: text,
    output: text,
    is_error: fc.boolean(),
  }),
);

const spent = fc.record({ input: fc.nat(), output: fc.nat(), calls: fc.nat(), time_ms: fc.nat() });

const ended = {
  type: fc.constant("carrier"),
  carrier_id: id,
  state: fc.constant("sent"),
  point: fc.constantFrom(...POINTS),
  ended: fc.constant(null),
  note: fc.constant(null),
  turn_id: fc.constant(null),
  items: fc.constant([]),
  embedded: fc.constant([]),
  block: fc.constant(null),
};

const entry = rowOf.chain((row) =>
  fc.option(eventOf(row), { nil: undefined }).chain((event) =>
    fc.array(changeOf(row, event), { maxLength: 3 }).chain((changes) => {
      const bodies: fc.Arbitrary<unknown> =
        event === undefined
          ? fc.oneof(
              fc.record({ type: fc.constant("delivery"), operation: fc.constantFrom("ack", "claim") }),
              fc.record({ type: fc.constant("thread"), state: fc.constantFrom("open", "closing", "closed") }),
              fc.record({ type: fc.constant("thread"), state: fc.constant("open"), paused: fc.constant(true) }),
              fc.record({
                type: fc.constant("thread"),
                state: fc.constant("open"),
                budgets: fc.record({
                  tokens: optional(fc.nat()),
                  iterations: optional(fc.nat()),
                  time_ms: optional(fc.nat()),
                }),
              }),
              fc.record({
                type: fc.constant("turn"),
                turn_id: id,
                state: fc.constantFrom(...TURN_STATES),
                source: optional(fc.constantFrom("user", "system")),
                internal: fc.boolean(),
                content: optional(text),
                note: optional(text),
                continued_by: optional(id),
                items: fc.array(item, { maxLength: 3 }),
              }),
              fc.record({
                type: fc.constant("turn"),
                turn_id: id,
                state: fc.constant("active"),
                source: fc.constant(null),
                internal: fc.constant(false),
                content: fc.constant(null),
                note: fc.constant(null),
                continued_by: fc.constant(null),
                items: fc.array(item, { maxLength: 3 }),
                spent,
              }),
              fc.record({ type: fc.constant("observation"), subject: text, generation: fc.nat() }),
              fc.record({
                type: fc.constant("handle"),
                handle: text,
                tool: text,
                state: fc.constantFrom(...HANDLE_STATES),
                detail: fc.record(
                  {
                    question: text,
                    result: text,
                    error: fc.record({ message: text, transient: fc.boolean() }),
                    output: text,
                    data: json,
                  },
                  { requiredKeys: [] },
                ),
              }),
              fc.record({
                type: fc.constant("mcp_tool"),
                server: text,
                tool: text,
                by: optional(fc.constantFrom(...APPROVALS)),
                look: fc.record({ digest: text, description: text, input_schema: json }),
              }),
              fc.record({ type: fc.constant("settings"), disabled_subscribers: fc.array(text) }),
              fc.record({
                type: fc.constant("carrier"),
                carrier_id: id,
                state: fc.constantFrom(...CARRIER_STATES),
                point: fc.constantFrom(...POINTS),
                ended: optional(fc.constantFrom(...CARRIER_ENDS)),
                note: optional(text),
                turn_id: optional(id),
                items: fc.array(item, { maxLength: 3 }),
                embedded: fc.array(fc.record({ id, revision: fc.nat(), content: text }), { maxLength: 3 }),
                block: optional(fc.record({ text, form: fc.constantFrom(...BLOCK_FORMS) })),
                spent,
              }),
              fc.record({ ...ended, told: fc.constant(true) }),
              fc.record({
                type: fc.constant("token"),
                action: fc.constantFrom("created", "revoked"),
                token_id: id,
                scopes: fc.array(fc.constantFrom("read", "ack")),
              }),
            )
          : fc.constant({ type: "event", event });
      return bodies.map((body) => ({ row, body: { ...(body as object), changes } as unknown as EntryBody }));
    }),
  ),
);

it("an entry comes back from its stored form as it was, whatever its text (I5)", () => {
  fc.assert(
    fc.property(entry, ({ row, body }) => {
      const columns = { ...row, seq: 7, type: body.type } as never;
      const decoded = decodeEntry(columns, encodeEntry(body, row as never));
      expect(decoded).toEqual({ ...(columns as object), ...body });
    }),
    { numRuns: 500, seed: 20_260_103 },
  );
});
