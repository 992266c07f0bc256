import { renewSchema } from "../../agent/carriers.js";
import { isMiss } from "../../domain/errors.js";
import { defineMethod } from "../method.js";
import { renewResult } from "../results/carrier.js";

export const agentRenew = defineMethod({
  name: "agent/renew",
  scope: "agent",
  summary: "Holds a carrier longer.",
  params: renewSchema,
  result: renewResult,
  async run({ carrier_id, lease_ms }, { caller }) {
    const lease = await caller.as(undefined).carriers.renew(carrier_id, lease_ms);
    return isMiss(lease) ? lease : { lease };
  },
});
