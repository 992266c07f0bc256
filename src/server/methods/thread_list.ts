import { z } from "zod";
import { LIMITS } from "../../domain/limits.js";
import { wordSchema } from "../../domain/parse.js";
import { defineMethod } from "../method.js";
import { threadsResult } from "../results/conversation.js";
import { summaryAnswer } from "../talk.js";

const word = wordSchema(LIMITS.idChars);

export const threadList = defineMethod({
  name: "thread/list",
  scope: "read",
  summary: "A user's conversations, the most recently active first.",
  params: z.strictObject({
    user_id: word.optional(),
    after: word.optional(),
    limit: z.int().min(1).max(LIMITS.listLimit).default(100),
  }),
  result: threadsResult,
  async run({ user_id, after, limit }, { caller }) {
    const page = { user_id: caller.userOr(user_id), limit, ...(after === undefined ? {} : { after }) };
    const threads = await caller.as(user_id).threads(page);
    const next = threads.length < limit ? null : (threads.at(-1)?.thread_id ?? null);
    return { threads: threads.map(summaryAnswer), next };
  },
});
