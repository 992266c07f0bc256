import { readFileSync } from "node:fs";
import type { Connection } from "./connection.js";
import { APPLICATION_ID } from "./connection.js";

/** In order; the position is the schema version that the file leads to. */
const MIGRATIONS = ["0001_spine.sql", "0002_tokens.sql"] as const;

export const SCHEMA_VERSION = MIGRATIONS.length;

/** Brings the schema up to date, each step in a transaction of its own. */
export function migrate(connection: Connection): void {
  for (const [index, name] of MIGRATIONS.entries()) {
    const version = index + 1;
    const step = connection.transaction(() => {
      const current = connection.pragma("user_version", { simple: true }) as number;
      if (current >= version) return;
      connection.exec(readFileSync(new URL(`./migrations/${name}`, import.meta.url), "utf8"));
      connection.pragma(`application_id = ${APPLICATION_ID}`);
      connection.pragma(`user_version = ${version}`);
    });
    step.immediate();
  }
}
