import type { PlaneView } from "../../client/remote.js";
import { ACK_ACTIONS, type AckAction } from "../../domain/action.js";
import { isMiss } from "../../domain/errors.js";
import { defineCommand } from "../command.js";
import { EXIT, type ExitCode, exitCodeOfMiss, UsageError } from "../exit.js";
import { withPlane } from "../plane.js";
import { showMiss, stateWord } from "../show.js";
import { cut, oneLine } from "../text.js";

const CONTENT_COLUMNS = 60;

export const ack = defineCommand({
  usage: "ID... [options]",
  about: [
    "`rendered` (the default) says that the user has seen it, which settles its delivery; the inbox still shows it " +
      "as unread. `clicked` or `dismissed` says that the user is done with it.",
    "An acknowledgement names the revision that was seen, so that an old one does not settle a newer text. Without " +
      "--revision the notification is read first and its current revision is acknowledged.",
    "If nothing changes, the answer says why: exit code 3 for an id that does not exist, else 4.",
  ],
  options: {
    revision: { kind: "integer", value: "N", min: 1, summary: "the revision that was seen (with one ID)" },
    action: { kind: "choice", value: "ACTION", choices: ACK_ACTIONS, summary: "what the user did", preset: "rendered" },
    user: { kind: "text", value: "USER", summary: "act as this user; without it, on anybody's" },
  },
  examples: [
    "tidings ack 0199f0a2-…",
    "tidings ack 0199f0a2-… --action dismissed",
    "tidings ack ID --revision 2 --json",
  ],
  async run({ values, words, settings, output }) {
    const { revision, action = "rendered", user } = values;
    if (words.length === 0) throw new UsageError("ID is missing: which notification? See `tidings inbox`.", "ID");
    if (revision !== undefined && words.length > 1)
      throw new UsageError("--revision is for one ID; without it the current one is meant", "--revision");
    return withPlane({ settings, output }, "change", async (tidings) => {
      const view = user === undefined ? tidings : tidings.as(user);
      let worst: ExitCode = EXIT.ok;
      for (const id of words) {
        const answer = await acknowledge(view, id, revision, action);
        if (output.json) await output.value(answer);
        else if (isMiss(answer)) showMiss(answer, output);
        else {
          const { state } = answer;
          const read = answer.read_at === null ? "" : `, ${answer.action}`;
          const content = cut(oneLine(answer.content), CONTENT_COLUMNS);
          await output.line(`${stateWord(state, output)}${read}: ${content} ${output.style("gray", answer.id)}`);
        }
        if (isMiss(answer) && exitCodeOfMiss(answer) > worst) worst = exitCodeOfMiss(answer);
      }
      return worst;
    });
  },
});

async function acknowledge(view: PlaneView, id: string, seen: number | undefined, action: AckAction) {
  if (seen !== undefined) return view.ack({ id, revision: seen, action });
  const current = await view.read(id);
  return isMiss(current) ? current : view.ack({ id, revision: current.revision, action });
}
