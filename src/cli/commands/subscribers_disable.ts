import { LOCAL_USER } from "../../domain/ids.js";
import { oneWord } from "../arguments.js";
import { defineCommand } from "../command.js";
import { EXIT } from "../exit.js";
import { ownUser, withPlane } from "../plane.js";
import { oneLine } from "../text.js";

export const subscribersDisable = defineCommand({
  name: "subscribers disable",
  summary: "switch a subscriber off for a user",
  usage: "ID [--user USER] [options]",
  about: [
    "Its notifications are not delivered to this user from the next delivery on, those that wait included; its events are " +
      "kept, and `tidings explain` says why nobody was told. A core subscriber cannot be switched off. With --json: " +
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
  examples: ["tidings subscribers disable mcp_connection", "tidings subscribers disable cli_event --user ada"],
  async run({ values, words, settings, output }) {
    const id = oneWord(words, "ID");
    const { before, after } = await withPlane({ settings, output }, "write", async (plane) => {
      const user_id = values.user ?? (await ownUser(plane));
      const { disabled_subscribers } = await plane.settings(user_id);
      const wanted = [...new Set<string>([...disabled_subscribers, id])];
      return {
        before: disabled_subscribers as readonly string[],
        after: await plane.updateSettings({ user_id, disabled_subscribers: wanted }),
      };
    });
    const said = before.includes(id) ? "was off already" : "is off from now on";
    if (output.json) await output.value(after);
    else await output.line(`${oneLine(id)} ${said} for ${oneLine(after.user_id)}.`);
    return EXIT.ok;
  },
});
