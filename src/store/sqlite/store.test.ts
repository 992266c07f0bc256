import { mkdtemp, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Database from "better-sqlite3";
import { describe, expect, it, onTestFinished } from "vitest";
import type { Axes } from "../../domain/axes.js";
import { notificationId, subscriberId, threadId, userId } from "../../domain/ids.js";
import { HOST } from "../../domain/principal.js";
import { allowedMoves, STATES } from "../../domain/transitions.js";
import { ManualClock } from "../../platform/manual_clock.js";
import { audit } from "../audit.js";
import { carrierContract } from "../carriers.suite.js";
import { acceptance } from "../contract.suite.js";
import { plainCompose } from "../editor.suite.js";
import { openSqliteStore, type SqliteStore } from "./store.js";
import { openWriter } from "./writer.suite.js";

const OWN_DECIDE: Axes = { address: "user", target: "agent", handler: "agent" };

async function temporaryFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "tidings-sqlite-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

async function open(folder: string, clock = new ManualClock(Date.UTC(2026, 0, 3))): Promise<SqliteStore> {
  const store = await openWriter(folder, clock);
  onTestFinished(() => store.close());
  return store;
}

/** Another connection to the same file, as an operator with the sqlite3 shell would have. */
function alongside(folder: string): Database.Database {
  const connection = new Database(join(folder, "tidings.db"));
  onTestFinished(() => {
    connection.close();
  });
  return connection;
}

carrierContract("SQLite", async () => {
  const folder = await mkdtemp(join(tmpdir(), "tidings-carriers-"));
  return {
    open: ({ clock, policy, editor }) => openSqliteStore({ folder, policy, clock, editor, mode: "write", waitMs: 0 }),
    remove: () => rm(folder, { recursive: true, force: true }),
  };
});

describe("the last line of defence", () => {
  it("allows the moves of the grid and no others, whoever writes (I4)", async () => {
    const folder = await temporaryFolder();
    const store = await open(folder);
    await store.accept(HOST, acceptance({}, {}));
    const outside = alongside(folder);
    const allowed = new Set(allowedMoves().map((move) => move.join(">")));
    const guard = outside
      .prepare("SELECT sql FROM sqlite_schema WHERE name = 'deliveries_guard'")
      .pluck()
      .get() as string;
    outside.exec("DROP TRIGGER deliveries_guard");
    const setState = outside.prepare("UPDATE deliveries SET state = ?");
    for (const from of STATES)
      for (const to of STATES) {
        setState.run(from);
        outside.exec(guard);
        const move = () => setState.run(to);
        if (from === to || allowed.has(`${from}>${to}`)) expect(move, `${from}>${to}`).not.toThrow();
        else expect(move, `${from}>${to}`).toThrow("illegal change of a delivery");
        outside.exec("DROP TRIGGER deliveries_guard");
      }
  });

  it("never lets a lease epoch fall (I2)", async () => {
    const folder = await temporaryFolder();
    const store = await open(folder);
    await store.accept(HOST, acceptance({}, {}));
    const outside = alongside(folder);
    outside.exec("UPDATE deliveries SET lease_epoch = 5");
    expect(() => outside.exec("UPDATE deliveries SET lease_epoch = 4")).toThrow("illegal change of a delivery");
    expect(() => outside.exec("UPDATE deliveries SET state = 'LOST'")).toThrow();
  });
});

describe("all or nothing (I7)", () => {
  const BREAKS = [
    ["journal", "INSERT"],
    ["notifications", "INSERT"],
    ["deliveries", "INSERT"],
    ["deliveries", "UPDATE"],
    ["producer_ids", "INSERT"],
    ["merged_events", "INSERT"],
    ["blocks", "INSERT"],
    ["leases", "INSERT"],
    ["threads", "INSERT"],
  ] as const;

  it.each(BREAKS)("when %s refuses an %s, the store stops, and what was answered is whole", async (table, verb) => {
    const folder = await temporaryFolder();
    const store = await open(folder);
    const keyed = { dedupe_key: "k", user_id: userId("kept") };
    const before = [
      await store.accept(HOST, acceptance({ producer_id: "1" }, {})),
      await store.accept(HOST, acceptance(keyed, { axes: OWN_DECIDE })),
    ];
    const outside = alongside(folder);
    outside.exec(
      `CREATE TRIGGER breaks BEFORE ${verb} ON ${table} BEGIN SELECT RAISE(ABORT, 'broken on purpose'); END`,
    );
    const claim = { user_id: keyed.user_id, limit: 5, owner: "turn", lease_ms: 1_000 };
    const attempts = await Promise.allSettled([
      store.accept(HOST, acceptance(keyed, { axes: OWN_DECIDE, content: "other words" })),
      store.claim(HOST, claim),
      store.accept(HOST, acceptance({ producer_id: "2", user_id: userId("new"), thread_id: threadId("t") }, {})),
    ]);
    expect(attempts.map((attempt) => attempt.status)).toEqual(["rejected", "rejected", "rejected"]);
    await expect(store.accept(HOST, acceptance({}, {}))).rejects.toMatchObject({ code: "store_io" });
    await expect(store.list(HOST, { limit: 1 })).rejects.toMatchObject({ code: "store_io" });
    await store.close();
    outside.exec("DROP TRIGGER breaks");
    const again = await open(folder);
    const report = await audit(again);
    expect(report).toMatchObject({ ok: true, problems: [], checked: { events: 2, notifications: 2 } });
    for (const { event_id } of before) expect(await again.eventEntry(HOST, event_id)).toBeDefined();
    expect(await again.accept(HOST, acceptance({ producer_id: "1" }, {}))).toMatchObject({ outcome: "duplicate" });
  });
});

describe("all or nothing of a carrier (I7)", () => {
  const CONTEXT: Axes = { address: "session", target: "agent", handler: "system" };
  const COLLECT = {
    user_id: userId("alice"),
    thread_id: threadId("t"),
    point: "turn_start",
    limit: 5,
    owner: "turn",
    lease_ms: 1_000,
    auto_settle: false,
    awareness_alone: false,
    compose: plainCompose,
  } as const;
  const BREAKS = [
    ["carriers", "INSERT"],
    ["carrier_items", "INSERT"],
    ["carriers", "UPDATE"],
    ["carrier_items", "UPDATE"],
    ["leases", "DELETE"],
  ] as const;

  it.each(BREAKS)("when %s refuses an %s, the store stops, and what was answered is whole", async (table, verb) => {
    const folder = await temporaryFolder();
    const store = await open(folder);
    for (let item = 0; item < 2; item += 1)
      await store.accept(HOST, acceptance({ thread_id: COLLECT.thread_id }, { axes: CONTEXT }));
    const outside = alongside(folder);
    const first = verb === "INSERT" ? null : await store.collect(HOST, COLLECT);
    outside.exec(
      `CREATE TRIGGER breaks BEFORE ${verb} ON ${table} BEGIN SELECT RAISE(ABORT, 'broken on purpose'); END`,
    );
    const attempt = first === null ? store.collect(HOST, COLLECT) : store.settleCarrier(HOST, first.id, new Set());
    await expect(attempt).rejects.toMatchObject({ code: "store_io" });
    await store.close();
    outside.exec("DROP TRIGGER breaks");
    const again = await open(folder);
    expect(await audit(again)).toMatchObject({ ok: true, problems: [] });
    const carrier = first ?? (await again.collect(HOST, COLLECT));
    if (carrier === null) throw new Error("what was not collected is lost");
    expect(await again.settleCarrier(HOST, carrier.id, new Set())).toMatchObject({
      state: "sent",
      items: [{ state: "DELIVERED" }, { state: "DELIVERED" }],
    });
  });
});

describe("audit finds, of carriers", () => {
  const NARRATE: Axes = { address: "session", target: "user", handler: "agent" };
  const DAMAGES: [string, string, RegExp][] = [
    [
      "a carrier that nobody opened",
      "INSERT INTO carriers SELECT 1, substr(id, 1, 24) || '000000000001', user_id, thread_id, point, state, ended, lease_id, last_seq, turn_id, aware_seq, aware_inbox FROM carriers WHERE state = 'sent'",
      /no entry|carriers, and/,
    ],
    ["a lost carrier", "DELETE FROM carriers WHERE state = 'sent'", /the journal opens 2 carriers|no carrier/],
    ["a state that nothing led to", "UPDATE carriers SET state = 'void' WHERE state = 'sent'", /the journal says sent/],
    [
      "an end that nobody made",
      "UPDATE carriers SET ended = 'failed' WHERE ended = 'settled'",
      /journal says sent \(settled/,
    ],
    ["another point", "UPDATE carriers SET point = 'turn_end'", /its point is turn_end/],
    ["another thread's", "UPDATE carriers SET thread_id = 'other'", /another user than its thread|its thread_id is/],
    ["an item that is not in it", "DELETE FROM carrier_items WHERE position = 1", /and the journal says/],
    ["a fence that was moved", "UPDATE carrier_items SET lease_epoch = 7", /does not know what is held|journal says/],
    [
      "an outcome that nothing led to",
      "UPDATE carrier_items SET state = 'ESCALATED' WHERE state = 'DELIVERED'",
      /journal says/,
    ],
    ["a held one without a lease", "UPDATE carriers SET lease_id = NULL WHERE state = 'open'", /held without a lease/],
    ["an item of no carrier", "INSERT INTO carrier_items VALUES (77, 0, 1, 1, 1, NULL)", /belongs to no carrier/],
    ["a lease that holds too little", "UPDATE leases SET held = held - 1", /lease counts/],
  ];

  it.each(DAMAGES)("%s", async (_, sql, says) => {
    const folder = await temporaryFolder();
    const store = await open(folder);
    const thread_id = threadId("t");
    const request = {
      user_id: userId("alice"),
      thread_id,
      point: "turn_start",
      owner: "turn",
      lease_ms: 1_000,
    } as const;
    for (let item = 0; item < 4; item += 1) await store.accept(HOST, acceptance({ thread_id }, { axes: NARRATE }));
    const first = await store.collect(HOST, {
      ...request,
      limit: 2,
      auto_settle: false,
      awareness_alone: false,
      compose: plainCompose,
    });
    if (first === null) throw new Error("nothing was collected");
    await store.settleCarrier(HOST, first.id, new Set(first.items.map(({ delivery }) => delivery.id)));
    await store.collect(HOST, {
      ...request,
      limit: 2,
      auto_settle: false,
      awareness_alone: false,
      compose: plainCompose,
    });
    expect((await audit(store)).problems).toEqual([]);
    await store.close();
    const outside = alongside(folder);
    expect(outside.prepare(sql).run().changes).toBeGreaterThan(0);
    const report = await audit(await open(folder));
    expect(report.ok).toBe(false);
    expect(report.problems.map((problem) => problem.message).join("\n")).toMatch(says);
  });
});

describe("audit finds, of what was used", () => {
  const DAMAGES: [string, string, RegExp][] = [
    ["a thread that used less", "UPDATE thread_usage SET input = input - 1", /used 9 \+ 1 tokens.*says 10 \+ 1 tokens/],
    ["a thread that is forgotten", "DELETE FROM thread_usage", /used 0 \+ 0 tokens.*says 10 \+ 1 tokens/],
    ["a day with a call more", "UPDATE day_usage SET calls = calls + 1", /2 calls.*says.* 1 calls/],
    ["a day that is forgotten", "DELETE FROM day_usage", /used 0 \+ 0 tokens.*says 10 \+ 1 tokens/],
  ];

  it.each(DAMAGES)("%s", async (_, sql, says) => {
    const folder = await temporaryFolder();
    const store = await open(folder);
    const thread_id = threadId("t");
    await store.startThread(HOST, userId("alice"), thread_id);
    const begun = await store.beginTurn(HOST, {
      thread_id,
      turn_id: null,
      source: "user",
      content: "hello",
      point: "turn_start",
      limit: 1,
      compose: plainCompose,
      owner: "hosted",
      lease_ms: 1_000,
      succeeds: null,
    });
    if (begun === null) throw new Error("it did not begin");
    const spent = { input: 10, output: 1, calls: 1, time_ms: 5 };
    await store.endTurn(HOST, { turn_id: begun.turn.id, state: "completed", items: [], note: null, spent });
    expect((await audit(store)).problems).toEqual([]);
    await store.close();
    expect(alongside(folder).prepare(sql).run().changes).toBeGreaterThan(0);
    const report = await audit(await open(folder));
    expect(report.problems.map(({ message }) => message).join("\n")).toMatch(says);
  });
});

describe("group commit", () => {
  it("puts a burst into slices and lets others in between (I19)", async () => {
    const store = await open(await temporaryFolder());
    const commits: number[] = [];
    store.onCommit((lastSeq) => commits.push(lastSeq));
    const burst = Array.from({ length: 1_000 }, () => store.accept(HOST, acceptance({ source: "loud" }, {})));
    const quiet = await store.accept(HOST, acceptance({ source: "quiet" }, {}));
    expect(quiet.seq).toBeLessThanOrEqual(64);
    await Promise.all(burst);
    const sizes = commits.map((seq, index) => seq - (commits[index - 1] ?? 0));
    expect(Math.max(...sizes)).toBeLessThanOrEqual(64);
    expect(commits.at(-1)).toBe(1_001);
  });

  it("serves every source of many in turn", async () => {
    const store = await open(await temporaryFolder());
    const waiting: Promise<{ source: string; seq: number }>[] = [];
    for (let source = 0; source < 100; source += 1)
      for (let index = 0; index < 5; index += 1)
        waiting.push(
          store
            .accept(HOST, acceptance({ source: `s${source}` }, {}))
            .then(({ seq }) => ({ source: `s${source}`, seq })),
        );
    const order = (await Promise.all(waiting)).sort((one, other) => one.seq - other.seq).map(({ source }) => source);
    for (let round = 0; round < 5; round += 1)
      expect(new Set(order.slice(round * 100, round * 100 + 100)).size).toBe(100);
  });

  it("writes nothing for a miss", async () => {
    const store = await open(await temporaryFolder());
    await store.accept(HOST, acceptance({}, {}));
    const before = await store.lastSeq();
    await store.command(HOST, {
      id: notificationId("none"),
      command: { column: "settle", epoch: 1 },
      operation: "settle",
    });
    await store.claim(HOST, { user_id: userId("nobody"), limit: 1, owner: "turn", lease_ms: 1 });
    expect(await store.sweep(10)).toBe(0);
    expect(await store.lastSeq()).toBe(before);
  });
});

describe("the files", () => {
  it("are the owner's alone (T22)", async () => {
    const folder = join(await temporaryFolder(), "data");
    const store = await open(folder);
    await store.accept(HOST, acceptance({}, {}));
    const mode = async (path: string) => (await stat(path)).mode & 0o777;
    expect(await mode(folder)).toBe(0o700);
    for (const name of ["tidings.db", "tidings.db-wal", "tidings.db-shm", "writer.lock", "writer.pid"])
      expect(await mode(join(folder, name)), name).toBe(0o600);
  });

  it("say that every commit is flushed", async () => {
    const store = await open(await temporaryFolder());
    await store.accept(HOST, acceptance({}, {}));
    expect(await store.facts()).toMatchObject({
      engine: "sqlite",
      synchronous: "FULL",
      schema_version: 15,
      last_seq: 1,
    });
  });
});

describe("audit finds", () => {
  /** Each breaks one promise behind the store's back; audit must name it. */
  const DAMAGES: [string, string, RegExp][] = [
    [
      "a state that nothing led to",
      "UPDATE deliveries SET state = 'DELIVERED', live = 0, unread = 1, due_at = NULL WHERE number = 1",
      /the ledger says/,
    ],
    [
      "a count that was raised",
      "UPDATE deliveries SET count = count + 1 WHERE number = 1",
      /count disagrees|ledger says/,
    ],
    ["a lost journal entry", "DELETE FROM journal WHERE seq = 2", /gap|nowhere in the journal/],
    ["a lost notification", "DELETE FROM deliveries WHERE number = 2", /no delivery|not in the ledger/],
    ["changed words", "UPDATE notifications SET content = 'other' WHERE number = 1", /ledger says/],
    [
      "a user's item moved to another",
      "UPDATE deliveries SET user_id = 'mallory' WHERE number = 1",
      /belongs to mallory|coarse index/,
    ],
    ["a flag that lies", "UPDATE deliveries SET live = 0 WHERE number = 1", /`live`/],
    ["a deadline that nobody watches", "DELETE FROM due", /not in the watchdog's index/],
    ["a live one that no list finds", "DELETE FROM blocks WHERE kind = 'inbox'", /live notification is not/],
    ["one for the user that no list finds", "DELETE FROM blocks WHERE kind = 'unread'", /unread notification is not/],
    ["one that a block's list leaves out", "UPDATE blocks SET numbers = x'' WHERE kind = 'u'", /list of its block/],
    ["an epoch that nobody gave", "UPDATE deliveries SET lease_epoch = 9 WHERE number = 1", /ledger says/],
    ["time that ran back", "UPDATE journal SET at = at - 100000 WHERE seq = 3", /older than the entry before/],
    ["a thread of another user", "UPDATE threads SET user_id = 'mallory'", /names the thread/],
    ["a lease without its holder", "INSERT INTO leases VALUES ('x', 'alice', 'turn', 0, 1)", /lease counts/],
    ["a thread that nobody closed", "UPDATE threads SET state = 'closed'", /the journal says open/],
    [
      "budgets that nobody gave",
      `UPDATE threads SET budgets = '{"tokens":1,"iterations":null,"time_ms":null}'`,
      /other budgets than the journal says/,
    ],
    ["an observation that nobody made", "INSERT INTO observations VALUES ('t', 'h', 1)", /observation disagrees/],
    [
      "an entry that was edited",
      `UPDATE journal SET body = replace(body, '"PENDING","DISPATCHED"', '"PENDING","FAILED"') WHERE seq = 1`,
      /ledger says/,
    ],
  ];

  it.each(DAMAGES)("%s", async (_, sql, says) => {
    const folder = await temporaryFolder();
    const store = await open(folder);
    await store.accept(HOST, acceptance({}, {}));
    await store.accept(HOST, acceptance({}, { subscriber_id: subscriberId("other") }));
    await store.accept(HOST, acceptance({ thread_id: threadId("t") }, {}));
    expect((await audit(store)).problems).toEqual([]);
    await store.close();
    const outside = alongside(folder);
    outside.pragma("foreign_keys = OFF");
    outside.exec(sql);
    const report = await audit(await open(folder));
    expect(report.ok).toBe(false);
    expect(report.problems.map((problem) => problem.message).join("\n")).toMatch(says);
  });
});

describe("a batch that was open when the process was killed", () => {
  it("is open when the store is opened again: its rows count, further ones are added, and its window ends it (I6, I14)", async () => {
    const clock = new ManualClock(Date.UTC(2026, 0, 3));
    const before = await open(await temporaryFolder(), clock);
    const batched = {
      content: null,
      batch: { window_ms: 2_000, max_size: 10 },
      axes: { address: "session", target: "agent", handler: "system" },
    } as const;
    const emit = (store: SqliteStore, tool: string) =>
      store.accept(HOST, acceptance({ payload: { tool } }, { ...batched, dedupe_key: tool }));
    const [made] = (await emit(before, "a")).matches;
    await emit(before, "b");
    // What a kill leaves behind: the file as it is now, and nobody who closes anything.
    const folder = await temporaryFolder();
    await before.backup(join(folder, "tidings.db"));

    const after = await open(folder, clock);
    const id = made?.stored.delivery.id ?? notificationId("none");
    expect((await after.get(HOST, id))?.delivery).toMatchObject({ state: "PENDING", rows: 2, count: 2 });
    expect((await emit(after, "b")).matches[0]).toMatchObject({ outcome: "merged", stored: { delivery: { id } } });
    expect((await emit(after, "c")).matches[0]).toMatchObject({ outcome: "batched", stored: { delivery: { id } } });
    clock.advance(2_000);
    expect(await after.sweep(10)).toBe(1);
    const closed = await after.get(HOST, id);
    expect(closed?.delivery).toMatchObject({ rows: 3, count: 4, open_until: null, revision: 1 });
    expect(closed?.notification.content.split("\n").map((line) => line.slice(0, 33))).toEqual([
      'tool.call.failure {"tool":"a"} ×1',
      'tool.call.failure {"tool":"b"} ×2',
      'tool.call.failure {"tool":"c"} ×1',
    ]);
    expect((await audit(after)).problems).toEqual([]);
  });
});
