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
import type { ToonText } from "./value.js";

/** A piece of a line; `toon` is what `toon()` made. */
interface Part {
  readonly text: string;
  readonly own: boolean;
  readonly toon: ToonText | null;
}

export class Output {
  readonly #run: Run;
  readonly #lines: string[] = [];
  #chars = 0;
  /** The line that is being written: the template's own words up to the first value, and then everything. */
  #own = "";
  #rest: Part[] = [];

  constructor(run: Run) {
    this.#run = run;
  }

  begin(): void {
    this.#lines.length = 0;
    this.#chars = 0;
    this.#own = "";
    this.#rest = [];
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
    this.#rest.push({ text, own: false, toon: null });
  }

  toon(toon: ToonText): void {
    this.#count(toon.text.length);
    this.#rest.push({ text: toon.text, own: false, toon });
  }

  /** The whole text, without empty lines before and after it. */
  end(): string {
    this.#endLine();
    const said = (line: string) => !/^[ \t]*$/.test(line);
    const lines = this.#lines.slice(Math.max(0, this.#lines.findIndex(said)), this.#lines.findLastIndex(said) + 1);
    const text = lines.join("\n");
    if (text.length > this.#run.limits.outputChars) throw this.#tooLong();
    return text;
  }

  #add(text: string): void {
    if (this.#rest.length === 0) this.#own += text;
    else if (text !== "") this.#rest.push({ text, own: true, toon: null });
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
    this.#lines.push(this.#rest.length === 0 ? this.#own : lineOf(this.#own, this.#rest));
    this.#own = "";
    if (this.#rest.length > 0) this.#rest = [];
  }
}

/** `rest` begins with the first value of the line. */
function lineOf(own: string, rest: readonly Part[]): string {
  const block = onlyToon(rest);
  // A block that stands alone: its lines are the encoder's, as far in as the tag was.
  if (block !== null && own.trim() === "") return indented(block.text, own);

  const start = scalarStart(own);
  const head = own.slice(0, start);
  const before = own.slice(start).trimStart();
  const lead = head === "" || head.endsWith(" ") || head.endsWith("\t") ? head : `${head} `;
  if (block?.scalar === true && before === "") return lead + block.text;
  return lead + toonScalar(scalarText(before, rest));
}

/** The one thing that `toon()` made, if nothing else but blanks is there. */
function onlyToon(parts: readonly Part[]): ToonText | null {
  const toon = parts[0]?.toon ?? null;
  if (toon === null) return null;
  for (let index = 1; index < parts.length; index += 1) {
    const part = parts[index] as Part;
    if (!part.own || part.text.trim() !== "") return null;
  }
  return toon;
}

function indented(text: string, indentation: string): string {
  if (indentation === "") return text;
  return text
    .split("\n")
    .map((line) => indentation + line)
    .join("\n");
}

/** Where the text of a line begins: after its key's colon, or else after the indentation and a list's dash. */
function scalarStart(own: string): number {
  let quoted = false;
  for (let index = 0; index < own.length; index++) {
    const char = own[index];
    if (quoted && char === "\\") index++;
    else if (char === '"') quoted = !quoted;
    else if (char === ":" && !quoted) return index + 1;
  }
  return /^[ \t]*(?:- )?/.exec(own)?.[0].length ?? 0;
}

/**
 * The template's own blanks at both ends are not part of it, also where the value beside them is empty. `before` is its own,
 * and has none at its start.
 */
function scalarText(before: string, rest: readonly Part[]): string {
  let text = before;
  let isOwn = true;
  let from = 0;
  for (; text === "" && from < rest.length; from += 1) {
    const part = rest[from] as Part;
    isOwn = part.own;
    text = isOwn ? part.text.trimStart() : part.text;
  }
  let to = rest.length;
  let last = "";
  for (; last === "" && to > from; to -= 1) {
    const part = rest[to - 1] as Part;
    last = part.own ? part.text.trimEnd() : part.text;
  }
  if (last === "") return isOwn ? text.trimEnd() : text;
  for (let index = from; index < to; index += 1) text += (rest[index] as Part).text;
  return text + last;
}
