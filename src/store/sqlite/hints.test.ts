/** The coarse indexes are there while they lead to something, and cost nothing to those that settle. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Database from "better-sqlite3";
import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { threadId, userId } from "../../domain/ids.js";
import type { AckAction } from "../../domain/notification.js";
import { HOST } from "../../domain/principal.js";
import { ManualClock } from "../../platform/manual_clock.js";
import { audit } from "../audit.js";
import type { Stored } from "../contract.js";
import { acceptance } from "../contract.suite.js";
import type { SqliteStore } from "./store.js";
import { openWriter } from "./writer.suite.js";

const ALICE = userId("alice");
const START_MS = Date.UTC(2026, 0, 3);
const START_SECOND = START_MS / 1_000;

describe("the coarse index", () => {
  let folder: string;
  let clock: ManualClock;
  let store: SqliteStore;
  let outside: Database.Database;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "tidings-hints-"));
    clock = new ManualClock(START_MS);
    store = await openWriter(folder, clock);
    outside = new Database(join(folder, "tidings.db"), { readonly: true });
    onTestFinished(async () => {
      outside.close();
      expect((await audit(store)).problems).toEqual([]);
      await store.close();
      await rm(folder, { recursive: true, force: true });
    });
  });

  async function reopen(): Promise<void> {
    await store.close();
    store = await openWriter(folder, clock);
  }

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
    expect([blocks("inbox"), blocks("unread")]).toEqual([
      [0, 1],
      [0, 1],
    ]);
    await ack(some.slice(0, 1_022), "rendered");
    expect([blocks("inbox"), blocks("unread")]).toEqual([
      [0, 1],
      [0, 1],
    ]);
    await ack(some.slice(1_022, 1_023), "clicked");
    expect([blocks("inbox"), blocks("unread")]).toEqual([[1], [0, 1]]);
    await ack(some.slice(0, 1_021), "dismissed");
    expect(blocks("unread")).toEqual([0, 1]);
    await ack(some.slice(1_021, 1_022), "clicked");
    expect(blocks("unread")).toEqual([1]);
    await ack(some.slice(1_023), "clicked");
    expect([blocks("inbox"), blocks("unread")]).toEqual([[], []]);
    // Named again by the next one in the same block.
    await put(1);
    expect([blocks("inbox"), blocks("unread")]).toEqual([[1], [1]]);
  });

  it("of what is live or unread is looked after when nobody knows any more how much a block holds", async () => {
    const some = await put(20);
    await reopen();
    await ack(some.slice(0, 7), "clicked");
    // Counted here, and known from now on.
    await ack(some.slice(7, 8), "clicked");
    await ack(some.slice(8, 19), "clicked");
    expect([blocks("inbox"), blocks("unread")]).toEqual([[0], [0]]);
    await ack(some.slice(19), "clicked");
    expect([blocks("inbox"), blocks("unread")]).toEqual([[], []]);
  });

  it("of what is live or unread keeps a block in which something is that came before the store was opened", async () => {
    const before = await put(2);
    await reopen();
    await ack(await put(3), "clicked");
    expect([blocks("inbox"), blocks("unread")]).toEqual([[0], [0]]);
    const { stored } = await store.list(HOST, { user_id: ALICE, unread: true, limit: 10 });
    expect(stored.map(({ delivery }) => delivery.id)).toEqual(before.map(({ delivery }) => delivery.id).reverse());
  });

  it("of what is live or unread loses a name that a reader has followed in vain, with the next commit", async () => {
    const some = await put(3);
    await reopen();
    await ack(some, "clicked");
    expect([blocks("inbox"), blocks("unread")]).toEqual([[0], [0]]);
    await store.list(HOST, { user_id: ALICE, unread: true, limit: 10 });
    await store.list(HOST, { user_id: ALICE, state: "DISPATCHED", limit: 10 });
    expect([blocks("inbox"), blocks("unread")]).toEqual([[0], [0]]);
    await store.accept(HOST, acceptance());
    expect([blocks("inbox"), blocks("unread")]).toEqual([[], []]);
    // So does counting.
    const more = await put(3);
    await reopen();
    await ack(more, "clicked");
    expect(await store.counts(HOST, ALICE)).toMatchObject({ unacknowledged: 0, unread: 0 });
    await put(1);
    expect([blocks("inbox"), blocks("unread")]).toEqual([[0], [0]]);
    expect(await store.counts(HOST, ALICE)).toMatchObject({ unacknowledged: 1, unread: 1 });
  });

  it("of users lists what is theirs in a block when their next one begins, if it was seen from its beginning", async () => {
    const of = async (user: string, count: number) => {
      const user_id = userId(user);
      for (let made = 0; made < count; made += 1) await store.accept(HOST, acceptance({ user_id }, {}));
    };
    const members = () =>
      outside.prepare("SELECT key, block, hex(numbers) FROM blocks WHERE kind = 'u' ORDER BY 1, 2").raw().all();
    await of("ada", 2);
    await of("ben", 1);
    await put(1_019);
    await of("ada", 1);
    expect(members()).toEqual([
      ["ada", 0, ""],
      ["alice", 0, ""],
      ["ben", 0, ""],
    ]);
    await put(1);
    await of("ada", 1);
    // Of alice they are too many; of ben there is nothing new.
    expect(members()).toEqual([
      ["ada", 0, "01000200FF03"],
      ["ada", 1, ""],
      ["alice", 0, ""],
      ["alice", 1, ""],
      ["ben", 0, ""],
    ]);
    const listed = async (user: string) => (await store.list(HOST, { user_id: userId(user), limit: 10 })).stored.length;
    expect([await listed("ada"), await listed("ben")]).toEqual([4, 1]);
    await reopen();
    await put(1_022);
    await of("ada", 1);
    expect(members()).toContainEqual(["ada", 1, ""]);
    expect(members()).toContainEqual(["ada", 2, ""]);
    expect([await listed("ada"), await listed("ben")]).toEqual([5, 1]);
  });

  it("of what is live or unread loses with retention the names that nobody has looked after", async () => {
    const some = await put(3);
    await reopen();
    await ack(some, "clicked");
    const another = Array.from({ length: 1_100 }, () => acceptance({ user_id: userId("ada") }, {}));
    for (const one of await Promise.all(another.map((each) => store.accept(HOST, each))))
      await ack(
        one.matches.map(({ stored }) => stored),
        "clicked",
      );
    clock.advance(10_000);
    await store.prune(5_000);
    const kept = outside.prepare("SELECT count(*) FROM blocks WHERE key = 'alice' AND kind <> 'j'").pluck();
    expect(kept.get()).toBe(0);
  });

  it("of what is live leads to the oldest past any number of names that lead to nothing", async () => {
    await store.close();
    const writer = new Database(join(folder, "tidings.db"));
    writer.exec(`INSERT OR REPLACE INTO meta (key, value) VALUES ('last_number', '${200 * 1_024}');
      WITH RECURSIVE block (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM block WHERE n < 150)
      INSERT INTO blocks (kind, key, block) SELECT 'inbox', 'alice', n FROM block`);
    writer.close();
    store = await openWriter(folder, clock);
    await put(1);
    const oldest = [{ channel: "inbox", created_at: START_MS }];
    expect((await store.standing(HOST, null)).oldest).toEqual(oldest);
    expect((await store.standing(HOST, ALICE)).oldest).toEqual(oldest);
    expect((await store.figures()).oldest).toEqual(oldest);
  });

  it("of what is unread counts a conversation's own, however much the inbox holds", async () => {
    const thread_id = threadId("t");
    const axes = { address: "session", target: "user", handler: "system" } as const;
    const { matches } = await store.accept(HOST, acceptance({ thread_id }, { axes }));
    const shown = matches.map(({ stored }) => stored);
    await put(1_050);
    const unread = async () => (await store.threadSummaries(HOST, ALICE, null, 10)).map((one) => one.unread);
    expect(await unread()).toEqual([1]);
    await ack(shown, "rendered");
    expect(await unread()).toEqual([1]);
    await ack(shown, "clicked");
    expect(await unread()).toEqual([0]);
  });

  it("of what is unread loses what retention removes", async () => {
    await ack(await put(3), "rendered");
    clock.advance(10_000);
    expect(await store.prune(5_000)).toMatchObject({ notifications: 3 });
    expect(blocks("unread")).toEqual([]);
  });
});
