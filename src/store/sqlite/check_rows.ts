/** What must not be there and SQL cannot tell: each reads its table once, row by row. For `audit`. */
import type { Event } from "../../domain/event.js";
import type { EventId, UserId } from "../../domain/ids.js";
import { isoTime } from "../../domain/time.js";
import { numberInId } from "../../platform/ids.js";
import { decodeEvent, type EntryRow } from "../codec.js";
import { Blocks, blockOf } from "./blocks.js";
import type { Connection } from "./connection.js";
import { digestOf } from "./known_events.js";
import { subjectName } from "./ledger_tables.js";

/** Deliveries that are not found by what they are about. */
export function* wrongSubjects(connection: Connection): Iterable<number> {
  const rows = connection.prepare(
    `SELECT d.number, d.subject AS name, n.subject FROM deliveries d JOIN notifications n ON n.number = d.number
     WHERE d.subject IS NOT NULL OR n.subject IS NOT NULL`,
  );
  for (const row of rows.iterate() as Iterable<{ number: number; name: string | null; subject: string | null }>)
    if (subjectName(row) !== row.name) yield row.number;
}

interface ProducerIdRow {
  readonly user_id: UserId;
  readonly source: string;
  readonly producer_id: string;
  readonly event_id: EventId;
  readonly digest: string;
}

/** Producers' ids that are not those of their events: sent again, such an event would be refused, or another taken for it. */
export function* wrongDigests(connection: Connection): Iterable<string> {
  const entry = connection.prepare(
    "SELECT seq, at, type, user_id, thread_id, body FROM journal WHERE seq = ? AND json_valid(body)",
  );
  const rows = connection.prepare("SELECT user_id, source, producer_id, event_id, digest FROM producer_ids");
  for (const row of rows.iterate() as Iterable<ProducerIdRow>) {
    const found = entry.get(numberInId(row.event_id) ?? null) as (EntryRow & { body: string }) | undefined;
    if (found === undefined || !standsFor(row, found)) yield `${row.source} ${row.producer_id}`;
  }
}

function standsFor(row: ProducerIdRow, entry: EntryRow & { readonly body: string }): boolean {
  const event = decodeEvent(entry, entry.body);
  if (event === undefined) return false;
  const { id, user_id, source, producer_id } = event;
  const named = id === row.event_id && user_id === row.user_id && source === row.source;
  return named && producer_id === row.producer_id && digestsOf(event, entry.at).includes(row.digest);
}

/** An event that is dated by its entry may have been sent with that date, or without one: the journal does not say. */
function digestsOf(event: Event, at: number): string[] {
  const dated = digestOf(event);
  return event.timestamp === isoTime(at) ? [dated, digestOf({ ...event, timestamp: null })] : [dated];
}

/** A user's notifications that are not in the list of their block, where it has one: nobody would find them. */
export function* unlisted(connection: Connection): Iterable<number> {
  const blocks = new Blocks(connection);
  const rows = connection.prepare("SELECT number, user_id FROM deliveries ORDER BY number").raw();
  let current = -1;
  const lists = new Map<UserId, ReadonlySet<number> | undefined>();
  for (const [number, user_id] of rows.iterate() as Iterable<[number, UserId]>) {
    const block = blockOf(number);
    if (block !== current) lists.clear();
    current = block;
    if (!lists.has(user_id)) {
      const members = blocks.members(user_id, block);
      lists.set(user_id, members === undefined ? undefined : new Set(members));
    }
    if (lists.get(user_id)?.has(number) === false) yield number;
  }
}
