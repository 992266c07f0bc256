import { readSchema, type ThreadPage } from "../../runtime/conversation.js";
import { defineMethod } from "../method.js";
import { threadPageResult } from "../results/conversation.js";
import { threadAnswer, threadSchema } from "../talk.js";

export const threadRead = defineMethod({
  name: "thread/read",
  scope: "read",
  summary: "A conversation as people see it, oldest first. A page that would be too large is shorter.",
  params: threadSchema.extend(readSchema.shape),
  result: threadPageResult,
  async run({ thread_id, user_id, limit, ...options }, { caller, bytesMax }) {
    const thread = caller.as(user_id).thread(thread_id);
    const page = await pageWithin((few) => thread.read({ ...options, limit: few }), limit, bytesMax);
    return { ...page, thread: threadAnswer(page.thread) };
  },
});

/** Half as much, until it fits; one entry is read always. */
async function pageWithin(
  read: (limit: number) => Promise<ThreadPage>,
  limit: number,
  bytesMax: number,
): Promise<ThreadPage> {
  const page = await read(limit);
  if (limit === 1 || Buffer.byteLength(JSON.stringify([page.items, page.turns])) <= bytesMax) return page;
  return pageWithin(read, Math.ceil(limit / 2), bytesMax);
}
