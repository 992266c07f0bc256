/** The inbox in groups: by day, or by what the notifications have in common. */
import type { Row } from "../../live/rows.js";
import type { ThreadName } from "../../parts/known_threads.js";
import { counted, isPlainNotice } from "../../parts/words.js";

export const GROUPINGS = ["day", "source", "conversation"] as const;
export type Grouping = (typeof GROUPINGS)[number];

/** A line of words, and one above it that says what it is, where there is anything to say. */
const ROW_HEIGHT = 40;
const ABOUT_HEIGHT = 18;
/** A second line of words, where lines are short. */
const SECOND_LINE_HEIGHT = 20;
/** What is beside the words, and how wide a letter is at most on average, as the styles have it. */
const BESIDE_WIDTH = 72;
const LETTER_WIDTH = 7.7;
const FULL_WIDTH = /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]/g;
const HEADER_HEIGHT = 34;

export type InboxItem =
  | {
      readonly key: string;
      readonly height: number;
      readonly type: "header";
      readonly name: string;
      readonly about: string;
    }
  | {
      readonly key: string;
      readonly height: number;
      readonly type: "row";
      readonly row: Row;
      /** How many lines its words have at most. */
      readonly lines: 1 | 2;
    };

const weekday = new Intl.DateTimeFormat("en-GB", { weekday: "long", day: "numeric", month: "long" });
const DAY_MS = 86_400_000;

function dayOf(time: string, now: number): string {
  const date = new Date(time);
  const midnight = new Date(now).setHours(0, 0, 0, 0);
  const days = Math.round((midnight - new Date(time).setHours(0, 0, 0, 0)) / DAY_MS);
  if (days === 0) return "Today";
  if (days === 1) return "Yesterday";
  return weekday.format(date);
}

/** The day of most is that of the one before. */
function daysFrom(now: number): (time: string) => string {
  let day = "";
  let [begins, ends] = ["", ""];
  return (time) => {
    if (time >= begins && time < ends) return day;
    day = dayOf(time, now);
    const midnight = new Date(new Date(time).setHours(0, 0, 0, 0));
    begins = midnight.toISOString();
    ends = new Date(midnight.setDate(midnight.getDate() + 1)).toISOString();
    return day;
  };
}

/** What the rows of a group have in common. Two conversations may have the same name, and are two. */
function groupOf(row: Row, by: Grouping, dayOf: (time: string) => string): string {
  if (by === "day") return dayOf(row.created_at);
  return by === "source" ? row.source : (row.thread_id ?? "");
}

function nameOf(group: string, by: Grouping, threadName: ThreadName): string {
  if (by === "source") return group === "direct" ? "Notices" : group;
  if (by === "day") return group;
  return group === "" ? "No conversation" : threadName(group);
}

export interface Groups {
  readonly by: Grouping;
  readonly now: number;
  readonly threadName: ThreadName;
  /** How wide the list is where its lines are short; null where they are not. */
  readonly narrow_px: number | null;
}

/** Whether its words alone say all that a list has to say of it. */
function isBare(row: Row): boolean {
  return isPlainNotice(row) && row.count === 1 && row.thread_id === null && !isMarked(row);
}

/** Whether its state is worth a word in the list. */
export function isMarked({ state }: Row): boolean {
  return state === "ESCALATED" || state === "FAILED";
}

function linesOf({ line }: Row, narrow_px: number | null): 1 | 2 {
  if (narrow_px === null) return 1;
  const letters = line.length + (line.match(FULL_WIDTH)?.length ?? 0);
  return letters * LETTER_WIDTH > narrow_px - BESIDE_WIDTH ? 2 : 1;
}

/** Where lines are short, the line above the words has the time as well, and so is always there. */
function heightOf(row: Row, lines: 1 | 2, narrow_px: number | null): number {
  const about = narrow_px === null && isBare(row) ? 0 : ABOUT_HEIGHT;
  return ROW_HEIGHT + about + (lines - 1) * SECOND_LINE_HEIGHT;
}

/** Groups in the order of their newest, each with its rows newest first. */
export function grouped(rows: readonly Row[], { by, now, threadName, narrow_px }: Groups): InboxItem[] {
  const groups = new Map<string, Row[]>();
  const days = daysFrom(now);
  for (const row of rows) {
    const key = groupOf(row, by, days);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [row]);
    else group.push(row);
  }
  const items: InboxItem[] = [];
  for (const [key, members] of groups) {
    const about = by === "day" ? "" : counted(members.length, "item");
    const name = nameOf(key, by, threadName);
    items.push({ key: `group ${by} ${key}`, height: HEADER_HEIGHT, type: "header", name, about });
    for (const row of members) {
      const lines = linesOf(row, narrow_px);
      items.push({ key: row.id, height: heightOf(row, lines, narrow_px), type: "row", row, lines });
    }
  }
  return items;
}
