/**
 * A template's source, cut into text and tags. Every tag knows its line, which the expression parser does not tell.
 * Blanks follow Jinja with `trim_blocks` and `lstrip_blocks`: a line that holds only a statement or a comment leaves no
 * line behind; `-` inside a tag's border takes away all blanks and newlines on that side.
 */
import { TemplateError } from "./error.js";
import { SOURCE_LIMITS } from "./limits.js";

export interface Segment {
  readonly kind: "text" | "print" | "statement";
  /** The text itself, or what stands between a tag's borders. */
  readonly content: string;
  readonly line: number;
}

const CLOSERS = { "{": "}}", "%": "%}", "#": "#}" } as const;
const KINDS = { "{": "print", "%": "statement" } as const;

export function scan(source: string, template: string): Segment[] {
  if (source.length > SOURCE_LIMITS.chars)
    throw new TemplateError("limit", template, null, `is longer than ${SOURCE_LIMITS.chars} characters`);
  const text = source.replace(/\r\n?/g, "\n");
  const segments: Segment[] = [];
  let position = 0;
  let line = 1;
  const advance = (to: number) => {
    for (; position < to; position++) if (text[position] === "\n") line++;
  };
  const addText = (content: string) => {
    if (content !== "") segments.push({ kind: "text", content, line });
  };

  while (position < text.length) {
    const open = /\{[{%#]/g;
    open.lastIndex = position;
    const start = open.exec(text)?.index ?? text.length;
    const mark = text[start + 1] as keyof typeof CLOSERS | undefined;
    if (mark === undefined) {
      addText(text.slice(position));
      break;
    }
    const stripsBefore = text[start + 2] === "-";
    addText(textBefore(text, position, start, stripsBefore ? "all" : mark === "{" ? "nothing" : "indentation"));
    advance(start);
    const contentStart = start + (stripsBefore ? 3 : 2);
    const end = mark === "#" ? text.indexOf("#}", contentStart) : closer(text, contentStart, mark);
    if (end < 0)
      throw new TemplateError("syntax", template, line, `the tag {${mark} is never closed with ${CLOSERS[mark]}`);
    const stripsAfter = text[end - 1] === "-" && end > contentStart;
    const content = text.slice(contentStart, stripsAfter ? end - 1 : end);
    if (mark !== "#") {
      if (content.length > SOURCE_LIMITS.tagChars)
        throw new TemplateError("limit", template, line, `a tag is longer than ${SOURCE_LIMITS.tagChars} characters`);
      segments.push({ kind: KINDS[mark], content, line });
    }
    let next = end + 2;
    if (stripsAfter) while (next < text.length && isBlank(text[next])) next++;
    else if (mark !== "{" && text[next] === "\n") next++;
    advance(next);
  }
  return segments;
}

function textBefore(text: string, from: number, to: number, strip: "all" | "indentation" | "nothing"): string {
  if (strip === "nothing") return text.slice(from, to);
  let end = to;
  while (end > from && (strip === "all" ? isBlank(text[end - 1]) : /[ \t]/.test(text[end - 1] ?? ""))) end--;
  // Indentation goes only where the tag is the first thing of its line.
  const firstOfLine = end === 0 || text[end - 1] === "\n";
  return text.slice(from, strip === "all" || firstOfLine ? end : to);
}

function isBlank(char: string | undefined): boolean {
  return char !== undefined && /\s/.test(char);
}

/** The index of the tag's closer, outside of texts in quotes and, for `}}`, of objects; -1 if there is none. */
function closer(text: string, from: number, mark: "{" | "%"): number {
  let quote: string | null = null;
  let braces = 0;
  for (let index = from; index < text.length; index++) {
    const char = text[index];
    if (quote !== null) {
      if (char === "\\") index++;
      else if (char === quote) quote = null;
    } else if (char === '"' || char === "'") quote = char;
    else if (mark === "%" && char === "%" && text[index + 1] === "}") return index;
    else if (char === "{") braces++;
    else if (char === "}" && mark === "{") {
      if (braces === 0 && text[index + 1] === "}") return index;
      braces--;
    }
  }
  return -1;
}
