import { z } from "zod";
import { defineMethod } from "../method.js";
import { logResult } from "../results/host.js";

const LINES_MAX = 1_000;

export const runtimeLogStream = defineMethod({
  name: "runtime/logStream",
  scope: "admin",
  summary:
    "The newest lines of the server's log; with `follow`, over a stream, also those that come, as `runtime/log`.",
  params: z.strictObject({
    follow: z.boolean().default(false),
    limit: z.int().min(0).max(LINES_MAX).default(100),
  }),
  result: logResult,
  async run({ follow, limit }, { runtime, session }) {
    const lines = limit === 0 ? [] : runtime.log.recent().slice(-limit);
    if (follow) session?.followLog();
    return { lines, following: follow && session !== null };
  },
});
