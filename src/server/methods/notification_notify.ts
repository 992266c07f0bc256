import { type NotifyInput, notifySchema } from "../../domain/notification.js";
import { defineMethod } from "../method.js";
import { notifyResult } from "../results/notification.js";

export const notificationNotify = defineMethod({
  name: "notification/notify",
  scope: "ingest",
  summary: "Tells somebody something in the caller's own words; answers when it is on disk.",
  params: notifySchema,
  result: notifyResult,
  async run(params, { caller, runtime }) {
    const { to, input } = caller.sending(params as NotifyInput);
    const answer = await to.notify(input);
    runtime.events.add(input.user_id ?? caller.user_id);
    return answer;
  },
});
