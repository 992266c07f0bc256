/** Lines of a stream, as they come: those that a chunk completes are given together. */
import { LineSplitter, type SplitLine } from "../platform/lines.js";

const LINE_BYTES_MAX = 1_048_576;

/** A line, counted from 1; `problem` if it cannot be text. Empty lines are counted and left out. */
export type Line = { readonly number: number } & ({ readonly text: string } | { readonly problem: string });

export async function* linesOf(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Line[]> {
  const splitter = new LineSplitter(LINE_BYTES_MAX);
  const decoder = new TextDecoder("utf-8", { fatal: true });
  let number = 0;
  const read = (split: SplitLine): Line[] => {
    number += 1;
    if ("tooLong" in split)
      return [{ number, problem: `is ${split.tooLong} bytes long; the limit is ${LINE_BYTES_MAX}` }];
    try {
      const text = decoder.decode(split.bytes).trim();
      return text === "" ? [] : [{ number, text }];
    } catch {
      return [{ number, problem: "is not UTF-8 text" }];
    }
  };
  for await (const chunk of chunks) {
    const lines = splitter.push(chunk).flatMap(read);
    if (lines.length > 0) yield lines;
  }
  const rest = splitter.end();
  const lines = rest === undefined ? [] : read(rest);
  if (lines.length > 0) yield lines;
}
