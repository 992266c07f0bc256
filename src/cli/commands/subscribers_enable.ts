import type { Plane } from "../../client/remote.js";
import { oneWord } from "../arguments.js";
import { defineCommand } from "../command.js";
import { UsageError } from "../exit.js";
import { didYouMean } from "../nearest.js";
import { withPlane } from "../plane.js";
import { changeDisabled, FOR_USER, tellSwitched } from "../switch.js";

export const subscribersEnable = defineCommand({
  usage: "ID [--user USER] [options]",
  about: [
    "What was kept back meanwhile stays so. One whose own file has `enabled = false` is switched on there. With --json: " +
      "{user_id, disabled_subscribers, unknown}.",
  ],
  options: { user: FOR_USER },
  examples: ["tidings subscribers enable mcp_connection", "tidings subscribers enable cli_event --user ada"],
  async run({ values, words, settings, output }) {
    const id = oneWord(words, "ID");
    const { before, after } = await withPlane({ settings, output }, "write", (plane) =>
      changeDisabled(plane, values.user, async (disabled, user_id) => {
        if (!disabled.includes(id)) await mustBeThere(plane, user_id, id);
        return disabled.filter((one) => one !== id);
      }),
    );
    return tellSwitched(output, id, before.includes(id) ? "is on from now on" : "was not switched off", after);
  },
});

async function mustBeThere(plane: Plane, user_id: string, id: string): Promise<void> {
  const ids = (await plane.subscribers(user_id)).subscribers.map((one) => one.id);
  if (!ids.includes(id))
    throw new UsageError(`there is no subscriber ${JSON.stringify(id)}${didYouMean(id, ids)}`, "ID");
}
