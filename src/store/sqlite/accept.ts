import { createHash } from "node:crypto";
import { channelOf, effectiveAxes, isSystemChannel, mustNarrate } from "../../domain/axes.js";
import { assert, ConflictError, InvalidInputError } from "../../domain/errors.js";
import { type Event, eventIdentity, type NewEvent } from "../../domain/event.js";
import { type EventId, eventId, type NotificationId, notificationId } from "../../domain/ids.js";
import { type MatchOutcome, matchesOf, type Thread } from "../../domain/journal.js";
import { canonicalJson } from "../../domain/json.js";
import type { Kept, Notification } from "../../domain/notification.js";
import { mayAct, type Principal } from "../../domain/principal.js";
import { closeCommands, create, decide, decideMerge, type MergedWords, type NewChange } from "../../domain/reducer.js";
import { mostSevere } from "../../domain/severity.js";
import { isoTime } from "../../domain/time.js";
import { isTerminal } from "../../domain/transitions.js";
import { crashPoint } from "../../platform/crashpoint.js";
import type { Acceptance, Accepted, Draft, Match, Row, Stored } from "../contract.js";
import type { Transaction } from "./commit.js";
import type { Core } from "./core.js";
import { DedupeWindows } from "./dedupe.js";
import { flush } from "./flush.js";
import { linked } from "./journal.js";
import { asRow, isGiven, isObserved, rowsOf } from "./judgement.js";
import type { Held } from "./ledger.js";
import { foldOverflow } from "./overflow.js";
import { openThread } from "./thread_operations.js";

/** What one draft comes to, decided and not yet written. */
interface Outcome {
  readonly draft: Draft;
  readonly outcome: MatchOutcome;
  readonly kept: Kept;
  readonly changes: readonly NewChange[];
  /** The notification that it merges into; null for a new one. */
  readonly into: Held | null;
  readonly key: string | null;
  /** The row that it counts to, where there are rows. */
  readonly row: number | undefined;
  /** Whether the batch takes no more after this. */
  readonly full: boolean;
}

/** Takes an event in: idempotent by the producer's id, each draft merged or made a notification, one entry for all. */
export function accept(core: Core, transaction: Transaction, principal: Principal, acceptance: Acceptance): Accepted {
  const { event: incoming, drafts } = acceptance;
  if (!mayAct(principal, incoming.user_id)) throw new InvalidInputError("user_id", "must be the caller's own");
  const digest = incoming.producer_id === null ? null : digestOf(incoming);
  const before = digest === null ? undefined : knownProducerId(core, incoming, digest);
  if (before !== undefined) return duplicate(core, before);
  const thread = incoming.thread_id === null ? null : core.threads.forEvent(principal, incoming);

  const { at } = transaction;
  // A thread that this event opens has its entry first.
  const seq = core.journal.nextSeq + (thread === "new" ? 1 : 0);
  const event: Event = {
    id: eventId(core.ids.numbered(at, seq)),
    ...incoming,
    timestamp: incoming.timestamp ?? isoTime(at),
  };
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
      if ("outcome" in merged) return { ...merged, full: merged.full || merged.kept.delivery.rows >= batch.max_size };
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
  return { ...batch, shown: isSystemChannel(channelOf(axes)) };
}

/** Whether it goes the same way: its subscriber's file may have changed since the batch was opened. */
function isAlike({ notification, delivery }: Held, draft: Draft): boolean {
  const { address, target, handler } = notification.axes;
  return (
    delivery.priority === draft.priority &&
    notification.inject_at === draft.inject_at &&
    address === draft.axes.address &&
    target === draft.axes.target &&
    handler === draft.axes.handler
  );
}

/** The row with its key, also when its window is over: what is told together is told once. */
function rowWithKey(core: Core, at: number, into: Held, { dedupe_key, dedupe_window_ms }: Draft): number | undefined {
  if (dedupe_key === null || at - into.notification.created_at < dedupe_window_ms) return undefined;
  return core.rows.of(into, () => "").find(({ key }) => key === dedupe_key)?.row;
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

/** Counts it to a row of `into`, or adds one. */
function mergeInto(
  core: Core,
  at: number,
  event: Event,
  draft: Draft,
  into: Held,
  row: number,
  key: string | null,
): Outcome | { linked_to: Notification["linked_to"] } {
  const { subscriber_id, priority } = draft;
  const inRows = draft.content === null && !isGiven(into.notification);
  const merge = decideMerge(
    into,
    {
      event_id: event.id,
      subscriber_id,
      priority,
      ...(inRows ? { row } : {}),
      words: () => (inRows ? wordsWith(core, at, event, into, row) : givenWords(draft, into)),
    },
    at,
  );
  if (merge.outcome === "new") return { linked_to: merge.linked_to };
  const { next, change } = merge;
  const adds = inRows && row === into.delivery.rows;
  return {
    draft,
    outcome: adds ? "batched" : "merged",
    kept: next,
    changes: [noted(change, draft.note)],
    into,
    key: adds ? key : null,
    row: inRows ? row : undefined,
    // What has become critical waits no longer.
    full: next.delivery.open_until !== null && next.delivery.priority === "critical",
  };
}

function givenWords({ content, data, severity, directive }: Draft, { notification }: Held): MergedWords {
  const text = content ?? notification.content;
  return {
    words: { content: text, data, severity, directive, degraded: null },
    revises: text !== notification.content,
  };
}

/** What the notification says when one of its rows shows this event, once more. */
function wordsWith(core: Core, at: number, event: Event, { notification, ...into }: Held, row: number): MergedWords {
  const rows = rowsOf(core, { notification, ...into });
  const told = (shown: Event | undefined) =>
    rows.map((one): Row => {
      if (one.record.row !== row) return asRow(one);
      return { event: shown ?? one.event, count: one.record.count + 1, since: one.record.since };
    });
  const say = (of: readonly Row[]) => core.editor.words(notification.subscriber_id, of, at);
  const now = told(event);
  const { content, degraded } = now.length === 0 ? notification : say(now);
  const before = rows.find((one) => one.record.row === row)?.event;
  const revises = before !== undefined && !isSame(before, event) && say(told(undefined)).content !== content;
  const severity = mostSevere(now.map((one) => one.event.severity));
  const { data, directive } = notification;
  return { words: { content, degraded, severity, data, directive }, revises };
}

/** Whether the two say the same happened. */
function isSame(one: Event, other: Event): boolean {
  return (
    one.type === other.type &&
    one.severity === other.severity &&
    one.source === other.source &&
    one.subject === other.subject &&
    canonicalJson(one.payload) === canonicalJson(other.payload)
  );
}

function noted(change: NewChange, note: string | null): NewChange {
  return note === null ? change : { ...change, note };
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
  const changes = outcomes.flatMap((outcome) =>
    outcome.changes.map((change, index) => linked(change, index > 0 ? seq : (outcome.into?.last_seq ?? null))),
  );
  core.journal.append(transaction, event.user_id, event.thread_id, { type: "event", event, changes });
  crashPoint("accept.journaled");
  if (digest !== null) core.producerIds.insert(event, digest);
  const matches = outcomes.map((outcome): Match => {
    const stored = writeOutcome(core, transaction, event, outcome, seq);
    return { subscriber_id: outcome.draft.subscriber_id, outcome: outcome.outcome, stored };
  });
  crashPoint("accept.written");
  const flushed = matches.map((match, index) =>
    outcomes[index]?.full === true ? closed(core, transaction, match) : match,
  );
  for (const { outcome, stored } of matches)
    if (outcome === "queued" || outcome === "batched") foldAround(core, transaction, stored);
  return { event_id: event.id, seq, outcome: matches.length === 0 ? "unmatched" : "accepted", matches: flushed };
}

/** What came new may be too much. */
function foldAround(core: Core, transaction: Transaction, { delivery }: Stored): void {
  if (delivery.state !== "PENDING" || isSystemChannel(delivery.channel)) return;
  const held = core.ledger.byId(delivery.id);
  if (held !== undefined) foldOverflow(core, transaction, held);
}

/** The batch is full, and told. */
function closed(core: Core, transaction: Transaction, match: Match): Match {
  const held = core.ledger.byId(match.stored.delivery.id);
  assert(held !== undefined, `notification ${match.stored.delivery.id} is gone`);
  return { ...match, stored: core.ledger.stored(flush(core, transaction, held, "flush")) };
}

function writeOutcome(core: Core, transaction: Transaction, event: Event, outcome: Outcome, seq: number): Stored {
  const { kept, into, key, row, draft } = outcome;
  const until = transaction.at + draft.dedupe_window_ms;
  // What has become critical by this event is one more, whatever it was before.
  if (
    kept.delivery.priority === "critical" &&
    into?.delivery.priority !== "critical" &&
    !isTerminal(kept.delivery.state)
  )
    core.quota.count(event.user_id, event.source, transaction.at);
  if (into === null) {
    const held = core.ledger.insert(kept, seq);
    if (key !== null) core.dedupe.set(key, held.number, 0, until, transaction.at);
    return { notification: kept.notification, delivery: kept.delivery, event_ids: [event.id], seq };
  }
  if (row === undefined) core.rows.add(into, event.id);
  else writeRow(core, event, outcome, into, row, until);
  if (key !== null && row !== undefined) core.dedupe.set(key, into.number, row, until, transaction.at);
  const held = core.ledger.update(into, kept.delivery, seq);
  const { notification } = kept;
  return core.ledger.stored(notification === into.notification ? held : core.ledger.rewrite(held, notification));
}

function writeRow(core: Core, event: Event, { draft }: Outcome, into: Held, row: number, until: number): void {
  const { id: event_id, timestamp: since } = event;
  const first = () => core.journal.event(into.notification.event_id)?.timestamp ?? since;
  if (row < into.delivery.rows) core.rows.again(into, first, row, event_id);
  else core.rows.addRow(into, first, { row, key: draft.dedupe_key, until, event_id, count: 1, since });
}

function digestOf(event: NewEvent): string {
  return createHash("sha256").update(eventIdentity(event)).digest("base64url");
}

function knownProducerId(core: Core, event: NewEvent, digest: string): EventId | undefined {
  const row = core.producerIds.find(event);
  if (row === undefined) return undefined;
  if (row.digest !== digest)
    throw new ConflictError(
      "idempotency_mismatch",
      `event ${JSON.stringify(event.producer_id)} of source ${JSON.stringify(event.source)} was accepted before with another body, as ${row.event_id}; send it with an id of its own`,
    );
  return row.event_id;
}

function duplicate(core: Core, event_id: EventId): Accepted {
  const entry = core.journal.ofEvent(event_id);
  assert(entry !== undefined, `event ${event_id} has no journal entry`);
  // What retention has removed of it meanwhile is not shown; it is the same event all the same.
  const matches = matchesOf(entry.changes).flatMap((record): Match[] => {
    const held = core.ledger.byId(record.notification_id);
    if (held === undefined) return [];
    return [{ subscriber_id: record.subscriber_id, outcome: record.outcome, stored: core.ledger.stored(held) }];
  });
  return { event_id, seq: entry.seq, outcome: "duplicate", matches };
}
