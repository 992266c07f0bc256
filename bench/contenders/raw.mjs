/**
 * The machine's raw limit: better-sqlite3 alone writes the rows that Tidings writes for an emit, into the same schema
 * with the same settings, 64 to a commit; one row to a statement, which is faster here than eight of them (the store
 * writes eight). The rows are Tidings' own, written by it and read back.
 */
import { readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";
import { Tidings } from "../../dist/index.js";
import { CALLERS, callers, eventOf, rate } from "../workload.mjs";

const MIGRATIONS = new URL("../../src/store/sqlite/migrations/", import.meta.url);
const BLOCK_SIZE = 1_024;
const SECOND_MS = 1_000;
/** The place of the column `due_at` in a row of `deliveries`. */
const DUE_AT = 22;

export async function rawInserts({ folder, users, warmup, emits }) {
  const rows = await rowsOfTidings(join(folder, "tidings"), users, warmup + emits);
  const connection = openLikeTidings(join(folder, "raw.db"));
  try {
    const write = writer(connection);
    writeAll(connection, write, rows.slice(0, warmup));
    return await rate(emits, () => writeAll(connection, write, rows.slice(warmup)));
  } finally {
    connection.close();
  }
}

async function rowsOfTidings(data, users, total) {
  const tidings = await Tidings.open({ data });
  await callers(total, (index) => tidings.emit(eventOf(index, users)));
  await tidings.close();
  const connection = new Database(join(data, "tidings.db"), { readonly: true });
  const all = (table, order) => connection.prepare(`SELECT * FROM ${table} ORDER BY ${order}`).raw().all();
  const [journal, notifications, deliveries] = [
    all("journal", "seq"),
    all("notifications", "number"),
    all("deliveries", "number"),
  ];
  connection.close();
  rmSync(data, { recursive: true });
  const marked = new Set();
  return journal.map((entry, index) => ({
    entry,
    notification: notifications[index],
    delivery: deliveries[index],
    blocks: blocksOf(entry, deliveries[index]).filter((row) => isNew(row, marked)),
    due: [dueOf(deliveries[index])].filter((row) => isNew(row, marked)),
  }));
}

/** The rows of the coarse indexes. */
function blocksOf([seq, , , entryUser], [number, user, , , channel]) {
  const block = Math.floor(number / BLOCK_SIZE);
  return [
    ["j", entryUser, Math.floor(seq / BLOCK_SIZE)],
    ["u", user, block],
    [channel, user, block],
  ];
}

function dueOf(delivery) {
  return [Math.floor(delivery[DUE_AT] / SECOND_MS), Math.floor(delivery[0] / BLOCK_SIZE)];
}

/** They are written when a block is first touched, and then known in memory. */
function isNew(row, marked) {
  const key = row.join("\n");
  if (marked.has(key)) return false;
  marked.add(key);
  return true;
}

/** As src/store/sqlite/database.ts does. */
function openLikeTidings(file) {
  const connection = new Database(file);
  connection.pragma("journal_mode = WAL");
  connection.pragma("foreign_keys = ON");
  connection.pragma("trusted_schema = OFF");
  connection.pragma("wal_autocheckpoint = 4000");
  connection.pragma("cache_size = -16384");
  for (const name of readdirSync(MIGRATIONS).sort()) connection.exec(readFileSync(new URL(name, MIGRATIONS), "utf8"));
  connection.pragma("synchronous = FULL");
  return connection;
}

function writer(connection) {
  const insert = (table) => {
    const columns = connection.pragma(`table_info(${table})`).map((column) => column.name);
    return connection.prepare(
      `INSERT INTO ${table} (${columns.join(", ")}) VALUES (${columns.map(() => "?").join(", ")})`,
    );
  };
  const [journal, notifications, deliveries] = [insert("journal"), insert("notifications"), insert("deliveries")];
  const blocks = connection.prepare("INSERT OR IGNORE INTO blocks (kind, key, block) VALUES (?, ?, ?)");
  const due = connection.prepare("INSERT OR IGNORE INTO due (second, block) VALUES (?, ?)");
  return (row) => {
    journal.run(...row.entry);
    notifications.run(...row.notification);
    deliveries.run(...row.delivery);
    for (const block of row.blocks) blocks.run(...block);
    for (const hint of row.due) due.run(...hint);
  };
}

function writeAll(connection, write, rows) {
  const begin = connection.prepare("BEGIN IMMEDIATE");
  const commit = connection.prepare("COMMIT");
  for (let from = 0; from < rows.length; from += CALLERS) {
    begin.run();
    for (let index = from; index < Math.min(from + CALLERS, rows.length); index += 1) write(rows[index]);
    commit.run();
  }
}
