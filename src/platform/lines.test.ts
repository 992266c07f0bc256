import fc from "fast-check";
import { expect, test } from "vitest";
import { LineSplitter, type SplitLine } from "./lines.js";

const MAX = 8;

/** What a splitter gives for these bytes when they come in these pieces. */
function splitIn(pieces: readonly Buffer[]): (string | number)[] {
  const splitter = new LineSplitter(MAX);
  const lines: SplitLine[] = pieces.flatMap((piece) => splitter.push(piece));
  const rest = splitter.end();
  if (rest !== undefined) lines.push(rest);
  expect(splitter.end()).toBe(undefined);
  return lines.map((line) => ("bytes" in line ? line.bytes.toString("latin1") : line.tooLong));
}

function cut(bytes: Buffer, places: readonly number[]): Buffer[] {
  const at = [...new Set(places.map((place) => place % (bytes.length + 1)))].sort((one, other) => one - other);
  return [...at, bytes.length].map((end, index) => bytes.subarray(at[index - 1] ?? 0, end));
}

test("however the bytes are cut, the lines are the same, and none is kept that is too long (T9)", () => {
  const byte = fc.oneof({ weight: 3, arbitrary: fc.integer({ min: 0, max: 255 }) }, fc.constant(0x0a));
  fc.assert(
    fc.property(fc.array(byte, { maxLength: 60 }), fc.array(fc.nat(), { maxLength: 20 }), (values, places) => {
      const bytes = Buffer.from(values);
      const lines = bytes.toString("latin1").split("\n");
      if (lines.at(-1) === "") lines.pop();
      const wanted = lines.map((line) => (line.length > MAX ? line.length : line));
      expect(splitIn(cut(bytes, places))).toEqual(wanted);
      expect(splitIn([...bytes].map((one) => Buffer.from([one])))).toEqual(wanted);
    }),
  );
});

test("a line that is too long is known as such before it ends", () => {
  const splitter = new LineSplitter(MAX);
  expect(splitter.push(Buffer.from("12345678"))).toEqual([]);
  expect(splitter.isTooLong).toBe(false);
  splitter.push(Buffer.from("9"));
  expect(splitter.isTooLong).toBe(true);
  expect(splitter.push(Buffer.from("\nnext\n"))).toEqual([{ tooLong: 9 }, { bytes: Buffer.from("next") }]);
});

test("of a line without an end no more than the limit is kept, in whatever pieces it comes", () => {
  const max = 65_536;
  for (const bytes of [1, 100, 65_536]) {
    const splitter = new LineSplitter(max);
    const piece = Buffer.alloc(bytes, "x");
    const before = process.memoryUsage().arrayBuffers;
    for (let sent = 0; sent < Math.min(64 * max, 400_000 * bytes); sent += bytes) splitter.push(piece);
    expect(splitter.isTooLong).toBe(true);
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(4 * max);
    // Nor of one that is as long as it may be, and no longer.
    splitter.push(Buffer.from("\n"));
    splitter.push(Buffer.alloc(max, "y"));
    const [line] = splitter.push(Buffer.from("\n"));
    expect(line !== undefined && "bytes" in line && line.bytes.buffer.byteLength).toBe(max);
  }
});
