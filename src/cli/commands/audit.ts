import { noWords } from "../arguments.js";
import { defineCommand } from "../command.js";
import { EXIT } from "../exit.js";
import { withOnlooker } from "../plane.js";
import { counted, oneLine } from "../text.js";

export const audit = defineCommand({
  usage: "[options]",
  about: [
    "Checks the database itself, that the journal is whole and in order, that every step in it is legal, and that " +
      "replaying it gives the ledger, field by field; and that the schema, and what is kept beside the ledger, are as they " +
      "should be. Exit code 1 if anything is wrong.",
  ],
  options: {},
  examples: ["tidings audit", "tidings audit --json"],
  folderOnly: true,
  async run({ words, settings, output }) {
    noWords(words);
    const progress = output.progress();
    const report = await withOnlooker(settings, (tidings) =>
      tidings.audit((what, done) => progress.show(`checked ${done} ${what}`)),
    ).finally(() => progress.end());
    const code = report.ok ? EXIT.ok : EXIT.problem;
    if (output.json) {
      await output.value(report);
      return code;
    }
    const { entries, events, notifications } = report.checked;
    const checked = `${counted(entries, "journal entry", "journal entries")}, ${counted(events, "event")}, ${counted(notifications, "notification")}`;
    if (report.ok) {
      await output.line(`${output.style("green", "✔ Sound:")} ${checked}.`);
      await output.line("  Replaying the journal gives the ledger, field by field.");
      return code;
    }
    await output.line(`${output.style("red", `✖ ${counted(report.problems.length, "problem")}`)} in ${checked}:`);
    for (const { rule, subject, message } of report.problems)
      await output.line(`  ${output.style("red", rule)}  ${oneLine(subject)}: ${oneLine(message)}`);
    await output.line("Keep a copy of the folder as it is, and restore the last good backup with `tidings restore`.");
    return code;
  },
});
