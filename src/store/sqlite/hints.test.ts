/** The coarse indexes are there while they lead to something, and cost nothing to those that settle. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Database from "better-sqlite3";
import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import type { AckAction } from "../../domain/notification.js";
import { DEFAULT_POLICY } from "../../domain/policy.js";
import { HOST } from "../../domain/principal.js";
import { ManualClock } from "../../platform/manual_clock.js";
import { audit } from "../audit.js";
import type { Stored } from "../contract.js";
import { acceptance } from "../contract.suite.js";
import { PlainEditor } from "../editor.suite.js";
import { openSqliteStore, type SqliteStore } from "./store.js";

const START_MS = Date.UTC(2026, 0, 3);
const START_SECOND = START_MS / 1_000;

describe("the coarse index", () => {
  let clock: ManualClock;
  let store: SqliteStore;
  let outside: Database.Database;

  beforeEach(async () => {
    const folder = await mkdtemp(join(tmpdir(), "tidings-hints-"));
    clock = new ManualClock(START_MS);
    store = await openSqliteStore({
      folder,
      policy: DEFAULT_POLICY,
      clock,
      editor: new PlainEditor(),
      mode: "write",
      waitMs: 0,
    });
    outside = new Database(join(folder, "tidings.db"), { readonly: true });
    onTestFinished(async () => {
      outside.close();
      expect((await audit(store)).problems).toEqual([]);
      await store.close();
      await rm(folder, { recursive: true, force: true });
    });
  });

  async function put(count: number, ttl_ms: number | null = null): Promise<Stored[]> {
    const made = await Promise.all(Array.from({ length: count }, () => store.accept(HOST, acceptance({}, { ttl_ms }))));
    return made.flatMap(({ matches }) => matches.map(({ stored }) => stored));
  }

  const ack = (some: readonly Stored[], action: AckAction) =>
    Promise.all(
      some.map(({ delivery: { id } }) =>
        store.command(HOST, { id, command: { column: "ack", revision: 1, action }, operation: "ack" }),
      ),
    );

  function idOf([one]: readonly Stored[]) {
    if (one === undefined) throw new Error("nothing was made");
    return one.delivery.id;
  }

  const due = () => outside.prepare("SELECT second, block FROM due ORDER BY 1, 2").raw().all();
  const blocks = (kind: string) =>
    outside.prepare("SELECT block FROM blocks WHERE kind = ? ORDER BY 1").pluck().all(kind);

  it("of deadlines has a row a second and block, whatever is settled, until the second has passed", async () => {
    const some = await put(1_100, 1_500);
    await put(1, 2_500);
    await ack(some, "clicked");
    const first = START_SECOND + 1;
    expect(due()).toEqual([
      [first, 0],
      [first, 1],
      [first + 1, 1],
    ]);
    clock.advance(1_999);
    expect(await store.sweep(10)).toBe(0);
    expect(due()).toHaveLength(3);
    clock.advance(1);
    expect(await store.sweep(10)).toBe(0);
    expect(due()).toEqual([[first + 1, 1]]);
    clock.advance(500);
    expect(await store.sweep(10)).toBe(1);
    clock.advance(500);
    expect(await store.sweep(10)).toBe(0);
    expect(due()).toEqual([]);
  });

  it("of deadlines is gone through in one sweep, however many seconds nobody swept", async () => {
    const some = await Promise.all(Array.from({ length: 600 }, (_, second) => put(1, 1_000 * (second + 1))));
    await ack(some.flat(), "rendered");
    const late = await put(1, 601_000);
    expect(due()).toHaveLength(601);
    clock.advance(700_000);
    expect(await store.sweep(10)).toBe(1);
    expect(due()).toEqual([]);
    expect((await store.get(HOST, idOf(late)))?.delivery.state).toBe("FAILED");
  });

  it("of deadlines is gone through in one sweep, however many blocks were settled", async () => {
    await ack(await put(5 * 1_024, 1_000), "clicked");
    const late = await put(1, 1_000);
    clock.advance(5_000);
    expect(await store.sweep(10)).toBe(1);
    expect(due()).toEqual([]);
    expect((await store.get(HOST, idOf(late)))?.delivery.state).toBe("FAILED");
  });

  it("of what is live or unread loses a block with its last one", async () => {
    const some = await put(1_100);
    expect([blocks("inbox"), blocks("unread")]).toEqual([[0, 1], []]);
    await ack(some.slice(0, 1_022), "rendered");
    expect([blocks("inbox"), blocks("unread")]).toEqual([[0, 1], [0]]);
    await ack(some.slice(1_022, 1_023), "clicked");
    expect([blocks("inbox"), blocks("unread")]).toEqual([[1], [0]]);
    await ack(some.slice(0, 1_021), "dismissed");
    expect(blocks("unread")).toEqual([0]);
    await ack(some.slice(1_021, 1_022), "clicked");
    expect(blocks("unread")).toEqual([]);
    await ack(some.slice(1_023), "clicked");
    expect(blocks("inbox")).toEqual([]);
    // Named again by the next one in the same block.
    await put(1);
    expect(blocks("inbox")).toEqual([1]);
  });

  it("of what is unread loses what retention removes", async () => {
    await ack(await put(3), "rendered");
    clock.advance(10_000);
    expect(await store.prune(5_000)).toMatchObject({ notifications: 3 });
    expect(blocks("unread")).toEqual([]);
  });
});
