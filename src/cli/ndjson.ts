/** Lines of a stream, as they come: those that a chunk completes are given together. */

const LINE_BYTES_MAX = 1_048_576;
const NEWLINE = 0x0a;

/** A line, counted from 1; `problem` if it cannot be text. Empty lines are counted and left out. */
export type Line = { readonly number: number } & ({ readonly text: string } | { readonly problem: string });

export async function* linesOf(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Line[]> {
  const splitter = new Splitter();
  for await (const chunk of chunks) {
    const lines = splitter.push(chunk);
    if (lines.length > 0) yield lines;
  }
  const rest = splitter.end();
  if (rest.length > 0) yield rest;
}

class Splitter {
  readonly #decoder = new TextDecoder("utf-8", { fatal: true });
  #parts: Uint8Array[] = [];
  #bytes = 0;
  #number = 0;

  push(chunk: Uint8Array): Line[] {
    const lines: Line[] = [];
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, start)) {
      this.#keep(chunk.subarray(start, end));
      lines.push(...this.#line());
      start = end + 1;
    }
    this.#keep(chunk.subarray(start));
    return lines;
  }

  end(): Line[] {
    return this.#bytes === 0 ? [] : this.#line();
  }

  /** Of a line that is too long only its length is kept. */
  #keep(part: Uint8Array): void {
    this.#bytes += part.length;
    if (this.#bytes > LINE_BYTES_MAX) this.#parts = [];
    else this.#parts.push(part);
  }

  #line(): Line[] {
    const bytes = this.#bytes;
    const whole = Buffer.concat(this.#parts);
    this.#number += 1;
    this.#parts = [];
    this.#bytes = 0;
    const number = this.#number;
    if (bytes > LINE_BYTES_MAX) return [{ number, problem: `is ${bytes} bytes long; the limit is ${LINE_BYTES_MAX}` }];
    try {
      const text = this.#decoder.decode(whole).trim();
      return text === "" ? [] : [{ number, text }];
    } catch {
      return [{ number, problem: "is not UTF-8 text" }];
    }
  }
}
