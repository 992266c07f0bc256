import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { type OpenOptions, Tidings } from "../../src/index.js";

/** A folder that is gone when the test is over. */
export async function temporaryFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "tidings-test-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

/** An open Tidings on a folder of its own, closed when the test is over. */
export async function openTidings(options: OpenOptions = {}): Promise<Tidings> {
  const data = options.data ?? (await temporaryFolder());
  const tidings = await Tidings.open({ ...options, data });
  onTestFinished(() => tidings.close());
  return tidings;
}

/** The first value that `read` gives and `wanted` takes; asks again and again, for a generous while. */
export async function eventually<Value>(
  read: () => Promise<Value>,
  wanted: (value: Value) => boolean,
  limitMs = 60_000,
): Promise<Value> {
  const until = Date.now() + limitMs;
  for (;;) {
    const value = await read();
    if (wanted(value)) return value;
    if (Date.now() > until) throw new Error(`waited ${limitMs} ms in vain; last seen: ${JSON.stringify(value)}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
