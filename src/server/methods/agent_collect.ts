import { collectSchema } from "../../agent/carriers.js";
import { defineMethod } from "../method.js";
import { collectResult } from "../results/carrier.js";

export const agentCollect = defineMethod({
  name: "agent/collect",
  scope: "agent",
  summary:
    "What the agent of a thread is to be told at a delivery point, held under a lease; waits for it if asked to.",
  params: collectSchema,
  result: collectResult,
  async run(params, { caller, runtime, bytesMax, gone }) {
    const letGo = params.wait_ms > 0 ? runtime.waits.hold(caller.user_id) : undefined;
    try {
      const { carriers } = caller.as(undefined);
      // Each text is in it twice: by itself, and in the block.
      return { carrier: await carriers.collect(params, { signal: gone, bytes_max: bytesMax / 2 }) };
    } finally {
      letGo?.();
    }
  },
});
