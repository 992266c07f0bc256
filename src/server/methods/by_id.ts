import { z } from "zod";
import { LIMITS } from "../../domain/limits.js";
import { wordSchema } from "../../domain/parse.js";

const word = wordSchema(LIMITS.idChars);

/** One thing by its id; admin's token may look as a user. */
export const byIdSchema = z.strictObject({ id: word, user_id: word.optional() });

export const userSchema = z.strictObject({ user_id: word.optional() });
