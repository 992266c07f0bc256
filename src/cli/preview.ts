/** What a subscriber's file would make of events that come one right after the other; the store does the same with them. */
import type { Config } from "../config/config.js";
import { channelOf, effectiveAxes } from "../domain/axes.js";
import { type Event, matchesType, type NewEvent } from "../domain/event.js";
import { eventId } from "../domain/ids.js";
import { severityAtLeast } from "../domain/severity.js";
import { isoTime } from "../domain/time.js";
import { derivedKey } from "../intake/subscribers/dedupe.js";
import type { LoadedSubscriber } from "../intake/subscribers/load.js";
import { muting } from "../intake/switches.js";
import { wordsOf } from "../intake/words.js";
import type { Row } from "../store/contract.js";

export interface PreviewedNotification {
  readonly channel: string;
  readonly rows: readonly { readonly key: string | null; readonly count: number }[];
  readonly content: string;
  readonly degraded: string | null;
}

export interface Preview {
  /** Of each event: `matched`, or why it is not told. */
  readonly outcomes: readonly string[];
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

export function preview(
  subscriber: LoadedSubscriber,
  events: readonly NewEvent[],
  config: Config,
  now: number,
): Preview {
  const outcomes = events.map((event) => refusal(subscriber, event) ?? mutedBy(config, subscriber, event) ?? "matched");
  const drafts: Draft[] = [];
  for (const [index, one] of events.entries()) {
    if (outcomes[index] !== "matched") continue;
    const event = { ...one, id: eventId(`event ${index + 1}`), timestamp: one.timestamp ?? isoTime(now) };
    take(subscriber, event, drafts);
  }
  const notifications = drafts.map(({ rows }) => ({
    channel: channelOf(effectiveAxes(subscriber.axes, rows[0]?.event.thread_id != null)),
    rows: rows.map(({ key, count }) => ({ key, count })),
    ...wordsOf(subscriber, rows, now),
  }));
  return { outcomes, notifications };
}

/** To the row with its key, else into the batch that is open, else into a new notification. */
function take({ batch, dedupe, priority }: LoadedSubscriber, event: Event, drafts: Draft[]): void {
  const place = JSON.stringify([event.user_id, event.thread_id]);
  const key = event.dedupe_key ?? (dedupe.window_ms === 0 ? null : (dedupe.key?.keyOf(event) ?? derivedKey(event)));
  const size = batch.window_ms === 0 || priority === "critical" ? 1 : batch.max_size;
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

/** Why the subscriber does not take it; undefined if it does. */
function refusal({ types, sources, severity_filter }: LoadedSubscriber, event: NewEvent): string | undefined {
  const { type, source, severity } = event;
  if (!types.some((pattern) => matchesType(pattern, type))) return `not matched: its type is ${type}`;
  if (sources !== null && !sources.includes(source)) return `not matched: its source is ${source}`;
  if (!severityAtLeast(severity, severity_filter))
    return `filtered: its severity ${severity} is below ${severity_filter}`;
  return undefined;
}

function mutedBy(config: Config, { id, core, priority }: LoadedSubscriber, event: NewEvent): string | undefined {
  const rule = muting(config, { event, subscriber: { id, core }, priority, disabled: [] });
  return rule === undefined ? undefined : `muted: ${rule}`;
}
