/**
 * Where a template's text and the values it prints come together, line by line.
 *
 * The rule that keeps a value in its field: only the template's own text begins and ends a line and names a key. In a line
 * into which a value was printed, everything after its key (the own text up to the first colon; a `- ` before it stays,
 * too; without a key, the whole line) is one TOON string, and the official encoder writes it: as it is where that is
 * safe, else quoted and escaped. So a decoder gives back exactly the text that was put together, and no value can add a
 * line, be a key, or end the text it stands in. Numbers, booleans and null cannot either, and are printed as own text.
 */
import type { Run } from "./run.js";
import { toonScalar } from "./toon.js";
import { ToonText } from "./value.js";

const NONE = new ToonText("", false);

/** One text, written line by line; as with its run, a template has one for all of its renderings. */
export class Output {
  readonly #run: Run;
  #lines: string[] = [];
  #chars = 0;
  /** The line that is being written: the template's own words up to the first value, and then every piece. */
  #own = "";
  #pieces: string[] = [];
  #areOwn: boolean[] = [];
  /** The first piece, if `toon()` made it. */
  #toon = NONE;

  constructor(run: Run) {
    this.#run = run;
  }

  /** Nothing is kept. */
  clear(): void {
    this.#lines = [];
    this.#chars = 0;
    this.#beginLine();
  }

  /** The template's own words. */
  own(text: string): void {
    this.#count(text.length);
    let start = 0;
    for (let end = text.indexOf("\n"); end >= 0; end = text.indexOf("\n", start)) {
      this.#add(text.slice(start, end));
      this.#endLine();
      start = end + 1;
    }
    this.#add(start === 0 ? text : text.slice(start));
  }

  /** Text from outside, cleaned already. */
  data(text: string): void {
    this.#count(text.length);
    this.#put(text, false);
  }

  toon(toon: ToonText): void {
    this.#count(toon.text.length);
    if (this.#pieces.length === 0) this.#toon = toon;
    this.#put(toon.text, false);
  }

  /** The whole text, without empty lines before and after it. */
  end(): string {
    this.#endLine();
    const lines = this.#lines;
    let from = 0;
    let to = lines.length;
    while (from < to && BLANK.test(lines[from] as string)) from += 1;
    while (to > from && BLANK.test(lines[to - 1] as string)) to -= 1;
    const text = to - from === 1 ? (lines[from] as string) : lines.slice(from, to).join("\n");
    if (text.length > this.#run.limits.outputChars) throw this.#tooLong();
    return text;
  }

  #add(text: string): void {
    if (this.#pieces.length === 0) this.#own += text;
    else if (text !== "") this.#put(text, true);
  }

  #put(piece: string, isOwn: boolean): void {
    this.#pieces.push(piece);
    this.#areOwn.push(isOwn);
  }

  #count(chars: number): void {
    this.#chars += chars;
    this.#run.step(chars / 64);
    if (this.#chars > this.#run.limits.outputChars) throw this.#tooLong();
  }

  #tooLong() {
    return this.#run.overrun(`writes more than ${this.#run.limits.outputChars} characters`);
  }

  #endLine(): void {
    this.#lines.push(this.#pieces.length === 0 ? this.#own : this.#line());
    this.#beginLine();
  }

  #beginLine(): void {
    this.#own = "";
    if (this.#pieces.length === 0) return;
    this.#toon = NONE;
    this.#pieces = [];
    this.#areOwn = [];
  }

  #line(): string {
    const own = this.#own;
    const toon = this.#toon;
    const isBlock = toon !== NONE && this.#isAlone();
    // A block that stands alone: its lines are the encoder's, as far in as the tag was.
    if (isBlock && own.trim() === "") return indented(toon.text, own);

    const start = scalarStart(own);
    const head = own.slice(0, start);
    const before = own.slice(start).trimStart();
    const lead = head === "" || head.endsWith(" ") || head.endsWith("\t") ? head : `${head} `;
    if (isBlock && toon.scalar && before === "") return lead + toon.text;
    return lead + toonScalar(this.#scalarText(before));
  }

  /** Whether nothing but blanks follows the first piece. */
  #isAlone(): boolean {
    for (let index = 1; index < this.#pieces.length; index += 1)
      if (this.#areOwn[index] !== true || (this.#pieces[index] as string).trim() !== "") return false;
    return true;
  }

  /**
   * The template's own blanks at both ends are not part of it, also where the value beside them is empty. `before` is its
   * own, and has none at its start.
   */
  #scalarText(before: string): string {
    const pieces = this.#pieces;
    let text = before;
    let isOwn = true;
    let from = 0;
    for (; text === "" && from < pieces.length; from += 1) {
      const piece = pieces[from] as string;
      isOwn = this.#areOwn[from] === true;
      text = isOwn ? piece.trimStart() : piece;
    }
    let to = pieces.length;
    let last = "";
    for (; last === "" && to > from; to -= 1) {
      const piece = pieces[to - 1] as string;
      last = this.#areOwn[to - 1] === true ? piece.trimEnd() : piece;
    }
    if (last === "") return isOwn ? text.trimEnd() : text;
    for (let index = from; index < to; index += 1) text += pieces[index] as string;
    return text + last;
  }
}

const BLANK = /^[ \t]*$/;

function indented(text: string, indentation: string): string {
  if (indentation === "") return text;
  return text
    .split("\n")
    .map((line) => indentation + line)
    .join("\n");
}

/** Where the text of a line begins: after its key's colon, or else after the indentation and a list's dash. */
function scalarStart(own: string): number {
  let colon = own.indexOf(":");
  if (colon >= 0 && own.lastIndexOf('"', colon) >= 0) colon = unquotedColon(own);
  return colon >= 0 ? colon + 1 : (/^[ \t]*(?:- )?/.exec(own)?.[0].length ?? 0);
}

function unquotedColon(own: string): number {
  let quoted = false;
  for (let index = 0; index < own.length; index++) {
    const char = own[index];
    if (quoted && char === "\\") index++;
    else if (char === '"') quoted = !quoted;
    else if (char === ":" && !quoted) return index;
  }
  return -1;
}
