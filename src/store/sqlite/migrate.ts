import { readFileSync } from "node:fs";
import { systemClock } from "../../platform/clock.js";
import { IdSource } from "../../platform/ids.js";
import type { Connection } from "./connection.js";
import { APPLICATION_ID } from "./connection.js";

/** In order; the position is the schema version that the file leads to. */
const MIGRATIONS = [
  "0001_spine.sql",
  "0002_tokens.sql",
  "0003_settings.sql",
  "0004_hints.sql",
  "0005_batches.sql",
  "0006_carriers.sql",
  "0007_members.sql",
  "0008_turns.sql",
  "0009_handles.sql",
  "0010_mcp_tools.sql",
  "0011_usage.sql",
  "0012_known_files.sql",
  "0013_series.sql",
  "0014_thread_budgets.sql",
  "0015_live_blocks.sql",
] as const;

export const SCHEMA_VERSION = MIGRATIONS.length;

/** Brings the schema up to date in one transaction: nobody ever sees a database that is half made. */
export function migrate(connection: Connection): void {
  const steps = connection.transaction(() => {
    const current = connection.pragma("user_version", { simple: true }) as number;
    if (current >= SCHEMA_VERSION) return;
    for (const name of MIGRATIONS.slice(current))
      connection.exec(readFileSync(new URL(`./migrations/${name}`, import.meta.url), "utf8"));
    const journal_id = new IdSource().random(systemClock.wall());
    connection.prepare("INSERT OR IGNORE INTO meta (key, value) VALUES ('journal_id', ?)").run(journal_id);
    connection.pragma(`application_id = ${APPLICATION_ID}`);
    connection.pragma(`user_version = ${SCHEMA_VERSION}`);
  });
  steps.immediate();
}
