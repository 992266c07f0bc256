import { z } from "zod";
import { defineMethod } from "../method.js";
import { restResult } from "../results/host.js";

export const runtimeResume = defineMethod({
  name: "runtime/resume",
  scope: "admin",
  summary: "The hosted agent goes on with what waits. Conversations that are paused themselves stay so.",
  params: z.strictObject({}),
  result: restResult,
  run(_params, { runtime }) {
    return runtime.rest.resume();
  },
});
