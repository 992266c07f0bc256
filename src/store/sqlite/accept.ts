import { createHash } from "node:crypto";
import { assert, ConflictError, InvalidInputError } from "../../domain/errors.js";
import { type Event, eventIdentity, type NewEvent } from "../../domain/event.js";
import { type EventId, eventId, type NotificationId, notificationId } from "../../domain/ids.js";
import { type MatchOutcome, matchesOf, type Thread } from "../../domain/journal.js";
import type { Kept, Notification } from "../../domain/notification.js";
import { mayAct, type Principal } from "../../domain/principal.js";
import { closeCommands, create, decide, decideMerge, type NewChange } from "../../domain/reducer.js";
import { isoTime } from "../../domain/time.js";
import { crashPoint } from "../../platform/crashpoint.js";
import type { Acceptance, Accepted, Draft, Match, Stored } from "../contract.js";
import type { Transaction } from "./commit.js";
import type { Core } from "./core.js";
import { DedupeWindows } from "./dedupe.js";
import { linked } from "./journal.js";
import type { Held } from "./ledger.js";
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
  draft: Draft,
  thread: Thread | null,
  number: number,
): Outcome {
  const { user_id, thread_id } = event;
  const key =
    draft.dedupe_key === null || draft.filtered
      ? null
      : DedupeWindows.keyOf(user_id, thread_id, draft.subscriber_id, draft.dedupe_key);
  const open = key === null ? undefined : core.dedupe.find(key, at);
  const into = open === undefined ? undefined : core.ledger.byNumber(open);
  let linked_to: Notification["linked_to"] = null;
  if (into !== undefined) {
    const { content, data, severity, directive, priority } = draft;
    const words = { content, data, severity, directive };
    const { subscriber_id } = draft;
    const merge = decideMerge(into, { event_id: event.id, subscriber_id, words, priority }, at);
    if (merge.outcome === "merged")
      return { draft, outcome: "merged", kept: merge.next, changes: [noted(merge.change, draft)], into, key };
    linked_to = merge.linked_to;
  }
  const id = notificationId(core.ids.numbered(at, number));
  const notification = notificationOf(id, at, event, draft, linked_to);
  const suppress = draft.filtered ? "filtered" : isObserved(core, event, draft) ? "observed" : null;
  const created = create(
    notification,
    { priority: draft.priority, ttl_ms: draft.ttl_ms, suppress },
    {
      at,
      policy: core.policy,
    },
  );
  const changes = [noted(created.change, draft)];
  let delivery = created.next;
  // A thread that is over: as if the item had been in it when it closed.
  if (thread !== null && thread.state !== "open") {
    for (const command of closeCommands(delivery)) {
      const decision = decide(delivery, command, { at, policy: core.policy });
      assert(decision.outcome === "changed", `closing a new ${delivery.channel} item changes it`);
      changes.push(decision.change);
      delivery = decision.next;
    }
  }
  const outcome: MatchOutcome = suppress === "filtered" ? "filtered" : "queued";
  return { draft, outcome, kept: { notification, delivery }, changes, into: null, key };
}

function noted(change: NewChange, { note }: Draft): NewChange {
  return note === null ? change : { ...change, note };
}

function notificationOf(
  id: NotificationId,
  at: number,
  event: Event,
  draft: Draft,
  linked_to: Notification["linked_to"],
): Notification {
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
    content: draft.content,
    data: draft.data,
    directive: draft.directive,
    axes: draft.axes,
    dedupe_key: draft.dedupe_key,
    dedupe_until: draft.dedupe_key === null ? 0 : at + draft.dedupe_window_ms,
    created_at: at,
    event_id: event.id,
    redrive_of: null,
    linked_to,
  };
}

/** Only the agent's own observation keeps something from the agent; what is for the user is shown. */
function isObserved(core: Core, event: Event, draft: Draft): boolean {
  if (event.subject === null || event.thread_id === null) return false;
  const forAgent = draft.axes.target === "agent" || draft.axes.handler === "agent";
  return forAgent && core.threads.hasObserved(event.thread_id, event.subject);
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
    const stored = writeOutcome(core, transaction, event.id, outcome, seq);
    return { subscriber_id: outcome.draft.subscriber_id, outcome: outcome.outcome, stored };
  });
  crashPoint("accept.written");
  return { event_id: event.id, seq, outcome: matches.length === 0 ? "unmatched" : "accepted", matches };
}

function writeOutcome(core: Core, transaction: Transaction, event_id: EventId, outcome: Outcome, seq: number): Stored {
  const { kept, into, key } = outcome;
  if (into === null) {
    const held = core.ledger.insert(kept, seq);
    if (key !== null) core.dedupe.set(key, held.number, kept.notification.dedupe_until, transaction.at);
    return { notification: kept.notification, delivery: kept.delivery, event_ids: [event_id], seq };
  }
  core.ledger.addMerged(into.number, seq, event_id);
  const held = core.ledger.update(into, kept.delivery, seq);
  if (kept.notification !== into.notification) core.ledger.rewrite(into.number, kept.notification);
  return core.ledger.stored({ ...held, notification: kept.notification });
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
