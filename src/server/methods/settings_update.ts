import { settingsSchema } from "../../tidings.js";
import { defineMethod } from "../method.js";
import { settingsResult } from "../results/subscriber.js";

export const settingsUpdate = defineMethod({
  name: "settings/update",
  scope: "ack",
  summary: "Switches subscribers off for a user, and all others on; at the next delivery.",
  params: settingsSchema,
  result: settingsResult,
  run({ user_id, disabled_subscribers }, { caller }) {
    return caller.as(user_id).updateSettings({ user_id: caller.userOr(user_id), disabled_subscribers });
  },
});
