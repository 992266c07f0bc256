/** Bytes as they come, split at line ends. One unfinished line is kept, in a buffer that grows to at most the limit. */
const NEWLINE = 0x0a;
const FIRST_BYTES = 1_024;

/** A line without its end; or how long one was that is not kept. */
export type SplitLine = { readonly bytes: Buffer } | { readonly tooLong: number };

export class LineSplitter {
  readonly #max: number;
  #kept = Buffer.alloc(0);
  #length = 0;

  constructor(bytesMax: number) {
    this.#max = bytesMax;
  }

  /** The unfinished line is too long already, however it goes on. */
  get isTooLong(): boolean {
    return this.#length > this.#max;
  }

  /** The lines that this chunk ends. */
  push(chunk: Uint8Array): SplitLine[] {
    return [...this.lines(chunk)];
  }

  /** The same, one after the other: they are to be taken to the last. */
  *lines(chunk: Uint8Array): Generator<SplitLine, void, undefined> {
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, start)) {
      const part = chunk.subarray(start, end);
      start = end + 1;
      if (this.#length === 0 && part.length <= this.#max) yield { bytes: Buffer.from(part) };
      else {
        this.#keep(part);
        yield this.#take();
      }
    }
    this.#keep(chunk.subarray(start));
  }

  /** What stood after the last line end; undefined if nothing did. */
  end(): SplitLine | undefined {
    return this.#length === 0 ? undefined : this.#take();
  }

  /** Of a line that is too long only its length is kept. */
  #keep(part: Uint8Array): void {
    const before = this.#length;
    this.#length += part.length;
    if (this.isTooLong) {
      this.#kept = Buffer.alloc(0);
      return;
    }
    if (part.length > 0 && this.#length > this.#kept.length) {
      const grown = Buffer.alloc(Math.min(this.#max, Math.max(FIRST_BYTES, 2 * this.#length)));
      this.#kept.copy(grown, 0, 0, before);
      this.#kept = grown;
    }
    this.#kept.set(part, before);
  }

  #take(): SplitLine {
    const length = this.#length;
    const line = this.isTooLong ? { tooLong: length } : { bytes: this.#kept.subarray(0, length) };
    this.#kept = Buffer.alloc(0);
    this.#length = 0;
    return line;
  }
}
