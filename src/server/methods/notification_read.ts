import { defineMethod } from "../method.js";
import { notificationWithEventsResult } from "../results/notification.js";
import { byIdSchema } from "./by_id.js";

export const notificationRead = defineMethod({
  name: "notification/read",
  scope: "read",
  summary: "One notification with the events behind it.",
  params: byIdSchema,
  result: notificationWithEventsResult,
  run({ id, user_id }, { caller }) {
    return caller.as(user_id).read(id);
  },
});
