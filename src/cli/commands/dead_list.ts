import { LIMITS } from "../../domain/limits.js";
import { noWords } from "../arguments.js";
import { defineCommand } from "../command.js";
import { EXIT } from "../exit.js";
import { withPlane } from "../plane.js";
import { PROGRAM } from "../program.js";
import { showCard } from "../show.js";

const LIMIT = 50;

export const deadList = defineCommand({
  usage: "[options]",
  about: ["Newest first. With --json: {notifications, next}; `next` goes into --after for the next page."],
  options: {
    user: { kind: "text", value: "USER", summary: "only this user's" },
    limit: {
      kind: "integer",
      value: "N",
      min: 1,
      max: LIMITS.listLimit,
      summary: "at most so many",
      preset: String(LIMIT),
    },
    after: { kind: "text", value: "CURSOR", summary: "the page after this cursor" },
  },
  examples: ["tidings dead list", "tidings dead list --user ada --json"],
  async run({ values, words, settings, output }) {
    noWords(words);
    const { user, limit = LIMIT, after } = values;
    const page = await withPlane({ settings, output }, "read", (tidings) =>
      tidings.list({ state: "FAILED", user_id: user, limit, after }),
    );
    if (output.json) {
      await output.value(page);
      return EXIT.ok;
    }
    if (page.notifications.length === 0) {
      await output.line("No dead letters.");
      return EXIT.ok;
    }
    for (const notification of page.notifications) {
      await showCard(notification, output);
      await output.line();
    }
    if (page.next !== null)
      await output.line(`More:            ${PROGRAM} dead list --after ${page.next}${settings.dataFlag}`);
    await output.line(`Send one again:  ${PROGRAM} dead redrive ID${settings.dataFlag}`);
    return EXIT.ok;
  },
});
