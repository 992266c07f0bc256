/**
 * Costs do not grow with history: no query of the product reads more of a table than it answers. Every statement that
 * the store prepares while it is used is recorded, and SQLite is asked for its plan.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Database from "better-sqlite3";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Axes } from "../../domain/axes.js";
import { CHANNELS } from "../../domain/axes.js";
import { isMiss } from "../../domain/errors.js";
import { type ThreadId, threadId, userId } from "../../domain/ids.js";
import type { Operation } from "../../domain/journal.js";
import { DEFAULT_POLICY } from "../../domain/policy.js";
import { HOST, userPrincipal } from "../../domain/principal.js";
import type { Command } from "../../domain/reducer.js";
import { RESOLUTIONS } from "../../domain/series.js";
import { STATES } from "../../domain/transitions.js";
import { ManualClock } from "../../platform/manual_clock.js";
import type { Claim, ListFilter, Stored } from "../contract.js";
import { acceptance } from "../contract.suite.js";
import { PlainEditor, plainCompose } from "../editor.suite.js";
import { restoreFrom } from "./backup.js";
import { DATABASE_FILE } from "./database.js";
import { openSqliteStore, type SqliteStore } from "./store.js";

const DAY_MS = 86_400_000;
const ALICE = userId("alice");
const THREAD = threadId("one");
const CLOSED = threadId("two");

const INBOX: Axes = { address: "user", target: "user", handler: "system" };
const FLOOR: Axes = { address: "session", target: "user", handler: "system" };
const NARRATE: Axes = { address: "session", target: "user", handler: "agent" };
const CONTEXT: Axes = { address: "session", target: "agent", handler: "system" };
const OWN_DECIDE: Axes = { address: "user", target: "agent", handler: "agent" };

/** Runs `use` and answers every statement that was prepared meanwhile. Watches; changes nothing. */
async function recorded(use: () => Promise<void>): Promise<Set<string>> {
  const statements = new Set<string>();
  const prototype = Database.prototype as { prepare: Database.Database["prepare"] };
  const { prepare } = prototype;
  prototype.prepare = function (this: Database.Database, sql: string) {
    statements.add(sql.replace(/\s+/g, " ").trim());
    return prepare.call(this, sql);
  } as Database.Database["prepare"];
  try {
    await use();
  } finally {
    prototype.prepare = prepare;
  }
  return statements;
}

/** Uses everything that a store can do. Apart from `audit`, which reads everything: that is what it is for. */
async function useAll(folder: string): Promise<void> {
  const clock = new ManualClock(Date.UTC(2026, 0, 3));
  const options = { folder, policy: DEFAULT_POLICY, clock, editor: new PlainEditor(), waitMs: 0 };
  const store = await openSqliteStore({ ...options, mode: "write" });
  const put = async (event: Parameters<typeof acceptance>[0], axes: Axes): Promise<Stored> => {
    const { matches } = await store.accept(HOST, acceptance({ user_id: ALICE, ...event }, { axes }));
    const [match] = matches;
    if (match === undefined) throw new Error("nothing was made of the event");
    return match.stored;
  };
  const run = (one: Stored, command: Command, operation: Operation) =>
    store.command(HOST, { id: one.delivery.id, command, operation });
  const claim = (limit: number): Promise<Claim> =>
    store.claim(HOST, { user_id: ALICE, thread_id: THREAD, limit, owner: "agent", lease_ms: 60_000 });

  // Enough for several blocks.
  await store.acceptMany(
    HOST,
    Array.from({ length: 2_100 }, () => acceptance({ user_id: ALICE }, { axes: INBOX })),
  );
  await store.startThread(HOST, ALICE, THREAD);
  await store.startThread(HOST, ALICE, CLOSED);

  // Accepted, again, and merged.
  const shown = await put({ producer_id: "p1" }, INBOX);
  await put({ producer_id: "p1" }, INBOX);
  const merged = await put({ dedupe_key: "k", thread_id: THREAD }, CONTEXT);
  await store.accept(
    HOST,
    acceptance({ user_id: ALICE, dedupe_key: "k", thread_id: THREAD }, { axes: CONTEXT, content: "other words" }),
  );

  // By the user.
  await run(shown, { column: "ack", revision: 1, action: "rendered" }, "ack");
  await run(shown, { column: "ack", revision: 1, action: "clicked" }, "ack");

  // By the agent.
  for (const axes of [NARRATE, NARRATE, NARRATE, CONTEXT]) await put({ thread_id: THREAD, subject: "handle#1" }, axes);
  await put({}, OWN_DECIDE);
  const { lease, claimed } = await claim(4);
  if (lease === null) throw new Error("nothing was claimed");
  await store.renew(HOST, lease.id, 120_000);
  const columns: readonly ((epoch: number) => [Command, Operation])[] = [
    (epoch) => [{ column: "settle", epoch }, "settle"],
    (epoch) => [{ column: "release", epoch }, "release"],
    (epoch) => [{ column: "escalate", epoch, reason: "promoted", note: "mail" }, "escalate"],
  ];
  for (const [index, column] of columns.entries()) {
    const held = claimed[index];
    if (held === undefined) throw new Error("too little was claimed");
    expect(isMiss(await run(held, ...column(held.delivery.lease_epoch)))).toBe(false);
  }
  await store.claim(HOST, { user_id: ALICE, ids: [merged.delivery.id], limit: 1, owner: "agent", lease_ms: 1_000 });
  await store.observe(userPrincipal(ALICE), THREAD, "handle#1");
  const collect = async (thread_id: ThreadId, auto_settle: boolean) => {
    await store.isReady(HOST, thread_id, "turn_end");
    const request = {
      user_id: ALICE,
      thread_id,
      point: "turn_end",
      limit: 2,
      owner: "agent",
      lease_ms: 60_000,
    } as const;
    const carrier = await store.collect(HOST, {
      ...request,
      auto_settle,
      awareness_alone: true,
      compose: plainCompose,
    });
    if (carrier === null) throw new Error("nothing was collected");
    return carrier.id;
  };
  for (const axes of [NARRATE, CONTEXT, CONTEXT, CONTEXT, CONTEXT]) await put({ thread_id: THREAD }, axes);
  await store.renewCarrier(HOST, await collect(THREAD, true), 90_000);
  await store.failCarrier(HOST, await collect(THREAD, false), "no answer");
  clock.advance(2_000);
  await store.settleCarrier(HOST, await collect(THREAD, false), new Set());
  await put({ thread_id: THREAD }, CONTEXT);
  await collect(THREAD, false);
  for (const axes of [FLOOR, NARRATE, CONTEXT]) await put({ thread_id: CLOSED }, axes);
  await collect(CLOSED, false);
  await store.closeThread(HOST, CLOSED);
  await useTurns(store, put);

  // Dead letters: nobody looks for a week.
  clock.advance(8 * DAY_MS);
  while ((await store.sweep(64)) > 0);
  const [dead] = (await store.list(HOST, { state: "FAILED", limit: 1 })).stored;
  if (dead === undefined) throw new Error("nothing died");
  await store.redrive(HOST, dead.delivery.id);
  clock.jump(DAY_MS);

  while (!(await store.addUp(256)).end);
  await readAll(store, shown, dead);
  const pruned = await store.prune(DAY_MS);
  expect(pruned.notifications).toBeGreaterThan(0);
  const copy = join(folder, "backup.db");
  await store.backup(copy);
  await store.close();
  await restoreFrom(copy, join(folder, "restored"), false, 0);

  const again = await openSqliteStore({ ...options, mode: "write" });
  await again.facts();
  await again.figures();
  await again.close();
  const reader = await openSqliteStore({ ...options, mode: "read" });
  await readAll(reader, shown, dead);
  await reader.close();
}

type Put = (event: Parameters<typeof acceptance>[0], axes: Axes) => Promise<Stored>;

/** What the turns of a hosted agent need. */
async function useTurns(store: SqliteStore, put: Put): Promise<void> {
  const thread_id = threadId("hosted");
  await store.startThread(HOST, ALICE, thread_id);
  for (const axes of [FLOOR, NARRATE, CONTEXT]) await put({ thread_id }, axes);
  const begin = {
    thread_id,
    source: "user",
    content: "hello",
    point: "turn_start",
    limit: 9,
    owner: "hosted",
  } as const;
  const more = { turn_id: null, compose: plainCompose, lease_ms: 60_000, succeeds: null };
  const first = await store.beginTurn(HOST, { ...begin, ...more });
  if (first?.carrier == null) throw new Error("nothing was told");
  await store.sendCarrier(HOST, first.carrier.id, "developer");
  await store.renewTurn(HOST, first.turn.id, 90_000);
  const collect = { point: "after_tool", limit: 9, compose: plainCompose } as const;
  const spent = { input: 1, output: 1, calls: 1, time_ms: 1 };
  await store.stepTurn(HOST, { turn_id: first.turn.id, items: [], collect, spent, observed: ["handle:build#gen-1"] });
  const succeeds = { turn_id: first.turn.id, items: [], note: null };
  const second = await store.beginTurn(HOST, { ...begin, ...more, succeeds });
  if (second === null) throw new Error("it did not begin");
  const handle = { thread_id, id: "build", tool: "shell", detail: {} } as const;
  await store.recordHandle(HOST, { ...handle, state: "running" });
  await store.recordHandle(HOST, { ...handle, state: "stopped" });
  await store.handle(HOST, thread_id, "build");
  await store.handles(null, 10);
  await store.usage(HOST, thread_id);
  await store.threadUsage(null, 10);
  await store.dayUsage(null, 10);
  await store.forgetHandles(HOST, thread_id, { retention_ms: 0, kept: 10, chars: 10 });
  const state = { size: 1, mtime_ms: 1, hash: "x" };
  const place = { thread_id, user_id: ALICE, folder: "/work", path: "a.txt" };
  const known = { ...place, seen: state, announced: null, generation: 1, at: 1 };
  await store.recordFiles(HOST, thread_id, [known], ["b.txt"]);
  await store.knownFiles(null, 10);
  await store.isPendingAbout(HOST, thread_id, "file:a.txt#gen-1");
  const look = { digest: "1", description: "Reads", input_schema: {} };
  await store.seeMcpTools([{ server: "files", tool: "read", look, by: null }]);
  await store.approveMcpTool("files", "read", null);
  await store.mcpTools(null, 10);
  await store.queueTurn(HOST, thread_id, "later");
  const { id } = await store.queueTurn(HOST, thread_id, "never");
  await store.editQueued(HOST, id, null);
  await store.endTurn(HOST, { turn_id: second.turn.id, state: "completed", items: [], note: null });
  await store.pauseThread(HOST, thread_id);
  await put({ thread_id }, NARRATE);
  await store.resumeThread(HOST, thread_id);
  await put({ thread_id }, CONTEXT);
  await store.beginTurn(HOST, { ...begin, ...more });
  await store.waiting(HOST, ALICE);
  await store.waiting(HOST, null);
  await store.liveTurns(HOST, thread_id);
  await store.liveTurns(HOST, null);
  await store.conversation(HOST, thread_id, 0, 10);
  await store.floor(HOST, thread_id, 0, 10);
  await store.conversationBefore(HOST, thread_id, 1_000_000, 10);
  await store.floorBefore(HOST, thread_id, 1_000_000, 1);
  await store.threadSummaries(HOST, ALICE, null, 10);
  const [latest] = await store.threadsOf(HOST, ALICE, null, 1);
  await store.threadsOf(HOST, ALICE, latest?.id ?? null, 1);
}

async function readAll(store: SqliteStore, shown: Stored, dead: Stored): Promise<void> {
  const filters: Omit<ListFilter, "limit">[] = [{}, { user_id: ALICE }, { thread_id: THREAD }];
  for (const state of STATES)
    filters.push(
      { state },
      { user_id: ALICE, state },
      { thread_id: THREAD, state },
      { user_id: ALICE, channel: "inbox", state },
    );
  for (const channel of CHANNELS)
    filters.push({ channel }, { user_id: ALICE, channel }, { thread_id: THREAD, channel });
  filters.push({ user_id: ALICE, unread: true }, { user_id: ALICE, thread_id: THREAD, unread: true });
  for (const principal of [HOST, userPrincipal(ALICE)]) {
    for (const filter of filters) {
      const { next } = await store.list(principal, { ...filter, limit: 10 });
      if (next !== null) await store.list(principal, { ...filter, limit: 10, after: next });
    }
    await store.counts(principal, ALICE);
    await store.get(principal, shown.delivery.id);
    await store.events(principal, shown.event_ids);
    await store.story(principal, shown.delivery.id);
    await store.redrivenAs(principal, dead.delivery.id);
    await store.entries(principal, 0, 256);
  }
  await store.lastMatches(HOST, ALICE, shown.notification.subscriber_id, 5);
  for (const user_id of [ALICE, null]) {
    await store.standing(HOST, user_id);
    await store.series(HOST, user_id, RESOLUTIONS[0], 0, DAY_MS);
  }
  await store.lastSeq();
  await store.ledger(0, 100);
  await store.threads(null, 100);
  await store.thread(HOST, THREAD);
  await store.carriers(0, 100);
}

/** What SQLite would read for a statement that is not by itself bounded by what it answers, and why that is well. */
const EXCEPTIONS: readonly { readonly step: RegExp; readonly sql: RegExp; readonly because: string }[] = [
  {
    step: /^SCAN deliveries USING (COVERING )?INDEX deliveries_(dead|dead_of_user)$/,
    sql: /^SELECT (user_id, )?state, channel, count\(\*\) FROM deliveries WHERE state = 'FAILED' GROUP BY/,
    because: "the index holds only what is dead, which is counted once when figures are first asked for",
  },
  {
    step: /^(SCAN \(subquery-1\)|USE TEMP B-TREE FOR DISTINCT)$/,
    sql: /^SELECT .*count\(\*\) FROM \(SELECT DISTINCT block FROM blocks WHERE kind IN \('[^)]*'\)\) CROSS JOIN deliveries /,
    because: "it reads the blocks in which something is live, or unread, once when figures are first asked for",
  },
  {
    step: /^USE TEMP B-TREE FOR GROUP BY$/,
    sql: /^SELECT (user_id, )?state, channel, count\(\*\) FROM /,
    because: "as above; a row for each state and channel, and user",
  },
  {
    step: /^(SEARCH blocks USING PRIMARY KEY \(kind=\?\)|USE TEMP B-TREE FOR DISTINCT)$/,
    sql: /^SELECT DISTINCT block FROM blocks WHERE kind = \? AND block >= \? ORDER BY block LIMIT 64$/,
    because:
      "it goes through the names of blocks when all in the block of the oldest are settled, to find the next oldest",
  },
  {
    step: /^SCAN (4|16)-ROW VALUES CLAUSE$/,
    sql: /^INSERT INTO \w+ \([^)]*\) VALUES \(/,
    because: "it reads no table",
  },
  { step: /^SCAN CONSTANT ROW$/, sql: /^SELECT sqlite_version\(\)$/, because: "it reads no table" },
  {
    step: /^SCAN sqlite_master$/,
    sql: /^SELECT count/,
    because: "the schema is a few rows, counted when it is opened",
  },
  { step: /^SCAN meta$/, sql: /^SELECT count/, because: "it holds a handful of rows, counted when a reader opens" },
  {
    step: /^SCAN (journal|notifications)$/,
    sql: /ORDER BY (seq|number) DESC LIMIT 1$/,
    because: "it reads the one row at the end of the table",
  },
  {
    step: /^SCAN threads USING COVERING INDEX threads_closing$/,
    sql: /LIMIT 1$/,
    because: "the index holds only the threads that are being closed",
  },
  {
    step: /^SCAN d USING INDEX deliveries_open$/,
    sql: /WHERE d\.open_until IS NOT NULL$/,
    because: "the index holds only what is open, which is wanted whole when it is opened",
  },
  {
    step: /^SEARCH d USING INDEX deliveries_pending \(user_id=\? AND <expr>=\?\)$/,
    sql: /AND n\.subscriber_id = \? LIMIT 1$/,
    because: "it looks through what waits in one place when that is too much, to make it less",
  },
  {
    step: /^SEARCH (journal|deliveries) USING INTEGER PRIMARY KEY \(rowid>\? AND rowid<\?\)$/,
    sql: /^SELECT/,
    because: "it reads one block of 1024 rows, of which the coarse index says that it holds some of the key",
  },
  {
    step: /^SEARCH d USING INDEX deliveries_pending \(user_id=\? AND <expr>=\? AND priority=\?( AND number>\?)?\)$/,
    sql: /AND \(d\.not_before <= \? OR d\.quiet = \?\) AND instr\(\?, /,
    because: "of what waits for one agent it passes over what rests after a release, and what waits for another point",
  },
  {
    step: /^SEARCH c USING INDEX carriers_held \(thread_id=\?\)$/,
    sql: /AND l\.owner <> \? AND l\.expires_at > \? LIMIT 1$/,
    because: "the index holds only the carriers that are held, and those of a thread are one owner's",
  },
  {
    step: /^SCAN turns USING INDEX turns_live$/,
    sql: /WHERE live = 1 ORDER BY thread_id, seq$/,
    because: "the index holds only the turns that are queued or active, which are wanted whole when a host starts",
  },
  {
    step: /^SEARCH blocks USING PRIMARY KEY \(kind=\?\)$/,
    sql: /^DELETE FROM blocks WHERE kind = '\w+' AND block < \?/,
    because: "the end of a prune, which has read all that it removes, goes through the coarse index once",
  },
];

function planOf(connection: Database.Database, sql: string): string[] {
  const parameters = (sql.match(/\?/g) ?? []).map(() => null);
  const rows = connection.prepare(`EXPLAIN QUERY PLAN ${sql}`).all(...parameters) as { detail: string }[];
  return rows.map((row) => row.detail);
}

/**
 * The steps of a plan that read more than the statement's parameters select: scans, sorts, indexes made on the fly,
 * and searches that use fewer comparisons than the statement makes and filter the rest row by row. Without the last,
 * a missing index would go unseen: SQLite then searches by the range of a page's cursor, through everything.
 */
function excesses(sql: string, plan: readonly string[]): string[] {
  const where = sql.match(/ WHERE .*/)?.[0] ?? "";
  const parameters = where.match(/[=<>] \?|BETWEEN \? AND \?/g) ?? [];
  // An index may hold only the rows for which these are true; a table's own key holds all.
  const constants = where.match(/[=<>] ('[^']*'|[0-9]+)/g) ?? [];
  const first = plan.findIndex((step) => step.startsWith("SEARCH"));
  return plan.filter((step, index) => {
    if (/^SCAN|TEMP B-TREE|AUTOMATIC/.test(step)) return true;
    const isOneRow = /PRIMARY KEY \((rowid|id)=\?\)/.test(step);
    if (index !== first || isOneRow) return false;
    const used = step.match(/[=<>]\?/g) ?? [];
    const asked = step.includes("PRIMARY KEY") ? [...parameters, ...constants] : parameters;
    return used.length < asked.length;
  });
}

/** Indexes that hold a part of what another holds, by the same columns: without them more rows are read, by the same plan. */
const PARTS: ReadonlySet<string> = new Set(["deliveries_wakes"]);

function usersOf(connection: Database.Database, statements: ReadonlySet<string>, index: string): string[] {
  return [...statements].filter((sql) => planOf(connection, sql).some((step) => step.includes(` INDEX ${index} `)));
}

function problemsOf(connection: Database.Database, statements: ReadonlySet<string>): string[] {
  return [...statements].flatMap((sql) =>
    excesses(sql, planOf(connection, sql))
      .filter((step) => !EXCEPTIONS.some((exception) => exception.step.test(step) && exception.sql.test(sql)))
      .map((step) => `${step}: ${sql}`),
  );
}

describe("the plan of every statement", () => {
  let folder: string;
  let statements: ReadonlySet<string>;
  let connection: Database.Database;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "tidings-plans-"));
    statements = await recorded(() => useAll(folder));
    connection = new Database(join(folder, DATABASE_FILE));
  }, 60_000);

  afterAll(async () => {
    connection.close();
    await rm(folder, { recursive: true, force: true });
  });

  it("reads no more than the statement asks for, with data and without statistics", () => {
    const tables = connection.prepare("SELECT name FROM sqlite_schema WHERE name LIKE 'sqlite_stat%'").all();
    expect(tables).toEqual([]);
    expect(connection.prepare("SELECT count(*) > 500 FROM deliveries").pluck().get()).toBe(1);
    expect(problemsOf(connection, statements)).toEqual([]);
  });

  it("would say so if any index were missing", () => {
    const indexes = connection
      .prepare("SELECT name FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL")
      .pluck()
      .all() as string[];
    expect(indexes.length).toBeGreaterThan(0);
    const before = new Set(problemsOf(connection, statements));
    for (const index of indexes) {
      connection.exec(`BEGIN; DROP INDEX ${index}`);
      const more = problemsOf(connection, statements).filter((problem) => !before.has(problem));
      connection.exec("ROLLBACK");
      if (PARTS.has(index)) expect.soft(usersOf(connection, statements, index), index).not.toEqual([]);
      else expect.soft(more, `without ${index}`).not.toEqual([]);
    }
  });

  it("needs every exception that is listed here", () => {
    const all = [...statements].flatMap((sql) => excesses(sql, planOf(connection, sql)).map((step) => ({ sql, step })));
    for (const exception of EXCEPTIONS)
      expect
        .soft(
          all.some(({ sql, step }) => exception.step.test(step) && exception.sql.test(sql)),
          exception.because,
        )
        .toBe(true);
  });
});
