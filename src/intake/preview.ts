/** What a subscriber would make of events that come one right after the other; the store does the same with them. */
import { channelOf, effectiveAxes } from "../domain/axes.js";
import { type Event, matchesType, type NewEvent } from "../domain/event.js";
import { eventId } from "../domain/ids.js";
import { severityAtLeast } from "../domain/severity.js";
import { isoTime } from "../domain/time.js";
import type { Row } from "../store/contract.js";
import { keyOf } from "./intake.js";
import type { Subscriber } from "./subscriber.js";
import type { TriedWords } from "./words.js";

export interface PreviewedNotification extends TriedWords {
  readonly channel: string;
  readonly rows: readonly { readonly key: string | null; readonly count: number }[];
}

/** What becomes of one event, and why where it is not told. */
export interface PreviewedOutcome {
  readonly outcome: "matched" | "not_matched" | "filtered" | "muted";
  readonly reason: string | null;
}

export interface Preview {
  /** Of each event. */
  readonly outcomes: readonly PreviewedOutcome[];
  readonly notifications: readonly PreviewedNotification[];
}

interface KeyedRow extends Row {
  readonly key: string | null;
}

interface Draft {
  /** Only events of the same user and thread are told together, or are the same one. */
  readonly place: string;
  readonly rows: KeyedRow[];
}

/** `muted`: the rule that holds an event back, if one does. */
export function preview(
  subscriber: Subscriber,
  events: readonly NewEvent[],
  muted: (event: NewEvent) => string | undefined,
  now: number,
): Preview {
  const outcomes = events.map((event) => previewedOutcome(subscriber, event, muted));
  const drafts: Draft[] = [];
  for (const [index, event] of events.entries())
    if (outcomes[index]?.outcome === "matched") take(subscriber, asAccepted(event, index, now), drafts);
  const notifications = drafts.map(({ rows }) => ({
    channel: channelOf(effectiveAxes(subscriber.axes, rows[0]?.event.thread_id != null)),
    rows: rows.map(({ key, count }) => ({ key, count })),
    ...subscriber.tryWords(rows, now),
  }));
  return { outcomes, notifications };
}

/** With what the store would give it. */
export function asAccepted(event: NewEvent, index: number, now: number): Event {
  return { ...event, id: eventId(`event ${index + 1}`), timestamp: event.timestamp ?? isoTime(now) };
}

/** To the row with its key, else into the batch that is open, else into a new notification. */
function take(subscriber: Subscriber, event: Event, drafts: Draft[]): void {
  const { dedupe } = subscriber;
  const place = JSON.stringify([event.user_id, event.thread_id]);
  const key = keyOf(event, subscriber);
  const size = batchSize(subscriber);
  const last = drafts.findLast((draft) => draft.place === place);
  const open = last !== undefined && last.rows.length < size ? last : undefined;
  // Without a window, a key counts only as long as its batch is open.
  const searched = dedupe.window_ms > 0 ? drafts.filter((draft) => draft.place === place) : open ? [open] : [];
  for (const { rows } of searched) {
    const index = key === null ? -1 : rows.findIndex((row) => row.key === key);
    const row = rows[index];
    if (row === undefined) continue;
    rows[index] = { ...row, event, count: row.count + 1 };
    return;
  }
  const row = { key, event, count: 1, since: event.timestamp };
  if (open === undefined) drafts.push({ place, rows: [row] });
  else open.rows.push(row);
}

/** How many that differ go into one notification; critical ones are by themselves. */
export function batchSize({ batch, priority }: Pick<Subscriber, "batch" | "priority">): number {
  return batch.window_ms === 0 || priority === "critical" ? 1 : batch.max_size;
}

export function previewedOutcome(
  { types, sources, severity_filter }: Subscriber,
  event: NewEvent,
  muted: (event: NewEvent) => string | undefined,
): PreviewedOutcome {
  const { type, source, severity } = event;
  if (!types.some((pattern) => matchesType(pattern, type)))
    return { outcome: "not_matched", reason: `its type is ${type}` };
  if (sources !== null && !sources.includes(source))
    return { outcome: "not_matched", reason: `its source is ${source}` };
  if (!severityAtLeast(severity, severity_filter))
    return { outcome: "filtered", reason: `its severity ${severity} is below ${severity_filter}` };
  const rule = muted(event);
  return rule === undefined ? { outcome: "matched", reason: null } : { outcome: "muted", reason: rule };
}
