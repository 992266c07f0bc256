/** What the rehearsal model says, in plain sentences: of what it was told, and of itself. */
import { decode } from "@toon-format/toon";

const WORDS_SHOWN = 240;
const TABLE = /^\w+\[\d+\]\{[\w,]+\}:$/;
/** Of a row, besides its words: when it came, and how often. */
const TIMES = "times";
const WHEN: ReadonlySet<string> = new Set(["ts", "since", TIMES]);
const LABEL = /^(?:mcp|[a-z]+(?:_[a-z]+)+): /;
const ID = /\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b/gi;

/** What a notification says, without what only a machine reads: labels, ids, the form of a table. */
export function plainWords(content: string): string {
  const lines = content.trim().split("\n");
  const [first = ""] = lines;
  const words = tableWords(first, lines) ?? unquoted(first.trim().replace(LABEL, ""));
  const plain = words.replace(ID, "…").replace(/\.$/, "");
  return plain.length > WORDS_SHOWN ? `${plain.slice(0, WORDS_SHOWN)}…` : plain;
}

function tableWords(first: string, lines: readonly string[]): string | undefined {
  if (!TABLE.test(first)) return undefined;
  const rows = lines.slice(1);
  const end = rows.findIndex((line) => !line.startsWith("  "));
  const table = [first, ...(end < 0 ? rows : rows.slice(0, end))];
  try {
    const [value] = Object.values(decode(table.join("\n")) ?? {});
    return Array.isArray(value) ? value.map(rowWords).join("; ") : undefined;
  } catch {
    // It only looked like one: what was told may be any text.
    return undefined;
  }
}

function rowWords(row: unknown): string {
  if (typeof row !== "object" || row === null) return String(row);
  const cells = Object.entries(row).filter(([key, value]) => !WHEN.has(key) && value !== null && value !== "");
  const [subject = "", ...more] = cells.map(([, value]) => String(value));
  const times = Number(Object.entries(row).find(([key]) => key === TIMES)?.[1] ?? 1);
  return `${subject} ${more.join(", ")}`.trim() + (times > 1 ? ` (${times} times)` : "");
}

function unquoted(text: string): string {
  return /^".*"$/.test(text) ? text.slice(1, -1) : text;
}

const GREETING =
  /^\W*(?:(?:hello|hi|hey)(?: there)?|help(?: me)?|what can you do(?: for me)?|what is this|who are you)\W*$/i;

/** What it says of itself, where that is asked. */
export function aboutItself(asked: string): string | undefined {
  if (!GREETING.test(asked)) return undefined;
  return [
    "Hello. I am the rehearsal model: offline, without a key and without a mind of my own, so that you can see Tidings at work.",
    "What happens while you are away is told to me with your next message, or wakes me. What you must know I tell you; what I do not tell you comes to you by itself.",
    'Say "explain in detail" for a long answer that you can interrupt, or "stay silent" to see what becomes of what I keep to myself. The web app has more under "Try it".',
  ].join("\n");
}

/** A long answer to a plain question. */
export const EXPLANATION: readonly string[] =
  `Gladly. A program reports that something has happened. That is an event, and it is written down before anybody acts on it. \
The subscribers look at it: one that cares for such events makes a notification of it, and puts it into words. \
Then it is decided for whom it is: for me to know, for me to decide about, for you through me, or for you at once. \
What is for me waits for my next turn, or wakes me. \
What I was to tell you and did not is taken from me and shown to you. \
What is critical cuts me off in the middle of an answer, and then I go on. \
The ledger keeps the story of each: who was told what, when, and why.`
    .split(/(?<=\s)/)
    .map((word) => `${word.trim()} `);
