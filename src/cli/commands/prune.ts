import { noWords } from "../arguments.js";
import { defineCommand } from "../command.js";
import { EXIT, UsageError } from "../exit.js";
import { withPlane } from "../plane.js";
import { counted } from "../text.js";

export const prune = defineCommand({
  usage: "--older-than AGE [options]",
  about: [
    "Dead letters, whatever still waits for somebody, and open threads stay. It works in slices, beside everything " +
      "else that this process does, and can be stopped and started again at any time.",
  ],
  options: {
    "older-than": { kind: "duration", value: "AGE", summary: "a number and a unit (ms, s, m, h, d), like 30d" },
  },
  examples: ["tidings prune --older-than 30d", "tidings prune --older-than 12h --json"],
  async run({ values, words, settings, output }) {
    noWords(words);
    const olderThanMs = values["older-than"];
    if (olderThanMs === undefined)
      throw new UsageError(
        "--older-than is missing: say how old history may get, like --older-than 30d",
        "--older-than",
      );
    const progress = output.progress();
    const done = await withPlane({ settings, output }, "change", (tidings) =>
      tidings.prune({
        older_than_ms: olderThanMs,
        onStep: (step) => progress.show(`looked at ${step.visited} journal entries, removed ${step.entries}`),
      }),
    ).finally(() => progress.end());
    if (output.json) {
      await output.value(done);
      return EXIT.ok;
    }
    const entries = counted(done.entries, "journal entry", "journal entries");
    const visited = counted(done.visited, "old one", "old ones");
    await output.line(`Removed ${entries} and ${counted(done.notifications, "notification")}; looked at ${visited}.`);
    return EXIT.ok;
  },
});
