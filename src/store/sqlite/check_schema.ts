/** That the schema is the one that the migrations make, whichever version the database began with. */
import Database from "better-sqlite3";
import type { Connection } from "./connection.js";
import { migrate } from "./migrate.js";

/** What is missing, what is different, and what would act on the tables unasked; in words. */
export function checkSchema(connection: Connection): string[] {
  const made = madeAnew();
  const kept = schemaOf(connection);
  const problems: string[] = [];
  for (const [name, sql] of made) {
    const own = kept.get(name);
    if (own === undefined) problems.push(`the ${name} is missing`);
    else if (own !== sql) problems.push(`the ${name} is not as Tidings makes it`);
  }
  // Tables and indexes of somebody else do no harm.
  for (const name of kept.keys())
    if (name.startsWith("trigger ") && !made.has(name)) problems.push(`the ${name} is not Tidings' own`);
  return problems;
}

function madeAnew(): Map<string, string> {
  const fresh = new Database(":memory:");
  try {
    migrate(fresh);
    return schemaOf(fresh);
  } finally {
    fresh.close();
  }
}

/** By type and name; without what SQLite makes by itself. */
function schemaOf(connection: Connection): Map<string, string> {
  const rows = connection
    .prepare("SELECT type || ' ' || name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite!_%' ESCAPE '!'")
    .raw()
    .all() as [name: string, sql: string][];
  return new Map(rows.map(([name, sql]) => [name, normalised(sql)]));
}

/** Texts and quoted names, which stay as they are; and what means nothing: comments and white space. */
const PARTS = /('[^']*'|"[^"]*")|(?:--[^\n]*|\/\*.*?\*\/|\s)+/gs;

function normalised(sql: string): string {
  return sql.replace(PARTS, (_, text: string | undefined) => text ?? " ").trim();
}
