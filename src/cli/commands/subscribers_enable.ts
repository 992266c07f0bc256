import type { Plane } from "../../client/remote.js";
import { LOCAL_USER } from "../../domain/ids.js";
import { oneWord } from "../arguments.js";
import { defineCommand } from "../command.js";
import { EXIT, UsageError } from "../exit.js";
import { didYouMean } from "../nearest.js";
import { ownUser, withPlane } from "../plane.js";
import { oneLine } from "../text.js";

export const subscribersEnable = defineCommand({
  name: "subscribers enable",
  summary: "switch a subscriber on again for a user",
  usage: "ID [--user USER] [options]",
  about: [
    "What was kept back meanwhile stays so. One whose own file has `enabled = false` is switched on there. With --json: " +
      "{user_id, disabled_subscribers, unknown}.",
  ],
  options: {
    user: {
      kind: "text",
      value: "USER",
      summary: "for whom",
      preset: `the token's user with --server, else ${LOCAL_USER}`,
    },
  },
  examples: ["tidings subscribers enable mcp_connection", "tidings subscribers enable cli_event --user ada"],
  async run({ values, words, settings, output }) {
    const id = oneWord(words, "ID");
    const { before, after } = await withPlane({ settings, output }, "write", async (plane) => {
      const user_id = values.user ?? (await ownUser(plane));
      const { disabled_subscribers } = await plane.settings(user_id);
      const now: readonly string[] = disabled_subscribers;
      if (!now.includes(id)) await mustBeThere(plane, user_id, id);
      const wanted = now.filter((one) => one !== id);
      return { before: now, after: await plane.updateSettings({ user_id, disabled_subscribers: wanted }) };
    });
    const said = before.includes(id) ? "is on from now on" : "was not switched off";
    if (output.json) await output.value(after);
    else await output.line(`${oneLine(id)} ${said} for ${oneLine(after.user_id)}.`);
    return EXIT.ok;
  },
});

async function mustBeThere(plane: Plane, user_id: string, id: string): Promise<void> {
  const ids = (await plane.subscribers(user_id)).subscribers.map((one) => one.id);
  if (!ids.includes(id))
    throw new UsageError(`there is no subscriber ${JSON.stringify(id)}${didYouMean(id, ids)}`, "ID");
}
