/** The rows of one user in one block, newest first: one by one where it is known which they are, else out of all. */
import { type Channel, isSystemChannel } from "../../domain/axes.js";
import type { ThreadId, UserId } from "../../domain/ids.js";
import type { State } from "../../domain/transitions.js";
import { type Blocks, blockOf, type Range } from "./blocks.js";
import type { Connection, Statement } from "./connection.js";

/** Rows asked for at a time. Part of the statements, since SQLite plans anew whenever a `LIMIT ?` is bound. */
export const CHUNK = 256;
export const ROW_COLUMNS = "number, user_id, thread_id, channel, state, live, unread, open_until";

/** What a block is named for: something live on a channel, or something the user is shown and has not read. */
export type LiveKind = Channel | "unread";

/** What of a block is asked for: as its names say, or all, or what was acknowledged on a channel and not read. */
export type RowKind = LiveKind | "all" | `acknowledged ${"inbox" | "floor"}`;

export interface UserRow {
  readonly number: number;
  readonly user_id: UserId;
  readonly thread_id: ThreadId | null;
  readonly channel: Channel;
  readonly state: State;
  readonly live: 0 | 1;
  readonly unread: 0 | 1;
  readonly open_until: number | null;
}

export class UserRows {
  readonly #blocks: Blocks;
  readonly #one: Statement;
  readonly #all: Statement;
  readonly #live: Statement;
  readonly #unread: Statement;
  readonly #acknowledged: Statement;

  constructor(connection: Connection, blocks: Blocks) {
    this.#blocks = blocks;
    const select = (where: string) =>
      connection.prepare(
        `SELECT ${ROW_COLUMNS} FROM deliveries WHERE number >= ? AND user_id = ? AND ${where}number < ?
         ORDER BY number DESC LIMIT ${CHUNK}`,
      );
    this.#one = connection.prepare(`SELECT ${ROW_COLUMNS} FROM deliveries WHERE number = ?`);
    this.#all = select("");
    this.#live = select("channel = ? AND live = 1 AND ");
    this.#acknowledged = select("channel = ? AND unread = 1 AND ");
    this.#unread = select("instr('|inbox|floor|', '|' || channel || '|') AND (live = 1 OR unread = 1) AND ");
  }

  /** Those below `before`. */
  *of(kind: RowKind, user_id: UserId, { from, to }: Range, before = to + 1): Generator<UserRow> {
    const members = this.#blocks.members(user_id, blockOf(from));
    if (members !== undefined) {
      yield* this.#among(members, kind, user_id, before);
      return;
    }
    yield* this.#amongAll(kind, [from, user_id], Math.min(before, to + 1));
  }

  #amongAll(kind: RowKind, keys: readonly unknown[], before: number): Generator<UserRow> {
    if (kind === "all") return chunked(this.#all, keys, before);
    if (kind === "unread") return chunked(this.#unread, keys, before);
    if (isAcknowledged(kind)) return chunked(this.#acknowledged, [...keys, channelIn(kind)], before);
    return chunked(this.#live, [...keys, kind], before);
  }

  *#among(members: readonly number[], kind: RowKind, user_id: UserId, before: number): Generator<UserRow> {
    for (let index = members.length - 1; index >= 0; index -= 1) {
      const number = members[index] as number;
      if (number >= before) continue;
      const row = this.#one.get(number) as UserRow | undefined;
      if (row !== undefined && row.user_id === user_id && isOfKind(row, kind)) yield row;
    }
  }
}

type Acknowledged = Extract<RowKind, `acknowledged ${string}`>;

function isAcknowledged(kind: RowKind): kind is Acknowledged {
  return kind.startsWith("acknowledged ");
}

function channelIn(kind: Acknowledged): Channel {
  return kind === "acknowledged inbox" ? "inbox" : "floor";
}

function isOfKind({ channel, live, unread }: UserRow, kind: RowKind): boolean {
  if (kind === "all") return true;
  if (isAcknowledged(kind)) return channel === channelIn(kind) && unread === 1;
  if (kind === "unread") return isSystemChannel(channel) && (live === 1 || unread === 1);
  return channel === kind && live === 1;
}

export function* chunked(statement: Statement, keys: readonly unknown[], before: number): Generator<UserRow> {
  for (let below = before; ; ) {
    const rows = statement.all(...keys, below) as UserRow[];
    yield* rows;
    const last = rows.at(-1);
    if (last === undefined || rows.length < CHUNK) return;
    below = last.number;
  }
}
