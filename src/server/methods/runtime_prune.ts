import { z } from "zod";
import { defineMethod } from "../method.js";
import { pruneResult } from "../results/host.js";

export const runtimePrune = defineMethod({
  name: "runtime/prune",
  scope: "admin",
  summary: "Removes settled history older than this; answers when it is done.",
  params: z.strictObject({ older_than_ms: z.int().min(0) }),
  result: pruneResult,
  run(params, { runtime }) {
    return runtime.tidings.prune(params);
  },
});
