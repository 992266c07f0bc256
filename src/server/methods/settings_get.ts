import { defineMethod } from "../method.js";
import { settingsResult } from "../results/subscriber.js";
import { userSchema } from "./by_id.js";

export const settingsGet = defineMethod({
  name: "settings/get",
  scope: "read",
  summary: "What a user has switched off.",
  params: userSchema,
  result: settingsResult,
  run({ user_id }, { caller }) {
    return caller.as(user_id).settings(caller.userOr(user_id));
  },
});
