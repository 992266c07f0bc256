import { defineMethod } from "../method.js";
import { threadResult } from "../results/conversation.js";
import { threadAnswer, threadSchema } from "../talk.js";

export const threadResume = defineMethod({
  name: "thread/resume",
  scope: "agent",
  summary: "The agent of a conversation goes on with what waits.",
  params: threadSchema,
  result: threadResult,
  announced: { before: ["thread/resumed"], items: false },
  async run({ thread_id, user_id }, { caller }) {
    return threadAnswer(await caller.as(user_id).thread(thread_id).resume());
  },
});
