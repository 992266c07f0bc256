import { settleSchema } from "../../agent/carriers.js";
import { defineMethod } from "../method.js";
import { settleResult } from "../results/carrier.js";

export const agentSettle = defineMethod({
  name: "agent/settle",
  scope: "agent",
  summary: "The agent was told. What it must tell the user and has not acknowledged goes to the user now.",
  params: settleSchema,
  result: settleResult,
  run({ carrier_id, acknowledged_ids }, { caller }) {
    return caller.as(undefined).carriers.settle(carrier_id, { acknowledged_ids });
  },
});
