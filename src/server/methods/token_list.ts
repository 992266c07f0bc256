import { defineMethod } from "../method.js";
import { tokensResult } from "../results/host.js";
import { userSchema } from "./by_id.js";

export const tokenList = defineMethod({
  name: "token/list",
  scope: "admin",
  summary: "Every token, oldest first, without its text; also the revoked ones.",
  params: userSchema,
  result: tokensResult,
  async run(params, { runtime }) {
    return { tokens: await runtime.tidings.tokens.list(params) };
  },
});
