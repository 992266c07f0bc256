import { LIMITS } from "../../domain/limits.js";
import { wordSchema } from "../../domain/parse.js";
import { ackSchema } from "../../tidings.js";
import { defineMethod } from "../method.js";
import { notificationResult } from "../results/notification.js";

export const notificationAck = defineMethod({
  name: "notification/ack",
  scope: "ack",
  summary: "The user has seen it (`rendered`), or is done with it (`clicked`, `dismissed`).",
  params: ackSchema.extend({ user_id: wordSchema(LIMITS.idChars).optional() }),
  result: notificationResult,
  run({ user_id, ...ack }, { caller }) {
    return caller.as(user_id).ack(ack);
  },
});
