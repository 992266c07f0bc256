import { listSchema } from "../../tidings.js";
import { defineMethod } from "../method.js";

export const notificationList = defineMethod({
  name: "notification/list",
  scope: "read",
  summary: "Notifications, newest first; admin's token sees every user's.",
  params: listSchema,
  run(params, { caller }) {
    return caller.as(params.user_id).list(params);
  },
});
