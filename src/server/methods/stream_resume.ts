import { cursorSchema } from "../cursor.js";
import { defineMethod } from "../method.js";
import { resumeResult } from "../results/host.js";

export const streamResume = defineMethod({
  name: "stream/resume",
  scope: "read",
  summary:
    "Goes on after a cursor without a gap, or says that it cannot (`reset`). What was pushed before the answer does not count.",
  params: cursorSchema,
  result: resumeResult,
  async run(cursor, { runtime, session }) {
    // Without a stream it says whether one could go on from there.
    const { reset, ...bounds } = await (session === null ? runtime.canResume(cursor) : session.resume(cursor));
    return { resumed: session !== null && reset === null, reset, ...bounds };
  },
});
