import { z } from "zod";
import { LIMITS } from "../../domain/limits.js";
import { wordSchema } from "../../domain/parse.js";
import { threadBudgetsSchema } from "../../runtime/budgets.js";
import { defineMethod } from "../method.js";
import { threadResult } from "../results/conversation.js";
import { threadAnswer } from "../talk.js";

const word = wordSchema(LIMITS.idChars);

export const threadStart = defineMethod({
  name: "thread/start",
  scope: "agent",
  summary:
    "Opens a conversation and gives it an id; only admin's token may choose one. `budgets`: what it may use, within what the operator has set.",
  params: z.strictObject({
    user_id: word.optional(),
    thread_id: word.optional(),
    budgets: threadBudgetsSchema.optional(),
  }),
  result: threadResult,
  announced: { before: ["thread/started"], items: true },
  async run({ user_id, thread_id, budgets }, { caller }) {
    const thread = {
      user_id: caller.userOr(user_id),
      ...(thread_id === undefined ? {} : { thread_id }),
      ...(budgets === undefined ? {} : { budgets }),
    };
    return threadAnswer(await caller.as(undefined).startThread(thread));
  },
});
