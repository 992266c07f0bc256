/**
 * Text from outside, made so that it can stand in a block and be nothing but text.
 *
 * Two things keep it in its place. Its fence bears a nonce that nobody outside could know when the text was written. And
 * should it know it all the same, the text cannot write a tag of the fence, nor begin a line as the block's own lines
 * begin.
 */
import { cleanText } from "../../domain/clean.js";

const KIND_CHARS_MAX = 100;
const ELLIPSIS = "…";

/** A tag of the fence, a comment that would hide the rest from a reader of markdown, a mark of some model's template. */
const TAG = /[<＜﹤](?=[\s/／]*data|!--|[|｜]|(?:start|end)_of_turn)/gi;
const SEEN = /\[(?=\s*seen\b)/gi;
/** A rule: three or more dashes, stars, underscores or equals signs. */
const RULE = /^(\s*)(?=[-*_=\p{Pd}](?:\s*[-*_=\p{Pd}]){2,}\s*$)/u;
/** How a title, an entry, an instruction and the sentences at the end of a block begin; and code, which would go on. */
const OWN_START = /^(\s*)(?=\*\*|```|~~~|[-*+•]\s*`|instructions?\b|\d+ more waits?\b|the user['’]s inbox\b)/i;

/** Without what cannot be seen, and without empty space around it. */
export function cleaned(text: string): string {
  return cleanText(text)
    .replace(/^\s*\n/, "")
    .trimEnd();
}

export function onOneLine(text: string): string {
  return text.replace(/\s+/g, " ").trim();
}

/** At most so many characters, the last of which says that there were more. */
export function cut(text: string, charsMax: number): string {
  if (text.length <= charsMax) return text;
  return `${text.slice(0, charsMax - 1).replace(/[\ud800-\udbff]$/, "")}${ELLIPSIS}`;
}

/** In its fence: on one line if it is one, else on lines of its own. */
export function fenced(text: string, kind: string | null, nonce: string): string {
  const open = `<data id=${nonce}${kindAttribute(kind, nonce)}>`;
  const close = `</data id=${nonce}>`;
  const harmless = withoutTags(text, nonce);
  return harmless.includes("\n")
    ? `${open}\n${harmless.split("\n").map(asText).join("\n")}\n${close}`
    : `${open}${harmless}${close}`;
}

/** No tag of the fence is left in it, and no mark of the block. */
export function withoutTags(text: string, nonce: string): string {
  return text.replaceAll(nonce, ELLIPSIS).replace(TAG, "&lt;").replace(SEEN, "[\\");
}

function asText(line: string): string {
  return line.replace(RULE, "$1\\").replace(OWN_START, "$1\\");
}

/** A kind is its producer's choice too, so it stands in the tag. */
function kindAttribute(kind: string | null, nonce: string): string {
  const word = (kind ?? "")
    .slice(0, KIND_CHARS_MAX)
    .replace(/[^A-Za-z0-9_.-]+/g, "_")
    .replaceAll(nonce, "_");
  return word === "" ? "" : ` kind=${word}`;
}
