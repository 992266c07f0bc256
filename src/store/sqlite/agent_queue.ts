import type { ThreadId, UserId } from "../../domain/ids.js";
import { INJECTION_POINTS, type InjectionPoint, PRIORITIES, type Priority } from "../../domain/priority.js";
import type { Connection, Statement } from "./connection.js";
import { ANY_THREAD, placeSql } from "./place.js";

/** Rows asked for at a time, and how far `count` counts. Parts of the statements: SQLite plans anew for a `LIMIT ?`. */
const CHUNK = 64;
const COUNT_CAP = 1_000;

/** What is asked for. */
export interface Wanted {
  readonly user_id: UserId;
  /** This thread's and the user's own; null: only the latter. */
  readonly thread_id: ThreadId | null;
  /** The store's time: what rests after a release waits until then. */
  readonly at: number;
  /** With a user's message: what is quiet waits for nothing else. */
  readonly message?: boolean;
  /** Which injection points of a priority. */
  readonly points: (priority: Priority) => readonly InjectionPoint[];
}

export const everyPoint = (): readonly InjectionPoint[] => INJECTION_POINTS;

/** What waits for an agent. */
export class AgentQueue {
  readonly #page: Statement;
  readonly #counted: Statement;
  readonly #ready: Statement;

  constructor(connection: Connection) {
    // An open batch of a system channel is pending too, and no agent's.
    const waiting = `FROM deliveries d CROSS JOIN notifications n ON n.number = d.number
       WHERE d.user_id = ? AND ${placeSql("d")} = ? AND d.priority = ?
         AND d.state = 'PENDING' AND (d.not_before <= ? OR d.quiet = ?) AND instr(?, '|' || n.inject_at || '|')
         AND d.channel <> 'inbox' AND d.channel <> 'floor'`;
    this.#page = connection
      .prepare(`SELECT d.number ${waiting} AND d.number > ? ORDER BY d.number LIMIT ${CHUNK}`)
      .pluck();
    this.#counted = connection.prepare(`SELECT 1 ${waiting} LIMIT ${COUNT_CAP}`).pluck();
    this.#ready = connection
      .prepare(`SELECT 1 ${waiting} AND (d.open_until IS NULL OR d.open_until <= ?) LIMIT 1`)
      .pluck();
  }

  /** The numbers of what waits, by priority and then age. What is taken meanwhile does not come again. */
  *byUrgency(wanted: Wanted): Generator<number> {
    for (const keys of byPriority(wanted)) {
      const places = keys.map((key) => this.#numbers(key));
      const heads = places.map((place) => place.next());
      for (;;) {
        let oldest = -1;
        for (const [place, head] of heads.entries())
          if (!head.done && (oldest < 0 || head.value < (heads[oldest]?.value ?? 0))) oldest = place;
        const head = heads[oldest];
        if (head === undefined || head.done) break;
        yield head.value;
        heads[oldest] = (places[oldest] as Generator<number>).next();
      }
    }
  }

  *#numbers(key: Key): Generator<number> {
    for (let after = 0; ; ) {
      const found = this.#page.all(...key, after) as number[];
      yield* found;
      const last = found.at(-1);
      if (last === undefined || found.length < CHUNK) return;
      after = last;
    }
  }

  /** How many wait; capped. */
  count(wanted: Wanted): number {
    let count = 0;
    for (const keys of byPriority(wanted)) {
      for (const key of keys) count += this.#counted.all(...key).length;
      if (count >= COUNT_CAP) return COUNT_CAP;
    }
    return count;
  }

  /** Whether something waits that is no batch that is still open. */
  isReady(wanted: Wanted): boolean {
    for (const keys of byPriority(wanted))
      for (const key of keys) if (this.#ready.get(...key, wanted.at) !== undefined) return true;
    return false;
  }
}

/** `quiet`: 1 for what is taken although it rests; no row has 2. */
type Key = readonly [user_id: UserId, place: string, priority: Priority, at: number, quiet: 1 | 2, points: string];

/** Most urgent first: where to look, by thread and without one. */
function* byPriority({ user_id, thread_id, at, message, points }: Wanted): Generator<Key[]> {
  const places = thread_id === null ? [ANY_THREAD] : [thread_id, ANY_THREAD];
  for (const priority of PRIORITIES) {
    const taken = points(priority);
    if (taken.length > 0)
      yield places.map((place) => [user_id, place, priority, at, message === true ? 1 : 2, `|${taken.join("|")}|`]);
  }
}
