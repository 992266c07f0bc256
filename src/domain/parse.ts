import { z } from "zod";
import { InvalidInputError } from "./errors.js";

// biome-ignore lint/suspicious/noControlCharactersInRegex: refusing control characters is the purpose
const CONTROL = /[\u0000-\u001f\u007f]/;

/** One line of well-formed text: an id, a source, a key. */
export function wordSchema(charsMax: number) {
  return z
    .string()
    .min(1, "must not be empty")
    .max(charsMax, `is longer than ${charsMax} characters`)
    .refine((text) => text.isWellFormed() && !CONTROL.test(text), "must be text without control characters");
}

/** Free text of any lines. */
export function textSchema(charsMax: number) {
  return z
    .string()
    .min(1, "must not be empty")
    .max(charsMax, `is longer than ${charsMax} characters`)
    .refine((text) => text.isWellFormed(), "holds a lone surrogate, which is not text");
}

/** ISO 8601 with a zone; kept in UTC. */
export const timestampSchema = z.iso
  .datetime({ offset: true, message: "must be an ISO 8601 time with a zone, like 2026-01-03T15:30:00Z" })
  .transform((text) => new Date(text).toISOString());

/** Parses, or throws the first problem as `InvalidInputError` with its field. */
export function parseInput<Output>(schema: z.ZodType<Output>, input: unknown): Output {
  const result = schema.safeParse(input);
  if (result.success) return result.data;
  const issue = result.error.issues[0];
  if (issue === undefined) throw new InvalidInputError("", "is not of the documented form");
  if (issue.code === "unrecognized_keys")
    throw new InvalidInputError([...issue.path, issue.keys[0] ?? ""].join("."), "is not a known field");
  const missing = issue.code === "invalid_type" && issue.message.endsWith("received undefined");
  throw new InvalidInputError(issue.path.join("."), missing ? "is required" : issue.message);
}
