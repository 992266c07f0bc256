import { defineMethod } from "../method.js";
import { notificationResult } from "../results/notification.js";
import { byIdSchema } from "./by_id.js";

export const notificationRedrive = defineMethod({
  name: "notification/redrive",
  scope: "ack",
  summary: "Sends a dead letter again, once, as a new notification that names it.",
  params: byIdSchema,
  result: notificationResult,
  run({ id, user_id }, { caller }) {
    return caller.as(user_id).redrive(id);
  },
});
