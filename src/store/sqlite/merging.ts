/** A further event of a notification that is there: a row more, or one that counts to a row; and what is said of it then. */
import type { Event } from "../../domain/event.js";
import { canonicalJson } from "../../domain/json.js";
import { decideMerge, type MergedWords, type MergeInput } from "../../domain/reducer.js";
import { mostSevere } from "../../domain/severity.js";
import type { Draft, Row } from "../contract.js";
import type { Core } from "./core.js";
import { asRow, isGiven, rowsOf } from "./judgement.js";
import type { Held } from "./ledger.js";
import { noted, type Outcome, type Refused } from "./outcome.js";

/** Whether it goes the same way: its subscriber's file may have changed since the batch was opened. */
export function isAlike({ notification, delivery }: Held, draft: Draft): boolean {
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
export function rowWithKey(core: Core, at: number, into: Held, draft: Draft): number | undefined {
  const { dedupe_key, dedupe_window_ms } = draft;
  if (dedupe_key === null || at - into.notification.created_at < dedupe_window_ms) return undefined;
  return core.rows.of(into, () => "").find(({ key }) => key === dedupe_key)?.row;
}

/** Counts it to a row of `into`, or adds one. */
export function mergeInto(
  core: Core,
  at: number,
  event: Event,
  draft: Draft,
  into: Held,
  row: number,
  key: string | null,
): Outcome | Refused {
  const inRows = draft.content === null && !isGiven(into.notification);
  const input: MergeInput = {
    event_id: event.id,
    subscriber_id: draft.subscriber_id,
    priority: draft.priority,
    row: inRows ? row : undefined,
    words: () => (inRows ? wordsWith(core, at, event, into, row) : givenWords(draft, into)),
  };
  const merge = decideMerge(into, input, at);
  if (merge.outcome === "new") return { linked_to: merge.linked_to };
  const { next, change } = merge;
  const { open_until, priority } = next.delivery;
  const adds = inRows && row === into.delivery.rows;
  return {
    draft,
    outcome: adds ? "batched" : "merged",
    kept: next,
    changes: [noted(change, draft.note)],
    into,
    key: adds ? key : null,
    row: input.row,
    // What has become critical waits no longer.
    full: open_until !== null && priority === "critical",
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
function wordsWith(core: Core, at: number, event: Event, into: Held, row: number): MergedWords {
  const { notification } = into;
  const rows = rowsOf(core, into);
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
