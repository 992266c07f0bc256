import { defineMethod } from "../method.js";
import { byIdSchema } from "./by_id.js";

export const notificationRedrive = defineMethod({
  name: "notification/redrive",
  scope: "ack",
  summary: "Sends a dead letter again, once, as a new notification that names it.",
  params: byIdSchema,
  run({ id, user_id }, { caller }) {
    return caller.as(user_id).redrive(id);
  },
});
