import { z } from "zod";
import { InvalidInputError, isMiss } from "../../domain/errors.js";
import { LIMITS } from "../../domain/limits.js";
import { wordSchema } from "../../domain/parse.js";
import { defineMethod } from "../method.js";
import { steeredResult } from "../results/conversation.js";
import { inputSchema } from "../talk.js";

const word = wordSchema(LIMITS.idChars);

export const turnSteer = defineMethod({
  name: "turn/steer",
  scope: "agent",
  summary: "Words for the turn that is active, which it takes up at its next step. Refused if none is.",
  params: z.strictObject({
    thread_id: word.optional(),
    turn_id: word.optional(),
    expected_turn_id: word.optional(),
    user_id: word.optional(),
    input: inputSchema,
  }),
  result: steeredResult,
  announced: { before: [], items: true },
  async run({ thread_id, turn_id, expected_turn_id, user_id, input }, { caller }) {
    const view = caller.as(user_id);
    if (turn_id !== undefined && expected_turn_id !== undefined && turn_id !== expected_turn_id)
      throw new InvalidInputError("expected_turn_id", "is another than turn_id");
    const expected = expected_turn_id ?? turn_id;
    let where = thread_id;
    if (where === undefined) {
      if (expected === undefined) throw new InvalidInputError("thread_id", "is required, or a turn_id");
      const turn = await view.turns.read(expected);
      if (isMiss(turn)) return turn;
      where = turn.thread_id;
    }
    const turn = await view.thread(where).steer(input.text, { expected_turn_id: expected });
    return { ...turn, accepted_items: input.items };
  },
});
