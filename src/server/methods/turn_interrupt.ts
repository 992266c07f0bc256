import { defineMethod } from "../method.js";
import { interruptedResult } from "../results/conversation.js";
import { inputSchema, startAnswer, turnSchema } from "../talk.js";

export const turnInterrupt = defineMethod({
  name: "turn/interrupt",
  scope: "agent",
  summary: "Stops a turn; with an input, the agent goes on with that instead.",
  params: turnSchema.extend({ input: inputSchema.optional() }),
  result: interruptedResult,
  announced: { before: ["turn/interrupted", "turn/started"], items: false },
  async run({ turn_id, user_id, input }, { caller }) {
    const { turns } = caller.as(user_id);
    const { turn, outcome, unconsumed, successor } = await turns.interrupt(turn_id, { content: input?.text });
    return {
      turn_id: turn.turn_id,
      thread_id: turn.thread_id,
      state: outcome,
      turn,
      unconsumed,
      successor: successor === null ? null : startAnswer(successor),
    };
  },
});
