import { LIMITS } from "../../domain/limits.js";
import { wordSchema } from "../../domain/parse.js";
import { changedSchema } from "../../tidings.js";
import { defineMethod } from "../method.js";
import { changedResult } from "../results/notification.js";

export const notificationChanged = defineMethod({
  name: "notification/changed",
  scope: "read",
  summary: "Notifications that have changed since an earlier answer, whoever owns them; waits for one if asked to.",
  params: changedSchema.extend({ user_id: wordSchema(LIMITS.idChars).optional() }),
  result: changedResult,
  async run({ user_id, ...asked }, { caller, runtime, bytesMax, gone }) {
    const view = caller.as(user_id);
    const letGo = asked.wait_ms > 0 ? runtime.waits.hold(caller.user_id) : undefined;
    try {
      return await view.changed(asked, { signal: gone, bytes_max: bytesMax });
    } finally {
      letGo?.();
    }
  },
});
