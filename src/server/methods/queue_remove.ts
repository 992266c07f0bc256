import { defineMethod } from "../method.js";
import { turnSchema } from "../talk.js";

export const queueRemove = defineMethod({
  name: "queue/remove",
  scope: "agent",
  summary: "Takes a message back that waits for its turn.",
  params: turnSchema,
  run({ turn_id, user_id }, { caller }) {
    return caller.as(user_id).turns.remove(turn_id);
  },
});
