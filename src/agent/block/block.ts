/**
 * What an agent is told, as text. It is made once, when it is collected, and kept: the same input gives the same bytes.
 * Only what stands in it with its id is told.
 */
import { assert } from "../../domain/errors.js";
import type { NotificationId } from "../../domain/ids.js";
import { LIMITS } from "../../domain/limits.js";
import { ageOf } from "./age.js";
import { type Budget, type Entry, isWhole, withinBudget } from "./budget.js";
import { cleaned, cut, fenced, onOneLine, withoutTags } from "./fence.js";
import type { Awareness, BlockItem, Form } from "./item.js";
import { EXPLANATION, GROUPS, INSTRUCTION_ELSEWHERE, RULE, SHOWN, TELL_THE_USER, TITLE } from "./words.js";

export type { Budget } from "./budget.js";
export type { Awareness, BlockItem, Form } from "./item.js";
export { BLOCK_EXPLANATION } from "./words.js";

const FULL_CHARS_MAX = 4_000;
const LINE_CHARS_MAX = 200;
const SEEN_LINES_MAX = 10;
const NONCE = /^[A-Za-z0-9_-]{8,64}$/;
const ID = /^[A-Za-z0-9_-]+$/;

export interface BlockInput {
  /** By priority, then oldest first. */
  readonly items: readonly BlockItem[];
  /** How many wait beyond `items`. */
  readonly more: number;
  readonly awareness: Awareness | null;
  readonly budget: Budget;
  /** Random, and new for every block. */
  readonly nonce: string;
  readonly now: number;
}

export interface Block {
  /** Empty if there is nothing to say. */
  readonly text: string;
  /** The first of the items. */
  readonly told: readonly { readonly id: NotificationId; readonly revision: number; readonly form: Form }[];
  /** How many wait, of the items and beyond them. */
  readonly left: number;
}

export function composeBlock({ items, more, awareness, budget, nonce, now }: BlockInput): Block {
  assert(NONCE.test(nonce), "a nonce is 8 to 64 letters, digits, _ or -");
  const entries = withinBudget(items, budget, (item, form) => entryText(item, form, nonce, now));
  const left = items.length - entries.length + more;
  const parts = [
    ...groupTexts(entries),
    ...(awareness === null ? [] : awarenessTexts(awareness, nonce)),
    ...(left === 0 ? [] : [`${left} more ${left === 1 ? "waits" : "wait"}: call \`read_notifications\`.`]),
  ];
  return {
    text: parts.length === 0 ? "" : [`${RULE}\n${TITLE}`, EXPLANATION, ...parts, RULE].join("\n\n"),
    told: entries.map(({ item, form }) => ({ id: item.id, revision: item.revision, form })),
    left,
  };
}

function groupTexts(entries: readonly Entry[]): string[] {
  const oldestFirst = entries.toSorted((one, other) => compareText(one.item.created_at, other.item.created_at));
  const bySeverity = GROUPS.map(([severity, title]) => ({
    title,
    ofSeverity: oldestFirst.filter(({ item }) => item.severity === severity),
  }));
  const groups = bySeverity.map(({ title, ofSeverity }) =>
    groupText(
      title,
      ofSeverity.filter(({ item }) => !item.must_narrate),
    ),
  );
  const owed = bySeverity.flatMap(({ ofSeverity }) => ofSeverity.filter(({ item }) => item.must_narrate));
  return [...groups, groupText(TELL_THE_USER, owed)].filter((text) => text !== "");
}

function groupText(title: string, entries: readonly Entry[]): string {
  return entries.length === 0 ? "" : [title, ...entries.map(({ text }) => text)].join("\n");
}

function entryText(item: BlockItem, form: Form, nonce: string, now: number): string {
  assert(ID.test(item.id), "the id of a notification is letters, digits, _ and -");
  const content = cleaned(item.content);
  const whole = form === "line" ? onOneLine(content) : content;
  const charsMax = form === "line" ? LINE_CHARS_MAX : isWhole(item) ? LIMITS.contentChars : FULL_CHARS_MAX;
  const shown = cut(whole, charsMax);
  const remarks = [
    ...(item.must_narrate ? [item.severity] : []),
    ageOf(item.created_at, now),
    ...(shown === whole ? [] : ["shortened"]),
  ];
  const head = `- \`${item.id}\`${item.count > 1 ? ` ×${item.count}` : ""} (${remarks.join(", ")}):`;
  const data = fenced(shown, item.kind, nonce);
  return `${head}${data.includes("\n") ? "\n" : " "}${data}${instructionText(item.directive, form, nonce)}`;
}

/** Part of an instruction could say the opposite of the whole, so it is there or it is not. */
function instructionText(directive: string | null, form: Form, nonce: string): string {
  if (directive === null) return "";
  if (form === "line") return `\n  Instruction: ${INSTRUCTION_ELSEWHERE}`;
  const instruction = withoutTags(cleaned(directive), nonce);
  return `\n  Instruction: ${instruction.split("\n").join("\n  > ")}`;
}

function awarenessTexts({ seen, seen_more, inbox }: Awareness, nonce: string): string[] {
  const lines = seen.slice(0, SEEN_LINES_MAX).map(({ content, kind, acknowledged }) => {
    return `- [SEEN]${acknowledged ? "" : " (shown, not yet seen)"} ${lineData(content, kind, nonce)}`;
  });
  const unlisted = seen.length - lines.length + seen_more;
  if (unlisted > 0) lines.push(`- [SEEN] ${unlisted} more: call \`read_notifications\`.`);
  const shown = lines.length === 0 ? [] : [[SHOWN, ...lines].join("\n")];
  return inbox === null ? shown : [...shown, digest(inbox, nonce)];
}

function digest({ unread, newest }: NonNullable<Awareness["inbox"]>, nonce: string): string {
  const latest = newest === null ? "" : `, the newest: ${lineData(newest, null, nonce)}`;
  return `The user's inbox has ${unread} unread ${unread === 1 ? "notification" : "notifications"}${latest}.`;
}

function lineData(text: string, kind: string | null, nonce: string): string {
  return fenced(cut(onOneLine(cleaned(text)), LINE_CHARS_MAX), kind, nonce);
}

function compareText(one: string, other: string): number {
  return one < other ? -1 : one > other ? 1 : 0;
}
