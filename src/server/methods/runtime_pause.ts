import { z } from "zod";
import { defineMethod } from "../method.js";
import { restResult } from "../results/host.js";

const DAY_SECONDS = 86_400;

export const runtimePause = defineMethod({
  name: "runtime/pause",
  scope: "admin",
  summary:
    "The hosted agent rests in every conversation: what was begun is brought to its end, and what is said waits.",
  params: z.strictObject({ timeout_seconds: z.number().positive().max(DAY_SECONDS).optional() }),
  result: restResult,
  async run({ timeout_seconds }, { runtime }) {
    return runtime.rest.pause(timeout_seconds === undefined ? null : timeout_seconds * 1_000);
  },
});
