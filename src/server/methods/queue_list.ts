import { defineMethod } from "../method.js";
import { turnsResult } from "../results/conversation.js";
import { threadSchema } from "../talk.js";

export const queueList = defineMethod({
  name: "queue/list",
  scope: "read",
  summary: "Messages that wait for their turn, oldest first, and the turn that is active.",
  params: threadSchema,
  result: turnsResult,
  async run({ thread_id, user_id }, { caller }) {
    return { turns: await caller.as(user_id).thread(thread_id).turns() };
  },
});
