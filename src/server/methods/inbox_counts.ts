import { defineMethod } from "../method.js";
import { countsResult } from "../results/notification.js";
import { userSchema } from "./by_id.js";

export const inboxCounts = defineMethod({
  name: "inbox/counts",
  scope: "read",
  summary: "How much waits for the user, up to a cap.",
  params: userSchema,
  result: countsResult,
  run({ user_id }, { caller }) {
    return caller.as(user_id).counts(caller.userOr(user_id));
  },
});
