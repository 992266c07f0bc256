/** Lines of a text file, from one on: as many as are asked for, and fit. */
import type { FileHandle } from "node:fs/promises";

export interface Lines {
  readonly text: string;
  readonly count: number;
  /** There is more after these. */
  readonly more: boolean;
  /** Nothing more of the line after these was shown than this; null if that is not so. */
  readonly cut_line: number | null;
}

const NEWLINE = 10;
const CHUNK_BYTES = 65_536;

/** What is not text. */
export class NotText extends Error {}

/** Reads no further than it must. `first`: the number of the first line, from 1. */
export async function readLines(
  source: FileHandle | Uint8Array,
  first: number,
  limit: number,
  bytesMax: number,
): Promise<Lines> {
  const kept: Buffer[] = [];
  let bytes = 0;
  let line = 1;
  let count = 0;
  let partial = false;
  for await (const chunk of chunksOf(source)) {
    if (chunk.includes(0)) throw new NotText("it is not text");
    for (let at = 0; at < chunk.length; ) {
      const newline = chunk.indexOf(NEWLINE, at);
      const end = newline < 0 ? chunk.length : newline + 1;
      if (line >= first) {
        if (count >= limit) return { ...shown(kept, count), more: true, cut_line: null };
        const piece = chunk.subarray(at, end);
        const room = bytesMax - bytes;
        kept.push(Buffer.from(piece.subarray(0, room)));
        bytes += Math.min(piece.length, room);
        if (piece.length > room) return { ...shown(kept, count), more: true, cut_line: line };
        partial = newline < 0;
        if (!partial) count += 1;
      }
      if (newline >= 0) line += 1;
      at = end;
    }
  }
  return { ...shown(kept, partial ? count + 1 : count), more: false, cut_line: null };
}

function shown(kept: readonly Buffer[], count: number): Pick<Lines, "text" | "count"> {
  return { text: Buffer.concat(kept).toString("utf8"), count };
}

async function* chunksOf(source: FileHandle | Uint8Array): AsyncGenerator<Buffer> {
  if (source instanceof Uint8Array) {
    yield Buffer.from(source.buffer, source.byteOffset, source.byteLength);
    return;
  }
  const chunk = Buffer.allocUnsafe(CHUNK_BYTES);
  for (let at = 0; ; ) {
    const { bytesRead } = await source.read(chunk, 0, chunk.length, at);
    if (bytesRead === 0) return;
    at += bytesRead;
    yield chunk.subarray(0, bytesRead);
  }
}
