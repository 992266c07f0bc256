import { defineMethod } from "../method.js";
import { turnResult } from "../results/conversation.js";
import { inputSchema, turnSchema } from "../talk.js";

export const queueUpdate = defineMethod({
  name: "queue/update",
  scope: "agent",
  summary: "Changes a message that waits for its turn.",
  params: turnSchema.extend({ input: inputSchema }),
  result: turnResult,
  announced: { before: [], items: true },
  run({ turn_id, user_id, input }, { caller }) {
    return caller.as(user_id).turns.update(turn_id, input.text);
  },
});
