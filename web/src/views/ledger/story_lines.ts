/** A story as it is shown: the states that it went through, and long runs of repetitions folded. */
import type { Methods, Miss } from "tidings/client";
import type { State } from "../../live/rows.js";
import { POINTS } from "../../parts/routing.js";

export type Explanation = Exclude<Methods["notification/explain"]["result"], Miss>;
export type Line = Explanation["story"][number];

/** Each state once for as long as it stayed; taken over while it was held, it is held on. */
export function statesOf(story: readonly Line[]): State[] {
  const states: State[] = [];
  for (const { path = [] } of story) for (const state of path) if (states.at(-1) !== state) states.push(state);
  return states;
}

export type Piece = { readonly lines: readonly Line[]; readonly folded: boolean };

const REPEATS: ReadonlySet<string> = new Set(["event", "merge"]);
/** So many lines of a run are shown at its beginning and at its end. */
const KEPT = 4;
const WORTH_IT = 4;

/** Events that came again and again are folded between the first and the last of them. */
export function pieces(story: readonly Line[]): Piece[] {
  const found: Piece[] = [];
  let run: Line[] = [];
  const end = () => {
    if (run.length >= 2 * KEPT + WORTH_IT) {
      found.push({ lines: run.slice(0, KEPT), folded: false });
      found.push({ lines: run.slice(KEPT, -KEPT), folded: true });
      found.push({ lines: run.slice(-KEPT), folded: false });
    } else if (run.length > 0) found.push({ lines: run, folded: false });
    run = [];
  };
  for (const line of story) {
    if (!REPEATS.has(line.kind)) end();
    run.push(line);
    if (!REPEATS.has(line.kind)) end();
  }
  end();
  return found;
}

/** The words without the states at their end: those are shown beside them. A thread is a conversation here. */
export function wordsOf({ text, path = [], kind, carrier }: Line): string {
  if (kind === "collect") return HELD;
  const words = path.length === 0 ? text : text.replace(/ \[[A-Z, ]+\]$/, "");
  if (kind === "event") return words.replace(EVENTS_THREAD, "$1, in the conversation $2");
  const said = words.replace(ITS_THREAD, "its conversation");
  return carrier === undefined ? said : said.replace(`(${carrier.point})`, `(${POINTS[carrier.point]})`);
}

const EVENTS_THREAD = /^(Event \S+: .*?), thread (.*)$/s;
const ITS_THREAD = /\bits thread(?= (?:was closed|is paused))/;

/** Where in a conversation an agent was told. */
export function placeOf(point: NonNullable<Line["carrier"]>["point"]): string {
  return `${POINTS[point].charAt(0).toUpperCase()}${POINTS[point].slice(1)}`;
}

/** Who holds it: an agent of somebody's is called what it calls itself. */
export function ownerWords(owner: string): string {
  return owner === "hosted" ? "the server's own agent" : owner;
}

/** Who has it, and the number of the lease, stand above it. */
const HELD = "An agent has taken it: nobody else has it until that one is done with it, or its lease ends.";

/** A piece of a sentence: words, a time, or the id of something. */
export type Said = { readonly text: string } | { readonly at: string } | { readonly id: string };

const TIME = "\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d(?:\\.\\d+)?Z";
const ID = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}";
const NAMED = new RegExp(`\\b(?:(${TIME})|(${ID}))`, "g");

/** That it is an event stands above it. */
const EVENT = /^Event (\S+): (.*)\.$/s;

/** A line's words, with the times and ids in them by themselves, so that they can be shown as people read them. */
export function sentenceOf(line: Line): Said[] {
  const words = wordsOf(line).replace(EVENT, "$2 ($1).");
  const said: Said[] = [];
  let end = 0;
  for (const { index, 0: whole, 1: at, 2: id } of words.matchAll(NAMED)) {
    if (at !== undefined && Number.isNaN(Date.parse(at))) continue;
    if (index > end) said.push({ text: words.slice(end, index) });
    said.push(at === undefined ? { id: id ?? whole } : { at });
    end = index + whole.length;
  }
  if (end < words.length) said.push({ text: words.slice(end) });
  return said;
}

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;

/** How long after the line before it; null for the first, and for what came with that. */
export function offsetOf(line: Line, before: Line | undefined): string | null {
  if (before === undefined) return null;
  const ms = Math.max(0, Date.parse(line.at) - Date.parse(before.at));
  if (ms === 0) return null;
  if (ms < SECOND_MS) return `+${ms} ms`;
  if (ms < MINUTE_MS) return `+${(Math.floor(ms / 100) / 10).toFixed(1)} s`;
  if (ms < HOUR_MS) return `+${Math.floor(ms / MINUTE_MS)} min ${Math.floor((ms % MINUTE_MS) / SECOND_MS)} s`;
  return `+${Math.floor(ms / HOUR_MS)} h ${Math.floor((ms % HOUR_MS) / MINUTE_MS)} min`;
}
