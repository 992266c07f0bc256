/**
 * The machine's raw limit: better-sqlite3 alone writes the rows that Tidings writes for an emit, into the same schema
 * with the same settings, 64 to a commit: 16 to a statement, as the store does, which is its fastest form here, and one by one, as
 * it is mostly used. The rows are Tidings' own, written by it and read back.
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

/** `many`: rows of one statement; what is warmed up with and what is timed are multiples of it. */
export async function rawInserts({ folder, users, many, warmup, emits }) {
  const rows = await rowsOfTidings(join(folder, "tidings"), users, warmup + emits);
  const connection = openLikeTidings(join(folder, "raw.db"));
  try {
    const write = writer(connection, many);
    const [before, timed] = [grouped(rows.slice(0, warmup), many), grouped(rows.slice(warmup), many)];
    writeAll(connection, write, before, CALLERS / many);
    return await rate(emits, () => writeAll(connection, write, timed, CALLERS / many));
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
export function openLikeTidings(file) {
  const connection = new Database(file);
  connection.pragma("journal_mode = WAL");
  connection.pragma("foreign_keys = ON");
  connection.pragma("trusted_schema = OFF");
  connection.pragma("wal_autocheckpoint = 16000");
  connection.pragma("cache_size = -16384");
  for (const name of readdirSync(MIGRATIONS).sort()) connection.exec(readFileSync(new URL(name, MIGRATIONS), "utf8"));
  connection.pragma("synchronous = FULL");
  return connection;
}

function writer(connection, many) {
  const insert = (table) => {
    const columns = connection.pragma(`table_info(${table})`).map((column) => column.name);
    const rows = new Array(many).fill(`(${columns.map(() => "?").join(", ")})`).join(", ");
    return connection.prepare(`INSERT INTO ${table} (${columns.join(", ")}) VALUES ${rows}`);
  };
  const [journal, notifications, deliveries] = [insert("journal"), insert("notifications"), insert("deliveries")];
  const blocks = connection.prepare("INSERT OR IGNORE INTO blocks (kind, key, block) VALUES (?, ?, ?)");
  const due = connection.prepare("INSERT OR IGNORE INTO due (second, block) VALUES (?, ?)");
  return (group) => {
    journal.run(...group.entries);
    notifications.run(...group.notifications);
    deliveries.run(...group.deliveries);
    for (const block of group.blocks) blocks.run(...block);
    for (const hint of group.due) due.run(...hint);
  };
}

/** What each statement is given, made before the time is taken. */
function grouped(rows, many) {
  const groups = [];
  for (let from = 0; from < rows.length; from += many) {
    const group = rows.slice(from, from + many);
    groups.push({
      entries: group.flatMap(({ entry }) => entry),
      notifications: group.flatMap(({ notification }) => notification),
      deliveries: group.flatMap(({ delivery }) => delivery),
      blocks: group.flatMap(({ blocks }) => blocks),
      due: group.flatMap(({ due }) => due),
    });
  }
  return groups;
}

function writeAll(connection, write, groups, perCommit) {
  const begin = connection.prepare("BEGIN IMMEDIATE");
  const commit = connection.prepare("COMMIT");
  for (let from = 0; from < groups.length; from += perCommit) {
    begin.run();
    for (let index = from; index < Math.min(from + perCommit, groups.length); index += 1) write(groups[index]);
    commit.run();
  }
}
