import { oneWord } from "../arguments.js";
import { defineCommand } from "../command.js";
import { withPlane } from "../plane.js";
import { changeDisabled, FOR_USER, tellSwitched } from "../switch.js";

export const subscribersDisable = defineCommand({
  usage: "ID [--user USER] [options]",
  about: [
    "Its notifications are not delivered to this user from the next delivery on, those that wait included; its events are " +
      "kept, and `tidings explain` says why nobody was told. A core subscriber cannot be switched off. With --json: " +
      "{user_id, disabled_subscribers, unknown}.",
  ],
  options: { user: FOR_USER },
  examples: ["tidings subscribers disable mcp_connection", "tidings subscribers disable cli_event --user ada"],
  async run({ values, words, settings, output }) {
    const id = oneWord(words, "ID");
    const { before, after } = await withPlane({ settings, output }, "write", (plane) =>
      changeDisabled(plane, values.user, (disabled) => [...new Set([...disabled, id])]),
    );
    return tellSwitched(output, id, before.includes(id) ? "was off already" : "is off from now on", after);
  },
});
