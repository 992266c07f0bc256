import { defineMethod } from "../method.js";
import { turnResult } from "../results/conversation.js";
import { turnSchema } from "../talk.js";

export const queueRemove = defineMethod({
  name: "queue/remove",
  scope: "agent",
  summary: "Takes a message back that waits for its turn.",
  params: turnSchema,
  result: turnResult,
  announced: { before: [], items: true },
  run({ turn_id, user_id }, { caller }) {
    return caller.as(user_id).turns.remove(turn_id);
  },
});
