import { defineMethod } from "../method.js";
import { explanationResult } from "../results/notification.js";
import { byIdSchema } from "./by_id.js";

export const notificationExplain = defineMethod({
  name: "notification/explain",
  scope: "read",
  summary: "The whole way of an event or a notification, in words.",
  params: byIdSchema,
  result: explanationResult,
  run({ id, user_id }, { caller }) {
    return caller.as(user_id).explain(id);
  },
});
