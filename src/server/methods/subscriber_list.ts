import { defineMethod } from "../method.js";
import { userSchema } from "./by_id.js";

export const subscriberList = defineMethod({
  name: "subscriber/list",
  scope: "read",
  summary: "Every subscriber with its state for a user, and what is wrong with their files.",
  params: userSchema,
  run({ user_id }, { caller }) {
    return caller.as(user_id).subscribers(caller.userOr(user_id));
  },
});
