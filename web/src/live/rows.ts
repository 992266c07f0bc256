/** Notifications as lists show them: newest first, each once, and never an older form of one over a newer. */
import type { NotificationView } from "tidings/client";

/** What a list shows of one; the rest is read when it is opened, so that a hundred thousand of them are no burden. */
export interface Row
  extends Pick<
    NotificationView,
    | "id"
    | "user_id"
    | "thread_id"
    | "state"
    | "channel"
    | "kind"
    | "severity"
    | "source"
    | "subject"
    | "count"
    | "revision"
    | "action"
    | "read_at"
    | "reason"
    | "lease_epoch"
    | "created_at"
    | "updated_at"
    | "redrive_of"
  > {
  /** The beginning of what it says, on one line. */
  readonly line: string;
}

const LINE_CHARS = 240;

export function oneLine(text: string, chars = LINE_CHARS): string {
  // What is cut off anyway need not be looked at.
  const line = text
    .slice(0, 4 * chars)
    .replace(/\s+/g, " ")
    .trim();
  return line.length > chars ? `${line.slice(0, chars)}…` : line;
}

export function rowOf(view: NotificationView): Row {
  const { id, user_id, thread_id, state, channel, kind, severity, source, subject, count, revision } = view;
  const { action, read_at, reason, lease_epoch, created_at, updated_at, redrive_of, content } = view;
  return {
    ...{ id, user_id, thread_id, state, channel, kind, severity, source, subject, count, revision },
    ...{ action, read_at, reason, lease_epoch, created_at, updated_at, redrive_of, line: oneLine(content) },
  };
}

export type Severity = Row["severity"];
export type State = Row["state"];
export type Channel = Row["channel"];

/** What a list is to have, as `notification/list` takes it. */
export interface Filter {
  readonly user_id?: string | undefined;
  readonly thread_id?: string | undefined;
  readonly channel?: readonly Channel[] | undefined;
  readonly state?: readonly State[] | undefined;
  readonly severity?: readonly Severity[] | undefined;
  readonly unread?: boolean | undefined;
}

export function isShownToUser({ channel, state }: Pick<Row, "channel" | "state">): boolean {
  return (channel === "inbox" || channel === "floor") && state !== "PENDING" && state !== "SUPPRESSED";
}

/** As the server has it: shown, and neither clicked nor dismissed; a dead letter is not for reading any more. */
export function isUnread(row: Pick<Row, "channel" | "state" | "read_at">): boolean {
  return isShownToUser(row) && row.state !== "FAILED" && row.read_at === null;
}

export function takes(filter: Filter, row: Row): boolean {
  return (
    (filter.user_id === undefined || row.user_id === filter.user_id) &&
    (filter.thread_id === undefined || row.thread_id === filter.thread_id) &&
    filter.channel?.includes(row.channel) !== false &&
    filter.state?.includes(row.state) !== false &&
    filter.severity?.includes(row.severity) !== false &&
    (filter.unread !== true || isUnread(row))
  );
}

/** An id ends with the number of its notification: the later, the higher. */
function numberOf({ id }: { readonly id: string }): string {
  return id.slice(-12);
}

const RANK: Readonly<Record<State, number>> = {
  PENDING: 0,
  DISPATCHED: 1,
  LOCKED: 2,
  ESCALATED: 3,
  DELIVERED: 4,
  FAILED: 4,
  SUPPRESSED: 4,
};

type Form = Pick<Row, "updated_at" | "lease_epoch" | "revision" | "count" | "state" | "read_at">;

/** Whether `one` is an earlier form than `other` of the same notification: none of these ever goes back by itself. */
export function isEarlier(one: Form, other: Form): boolean {
  if (one.updated_at !== other.updated_at) return one.updated_at < other.updated_at;
  if (one.lease_epoch !== other.lease_epoch) return one.lease_epoch < other.lease_epoch;
  if (one.revision !== other.revision) return one.revision < other.revision;
  if (one.count !== other.count) return one.count < other.count;
  if (RANK[one.state] !== RANK[other.state]) return RANK[one.state] < RANK[other.state];
  return one.read_at === null && other.read_at !== null;
}

export class Rows {
  readonly #byId = new Map<string, Row>();
  #sorted: readonly Row[] = [];

  get sorted(): readonly Row[] {
    return this.#sorted;
  }

  get(id: string): Row | undefined {
    return this.#byId.get(id);
  }

  /** What was read or has changed; what the filter does not take (any more) goes. Answers whether anything is different. */
  put(rows: readonly Row[], filter: Filter): boolean {
    const added: Row[] = [];
    const changed: Row[] = [];
    let isChanged = false;
    let isGone = false;
    for (const row of rows) {
      const known = this.#byId.get(row.id);
      if (known !== undefined && isEarlier(row, known)) continue;
      if (takes(filter, row)) {
        this.#byId.set(row.id, row);
        if (known === undefined) added.push(row);
        else changed.push(row);
        isChanged = true;
      } else if (this.#byId.delete(row.id)) isChanged = isGone = true;
    }
    if (!isChanged) return false;
    // One that came twice in the same answer is there once.
    const fresh = [...new Set(added.map(({ id }) => id))].flatMap((id) => this.#byId.get(id) ?? []);
    fresh.sort((one, other) => (numberOf(one) < numberOf(other) ? 1 : -1));
    this.#sorted = isGone ? this.#merged(fresh) : (this.#extended(fresh, changed) ?? this.#merged(fresh));
    return true;
  }

  /** What comes is mostly newer than all, or older: of a hundred thousand others none is looked at. */
  #extended(fresh: readonly Row[], changed: readonly Row[]): readonly Row[] | undefined {
    const [first, last] = [this.#sorted[0], this.#sorted.at(-1)];
    const [newest, oldest] = [fresh[0], fresh.at(-1)];
    const isOlder = newest === undefined || last === undefined || numberOf(newest) < numberOf(last);
    const isNewer = oldest === undefined || first === undefined || numberOf(oldest) > numberOf(first);
    if (!isOlder && !isNewer) return undefined;
    const rows = isNewer ? fresh.concat(this.#sorted) : this.#sorted.concat(fresh);
    for (const { id } of changed) {
      const at = placeOf(rows, id);
      const row = this.#byId.get(id);
      if (at !== undefined && row !== undefined) rows[at] = row;
    }
    return rows;
  }

  #merged(fresh: readonly Row[]): readonly Row[] {
    const merged: Row[] = [];
    let at = 0;
    for (const { id } of this.#sorted) {
      const row = this.#byId.get(id);
      if (row === undefined) continue;
      for (let next = fresh[at]; next !== undefined && numberOf(next) > numberOf(row); next = fresh[at]) {
        merged.push(next);
        at += 1;
      }
      merged.push(row);
    }
    for (; at < fresh.length; at += 1) merged.push(fresh[at] as Row);
    return merged;
  }
}

/** Where it stands, newest first. */
function placeOf(rows: readonly Row[], id: string): number | undefined {
  const number = numberOf({ id });
  let [low, high] = [0, rows.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (numberOf(rows[middle] as Row) > number) low = middle + 1;
    else high = middle;
  }
  return rows[low]?.id === id ? low : undefined;
}
