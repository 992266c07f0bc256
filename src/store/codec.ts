/**
 * The stored form of a journal entry. It says nothing twice: what the row's own columns or the event of the entry say
 * is left out of the body and put back on reading. Rows are half as long that way, and so is a commit.
 */
import { ADDRESSES, type Axes, HANDLERS, TARGETS } from "../domain/axes.js";
import { StoreError, unreachable } from "../domain/errors.js";
import type { Event } from "../domain/event.js";
import type { ThreadId, UserId } from "../domain/ids.js";
import type { Change, EntryBody, JournalEntry, Patch } from "../domain/journal.js";
import { jsonText, textJson } from "../domain/json.js";
import type { Notification } from "../domain/notification.js";
import { isoTime } from "../domain/time.js";
import type { Spent } from "../domain/usage.js";

/** The columns of a journal row beside its body. */
export interface EntryRow {
  readonly seq: number;
  readonly at: number;
  readonly type: EntryBody["type"];
  readonly user_id: UserId;
  readonly thread_id: ThreadId | null;
}

const AXES_BY_TEXT = new Map<string, Axes>();
for (const address of ADDRESSES)
  for (const target of TARGETS)
    for (const handler of HANDLERS)
      AXES_BY_TEXT.set(`${address}/${target}/${handler}`, Object.freeze({ address, target, handler }));

type Texts = Record<Axes["address"], Record<Axes["target"], Record<Axes["handler"], string>>>;
const TEXTS = Object.fromEntries(
  ADDRESSES.map((address) => [
    address,
    Object.fromEntries(
      TARGETS.map((target) => [
        target,
        Object.fromEntries(HANDLERS.map((handler) => [handler, `${address}/${target}/${handler}`])),
      ]),
    ),
  ]),
) as Texts;

export function axesText(axes: Axes): string {
  return TEXTS[axes.address][axes.target][axes.handler];
}

export function axesFrom(text: string): Axes {
  const axes = AXES_BY_TEXT.get(text);
  if (axes === undefined)
    throw new StoreError("store_corrupt", `${JSON.stringify(text)} is no routing; restore a backup.`);
  return axes;
}

type Loose = Record<string, unknown>;

/**
 * Written by hand, since this is the hottest path of the store: JSON.stringify on objects with optional fields took
 * twice as long as the insert of the row. A round trip through `decodeEntry` is checked for arbitrary entries.
 */
export function encodeEntry(body: EntryBody, row: Omit<EntryRow, "seq" | "type">): string {
  const event = body.type === "event" ? body.event : undefined;
  let changes = "";
  for (const change of body.changes)
    changes += `${changes === "" ? ',"changes":[' : ","}${changeText(change, event, row)}`;
  if (changes !== "") changes += "]";
  switch (body.type) {
    case "event":
      return `{"event":${eventText(body.event, row)}${changes}}`;
    case "delivery":
      return `{"operation":"${body.operation}"${changes}}`;
    case "thread":
      return `{"state":"${body.state}"${body.paused === true ? ',"paused":true' : ""}${
        body.budgets === undefined ? "" : `,"budgets":${JSON.stringify(body.budgets)}`
      }${changes}}`;
    case "observation":
      return `{"subject":${JSON.stringify(body.subject)},"generation":${body.generation}${changes}}`;
    case "settings":
      return `{"disabled_subscribers":${JSON.stringify(body.disabled_subscribers)}${changes}}`;
    case "token":
      return `{"action":"${body.action}","token_id":"${body.token_id}","scopes":${JSON.stringify(body.scopes)}${changes}}`;
    case "handle":
      return `{"handle":${JSON.stringify(body.handle)},"tool":${JSON.stringify(body.tool)},"state":"${body.state}","detail":${JSON.stringify(body.detail)}${changes}}`;
    case "mcp_tool":
      return `{"server":${JSON.stringify(body.server)},"tool":${JSON.stringify(body.tool)},"by":${JSON.stringify(body.by)},"look":${JSON.stringify(body.look)}${changes}}`;
    case "carrier":
      return `{"carrier_id":"${body.carrier_id}","state":"${body.state}","point":"${body.point}"${field(
        "ended",
        body.ended,
        null,
      )}${field("note", body.note, null)}${field("turn_id", body.turn_id, null)}${said(body)}${spentText(body.spent)}${body.told === true ? ',"told":true' : ""}${changes}}`;
    case "turn":
      return `{"turn_id":"${body.turn_id}","state":"${body.state}"${field("source", body.source, null)}${
        body.internal ? ',"internal":true' : ""
      }${field("content", body.content, null)}${field("note", body.note, null)}${field("continued_by", body.continued_by, null)}${list("items", body.items)}${spentText(body.spent)}${changes}}`;
    default:
      return unreachable(body);
  }
}

/** What was said with a carrier, and what it embeds. */
function said({ items, embedded, block }: Extract<EntryBody, { type: "carrier" }>): string {
  const block_text = block === null ? "" : `,"block":${JSON.stringify(block)}`;
  return `${list("items", items)}${list("embedded", embedded)}${block_text}`;
}

function spentText(spent: Spent | undefined): string {
  return spent === undefined ? "" : `,"spent":${JSON.stringify(spent)}`;
}

function list(name: string, values: readonly object[]): string {
  return values.length === 0 ? "" : `,"${name}":${JSON.stringify(values)}`;
}

/** One more field of a JSON object; none if the value is what the reader expects. */
function field(name: string, value: string | number | null, usual: unknown): string {
  return value === usual ? "" : `,"${name}":${typeof value === "string" ? textJson(value) : value}`;
}

/** The event of an entry alone; undefined if it has none. */
export function decodeEvent(row: EntryRow, body: string): Event | undefined {
  return eventIn(parsed(row, body), row);
}

function eventIn({ event }: Loose, row: EntryRow): Event | undefined {
  return event === undefined ? undefined : longEvent(event as Loose, row);
}

export function decodeEntry(row: EntryRow, body: string): JournalEntry {
  const stored = parsed(row, body);
  const event = eventIn(stored, row);
  const changes = ((stored["changes"] as Loose[] | undefined) ?? []).map((change) => longChange(change, event, row));
  const { seq, at, type, user_id, thread_id } = row;
  return {
    ...ABSENT[type],
    ...stored,
    ...(event === undefined ? {} : { event }),
    changes,
    seq,
    at,
    type,
    user_id,
    thread_id,
  } as JournalEntry;
}

/** What an entry does not say if it is what it usually is. */
const ABSENT: Partial<Record<EntryBody["type"], Loose>> = {
  carrier: { ended: null, note: null, turn_id: null, items: [], embedded: [], block: null },
  turn: { source: null, internal: false, content: null, note: null, continued_by: null, items: [] },
};

function parsed(row: EntryRow, body: string): Loose {
  try {
    return JSON.parse(body) as Loose;
  } catch (error) {
    throw new StoreError("store_corrupt", `entry ${row.seq} of the journal cannot be read; restore a backup.`, error);
  }
}

/** Ids, types and severities are made of characters that need no escape. */
function eventText(event: Event, row: Pick<EntryRow, "at">): string {
  return `{"id":"${event.id}","type":"${event.type}","severity":"${event.severity}","source":${textJson(event.source)}${field(
    "timestamp",
    event.timestamp,
    isoTime(row.at),
  )}${field("producer_id", event.producer_id, null)}${field("dedupe_key", event.dedupe_key, null)}${field(
    "subject",
    event.subject,
    null,
  )},"payload":${jsonText(event.payload)}}`;
}

function longEvent(short: Loose, row: EntryRow): Event {
  const { user_id, thread_id } = row;
  const absent = { producer_id: null, timestamp: isoTime(row.at), dedupe_key: null, subject: null };
  return { ...absent, ...short, user_id, thread_id } as Event;
}

function changeText(change: Change, event: Event | undefined, row: Omit<EntryRow, "seq" | "type">): string {
  const { command, notification, path, prev, set } = change;
  let text = `{"command":"${command}","set":${patchText(set)}`;
  if (path.length > 0) text += `,"path":["${path.join('","')}"]`;
  if (prev !== null) text += `,"prev":${prev}`;
  if (notification === undefined) text += `,"notification_id":"${change.notification_id}"`;
  else text += `,"notification":${notificationText(notification, event, row)}`;
  if (change.event_id !== undefined && change.event_id !== event?.id) text += `,"event_id":"${change.event_id}"`;
  if (change.subscriber_id !== undefined) text += `,"subscriber_id":${textJson(change.subscriber_id)}`;
  if (change.row !== undefined) text += `,"row":${change.row}`;
  if (change.words !== undefined) text += `,"words":${JSON.stringify(change.words)}`;
  if (change.note !== undefined) text += `,"note":${JSON.stringify(change.note)}`;
  return `${text}}`;
}

function patchText(set: Patch): string {
  let text = "";
  for (const name in set) {
    const value = set[name as keyof Patch];
    if (value === undefined) continue;
    text += `${text === "" ? "{" : ","}"${name}":`;
    if (typeof value === "number") text += value;
    else if (typeof value === "string") text += textJson(value);
    else text += JSON.stringify(name === "effective" ? axesText(value as Axes) : value);
  }
  return text === "" ? "{}" : `${text}}`;
}

function longChange(short: Loose, event: Event | undefined, row: EntryRow): Change {
  const set = short["set"] as Loose;
  const effective = set["effective"];
  const notification =
    short["notification"] === undefined ? undefined : longNotification(short["notification"] as Loose, event, row);
  return {
    path: [],
    prev: null,
    ...(short["command"] === "merge" && event !== undefined ? { event_id: event.id } : {}),
    ...short,
    ...(notification === undefined ? {} : { notification, notification_id: notification.id }),
    set: (effective === undefined ? set : { ...set, effective: axesFrom(String(effective)) }) as Patch,
  } as unknown as Change;
}

/** What a notification is unless it says otherwise: what its event and its row say. */
function expected(event: Event | undefined, row: Omit<EntryRow, "seq" | "type">) {
  return {
    user_id: row.user_id,
    thread_id: row.thread_id,
    kind: event?.type,
    source: event?.source,
    subject: event === undefined ? null : event.subject,
    severity: event?.severity,
    inject_at: "next",
    data: null,
    directive: null,
    degraded: null,
    dedupe_key: event === undefined ? null : event.dedupe_key,
    dedupe_until: 0,
    wake_ms: null,
    created_at: row.at,
    event_id: event?.id,
    redrive_of: null,
    linked_to: null,
  } as const;
}

/** Each field is left out where it is what `expected` says, without making that. */
function notificationText(one: Notification, event: Event | undefined, row: Omit<EntryRow, "seq" | "type">): string {
  let text = `{"id":"${one.id}","subscriber_id":${textJson(one.subscriber_id)},"axes":"${axesText(one.axes)}"`;
  text += `,"content":${textJson(one.content)}`;
  if (one.user_id !== row.user_id) text += `,"user_id":${textJson(one.user_id)}`;
  text += field("thread_id", one.thread_id, row.thread_id);
  text += field("kind", one.kind, event?.type) + field("source", one.source, event?.source);
  text += field("subject", one.subject, event === undefined ? null : event.subject);
  text += field("severity", one.severity, event?.severity);
  if (one.inject_at !== "next") text += `,"inject_at":"${one.inject_at}"`;
  if (one.directive !== null) text += `,"directive":${textJson(one.directive)}`;
  if (one.degraded !== null) text += `,"degraded":${textJson(one.degraded)}`;
  text += field("dedupe_key", one.dedupe_key, event === undefined ? null : event.dedupe_key);
  if (one.dedupe_until !== 0) text += `,"dedupe_until":${one.dedupe_until}`;
  if (one.wake_ms !== null) text += `,"wake_ms":${one.wake_ms}`;
  if (one.created_at !== row.at) text += `,"created_at":${one.created_at}`;
  text += field("event_id", one.event_id, event?.id);
  if (one.redrive_of !== null) text += `,"redrive_of":"${one.redrive_of}"`;
  if (one.linked_to !== null) text += `,"linked_to":"${one.linked_to}"`;
  return `${text}${one.data === null ? "" : `,"data":${jsonText(one.data)}`}}`;
}

function longNotification(short: Loose, event: Event | undefined, row: EntryRow): Notification {
  return { ...expected(event, row), ...short, axes: axesFrom(String(short["axes"])) } as unknown as Notification;
}
