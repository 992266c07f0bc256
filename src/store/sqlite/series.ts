/** What has happened over time: a projection of the journal that lags behind it, and goes on from its own cursor. */
import { CHANNELS, type Channel } from "../../domain/axes.js";
import type { UserId } from "../../domain/ids.js";
import {
  addTally,
  newTally,
  RESOLUTIONS,
  type Resolution,
  TALLIED,
  type Tally,
  type TallySource,
  tallyEntry,
} from "../../domain/series.js";
import { numberInId } from "../../platform/ids.js";
import type { SeriesPoint, SeriesStep } from "../contract.js";
import type { Transaction } from "./commit.js";
import type { Connection, Statement } from "./connection.js";
import type { Core } from "./core.js";
import type { Meta } from "./meta.js";
import type { SubscriberMatches } from "./subscriber_matches.js";

/** Whose steps are those of all users: no user has this name. */
const ALL = "";
const FINEST_MS = RESOLUTIONS[0].step_ms;
/** Steps that are removed at a time. */
const REMOVED_MAX = 1_000;

const COLUMNS = [...TALLIED, ...CHANNELS.map((channel) => `delivered_${channel}`)];
type Row = Record<string, number> & { readonly at: number };

interface Sum {
  readonly step_ms: number;
  readonly user_id: string;
  readonly at: number;
  readonly tally: Tally;
}

class Sums {
  readonly #sums = new Map<string, Sum>();

  /** Of the step in which this moment is. */
  of(step_ms: number, user_id: string, moment: number): Tally {
    const at = moment - (moment % step_ms);
    const key = `${step_ms} ${at} ${user_id}`;
    let known = this.#sums.get(key);
    if (known === undefined) {
      known = { step_ms, user_id, at, tally: newTally() };
      this.#sums.set(key, known);
    }
    return known.tally;
  }

  all(): Iterable<Sum> {
    return this.#sums.values();
  }
}

export class Series {
  readonly #meta: Meta;
  readonly #add: Statement;
  readonly #range: Statement;
  readonly #old: Statement;
  readonly #remove: Statement;
  readonly #channel: Statement;
  readonly #matches: SubscriberMatches;

  constructor(connection: Connection, meta: Meta, matches: SubscriberMatches) {
    this.#meta = meta;
    this.#matches = matches;
    const added = COLUMNS.map((column) => `${column} = ${column} + excluded.${column}`).join(", ");
    this.#add = connection.prepare(
      `INSERT INTO series (step_ms, user_id, at, ${COLUMNS.join(", ")}) VALUES (?, ?, ?${", ?".repeat(COLUMNS.length)})
       ON CONFLICT (step_ms, user_id, at) DO UPDATE SET ${added}`,
    );
    this.#range = connection.prepare(
      `SELECT at, ${COLUMNS.join(", ")} FROM series WHERE step_ms = ? AND user_id = ? AND at >= ? AND at < ? ORDER BY at`,
    );
    this.#old = connection
      .prepare(`SELECT user_id, at FROM series WHERE step_ms = ? AND at < ? LIMIT ${REMOVED_MAX}`)
      .raw();
    this.#remove = connection.prepare("DELETE FROM series WHERE step_ms = ? AND user_id = ? AND at = ?");
    this.#channel = connection.prepare("SELECT channel FROM deliveries WHERE number = ?").pluck();
  }

  /** The newest entry that is counted. */
  get seq(): number {
    return this.#meta.number("series_seq");
  }

  /** Counts at most so many entries after the cursor, and moves it in the same transaction. */
  addUp(core: Core, transaction: Transaction, limit: number): SeriesStep {
    const before = this.seq;
    const { entries, after, end } = core.journal.page({ kind: "host" }, before, limit);
    if (after === before) return { counted: 0, seq: before, end };
    transaction.wrote = true;
    const source = this.#sourceOf(core);
    const finest = new Sums();
    for (const entry of entries) tallyEntry(finest.of(FINEST_MS, entry.user_id, entry.at), entry, source);
    for (const { step_ms, user_id, at, tally } of rolledUp(finest).all())
      this.#add.run(step_ms, user_id, at, ...valuesOf(tally));
    this.#matches.add(entries);
    this.#forget(transaction.at);
    this.#meta.set("series_seq", after);
    return { counted: entries.length, seq: after, end };
  }

  points({ step_ms }: Resolution, user_id: UserId | null, from: number, to: number): SeriesPoint[] {
    return (this.#range.all(step_ms, user_id ?? ALL, from, to) as Row[]).map(pointOf);
  }

  #forget(now: number): void {
    for (const { step_ms, kept_ms } of RESOLUTIONS)
      for (const [user_id, at] of this.#old.all(step_ms, now - kept_ms - step_ms) as [string, number][])
        this.#remove.run(step_ms, user_id, at);
  }

  /** What is delivered stays on its channel. */
  #sourceOf({ journal }: Core): TallySource {
    return {
      channelOf: (id) => this.#channel.get(numberInId(id) ?? 0) as Channel | undefined,
      blockChars: ({ carrier_id, block }) => {
        if (block !== null) return block.text.length;
        const opened = journal.read(numberInId(carrier_id) ?? 0);
        return opened?.type === "carrier" ? (opened.block?.text.length ?? 0) : 0;
      },
    };
  }
}

/** What happened in the shortest steps, of each user, in all steps, of each user and of all. */
function rolledUp(finest: Sums): Sums {
  const sums = new Sums();
  for (const { user_id, at, tally } of finest.all()) {
    if (valuesOf(tally).every((value) => value === 0)) continue;
    for (const { step_ms } of RESOLUTIONS)
      for (const whose of [ALL, user_id]) addTally(sums.of(step_ms, whose, at), tally);
  }
  return sums;
}

function valuesOf(tally: Tally): number[] {
  return [...TALLIED.map((name) => tally[name]), ...CHANNELS.map((channel) => tally.delivered[channel])];
}

function pointOf(row: Row): SeriesPoint {
  const tally = newTally();
  for (const name of TALLIED) tally[name] = row[name] ?? 0;
  for (const channel of CHANNELS) tally.delivered[channel] = row[`delivered_${channel}`] ?? 0;
  return { at: row.at, tally };
}
