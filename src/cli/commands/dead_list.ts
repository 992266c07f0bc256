import { LIMITS } from "../../domain/limits.js";
import { noWords } from "../arguments.js";
import { defineCommand } from "../command.js";
import { EXIT } from "../exit.js";
import { withPlane } from "../plane.js";
import { PROGRAM } from "../program.js";
import { firstRedrivable, redrivenOf } from "../redriven.js";
import { flag } from "../settings.js";
import { showCard } from "../show.js";

const LIMIT = 50;

export const deadList = defineCommand({
  usage: "[options]",
  about: [
    "Newest first. With --json: {notifications, next, redriven}; `next` goes into --after for the next page, `redriven` " +
      "says of those that were sent again, by their ids, as what.",
  ],
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
    const page = await withPlane({ settings, output }, "read", async (tidings) => {
      const { notifications, next } = await tidings.list({ state: "FAILED", user_id: user, limit, after });
      return { notifications, next, redriven: await redrivenOf(tidings, notifications) };
    });
    if (output.json) {
      await output.value(page);
      return EXIT.ok;
    }
    if (page.notifications.length === 0) {
      await output.line("No dead letters.");
      return EXIT.ok;
    }
    for (const notification of page.notifications) {
      await showCard(notification, output, page.redriven[notification.id]);
      await output.line();
    }
    const whose = flag("user", user);
    if (page.next !== null) {
      const asked = `${whose}${flag("limit", values.limit)}${flag("after", page.next)}`;
      await output.line(`More:            ${PROGRAM} dead list${asked}${settings.dataFlag}`);
    }
    const one = firstRedrivable(page.notifications, page.redriven);
    if (one !== undefined)
      await output.line(`Send one again:  ${PROGRAM} dead redrive ${one.id}${whose}${settings.dataFlag}`);
    return EXIT.ok;
  },
});
