/** The inbox in groups: by day, or by what the notifications have in common. */
import type { Row } from "../../live/rows.js";
import type { ThreadName } from "../../parts/known_threads.js";
import { counted, isPlainNotice } from "../../parts/words.js";

export const GROUPINGS = ["day", "source", "thread"] as const;
export type Grouping = (typeof GROUPINGS)[number];

/** A line of words, and one above it that says what it is, where there is anything to say. */
const ROW_HEIGHT = 40;
const ABOUT_HEIGHT = 18;
/** A second line of words, where lines are short. */
const SECOND_LINE_HEIGHT = 20;
const HEADER_HEIGHT = 34;

export type InboxItem =
  | {
      readonly key: string;
      readonly height: number;
      readonly type: "header";
      readonly name: string;
      readonly about: string;
    }
  | { readonly key: string; readonly height: number; readonly type: "row"; readonly row: Row };

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
  return group === "" ? "No thread" : threadName(group);
}

export interface Groups {
  readonly by: Grouping;
  readonly now: number;
  readonly threadName: ThreadName;
  readonly isTall: boolean;
}

/** Whether its words alone say all that a list has to say of it. */
export function isBare(row: Row): boolean {
  return isPlainNotice(row) && row.count === 1 && row.thread_id === null && !isMarked(row);
}

/** Whether its state is worth a word in the list. */
export function isMarked({ state }: Row): boolean {
  return state === "ESCALATED" || state === "FAILED";
}

function heightOf(row: Row, isTall: boolean): number {
  return ROW_HEIGHT + (isBare(row) ? 0 : ABOUT_HEIGHT) + (isTall ? SECOND_LINE_HEIGHT : 0);
}

/** Groups in the order of their newest, each with its rows newest first. */
export function grouped(rows: readonly Row[], { by, now, threadName, isTall }: Groups): InboxItem[] {
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
    for (const row of members) items.push({ key: row.id, height: heightOf(row, isTall), type: "row", row });
  }
  return items;
}
