import type { Plane } from "../../client/remote.js";
import { isMiss } from "../../domain/errors.js";
import { defineCommand } from "../command.js";
import { EXIT, type ExitCode, exitCodeOfMiss, UsageError } from "../exit.js";
import { withPlane } from "../plane.js";
import { showMiss } from "../show.js";
import { counted, cut, oneLine } from "../text.js";

const PAGE = 500;
const CONTENT_COLUMNS = 48;

export const deadRedrive = defineCommand({
  usage: "ID... | --all [options]",
  about: [
    "The new notification names the old one (`redrive_of`); the old one stays FAILED. A second redrive of the same " +
      "one changes nothing: exit code 4. With --all, those that were redriven before are passed over.",
  ],
  options: {
    all: { kind: "flag", summary: "all that were not redriven before" },
    user: { kind: "text", value: "USER", summary: "act as this user; without it, on anybody's" },
  },
  examples: ["tidings dead redrive 0199f0a2-…", "tidings dead redrive --all --user ada"],
  async run({ values, words, settings, output }) {
    const { all, user } = values;
    if (all === words.length > 0) throw new UsageError("say which: one or more IDs, or --all", "ID");
    return withPlane({ settings, output }, "change", async (tidings) => {
      const view = user === undefined ? tidings : tidings.as(user);
      let worst: ExitCode = EXIT.ok;
      let redriven = 0;
      for await (const id of all ? deadIds(tidings, user) : words) {
        const answer = await view.redrive(id);
        if (isMiss(answer)) {
          if (all) continue;
          if (output.json) await output.value(answer);
          else showMiss(answer, output);
          if (exitCodeOfMiss(answer) > worst) worst = exitCodeOfMiss(answer);
          continue;
        }
        redriven += 1;
        if (output.json) await output.value(answer);
        else {
          const content = cut(oneLine(answer.content), CONTENT_COLUMNS);
          await output.line(`${output.style("gray", id)} is sent again as ${answer.id}: ${content}`);
        }
      }
      if (all && !output.json) await output.line(`${counted(redriven, "dead letter")} sent again.`);
      return worst;
    });
  },
});

async function* deadIds(tidings: Plane, user: string | undefined): AsyncGenerator<string> {
  let after: string | undefined;
  do {
    const page = await tidings.list({ state: "FAILED", user_id: user, limit: PAGE, after });
    for (const { id } of page.notifications) yield id;
    after = page.next ?? undefined;
  } while (after !== undefined);
}
