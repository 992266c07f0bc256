/**
 * Section k's floor: what the rows cost by themselves. better-sqlite3 alone writes what Tidings has written for the same events,
 * entries of events that nobody takes, and all rows of events that go into batches of ten; each row once, as it was in the end,
 * with the settings of the store and 64 events to a commit, 16 rows to a statement.
 */
import { rmSync } from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";
import { Tidings } from "../../dist/index.js";
import { CALLERS, callers, failureOf, work } from "../workload.mjs";
import { OUT_OF_REACH } from "./pipeline.mjs";
import { openLikeTidings } from "./raw.mjs";

const MANY = 16;
const ENTRIES = { journal: "seq" };
const ALL = { ...ENTRIES, notifications: "number", deliveries: "number", notification_rows: "number, row" };

export function rawEntries(options) {
  return written(options, (index) => ({ ...failureOf(index), type: "nobody.takes.this" }), ENTRIES);
}

export function rawBatches(options) {
  return written(options, failureOf, ALL);
}

async function written({ folder, warmup, events }, eventOf, tables) {
  const rows = await rowsOfTidings(join(folder, "tidings"), warmup + events, eventOf, tables);
  const connection = openLikeTidings(join(folder, "raw.db"));
  try {
    const commits = commitsOf(connection, rows, (warmup + events) / CALLERS);
    const [begin, commit] = [connection.prepare("BEGIN IMMEDIATE"), connection.prepare("COMMIT")];
    const write = (from, to) => {
      for (const statements of commits.slice(from, to)) {
        begin.run();
        for (const { statement, values } of statements) statement.run(...values);
        commit.run();
      }
    };
    write(0, warmup / CALLERS);
    return await work(events, () => write(warmup / CALLERS));
  } finally {
    connection.close();
  }
}

async function rowsOfTidings(data, total, eventOf, tables) {
  const tidings = await Tidings.open({ data, policy: OUT_OF_REACH });
  await callers(total, (index) => tidings.emit(eventOf(index)));
  await tidings.close();
  const connection = new Database(join(data, "tidings.db"), { readonly: true });
  const rows = Object.fromEntries(
    Object.entries(tables).map(([table, order]) => [
      table,
      connection.prepare(`SELECT * FROM ${table} ORDER BY ${order}`).raw().all(),
    ]),
  );
  connection.close();
  rmSync(data, { recursive: true });
  return rows;
}

/** Of each commit its statements, with what each is given; made before the time is taken. */
function commitsOf(connection, rows, count) {
  const commits = Array.from({ length: count }, () => []);
  for (const [table, all] of Object.entries(rows)) {
    const columns = connection.pragma(`table_info(${table})`).map((column) => column.name);
    const row = `(${columns.map(() => "?").join(", ")})`;
    const insert = (many) =>
      connection.prepare(`INSERT INTO ${table} (${columns.join(", ")}) VALUES ${new Array(many).fill(row).join(", ")}`);
    const [one, some] = [insert(1), insert(MANY)];
    for (const [index, statements] of commits.entries()) {
      const own = all.slice(Math.floor((all.length * index) / count), Math.floor((all.length * (index + 1)) / count));
      while (own.length >= MANY) statements.push({ statement: some, values: own.splice(0, MANY).flat() });
      for (const values of own) statements.push({ statement: one, values });
    }
  }
  return commits;
}
