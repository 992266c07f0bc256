import { seriesSchema } from "../../tidings.js";
import { defineMethod } from "../method.js";
import { seriesResult } from "../results/series.js";

export const statsSeries = defineMethod({
  name: "stats/series",
  scope: "read",
  summary: "What has happened over time, and how it stands now; admin's token sees all users unless it names one.",
  params: seriesSchema,
  result: seriesResult,
  run(params, { caller }) {
    caller.mustBeOwn(params.user_id);
    return caller.as(undefined).series(params);
  },
});
