import { defineMethod } from "../method.js";
import { threadResult } from "../results/conversation.js";
import { threadAnswer, threadSchema } from "../talk.js";

export const threadPause = defineMethod({
  name: "thread/pause",
  scope: "agent",
  summary: "The agent of a conversation rests: what is under way is brought to its end, and what is said waits.",
  params: threadSchema,
  result: threadResult,
  announced: { before: ["thread/paused"], items: false },
  async run({ thread_id, user_id }, { caller }) {
    return threadAnswer(await caller.as(user_id).thread(thread_id).pause());
  },
});
