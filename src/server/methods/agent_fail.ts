import { failSchema } from "../../agent/carriers.js";
import { defineMethod } from "../method.js";
import { carrierEndResult } from "../results/carrier.js";

export const agentFail = defineMethod({
  name: "agent/fail",
  scope: "agent",
  summary: "The agent was not told: what is in the carrier comes again, and after some attempts goes to the user.",
  params: failSchema,
  result: carrierEndResult,
  run({ carrier_id, reason }, { caller }) {
    return caller.as(undefined).carriers.fail(carrier_id, reason);
  },
});
