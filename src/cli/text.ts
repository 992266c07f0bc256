/** Text for a terminal: what came in from outside made harmless, measured, cut, wrapped. */

const PLAIN = /^[\x20-\x7e]*$/;
const WIDE =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\u33ff\u3400-\u4dbf\u4e00-\u9fff\ua000-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{20000}-\u{3fffd}]|\p{Emoji_Presentation}|\ufe0f/u;
/** All that moves the cursor, changes colours or the direction of writing; the joiner of emoji is harmless. */
const UNSAFE = /(?!\u200d)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

/** One line that shows control characters instead of obeying them. */
export function oneLine(text: string): string {
  return text.replace(/\s*[\r\n\t\u2028\u2029]+\s*/g, " ").replace(UNSAFE, shown);
}

/** Lines as they are; all else that a terminal would obey is shown instead. */
export function harmless(text: string): string {
  return text
    .replace(/\r\n?/g, "\n")
    .replace(UNSAFE, (character) => (character === "\n" || character === "\t" ? character : shown(character)));
}

function shown(character: string): string {
  return `\\u{${character.codePointAt(0)?.toString(16)}}`;
}

let segmenter: Intl.Segmenter | undefined;

/** What a reader takes for characters, one by one. The tables for it are loaded for text that needs them: that takes a while. */
function graphemes(text: string): Iterable<string> {
  if (PLAIN.test(text)) return text;
  segmenter ??= new Intl.Segmenter("en", { granularity: "grapheme" });
  return Array.from(segmenter.segment(text), ({ segment }) => segment);
}

/** How many columns a terminal needs for it. */
export function widthOf(text: string): number {
  if (PLAIN.test(text)) return text.length;
  let width = 0;
  for (const segment of graphemes(text)) width += WIDE.test(segment) ? 2 : 1;
  return width;
}

/** Cut to so many columns, with an ellipsis if something is missing. */
export function cut(text: string, columns: number): string {
  if (widthOf(text) <= columns) return text;
  let kept = "";
  let width = 0;
  for (const segment of graphemes(text)) {
    const more = widthOf(segment);
    if (width + more > columns - 1) break;
    kept += segment;
    width += more;
  }
  return `${kept.trimEnd()}…`;
}

export function pad(text: string, columns: number): string {
  return text + " ".repeat(Math.max(0, columns - widthOf(text)));
}

/** In lines of at most so many columns, broken between words where that is possible. */
export function wrap(text: string, columns: number): string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ").flatMap((one) => pieces(one, columns))) {
    const longer = line === "" ? word : `${line} ${word}`;
    if (widthOf(longer) <= columns || line === "") {
      line = longer;
      continue;
    }
    lines.push(line);
    line = word;
  }
  lines.push(line);
  return lines;
}

function pieces(word: string, columns: number): string[] {
  if (widthOf(word) <= columns) return [word];
  const found: string[] = [];
  let piece = "";
  for (const segment of graphemes(word)) {
    if (piece !== "" && widthOf(piece) + widthOf(segment) > columns) {
      found.push(piece);
      piece = "";
    }
    piece += segment;
  }
  found.push(piece);
  return found;
}

const UNITS = [
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["m", 60_000],
  ["s", 1_000],
] as const;

/** `3m`: the largest unit that fits. */
export function shortDuration(ms: number): string {
  for (const [unit, length] of UNITS) if (ms >= length) return `${Math.floor(ms / length)}${unit}`;
  return "now";
}

export function ago(duration: string): string {
  return duration === "now" ? "just now" : `${duration} ago`;
}

const DURATION = /^([0-9]{1,12})(ms|s|m|h|d)$/;

/** Milliseconds of `30d`, `12h`, `90s`, `250ms`; undefined for anything else. */
export function parseDuration(text: string): number | undefined {
  const [, digits, unit] = DURATION.exec(text) ?? [];
  if (digits === undefined) return undefined;
  const length = UNITS.find(([name]) => name === unit)?.[1] ?? 1;
  const ms = Number(digits) * length;
  return Number.isSafeInteger(ms) ? ms : undefined;
}

/** `1,234 events`, `1 event`. */
export function counted(count: number, one: string, many = `${one}s`): string {
  const digits = String(count).replace(/\B(?=(?:\d{3})+$)/g, ",");
  return `${digits} ${count === 1 ? one : many}`;
}

const SIZES = ["bytes", "KiB", "MiB", "GiB", "TiB"] as const;

export function size(bytes: number): string {
  let amount = bytes;
  let unit = 0;
  while (amount >= 1024 && unit < SIZES.length - 1) {
    amount /= 1024;
    unit += 1;
  }
  return `${unit === 0 ? amount : amount.toFixed(1)} ${SIZES[unit]}`;
}
