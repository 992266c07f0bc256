import { newTokenSchema } from "../../access/tokens.js";
import { defineMethod } from "../method.js";
import { newTokenResult } from "../results/host.js";

export const tokenCreate = defineMethod({
  name: "token/create",
  scope: "admin",
  summary: "Makes a token; its text is in this answer and nowhere else.",
  params: newTokenSchema,
  result: newTokenResult,
  run(params, { runtime }) {
    return runtime.tidings.tokens.create(params);
  },
});
