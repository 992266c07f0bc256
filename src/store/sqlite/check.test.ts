/** Audit compares every table with the journal, and the schema with what the migrations make: each damage is found, and only damage. */
import { join } from "node:path";
import Database from "better-sqlite3";
import { describe, expect, it, onTestFinished } from "vitest";
import { temporaryFolder } from "../../../test/support/folder.js";
import type { Axes } from "../../domain/axes.js";
import { subscriberId, threadId, userId } from "../../domain/ids.js";
import { DEFAULT_POLICY } from "../../domain/policy.js";
import { HOST } from "../../domain/principal.js";
import { isoTime } from "../../domain/time.js";
import { ManualClock } from "../../platform/manual_clock.js";
import { audit } from "../audit.js";
import { acceptance } from "../contract.suite.js";
import { PlainEditor } from "../editor.suite.js";
import { DATABASE_FILE } from "./database.js";
import { openSqliteStore, type SqliteStore } from "./store.js";

const START_MS = Date.UTC(2026, 0, 3);
const DAY_MS = 86_400_000;
const ALICE = userId("alice");
const THREAD = threadId("t");
const FLOOR: Axes = { address: "session", target: "user", handler: "system" };
const NARRATE: Axes = { address: "session", target: "user", handler: "agent" };
const CONTEXT: Axes = { address: "session", target: "agent", handler: "system" };

async function open(folder: string, clock: ManualClock): Promise<SqliteStore> {
  const editor = new PlainEditor();
  const store = await openSqliteStore({ folder, policy: DEFAULT_POLICY, clock, editor, mode: "write", waitMs: 0 });
  onTestFinished(() => store.close());
  return store;
}

/** Something in every table that the checks are about. The comments say in which entry. */
async function fill(store: SqliteStore, clock: ManualClock): Promise<void> {
  // 1: undated; 2: dated by its producer; 3: dated by its producer as the store would have.
  await store.accept(HOST, acceptance({ producer_id: "undated" }, {}));
  await store.accept(HOST, acceptance({ producer_id: "dated", timestamp: "2025-12-31T23:00:00.000Z" }, {}));
  await store.accept(HOST, acceptance({ producer_id: "now", timestamp: isoTime(clock.wall()) }, {}));
  // 4 opens the thread; 5 and 6 are for its agent, 7 holds the more urgent; 8 is shown, and acknowledged in 9.
  await store.startThread(HOST, ALICE, THREAD);
  const urgent = acceptance({ thread_id: THREAD, subject: "h_1#gen-2" }, { axes: NARRATE, priority: "high" });
  await store.accept(HOST, urgent);
  await store.accept(HOST, acceptance({ thread_id: THREAD, subject: "h_2" }, { axes: CONTEXT }));
  await store.claim(HOST, { user_id: ALICE, thread_id: THREAD, limit: 1, owner: "agent", lease_ms: DAY_MS });
  const { matches } = await store.accept(HOST, acceptance({ thread_id: THREAD }, { axes: FLOOR }));
  const command = { column: "ack", revision: 1, action: "rendered" } as const;
  for (const { stored } of matches) await store.command(HOST, { id: stored.delivery.id, command, operation: "ack" });
  // 10 and 11, the later one of which saw less.
  await store.observe(HOST, THREAD, "h_3#gen-4");
  await store.observe(HOST, THREAD, "h_3#gen-1");
  // 12 and 13 make tokens, 14 revokes one of them.
  const wanted = { user_id: ALICE, name: null, scopes: ["ingest", "read"], ttl_ms: null } as const;
  await store.createToken(HOST, { ...wanted, digest: "kept" });
  clock.advance(1_000);
  const { id } = await store.createToken(HOST, { ...wanted, digest: "revoked" });
  clock.advance(1_000);
  await store.revokeToken(HOST, id);
  // 15 and 16.
  for (const name of ["one", "zwei „drei“"])
    await store.updateSettings(HOST, { user_id: ALICE, disabled_subscribers: [subscriberId(name)] });
  // 17.
  await store.queueTurn(HOST, THREAD, "hello");
}

async function foundAfter(sql: string): Promise<string> {
  const folder = await temporaryFolder();
  const clock = new ManualClock(START_MS);
  const store = await open(folder, clock);
  await fill(store, clock);
  expect((await audit(store)).problems).toEqual([]);
  await store.close();
  damage(folder, sql);
  return (await audit(await open(folder, clock))).problems.map(({ message }) => message).join("\n");
}

function damage(folder: string, sql: string): void {
  const outside = new Database(join(folder, DATABASE_FILE));
  const before = outside.prepare("SELECT total_changes() + (SELECT schema_version FROM pragma_schema_version)").pluck();
  const untouched = before.get();
  outside.exec(sql);
  expect(before.get(), "it changes something").not.toBe(untouched);
  outside.close();
}

describe("audit finds, of what agents have observed,", () => {
  it.each([
    ["what is forgotten", "DELETE FROM observations", /observation disagrees.*t h_3/],
    ["a generation that nobody saw", "UPDATE observations SET generation = 5", /observation disagrees.*t h_3/],
    ["what nobody saw", "INSERT INTO observations VALUES ('t', 'h_9', 0)", /observation disagrees.*t h_9/],
    ["what is of no thread", "INSERT INTO observations VALUES ('none', 'h', 0)", /observation disagrees.*none h/],
  ])("%s", async (_, sql, says) => expect(await foundAfter(sql)).toMatch(says));
});

describe("audit finds, of producers' ids (I12),", () => {
  const OTHER = /a producer's id stands for another body, or for no event: tools /;
  it.each([
    ["the digest of another body", "UPDATE producer_ids SET digest = 'x' WHERE producer_id = 'undated'", OTHER],
    ["the same of a dated one", "UPDATE producer_ids SET digest = 'x' WHERE producer_id = 'dated'", OTHER],
    [
      "a dated one that is said to be undated",
      `UPDATE journal SET body = json_remove(body, '$.event.timestamp') WHERE seq = 2`,
      OTHER,
    ],
    ["another payload", `UPDATE journal SET body = replace(body, 'vault_search"', 'v"') WHERE seq = 1`, OTHER],
    [
      "an id without its event",
      `INSERT INTO producer_ids SELECT user_id, source, 'new', event_id, digest FROM producer_ids WHERE producer_id = 'now'`,
      OTHER,
    ],
    [
      "an id of an event that there is not",
      "INSERT INTO producer_ids VALUES ('alice', 'tools', 'new', '01b7f000-0000-7000-8000-0000000000ff', 'x')",
      OTHER,
    ],
    ["an id that is forgotten", "DELETE FROM producer_ids WHERE producer_id = 'now'", /is not kept with its event: 3/],
  ])("%s", async (_, sql, says) => expect(await foundAfter(sql)).toMatch(says));
});

describe("audit finds, of the journal (I5),", () => {
  it.each([
    ["a type that there is not", "UPDATE journal SET type = 'gossip' WHERE seq = 11", /"gossip", which there is not/],
    [
      "an event that is no event",
      "UPDATE journal SET type = 'delivery' WHERE seq = 1",
      /without operation.*with event/,
    ],
    ["a claim that is an event", "UPDATE journal SET type = 'event' WHERE seq = 7", /without event.*with operation/],
    ["a thread that is a turn", "UPDATE journal SET type = 'turn' WHERE seq = 4", /turn without turn_id/],
    ["an observation that is a carrier", "UPDATE journal SET type = 'carrier' WHERE seq = 10", /carrier without/],
    [
      "a token that is a setting",
      "UPDATE journal SET type = 'settings' WHERE seq = 13",
      /without disabled_subscribers/,
    ],
    ["a setting that is a tool", "UPDATE journal SET type = 'mcp_tool' WHERE seq = 15", /mcp_tool without server/],
    ["a body that says more", `UPDATE journal SET body = json_set(body, '$.by', 'me') WHERE seq = 4`, /thread with by/],
    ["a body that is not one", "UPDATE journal SET body = '[]' WHERE seq = 14", /token without action/],
    ["a body that cannot be read", "UPDATE journal SET body = '{' WHERE seq = 14", /entry cannot be read: 14/],
    ["one of a turn that cannot be read", "UPDATE journal SET body = '{' WHERE seq = 17", /entry cannot be read: 17/],
  ])("%s", async (_, sql, says) => expect(await foundAfter(sql)).toMatch(says));
});

describe("audit finds, of deliveries,", () => {
  it.each([
    ["another subject", "UPDATE deliveries SET subject = 'h_2' WHERE number = 4", /a delivery's subject.*: 4/],
    ["a subject with its generation", "UPDATE deliveries SET subject = 'h_1#gen-2' WHERE number = 4", /subject.*: 4/],
    ["a subject that is forgotten", "UPDATE deliveries SET subject = NULL WHERE number = 5", /subject.*: 5/],
    ["a subject of nothing", "UPDATE deliveries SET subject = 'h' WHERE number = 1", /a delivery's subject.*: 1/],
    ["another source", "UPDATE deliveries SET source = 'x' WHERE number = 5", /a delivery's source.*: 5/],
    ["a source that is forgotten", "UPDATE deliveries SET source = NULL WHERE number = 4", /a delivery's source.*: 4/],
    ["a source that is not counted", "UPDATE deliveries SET source = 'tools' WHERE number = 6", /source.*: 6/],
    ["another holder", "UPDATE leases SET owner = 'mallory'", /a lease and what it holds name different owners: 4/],
    ["a lease of what nobody holds", "UPDATE deliveries SET lease_id = 'x' WHERE number = 5", /lease or an owner.*: 5/],
    ["a holder of what nobody holds", "UPDATE deliveries SET owner = 'x' WHERE number = 5", /lease or an owner.*: 5/],
    ["another entry that showed it", "UPDATE floor_items SET seq = 1", /shown in t by entry 1.*says.* 8/],
    ["one that showed it too early", "UPDATE floor_items SET seq = seq - 1", /shown in t by entry 7.*says.* 8/],
    ["what is shown twice", "INSERT INTO floor_items VALUES ('t', 9, 6)", /listed twice/],
    ["what is shown in another thread", "INSERT INTO floor_items VALUES ('u', 8, 6)", /shown in u by entry 8/],
    ["what was never shown", "INSERT INTO floor_items VALUES ('t', 5, 4)", /shown in t by entry 5.*says never/],
    ["what is shown and not there", "INSERT INTO floor_items VALUES ('t', 5, 99)", /lists what is not there: 99/],
  ])("%s", async (_, sql, says) => expect(await foundAfter(sql)).toMatch(says));
});

describe("audit finds, of the schema,", () => {
  it.each([
    ["a guard that is gone", "DROP TRIGGER deliveries_guard", /trigger deliveries_guard is missing/],
    [
      "a guard that guards nothing",
      `DROP TRIGGER deliveries_guard;
       CREATE TRIGGER deliveries_guard BEFORE UPDATE ON deliveries WHEN 0 BEGIN SELECT RAISE(ABORT, 'never'); END`,
      /trigger deliveries_guard is not as/,
    ],
    ["an index that is gone", "DROP INDEX deliveries_thread", /index deliveries_thread is missing/],
    [
      "an index of other rows",
      "DROP INDEX deliveries_dead; CREATE INDEX deliveries_dead ON deliveries (number) WHERE state = 'failed'",
      /index deliveries_dead is not as/,
    ],
    ["a column more", "ALTER TABLE tokens ADD COLUMN note TEXT", /table tokens is not as/],
    [
      "a trigger of somebody else",
      "CREATE TRIGGER spy AFTER INSERT ON journal BEGIN UPDATE meta SET value = value; END",
      /trigger spy is not Tidings' own/,
    ],
  ])("%s", async (_, sql, says) => expect(await foundAfter(sql)).toMatch(says));

  it("nothing in what is written otherwise and means the same, or is somebody's own beside it", async () => {
    const index =
      "/* all of them */ CREATE  INDEX deliveries_dead\n ON deliveries (number) -- dead\n WHERE state = 'FAILED'";
    const own = "CREATE TABLE notes (text TEXT); CREATE INDEX notes_text ON notes (text)";
    expect(await foundAfter(`DROP INDEX deliveries_dead; ${index}; ${own}; ANALYZE`)).toBe("");
  });
});

describe("audit finds, of tokens and settings,", () => {
  const TOKEN = /a token is not as the journal says/;
  const SETTINGS = /a user's settings are not as the journal says: alice/;
  it.each([
    ["a token that is gone", "DELETE FROM tokens WHERE digest = 'kept'", TOKEN],
    ["one that is good again", "UPDATE tokens SET revoked_at = NULL", TOKEN],
    ["one that nobody revoked", "UPDATE tokens SET revoked_at = created_at WHERE digest = 'kept'", TOKEN],
    ["one that may do more", "UPDATE tokens SET scopes = 'ingest,read,admin' WHERE digest = 'kept'", TOKEN],
    ["one of somebody else", "UPDATE tokens SET user_id = 'mallory' WHERE digest = 'kept'", TOKEN],
    [
      "one that nobody made",
      "INSERT INTO tokens VALUES ('own', 'd', 'mallory', NULL, 'admin', 5, NULL, NULL)",
      /a token is not as the journal says: own/,
    ],
    ["settings that are gone", "DELETE FROM user_settings", SETTINGS],
    ["others than those chosen last", `UPDATE user_settings SET disabled_subscribers = '["one"]'`, SETTINGS],
    ["those that cannot be read", "UPDATE user_settings SET disabled_subscribers = '['", SETTINGS],
    ["those that nobody chose", `INSERT INTO user_settings VALUES ('bob', '["one"]')`, /settings are not.*: bob/],
  ])("%s", async (_, sql, says) => expect(await foundAfter(sql)).toMatch(says));
});

describe("audit of a store whose history is pruned", () => {
  /** Pruned so far that nothing but what is wanted is left below the floor, and with a token that is younger. */
  async function pruned(close: boolean): Promise<{ folder: string; clock: ManualClock }> {
    const folder = await temporaryFolder();
    const clock = new ManualClock(START_MS);
    const store = await open(folder, clock);
    await fill(store, clock);
    if (close) await store.closeThread(HOST, THREAD);
    clock.advance(10 * DAY_MS);
    while ((await store.sweep(64)) > 0);
    clock.advance(10 * DAY_MS);
    while ((await store.sweep(64)) > 0);
    await store.prune(DAY_MS);
    expect((await audit(store)).problems).toEqual([]);
    await store.accept(HOST, acceptance({}, {}));
    clock.advance(1_000);
    const wanted = { user_id: ALICE, name: null, scopes: ["ingest"], ttl_ms: null, digest: "young" } as const;
    await store.createToken(HOST, wanted);
    expect((await audit(store)).problems).toEqual([]);
    await store.close();
    return { folder, clock };
  }

  const problemsAfter = async (close: boolean, sql: string) => {
    const { folder, clock } = await pruned(close);
    damage(folder, sql);
    return (await audit(await open(folder, clock))).problems.map(({ message }) => message).join("\n");
  };

  it("misses nothing that retention has removed, and finds what it has not", async () => {
    const young = "UPDATE tokens SET revoked_at = created_at WHERE digest = 'young'";
    expect(await problemsAfter(true, young)).toMatch(/a token is not as the journal says/);
    expect(await problemsAfter(true, "DELETE FROM tokens WHERE digest = 'young'")).toMatch(/a token is not as/);
    expect(await problemsAfter(false, "DELETE FROM observations")).toMatch(/observation disagrees.*t h_3/);
  });
});
