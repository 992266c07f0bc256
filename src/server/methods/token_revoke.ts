import { z } from "zod";
import { LIMITS } from "../../domain/limits.js";
import { wordSchema } from "../../domain/parse.js";
import { defineMethod } from "../method.js";
import { tokenResult } from "../results/host.js";

export const tokenRevoke = defineMethod({
  name: "token/revoke",
  scope: "admin",
  summary: "From now on the token opens nothing; connections that it opened are closed.",
  params: z.strictObject({ id: wordSchema(LIMITS.idChars) }),
  result: tokenResult,
  run({ id }, { runtime }) {
    return runtime.tidings.tokens.revoke(id);
  },
});
