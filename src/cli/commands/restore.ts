import { resolve } from "node:path";
import { restoreFrom } from "../../store/sqlite/backup.js";
import { oneWord } from "../arguments.js";
import { defineCommand } from "../command.js";
import { EXIT } from "../exit.js";

export const restore = defineCommand({
  usage: "FILE [--replace] [options]",
  about: [
    "The restored journal gets a new id, since its later history will be another than the one that clients may have " +
      "seen. With --replace, what was there is kept beside it as `tidings.db.old`.",
  ],
  options: { replace: { kind: "flag", summary: "also if the folder holds a database" } },
  examples: ["tidings restore ~/tidings-monday.db --data restored", "tidings restore ~/tidings-monday.db --replace"],
  folderOnly: true,
  async run({ values, words, settings, output }) {
    const file = resolve(oneWord(words, "FILE"));
    const progress = output.progress();
    progress.show(`copying and checking ${file}`);
    const journal_id = await restoreFrom(file, settings.data, values.replace, settings.waitMs).finally(() =>
      progress.end(),
    );
    if (output.json) {
      await output.value({ data: settings.data, journal_id });
      return EXIT.ok;
    }
    await output.line(`${output.style("green", "✔")} ${settings.data} holds ${file} now.`);
    await output.line(`  Its journal has a new id: ${journal_id}.`);
    if (values.replace) await output.line("  What was there before, if anything, is kept as tidings.db.old.");
    return EXIT.ok;
  },
});
