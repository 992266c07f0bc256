/** Data folders of earlier versions are brought up to date, with everything in them. */
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";
import { expect, it } from "vitest";
import { temporaryFolder } from "../../../test/support/folder.js";
import { userId } from "../../domain/ids.js";
import { DEFAULT_POLICY } from "../../domain/policy.js";
import { HOST } from "../../domain/principal.js";
import { ManualClock } from "../../platform/manual_clock.js";
import { audit } from "../audit.js";
import { PlainEditor } from "../editor.suite.js";
import { APPLICATION_ID } from "./connection.js";
import { DATABASE_FILE } from "./database.js";
import { SCHEMA_VERSION } from "./migrate.js";
import { openSqliteStore } from "./store.js";

const ROWS = readFileSync(new URL("../../../test/fixtures/version_1.sql", import.meta.url), "utf8");
const SCHEMA = readFileSync(new URL("./migrations/0001_spine.sql", import.meta.url), "utf8");

function makeVersionOne(folder: string): number {
  mkdirSync(folder, { recursive: true });
  const database = new Database(join(folder, DATABASE_FILE));
  database.exec(SCHEMA);
  database.exec(ROWS);
  database.pragma(`application_id = ${APPLICATION_ID}`);
  database.pragma("user_version = 1");
  const newest = database.prepare("SELECT max(at) FROM journal").pluck().get() as number;
  database.close();
  return newest;
}

it("version 1 keeps its ledger, its lists and its deadlines (I5, I8)", async () => {
  const folder = await temporaryFolder();
  const clock = new ManualClock(makeVersionOne(folder));
  const store = await openSqliteStore({
    folder,
    policy: DEFAULT_POLICY,
    clock,
    editor: new PlainEditor(),
    mode: "write",
    waitMs: 0,
  });
  try {
    expect((await audit(store)).problems).toEqual([]);
    expect(await store.facts()).toMatchObject({ schema_version: SCHEMA_VERSION });
    const states = async (user: string) =>
      (await store.list(HOST, { user_id: userId(user), limit: 50 })).stored.map(
        ({ delivery: { state, channel } }) => `${state} ${channel}`,
      );
    expect(await states("ada")).toEqual([
      "FAILED inbox",
      "PENDING agent",
      "PENDING agent",
      "PENDING context",
      "DISPATCHED floor",
      "DELIVERED inbox",
      "DELIVERED inbox",
      "DISPATCHED inbox",
    ]);
    expect(await store.counts(HOST, userId("ada"))).toMatchObject({ unacknowledged: 2, unread: 3 });
    expect(await store.counts(HOST, userId("ben"))).toMatchObject({ unacknowledged: 5, unread: 5 });
    const waiting = { user_id: userId("ben"), unacknowledged: true, limit: 50 };
    expect((await store.list(HOST, waiting)).stored).toHaveLength(5);
    // Whatever was due, and whatever was held, ends.
    clock.advance(8 * 86_400_000);
    while ((await store.sweep(64)) > 0);
    clock.advance(8 * 86_400_000);
    while ((await store.sweep(64)) > 0);
    const live = [...(await states("ada")), ...(await states("ben"))].filter((one) => !/^(DEL|FAI|SUP)/.test(one));
    expect(live).toEqual([]);
    expect((await audit(store)).problems).toEqual([]);
  } finally {
    await store.close();
  }
});
