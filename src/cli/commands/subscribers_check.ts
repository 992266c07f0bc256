import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { BUILT_IN_FOLDER, loadFolder } from "../../intake/subscribers/load.js";
import { problemLine } from "../../intake/subscribers/set.js";
import { defineCommand } from "../command.js";
import { EXIT, UsageError } from "../exit.js";
import { filesIn } from "../plane.js";
import { counted, oneLine } from "../text.js";

export const subscribersCheck = defineCommand({
  usage: "[DIR] [options]",
  about: [
    "Reads every *.toml of the folder (default `subscribers` in the data folder) with the templates that they name, and " +
      "says what is wrong with its file, line, key and reason. Exit code 1 if anything is. With --builtin the files that " +
      "come with Tidings. docs/SUBSCRIBERS.md describes the files.",
  ],
  options: { builtin: { kind: "flag", summary: "the built-in ones" } },
  examples: ["tidings subscribers check", "tidings subscribers check ./my-subscribers --json"],
  async run({ values, words, settings, output }) {
    if (words.length > 1) throw new UsageError("one folder at a time, please", "DIR");
    const own = words[0] ?? settings.subscribersFolder;
    const folder = values.builtin ? BUILT_IN_FOLDER : (own ?? filesIn(settings).subscribersFolder);
    const missing = !existsSync(folder);
    if (missing && own !== undefined)
      throw new UsageError(`there is no folder ${folder}`, words[0] === undefined ? "--subscribers" : "DIR");
    const { loaded, broken } = await loadFolder(folder);
    const ok = broken.length === 0;
    if (missing) output.remark(`tidings: there is no folder ${oneLine(resolve(folder))}; DIR names another one`);
    if (output.json) {
      const good = loaded.map(({ id, name, file, types, enabled, core }) => ({ id, name, file, types, enabled, core }));
      await output.value({ ok, folder, loaded: good, broken });
      return ok ? EXIT.ok : EXIT.problem;
    }
    if (missing) return EXIT.ok;
    for (const { id, name, enabled, types } of loaded) {
      const off = enabled ? "" : output.style("gray", " (off)");
      await output.line(
        `${output.style("green", "✔")} ${output.style("bold", oneLine(id))}${off}  ${oneLine(name)}  ${output.style("gray", types.join(", "))}`,
      );
    }
    for (const problem of broken)
      await output.line(`${output.style("red", "✖")} ${oneLine(problemLine({ ...problem, instead: null }))}`);
    const found = `${counted(loaded.length, "subscriber")} in ${folder}`;
    await output.line(ok ? `${found}, nothing is wrong.` : `${found}; ${counted(broken.length, "problem")}.`);
    return ok ? EXIT.ok : EXIT.problem;
  },
});
