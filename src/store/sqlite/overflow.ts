/**
 * When too much waits for an agent: the oldest of the least urgent ones are folded into one notification that says how
 * many and of what. What is critical, and what the agent must tell its user, is never folded.
 */
import { isSystemChannel } from "../../domain/axes.js";
import { assert, isMiss } from "../../domain/errors.js";
import type { Event } from "../../domain/event.js";
import { eventId, notificationId, OVERFLOW_SUBSCRIBER, type ThreadId, type UserId } from "../../domain/ids.js";
import type { JsonObject } from "../../domain/json.js";
import type { Notification } from "../../domain/notification.js";
import { create, decideMerge, type NewChange } from "../../domain/reducer.js";
import { isoTime } from "../../domain/time.js";
import type { Row } from "../contract.js";
import { plan, type Step, writeSteps } from "./changes.js";
import type { Transaction } from "./commit.js";
import type { Core } from "./core.js";
import { linked } from "./journal.js";
import type { Held } from "./ledger.js";
import { ANY_THREAD, placeOf } from "./place.js";

const TYPE = "tidings.overflow";
const SOURCE = "tidings";
/** A tenth of the limit is folded at once: one by one would be an entry each. */
const PART = 10;
const FOLDABLE = ["low", "normal", "high"] as const;
/** Kinds that are told apart; the rest is one. */
const KINDS_MAX = 50;
const OTHERS = "";
const NONE = { notifications: 0, events: 0 };

interface Kind {
  readonly type: string;
  readonly source: string;
  readonly notifications: number;
  readonly events: number;
}

/** Called after something new waits for an agent. */
export function foldOverflow(core: Core, transaction: Transaction, { notification, delivery }: Held): void {
  if (delivery.state !== "PENDING" || isSystemChannel(delivery.channel)) return;
  const { user_id } = delivery;
  const { source } = notification;
  const place = placeOf(delivery);
  if (!core.backlog.knows(user_id, place, source)) core.ledger.writeOut();
  const { pendingPerThread, pendingPerSource } = core.policy;
  if (core.backlog.inPlace(user_id, place) > pendingPerThread)
    fold(core, transaction, user_id, pendingPerThread, (priority, limit) =>
      core.backlog.oldestInPlace(user_id, place, priority, limit),
    );
  if (core.backlog.ofSource(user_id, source) > pendingPerSource)
    fold(core, transaction, user_id, pendingPerSource, (priority, limit) =>
      core.backlog.oldestOfSource(user_id, source, priority, limit),
    );
}

function fold(
  core: Core,
  transaction: Transaction,
  user_id: UserId,
  limit: number,
  oldest: (priority: (typeof FOLDABLE)[number], limit: number) => number[],
): void {
  const wanted = Math.max(1, Math.floor(limit / PART));
  const places = new Map<ThreadId | null, Held[]>();
  let found = 0;
  core.ledger.writeOut();
  for (const priority of FOLDABLE) {
    // One of them may be a summary, which is spared.
    for (const number of oldest(priority, wanted - found + 1)) {
      if (found >= wanted) break;
      const held = core.ledger.byNumber(number);
      if (held === undefined || held.notification.subscriber_id === OVERFLOW_SUBSCRIBER) continue;
      const thread_id = (placeOf(held.delivery) || null) as ThreadId | null;
      places.set(thread_id, [...(places.get(thread_id) ?? []), held]);
      found += 1;
    }
    if (found >= wanted) break;
  }
  for (const [thread_id, held] of places) foldInto(core, transaction, user_id, thread_id, held);
  core.ledger.writeOut();
}

/** One entry: the event that tells of it, what was folded, and the summary. */
function foldInto(
  core: Core,
  transaction: Transaction,
  user_id: UserId,
  thread_id: ThreadId | null,
  held: readonly Held[],
): void {
  const { at } = transaction;
  const seq = core.journal.nextSeq;
  const place = thread_id ?? ANY_THREAD;
  core.ledger.writeOut();
  const known = core.backlog.ofSubscriber(user_id, place, OVERFLOW_SUBSCRIBER);
  const into = known === undefined ? undefined : core.ledger.byNumber(known);
  const event: Event = {
    id: eventId(core.ids.numbered(at, seq)),
    producer_id: null,
    type: TYPE,
    source: SOURCE,
    severity: "warning",
    timestamp: isoTime(at),
    payload: foldedWith(into?.notification.data ?? null, held),
    dedupe_key: null,
    user_id,
    thread_id,
    subject: null,
  };
  const id = into?.delivery.id ?? notificationId(core.ids.numbered(at, core.ledger.nextNumber));
  const steps: Step[] = [];
  for (const one of held) {
    const planned = plan(core, transaction, one, [{ column: "suppress", reason: "folded", note: `into ${id}` }]);
    if (!isMiss(planned)) steps.push(...planned.steps);
  }
  const row: Row = { event, count: 1, since: event.timestamp };
  const words = core.editor.words(OVERFLOW_SUBSCRIBER, [row], at);
  const changes = steps.map((step) => step.change);
  const append = (change: NewChange) => {
    const all = [...changes, linked(change, into?.last_seq ?? null)];
    core.journal.append(transaction, user_id, thread_id, { type: "event", event, changes: all });
    writeSteps(core, steps, seq);
  };
  if (into === undefined) {
    const notification = summaryOf(id, at, event, words);
    const created = create(
      notification,
      { priority: "normal", ttl_ms: null, suppress: null },
      { at, policy: core.policy },
    );
    append(created.change);
    core.ledger.insert({ notification, delivery: created.next }, seq);
    return;
  }
  const said = { ...words, severity: event.severity, data: event.payload, directive: null };
  const merge = decideMerge(
    into,
    {
      event_id: event.id,
      subscriber_id: OVERFLOW_SUBSCRIBER,
      priority: "normal",
      words: () => ({ words: said, revises: false }),
    },
    at,
  );
  assert(merge.outcome === "merged", "a summary that is pending takes more");
  append(merge.change);
  core.rows.add(into, event.id);
  core.ledger.rewrite(core.ledger.update(into, merge.next.delivery, seq), merge.next.notification);
}

function summaryOf(
  id: Notification["id"],
  at: number,
  event: Event,
  words: Pick<Notification, "content" | "degraded">,
): Notification {
  return {
    id,
    user_id: event.user_id,
    thread_id: event.thread_id,
    subscriber_id: OVERFLOW_SUBSCRIBER,
    kind: event.type,
    source: event.source,
    subject: null,
    severity: event.severity,
    inject_at: "next",
    content: words.content,
    data: event.payload,
    directive: null,
    degraded: words.degraded,
    axes: { address: "session", target: "agent", handler: "system" },
    dedupe_key: null,
    dedupe_until: 0,
    wake_ms: null,
    created_at: at,
    event_id: event.id,
    redrive_of: null,
    linked_to: null,
  };
}

/** How many and of what, with what the summary says already. */
function foldedWith(before: JsonObject | null, held: readonly Held[]): JsonObject {
  const kinds = new Map<string, Kind>();
  const add = ({ type, source, notifications, events }: Kind) => {
    const named = `${type}\n${source}`;
    const key = kinds.has(named) || kinds.size < KINDS_MAX ? named : OTHERS;
    const known = kinds.get(key) ?? {
      ...(key === OTHERS ? { type: "others", source: "" } : { type, source }),
      ...NONE,
    };
    const sum = { notifications: known.notifications + notifications, events: known.events + events };
    kinds.set(key, { ...known, ...sum });
  };
  for (const kind of (before?.["kinds"] as Kind[] | undefined) ?? []) add(kind);
  for (const { notification, delivery } of held)
    add({ type: notification.kind, source: notification.source, notifications: 1, events: delivery.count });
  const all = [...kinds.values()];
  return {
    notifications: all.reduce((sum, { notifications }) => sum + notifications, 0),
    events: all.reduce((sum, { events }) => sum + events, 0),
    kinds: all.map((kind) => ({ ...kind })),
  };
}
