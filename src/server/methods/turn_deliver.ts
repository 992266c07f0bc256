import { defineMethod } from "../method.js";
import { deliveredResult } from "../results/conversation.js";
import { inputSchema, startAnswer, threadSchema } from "../talk.js";

export const turnDeliver = defineMethod({
  name: "turn/deliver",
  scope: "agent",
  summary: "To the turn that is active, else a turn of its own; says which.",
  params: threadSchema.extend({ input: inputSchema }),
  result: deliveredResult,
  announced: { before: ["turn/started"], items: true },
  async run({ thread_id, user_id, input }, { caller }) {
    const { turn, how } = await caller.as(user_id).thread(thread_id).deliver(input.text);
    const accepted_items = input.items;
    return how === "steered" ? { ...turn, how, accepted_items } : { ...startAnswer(turn), how, accepted_items };
  },
});
