import { defineMethod } from "../method.js";
import { startedResult } from "../results/conversation.js";
import { inputSchema, startAnswer, threadSchema } from "../talk.js";

export const turnStart = defineMethod({
  name: "turn/start",
  scope: "agent",
  summary: "A message to the agent: its turn is active, or queued while the conversation is busy or paused.",
  params: threadSchema.extend({ input: inputSchema }),
  result: startedResult,
  announced: { before: ["turn/started"], items: true },
  async run({ thread_id, user_id, input }, { caller }) {
    return startAnswer(await caller.as(user_id).thread(thread_id).say(input.text));
  },
});
