/**
 * Where a key stands in a TOML text: the parser tells positions of syntax errors, not of keys. The text has been parsed
 * before, so that this reads valid TOML only and has no errors of its own; what it cannot make out it does not list.
 */

export interface Position {
  readonly line: number;
  readonly column: number;
}

export type KeyPath = readonly (string | number)[];

/** Keys that lie deeper are not told apart: no file of ours has any, and a path of thousands of keys costs nothing. */
const DEPTH_MAX = 16;

/** Finds keys: of tables, dotted, in inline tables, and items of arrays by their index. */
export class KeyLocator {
  readonly #positions = new Map<string, number>();
  readonly #text: string;
  /** Where each line begins. */
  readonly #lines: readonly number[];
  readonly #headers: { path: KeyPath; line: number }[] = [];
  /** How many items each array of tables (`[[a]]`) has so far. */
  readonly #tables = new Map<string, number>();
  #at = 0;

  constructor(toml: string) {
    this.#text = toml;
    this.#lines = [0, ...[...toml.matchAll(/\n/g)].map(({ index }) => index + 1)];
    let table: KeyPath = [];
    for (this.#skipBlank(); this.#at < toml.length; this.#skipBlank()) {
      const start = this.#at;
      if (this.#peek() === "[") table = this.#header();
      else this.#pair(table);
      // A character that fits nowhere: the text was no TOML. Going on by one ends in any case.
      if (this.#at === start) this.#at += 1;
    }
  }

  /** Of the key itself, else of the nearest table or array around it; the beginning of the file if there is none. */
  find(path: KeyPath): Position {
    for (let length = path.length; length > 0; length -= 1) {
      const offset = this.#positions.get(keyOf(path.slice(0, length)));
      if (offset !== undefined) return this.#position(offset);
    }
    return { line: 1, column: 1 };
  }

  /** Where tables begin (`[a.b]`, and `[[a.b]]` with the index of its item), in their order. */
  get headers(): readonly { readonly path: KeyPath; readonly line: number }[] {
    return this.#headers;
  }

  has(path: KeyPath): boolean {
    return this.#positions.has(keyOf(path));
  }

  #header(): KeyPath {
    const many = this.#text.startsWith("[[", this.#at);
    const { line } = this.#position(this.#at);
    this.#at += many ? 2 : 1;
    this.#skipSpace();
    const start = this.#at;
    const keys = this.#dottedKey();
    let path: KeyPath = [];
    for (const [index, { name }] of keys.entries()) {
      path = within(path, name);
      const count = this.#tables.get(keyOf(path));
      const last = index === keys.length - 1;
      this.#note(path, start);
      if (many && last) {
        this.#tables.set(keyOf(path), (count ?? 0) + 1);
        path = within(path, count ?? 0);
      } else if (count !== undefined) path = within(path, count - 1);
    }
    this.#note(path, start);
    this.#headers.push({ path, line });
    this.#skipSpace();
    this.#at += many ? 2 : 1;
    return path;
  }

  #pair(table: KeyPath): void {
    let path = table;
    for (const { name, offset } of this.#dottedKey()) {
      path = within(path, name);
      this.#note(path, offset);
    }
    this.#skipSpace();
    if (this.#peek() !== "=") return;
    this.#at += 1;
    this.#skipSpace();
    this.#value(path);
  }

  #dottedKey(): { name: string; offset: number }[] {
    const keys: { name: string; offset: number }[] = [];
    for (;;) {
      this.#skipSpace();
      const offset = this.#at;
      const quote = this.#peek();
      if (quote === '"' || quote === "'") {
        this.#string();
        keys.push({ name: unquoted(this.#text.slice(offset, this.#at)), offset });
      } else {
        while (/[A-Za-z0-9_-]/.test(this.#peek())) this.#at += 1;
        if (this.#at === offset) return keys;
        keys.push({ name: this.#text.slice(offset, this.#at), offset });
      }
      this.#skipSpace();
      if (this.#peek() !== ".") return keys;
      this.#at += 1;
    }
  }

  #value(path: KeyPath): void {
    const first = this.#peek();
    if (first === '"' || first === "'") this.#string();
    else if (first === "[") this.#array(path);
    else if (first === "{") this.#inlineTable(path);
    else while (this.#at < this.#text.length && !/[,\]}#\n]/.test(this.#peek())) this.#at += 1;
  }

  #array(path: KeyPath): void {
    this.#at += 1;
    for (let index = 0; ; index += 1) {
      this.#skipBlank();
      if (this.#at >= this.#text.length) return;
      if (this.#peek() === "]") break;
      const item = within(path, index);
      this.#note(item, this.#at);
      this.#value(item);
      this.#skipBlank();
      if (this.#peek() !== ",") break;
      this.#at += 1;
    }
    this.#at += 1;
  }

  #inlineTable(path: KeyPath): void {
    this.#at += 1;
    for (;;) {
      this.#skipBlank();
      if (this.#at >= this.#text.length) return;
      if (this.#peek() === "}") break;
      this.#pair(path);
      this.#skipBlank();
      if (this.#peek() !== ",") break;
      this.#at += 1;
    }
    this.#at += 1;
  }

  #string(): void {
    const quote = this.#peek();
    const long = this.#text.startsWith(quote.repeat(3), this.#at);
    const end = quote.repeat(long ? 3 : 1);
    this.#at += end.length;
    while (this.#at < this.#text.length && !this.#text.startsWith(end, this.#at))
      this.#at += quote === '"' && this.#peek() === "\\" ? 2 : 1;
    this.#at += end.length;
    // Up to two quotes may stand right before the closing three.
    for (let extra = 0; long && extra < 2 && this.#peek() === quote; extra += 1) this.#at += 1;
  }

  #note(path: KeyPath, offset: number): void {
    const key = keyOf(path);
    if (!this.#positions.has(key)) this.#positions.set(key, offset);
  }

  /** Looked for by halves: a file may have thousands of keys, and each of them is asked for. */
  #position(offset: number): Position {
    let [from, to] = [0, this.#lines.length];
    while (to - from > 1) {
      const middle = (from + to) >> 1;
      if ((this.#lines[middle] ?? 0) <= offset) from = middle;
      else to = middle;
    }
    return { line: from + 1, column: offset - (this.#lines[from] ?? 0) + 1 };
  }

  #peek(): string {
    return this.#text.charAt(this.#at);
  }

  #skipSpace(): void {
    while (this.#peek() === " " || this.#peek() === "\t") this.#at += 1;
  }

  /** White space, line ends and comments. */
  #skipBlank(): void {
    for (;;) {
      while (/\s/.test(this.#peek()) || this.#peek() === "\ufeff") this.#at += 1;
      if (this.#peek() !== "#") return;
      while (this.#at < this.#text.length && this.#peek() !== "\n") this.#at += 1;
    }
  }
}

function within(path: KeyPath, key: string | number): KeyPath {
  return path.length < DEPTH_MAX ? [...path, key] : path;
}

function keyOf(path: KeyPath): string {
  return JSON.stringify(path);
}

const ESCAPES: Readonly<Record<string, string>> = { b: "\b", t: "\t", n: "\n", f: "\f", r: "\r", e: "\u001b" };

function unquoted(text: string): string {
  const inner = text.slice(1, -1);
  if (text.startsWith("'")) return inner;
  return inner.replace(
    /\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|x([0-9A-Fa-f]{2})|(.))/g,
    (_, four?: string, eight?: string, two?: string, single = "") => {
      const code = four ?? eight ?? two;
      return code === undefined ? (ESCAPES[single] ?? single) : String.fromCodePoint(Number.parseInt(code, 16));
    },
  );
}
