import { channelOf, effectiveAxes, isSystemChannel, mustNarrate } from "../../domain/axes.js";
import { assert, InvalidInputError } from "../../domain/errors.js";
import type { Event, NewEvent } from "../../domain/event.js";
import { eventId, type NotificationId, notificationId } from "../../domain/ids.js";
import type { Change, Thread } from "../../domain/journal.js";
import type { Notification } from "../../domain/notification.js";
import { mayAct, type Principal } from "../../domain/principal.js";
import { closeCommands, create, decide } from "../../domain/reducer.js";
import { isoTime } from "../../domain/time.js";
import { crashPoint } from "../../platform/crashpoint.js";
import type { Acceptance, Accepted, Draft, Match } from "../contract.js";
import type { Transaction } from "./commit.js";
import type { Core } from "./core.js";
import { DedupeWindows } from "./dedupe.js";
import { flush } from "./flush.js";
import { linked } from "./journal.js";
import { isObserved } from "./judgement.js";
import { digestOf, duplicate, knownEvent } from "./known_events.js";
import type { Held } from "./ledger.js";
import { isAlike, mergeInto, rowWithKey } from "./merging.js";
import { openThread } from "./open_threads.js";
import { noted, type Outcome, writeOutcome } from "./outcome.js";
import { foldOverflow } from "./overflow.js";

/** Takes an event in: idempotent by the producer's id, each draft merged or made a notification, one entry for all. */
export function accept(core: Core, transaction: Transaction, principal: Principal, acceptance: Acceptance): Accepted {
  const { event: incoming, drafts } = acceptance;
  if (!mayAct(principal, incoming.user_id)) throw new InvalidInputError("user_id", "must be the caller's own");
  const digest = incoming.producer_id === null ? null : digestOf(incoming);
  const before = digest === null ? undefined : knownEvent(core, incoming, digest);
  if (before !== undefined) return duplicate(core, before);
  const thread = incoming.thread_id === null ? null : core.threads.forEvent(principal, incoming);

  const { at } = transaction;
  // A thread that this event opens has its entry first.
  const seq = core.journal.nextSeq + (thread === "new" ? 1 : 0);
  const event = eventOf(core, at, seq, incoming);
  let number = core.ledger.nextNumber;
  const outcomes: Outcome[] = [];
  for (const draft of drafts) {
    const outcome = decideDraft(core, at, event, draft, thread === "new" ? null : thread, number);
    if (outcome.into === null) number += 1;
    outcomes.push(outcome);
  }
  if (thread === "new" && event.thread_id !== null) openThread(core, transaction, event.user_id, event.thread_id);
  return write(core, transaction, event, outcomes, digest);
}

/** Field by field, since a spread takes ten times as long. */
function eventOf(core: Core, at: number, seq: number, incoming: NewEvent): Event {
  return {
    id: eventId(core.ids.numbered(at, seq)),
    producer_id: incoming.producer_id,
    type: incoming.type,
    source: incoming.source,
    severity: incoming.severity,
    timestamp: incoming.timestamp ?? isoTime(at),
    payload: incoming.payload,
    dedupe_key: incoming.dedupe_key,
    user_id: incoming.user_id,
    thread_id: incoming.thread_id,
    subject: incoming.subject,
  };
}

function decideDraft(
  core: Core,
  at: number,
  event: Event,
  asked: Draft,
  thread: Thread | null,
  number: number,
): Outcome {
  const draft = withinQuota(core, at, event, asked);
  const { user_id, thread_id } = event;
  const { subscriber_id } = draft;
  const key =
    draft.dedupe_key === null || draft.filtered
      ? null
      : DedupeWindows.keyOf(user_id, thread_id, subscriber_id, draft.dedupe_key);
  const batch = batchOf(draft, thread);
  const rule = heldAtOnce(core, event, draft, batch, thread);
  let linked_to: Notification["linked_to"] = null;
  if (rule === undefined) {
    const window = key === null ? undefined : core.dedupe.find(key, at);
    const into = window === undefined ? undefined : core.ledger.byNumber(window.number);
    if (window !== undefined && into !== undefined) {
      const merged = mergeInto(core, at, event, draft, into, window.row, key);
      if ("outcome" in merged) return merged;
      linked_to = merged.linked_to;
    }
  }
  const observed = isObserved(core, draft, event, event.thread_id);
  if (batch !== null && !observed) {
    const open = core.batches.find({ subscriber_id, user_id, thread_id });
    const into = open === undefined ? undefined : core.ledger.byNumber(open);
    if (into !== undefined && isAlike(into, draft)) {
      const row = rowWithKey(core, at, into, draft) ?? into.delivery.rows;
      const merged = mergeInto(core, at, event, draft, into, row, key);
      if ("outcome" in merged) return merged.kept.delivery.rows < batch.max_size ? merged : { ...merged, full: true };
    }
  }
  const id = notificationId(core.ids.numbered(at, number));
  const notification = notificationOf(core, id, at, event, draft, linked_to);
  const suppress = draft.filtered ? "filtered" : observed ? "observed" : rule === undefined ? null : "muted";
  const created = create(
    notification,
    {
      priority: draft.priority,
      ttl_ms: draft.ttl_ms,
      suppress,
      // What is aggregated for the end of a turn waits for somebody to come for it.
      open_until: batch === null ? null : draft.priority === "low" && !batch.shown ? Infinity : at + batch.window_ms,
    },
    { at, policy: core.policy },
  );
  const changes = [noted(created.change, rule ?? draft.note)];
  let delivery = created.next;
  // A thread that is over: as if the item had been in it when it closed.
  if (thread !== null && thread.state !== "open") {
    for (const command of closeCommands(delivery)) {
      const decision = decide({ notification, delivery }, command, { at, policy: core.policy });
      assert(decision.outcome === "changed", `closing a new ${delivery.channel} item changes it`);
      changes.push(decision.change);
      delivery = decision.next;
    }
  }
  const alone = batch === null || suppress !== null;
  const outcome = suppress === "filtered" || suppress === "muted" ? suppress : alone ? "queued" : "batched";
  const kept = { notification, delivery };
  return { draft, outcome, kept, changes, into: null, key, row: undefined, full: false };
}

/** A source that calls everything critical is believed so many times a minute. */
function withinQuota(core: Core, at: number, { user_id, source }: Event, draft: Draft): Draft {
  if (draft.priority !== "critical" || draft.filtered || core.quota.allows(user_id, source, at)) return draft;
  const { inject_at } = draft;
  return {
    ...draft,
    priority: "high",
    inject_at: inject_at === "immediate" ? "next" : inject_at,
    note: `the priority critical was lowered to high: its source had made ${core.policy.criticalPerMinute} within a minute`,
  };
}

interface Batch {
  readonly window_ms: number;
  readonly max_size: number;
  /** Shown by the system when it is closed. */
  readonly shown: boolean;
}

/** Critical ones are by themselves, and so is whatever comes to a thread that is over. */
function batchOf({ batch, priority, filtered, axes }: Draft, thread: Thread | null): Batch | null {
  if (batch === null || batch.window_ms === 0 || batch.max_size <= 1) return null;
  if (filtered || priority === "critical" || (thread !== null && thread.state !== "open")) return null;
  const { window_ms, max_size } = batch;
  return { window_ms, max_size, shown: isSystemChannel(channelOf(axes)) };
}

/** What the system would show at once is judged at once; all else when it is told. */
function heldAtOnce(
  core: Core,
  event: Event,
  draft: Draft,
  batch: Batch | null,
  thread: Thread | null,
): string | undefined {
  if (draft.filtered || batch !== null) return undefined;
  // Nobody is left in its thread to narrate it.
  const escalates = thread !== null && thread.state !== "open" && mustNarrate(draft.axes);
  if (!escalates && !isSystemChannel(channelOf(effectiveAxes(draft.axes, event.thread_id !== null)))) return undefined;
  const { disabled_subscribers } = core.settings.of(event.user_id);
  if (!core.editor.holdsAny(disabled_subscribers)) return undefined;
  return core.editor.held(event, draft.subscriber_id, draft.priority, disabled_subscribers);
}

function notificationOf(
  core: Core,
  id: NotificationId,
  at: number,
  event: Event,
  draft: Draft,
  linked_to: Notification["linked_to"],
): Notification {
  const { content, degraded } =
    draft.content === null
      ? core.editor.words(draft.subscriber_id, [{ event, count: 1, since: event.timestamp }], at)
      : { content: draft.content, degraded: null };
  return {
    id,
    user_id: event.user_id,
    thread_id: event.thread_id,
    subscriber_id: draft.subscriber_id,
    kind: event.type,
    source: event.source,
    subject: event.subject,
    severity: draft.severity,
    inject_at: draft.inject_at,
    content,
    data: draft.data,
    directive: draft.directive,
    degraded,
    axes: draft.axes,
    dedupe_key: draft.dedupe_key,
    dedupe_until: draft.dedupe_key === null ? 0 : at + draft.dedupe_window_ms,
    wake_ms: draft.wake_ms,
    created_at: at,
    event_id: event.id,
    redrive_of: null,
    linked_to,
  };
}

function write(
  core: Core,
  transaction: Transaction,
  event: Event,
  outcomes: readonly Outcome[],
  digest: string | null,
): Accepted {
  const seq = core.journal.nextSeq;
  const changes: Change[] = [];
  for (const outcome of outcomes) {
    let prev = outcome.into === null ? null : outcome.into.last_seq;
    for (const change of outcome.changes) {
      changes.push(linked(change, prev));
      prev = seq;
    }
  }
  core.journal.append(transaction, event.user_id, event.thread_id, { type: "event", event, changes });
  crashPoint("accept.journaled");
  if (digest !== null) core.producerIds.insert(event, digest);
  const written: Held[] = [];
  for (const outcome of outcomes) written.push(writeOutcome(core, transaction.at, event, outcome, seq));
  crashPoint("accept.written");
  const matches: Match[] = [];
  for (let index = 0; index < outcomes.length; index += 1) {
    const { draft, outcome, full } = outcomes[index] as Outcome;
    const held = written[index] as Held;
    const stored = core.ledger.stored(full ? flush(core, transaction, held, "flush") : held);
    matches.push({ subscriber_id: draft.subscriber_id, outcome, stored });
  }
  for (let index = 0; index < outcomes.length; index += 1)
    if (waits(outcomes[index] as Outcome)) foldAround(core, transaction, written[index] as Held);
  return { event_id: event.id, seq, outcome: matches.length === 0 ? "unmatched" : "accepted", matches };
}

/** Whether one more waits now, or may be folded: a further row of a batch that stays open is neither. */
function waits({ outcome, into, full }: Outcome): boolean {
  return (outcome === "queued" || outcome === "batched") && (into === null || full);
}

/** What came new may be too much. */
function foldAround(core: Core, transaction: Transaction, { delivery, number }: Held): void {
  if (delivery.state !== "PENDING" || isSystemChannel(delivery.channel)) return;
  const held = core.ledger.byNumber(number);
  if (held !== undefined) foldOverflow(core, transaction, held);
}
