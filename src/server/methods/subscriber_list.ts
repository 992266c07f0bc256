import { z } from "zod";
import { matchesSchema } from "../../tidings.js";
import { defineMethod } from "../method.js";
import { subscribersResult } from "../results/subscriber.js";
import { userSchema } from "./by_id.js";

export const subscriberList = defineMethod({
  name: "subscriber/list",
  scope: "read",
  summary: "Every subscriber with its state for a user, what it took last, and what is wrong with their files.",
  params: z.strictObject({ ...userSchema.shape, matches: matchesSchema.default(0) }),
  result: subscribersResult,
  run({ user_id, matches }, { caller }) {
    return caller.as(user_id).subscribers(caller.userOr(user_id), { matches });
  },
});
