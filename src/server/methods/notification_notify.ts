import { type NotifyInput, notifySchema } from "../../domain/notification.js";
import { defineMethod } from "../method.js";

export const notificationNotify = defineMethod({
  name: "notification/notify",
  scope: "ingest",
  summary: "Tells somebody something in the caller's own words; answers when it is on disk.",
  params: notifySchema,
  run(params, { caller }) {
    const { to, input } = caller.sending(params as NotifyInput);
    return to.notify(input);
  },
});
