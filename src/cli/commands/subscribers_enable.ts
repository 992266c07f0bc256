import type { Plane } from "../../client/remote.js";
import { oneWord } from "../arguments.js";
import { defineCommand } from "../command.js";
import { UsageError } from "../exit.js";
import { didYouMean } from "../nearest.js";
import { withPlane } from "../plane.js";
import { changeDisabled, FOR_USER, tellSwitched } from "../switch.js";
import { oneLine } from "../text.js";

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
    return withPlane({ settings, output }, "write", async (plane) => {
      const { before, after } = await changeDisabled(plane, values.user, async (disabled, user_id) => {
        if (!disabled.includes(id)) await mustBeThere(plane, user_id, id);
        return disabled.filter((one) => one !== id);
      });
      const said = before.includes(id) ? "is on from now on" : "was not switched off";
      const code = await tellSwitched(output, id, said, after);
      const file = await offByItsFile(plane, after.user_id, id);
      if (file !== undefined && !output.json)
        await output.line(`It takes no events all the same: ${file} has enabled = false.`);
      return code;
    });
  },
});

async function mustBeThere(plane: Plane, user_id: string, id: string): Promise<void> {
  const ids = (await plane.subscribers(user_id)).subscribers.map((one) => one.id);
  if (!ids.includes(id))
    throw new UsageError(`there is no subscriber ${JSON.stringify(id)}${didYouMean(id, ids)}`, "ID");
}

/** The file that keeps it off, whoever switches it on. */
async function offByItsFile(plane: Plane, user_id: string, id: string): Promise<string | undefined> {
  const { subscribers } = await plane.subscribers(user_id);
  const one = subscribers.find((subscriber) => subscriber.id === id && subscriber.enabled === false);
  return one === undefined ? undefined : oneLine(one.file ?? "its program");
}
