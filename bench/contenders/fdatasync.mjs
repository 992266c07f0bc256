import { closeSync, fdatasyncSync, openSync, writeSync } from "node:fs";
import { join } from "node:path";
import { median, quantile } from "../statistics.mjs";

/** About what one commit of 64 emits appends to the write-ahead log. */
const BYTES = 80 * 1_024;

/** How long a write and its flush take: into a file that grows, and over blocks that it has, as a used log does. */
export function fdatasync({ folder, count }) {
  const file = openSync(join(folder, "flushed"), "w");
  try {
    const growing = flushes(file, count);
    const inPlace = flushes(file, count);
    const summary = (times) => ({ median: median(times), p95: quantile(times, 0.95) });
    return { growing: summary(growing), inPlace: summary(inPlace) };
  } finally {
    closeSync(file);
  }
}

function flushes(file, count) {
  const bytes = Buffer.alloc(BYTES, "tidings ");
  return Array.from({ length: count }, (_, index) => {
    const started = performance.now();
    writeSync(file, bytes, 0, BYTES, index * BYTES);
    fdatasyncSync(file);
    return performance.now() - started;
  });
}
