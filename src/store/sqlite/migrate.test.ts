/** Data folders of earlier versions are brought up to date, with everything in them. */
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";
import { expect, it } from "vitest";
import { temporaryFolder } from "../../../test/support/folder.js";
import { userId } from "../../domain/ids.js";
import { DEFAULT_POLICY } from "../../domain/policy.js";
import { HOST } from "../../domain/principal.js";
import { numberInId } from "../../platform/ids.js";
import { ManualClock } from "../../platform/manual_clock.js";
import { audit } from "../audit.js";
import type { Stored } from "../contract.js";
import { acceptance } from "../contract.suite.js";
import { PlainEditor } from "../editor.suite.js";
import { APPLICATION_ID } from "./connection.js";
import { DATABASE_FILE } from "./database.js";
import { SCHEMA_VERSION } from "./migrate.js";
import { openSqliteStore } from "./store.js";
import { openWriter } from "./writer.suite.js";

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
  const store = await openWriter(folder, clock);
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

it("version 6 names an event in two places: each is told once (I5)", async () => {
  const folder = await temporaryFolder();
  const clock = new ManualClock(Date.UTC(2026, 0, 3));
  const editor = new PlainEditor();
  const open = () => openSqliteStore({ folder, policy: DEFAULT_POLICY, clock, editor, mode: "write", waitMs: 0 });
  const draft = { content: null, batch: { window_ms: 2_000, max_size: 10 } };
  let store = await open();
  let made: Stored | undefined;
  for (const tool of ["a", "b", "a", "c"]) {
    const accepted = await store.accept(HOST, acceptance({ payload: { tool } }, { ...draft, dedupe_key: tool }));
    made = accepted.matches[0]?.stored;
  }
  const [, ...further] = made?.event_ids ?? [];
  expect(further).toHaveLength(3);
  await store.close();

  const database = new Database(join(folder, DATABASE_FILE));
  const insert = database.prepare("INSERT OR IGNORE INTO merged_events (number, seq, event_id) VALUES (1, ?, ?)");
  for (const id of further) insert.run(numberInId(id), id);
  // All that this step does; the later ones have been taken.
  database.exec(readFileSync(new URL("./migrations/0007_members.sql", import.meta.url), "utf8"));
  database.close();
  store = await open();
  try {
    const [read] = (await store.list(HOST, { user_id: userId("alice"), limit: 10 })).stored;
    expect(read?.event_ids).toEqual(made?.event_ids);
    expect((await audit(store)).problems).toEqual([]);
  } finally {
    await store.close();
  }
});
