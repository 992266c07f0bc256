import { resolve } from "node:path";
import { StoreError } from "../../domain/errors.js";
import { systemClock } from "../../platform/clock.js";
import { pause } from "../../platform/timers.js";
import { restoreFrom } from "../../store/sqlite/backup.js";
import { oneWord } from "../arguments.js";
import { defineCommand } from "../command.js";
import { EXIT } from "../exit.js";
import type { Settings } from "../settings.js";

const RETRY_MS = 50;

export const restore = defineCommand({
  name: "restore",
  summary: "put a backup in the place of the database",
  usage: "FILE [--replace] [options]",
  about: [
    "The restored journal gets a new id, since its later history will be another than the one that clients may have " +
      "seen. With --replace, what was there is kept beside it as `tidings.db.old`.",
  ],
  options: { replace: { kind: "flag", summary: "also if the folder holds a database" } },
  examples: ["tidings restore ~/tidings-monday.db --data restored", "tidings restore ~/tidings-monday.db --replace"],
  async run({ values, words, settings, output }) {
    const file = resolve(oneWord(words, "FILE"));
    const progress = output.progress();
    progress.show(`copying and checking ${file}`);
    const journal_id = await whenFree(settings, () => restoreFrom(file, settings.data, values.replace)).finally(() =>
      progress.end(),
    );
    if (output.json) {
      await output.value({ data: settings.data, journal_id });
      return EXIT.ok;
    }
    await output.line(`${output.style("green", "✔")} ${settings.data} holds ${file} now, as journal ${journal_id}.`);
    if (values.replace) await output.line("  What was there before, if anything, is kept as tidings.db.old.");
    return EXIT.ok;
  },
});

/** Waits for another writer as every writing command does. */
async function whenFree<Value>(settings: Settings, task: () => Promise<Value>): Promise<Value> {
  const start = systemClock.monotonic();
  for (;;) {
    try {
      return await task();
    } catch (error) {
      const busy = error instanceof StoreError && error.code === "store_busy";
      if (!busy || systemClock.monotonic() - start + RETRY_MS > settings.waitMs) throw error;
      await pause(RETRY_MS);
    }
  }
}
