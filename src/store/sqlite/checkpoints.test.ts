/** What was committed goes from the log into the database while the store is in use, and by nobody who is waited for. */
import { existsSync, statSync } from "node:fs";
import { join } from "node:path";
import { expect, it, vi } from "vitest";
import { temporaryFolder } from "../../../test/support/folder.js";
import { DEFAULT_POLICY } from "../../domain/policy.js";
import { HOST } from "../../domain/principal.js";
import { systemClock } from "../../platform/clock.js";
import { audit } from "../audit.js";
import { acceptance } from "../contract.suite.js";
import { PlainEditor } from "../editor.suite.js";
import { DATABASE_FILE } from "./database.js";
import { openSqliteStore } from "./store.js";

const PAGE_BYTES = 4_096;
/** From which SQLite would do it by itself, in a commit. */
const OWN_PAGES = 16_000;

const open = (folder: string) =>
  openSqliteStore({
    folder,
    policy: DEFAULT_POLICY,
    clock: systemClock,
    editor: new PlainEditor(),
    mode: "write",
    waitMs: 0,
  });

const bytesOf = (file: string) => statSync(file).size;

it("a busy store's log is copied meanwhile, and begins anew (I6)", async () => {
  const folder = await temporaryFolder();
  const [database, log] = [join(folder, DATABASE_FILE), join(folder, `${DATABASE_FILE}-wal`)];
  const store = await open(folder);
  try {
    const before = bytesOf(database);
    const put = (count: number) =>
      store.acceptMany(
        HOST,
        Array.from({ length: count }, () => acceptance()),
      );
    await put(9_000);
    const pages = bytesOf(log) / PAGE_BYTES;
    expect(pages).toBeLessThan(OWN_PAGES);
    await vi.waitFor(() => expect(bytesOf(database)).toBeGreaterThan(before), 60_000);
    // The log is not cut, but written over from its start: it does not grow by as much again.
    for (let round = 0; round < 3; round += 1) {
      const size = bytesOf(database);
      await put(9_000);
      await vi.waitFor(() => expect(bytesOf(database)).toBeGreaterThan(size), 60_000);
    }
    expect(bytesOf(log) / PAGE_BYTES).toBeLessThan(OWN_PAGES);
    expect((await audit(store)).problems).toEqual([]);
  } finally {
    await store.close();
  }
  // Whoever closes last takes the log away: the thread has let go before.
  expect(existsSync(log)).toBe(false);
});

it("a store that writes little starts no thread, and closes at once", async () => {
  const folder = await temporaryFolder();
  const store = await open(folder);
  await store.accept(HOST, acceptance());
  await store.close();
  expect(existsSync(join(folder, `${DATABASE_FILE}-wal`))).toBe(false);
});
