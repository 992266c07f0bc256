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

type Part =
  | { readonly kind: "own" | "data"; readonly text: string }
  | { readonly kind: "toon"; readonly toon: ToonText };

export class Output {
  readonly #run: Run;
  readonly #lines: string[] = [];
  #chars = 0;
  #line: Part[] = [];

  constructor(run: Run) {
    this.#run = run;
  }

  /** The template's own words. */
  own(text: string): void {
    this.#count(text.length);
    let start = 0;
    for (let end = text.indexOf("\n"); end >= 0; end = text.indexOf("\n", start)) {
      this.#push({ kind: "own", text: text.slice(start, end) });
      this.#endLine();
      start = end + 1;
    }
    this.#push({ kind: "own", text: start === 0 ? text : text.slice(start) });
  }

  /** Text from outside, cleaned already. */
  data(text: string): void {
    this.#count(text.length);
    this.#line.push({ kind: "data", text });
  }

  toon(toon: ToonText): void {
    this.#count(toon.text.length);
    this.#line.push({ kind: "toon", toon });
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

  #push(part: Part & { kind: "own" }): void {
    if (part.text !== "") this.#line.push(part);
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
    const parts = this.#line;
    this.#line = [];
    this.#lines.push(lineOf(parts));
  }
}

function lineOf(parts: readonly Part[]): string {
  let own = "";
  let first = 0;
  for (; first < parts.length; first++) {
    const part = parts[first];
    if (part?.kind !== "own") break;
    own += part.text;
  }
  if (first === parts.length) return own;

  const rest = parts.slice(first);
  const block = onlyToon(rest);
  // A block that stands alone: its lines are the encoder's, as far in as the tag was.
  if (block !== undefined && own.trim() === "") return indented(block.text, own);

  const start = scalarStart(own);
  const head = own.slice(0, start);
  const before = own.slice(start).trimStart();
  const lead = head === "" || /[ \t]$/.test(head) ? head : `${head} `;
  if (block?.scalar === true && before === "") return lead + block.text;
  const [only] = rest;
  if (rest.length === 1 && before === "" && only?.kind === "data") return lead + toonScalar(only.text);
  const text = scalarText([{ kind: "own", text: before }, ...rest]);
  return lead + toonScalar(text);
}

/** The one thing that `toon()` made, if nothing else but blanks is there. */
function onlyToon(parts: readonly Part[]): ToonText | undefined {
  const said = parts.filter((part) => part.kind !== "own" || part.text.trim() !== "");
  const [part] = said;
  return said.length === 1 && part?.kind === "toon" ? part.toon : undefined;
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

/** The template's own blanks at both ends are not part of it, also where the value beside them is empty. */
function scalarText(parts: readonly Part[]): string {
  const said = parts
    .map((part) =>
      part.kind === "toon" ? { own: false, text: part.toon.text } : { own: part.kind === "own", text: part.text },
    )
    .filter(({ text }) => text !== "");
  for (let first = said[0]; first?.own === true; first = said[0]) {
    first.text = first.text.trimStart();
    if (first.text !== "") break;
    said.shift();
  }
  for (let last = said.at(-1); last?.own === true; last = said.at(-1)) {
    last.text = last.text.trimEnd();
    if (last.text !== "") break;
    said.pop();
  }
  return said.map(({ text }) => text).join("");
}
