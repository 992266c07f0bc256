import { isMiss } from "../../domain/errors.js";
import { oneWord } from "../arguments.js";
import { defineCommand } from "../command.js";
import { EXIT, exitCodeOfMiss } from "../exit.js";
import { withPlane } from "../plane.js";
import { showMiss } from "../show.js";
import { oneLine } from "../text.js";

export const tokenRevoke = defineCommand({
  usage: "ID [options]",
  about: [
    "The ID is the one that `tidings token list` shows, not the token's text. Connections that it had opened are closed. " +
      "Revoking one again changes nothing.",
  ],
  options: {},
  examples: ["tidings token revoke 0199f0a2-…"],
  async run({ words, settings, output }) {
    const id = oneWord(words, "ID");
    const answer = await withPlane({ settings, output }, "change", (plane) => plane.tokens.revoke(id));
    if (output.json) await output.value(answer);
    else if (isMiss(answer)) showMiss(answer, output);
    else await output.line(`${answer.id} of ${oneLine(answer.user_id)} is revoked.`);
    return isMiss(answer) ? exitCodeOfMiss(answer) : EXIT.ok;
  },
});
