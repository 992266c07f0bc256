import { statSync } from "node:fs";
import { resolve } from "node:path";
import { oneWord } from "../arguments.js";
import { defineCommand } from "../command.js";
import { EXIT } from "../exit.js";
import { withUsed } from "../plane.js";
import { size } from "../text.js";

export const backup = defineCommand({
  usage: "FILE [options]",
  about: [
    "The file must not exist; it appears under its name only when it is whole and checked. Works beside a running writer.",
  ],
  options: {},
  examples: ["tidings backup ~/tidings-monday.db"],
  folderOnly: true,
  async run({ words, settings, output }) {
    const file = resolve(oneWord(words, "FILE"));
    const progress = output.progress();
    const journal_id = await withUsed(settings, async (tidings) => {
      await tidings.backup(file, (done, total) => progress.show(`copied ${done} of ${total} pages`));
      return tidings.journal_id;
    }).finally(() => progress.end());
    const bytes = statSync(file).size;
    if (output.json) await output.value({ file, bytes, journal_id });
    else await output.line(`${output.style("green", "✔")} ${file}: ${size(bytes)}, checked.`);
    return EXIT.ok;
  },
});
