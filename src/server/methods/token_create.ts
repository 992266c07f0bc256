import { newTokenSchema } from "../../access/tokens.js";
import { defineMethod } from "../method.js";

export const tokenCreate = defineMethod({
  name: "token/create",
  scope: "admin",
  summary: "Makes a token; its text is in this answer and nowhere else.",
  params: newTokenSchema,
  run(params, { runtime }) {
    return runtime.tidings.tokens.create(params);
  },
});
