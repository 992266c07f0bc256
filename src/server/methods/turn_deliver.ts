import { defineMethod } from "../method.js";
import { inputSchema, startAnswer, threadSchema } from "../talk.js";

export const turnDeliver = defineMethod({
  name: "turn/deliver",
  scope: "agent",
  summary: "To the turn that is active, else a turn of its own; says which.",
  params: threadSchema.extend({ input: inputSchema }),
  announced: true,
  async run({ thread_id, user_id, input }, { caller }) {
    const { turn, how } = await caller.as(user_id).thread(thread_id).deliver(input.text);
    return { ...(how === "steered" ? turn : startAnswer(turn)), how, accepted_items: input.items };
  },
});
