import { defineMethod } from "../method.js";
import { threadResult } from "../results/conversation.js";
import { threadAnswer, threadSchema } from "../talk.js";

export const threadClose = defineMethod({
  name: "thread/close",
  scope: "agent",
  summary: "Ends a conversation: a turn that runs is cut short, and what was in it goes to the inbox, or ends.",
  params: threadSchema,
  result: threadResult,
  announced: { before: ["thread/closed"], items: false },
  async run({ thread_id, user_id }, { caller }) {
    return threadAnswer(await caller.as(user_id).thread(thread_id).close());
  },
});
