import { z } from "zod";
import { InvalidInputError } from "./errors.js";
import { issueWords, valueAt } from "./issue_words.js";
import { didYouMean } from "./nearest.js";

// biome-ignore lint/suspicious/noControlCharactersInRegex: refusing control characters is the purpose
const CONTROL = /[\u0000-\u001f\u007f]/;
/** The same for those who read a description. */
const LINE = "^[^\\u0000-\\u001f\\u007f]*$";

/** One line of well-formed text. */
function isLine(text: string): boolean {
  return text.isWellFormed() && !CONTROL.test(text);
}

/** Whether `wordSchema` would take it. */
export function isWord(value: unknown, charsMax: number): value is string {
  return typeof value === "string" && value.length > 0 && value.length <= charsMax && isLine(value);
}

export function isMaybeWord(value: unknown, charsMax: number): value is string | undefined {
  return value === undefined || isWord(value, charsMax);
}

/** A plain object with no other keys than these. */
export function isPlainOf(value: unknown, keys: ReadonlySet<string>): value is Readonly<Record<string, unknown>> {
  if (typeof value !== "object" || value === null || Object.getPrototypeOf(value) !== Object.prototype) return false;
  for (const key in value) if (!keys.has(key)) return false;
  return true;
}

/** One line of well-formed text: an id, a source, a key. */
export function wordSchema(charsMax: number) {
  return z
    .string()
    .min(1, "must not be empty")
    .max(charsMax, `is longer than ${charsMax} characters`)
    .refine(isLine, "must be text without control characters")
    .meta({ pattern: LINE });
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

const UNKNOWN = "is not a known field";

/** These fields and no others; of another one it says which was probably meant, or which there are. */
export function fieldsSchema<Shape extends z.ZodRawShape>(shape: Shape) {
  return z.strictObject(shape, {
    error: (issue) => {
      if (issue.code !== "unrecognized_keys") return undefined;
      const [key = ""] = issue["keys"] as string[];
      const known = Object.keys(shape);
      return `${UNKNOWN}${didYouMean(key, known) || `; known here: ${known.join(", ")}`}`;
    },
  });
}

/** Parses, or throws the first problem as `InvalidInputError` with its field. */
export function parseInput<Output>(schema: z.ZodType<Output>, input: unknown): Output {
  const result = schema.safeParse(input);
  if (result.success) return result.data;
  const issue = result.error.issues[0];
  if (issue === undefined) throw new InvalidInputError("", "is not of the documented form");
  if (issue.code === "unrecognized_keys") {
    const reason = issue.message.startsWith(UNKNOWN) ? issue.message : UNKNOWN;
    throw new InvalidInputError([...issue.path, issue.keys[0] ?? ""].join("."), reason);
  }
  throw new InvalidInputError(issue.path.join("."), isMissing(issue, input) ? "is required" : issueWords(issue));
}

/** Whether nothing is there at all; a schema with words of its own says so itself. */
function isMissing(issue: z.core.$ZodIssue, input: unknown): boolean {
  if (issue.code === "invalid_type") return issue.message.endsWith("received undefined");
  const isOwn =
    (issue.code === "invalid_value" || issue.code === "invalid_union") && issue.message.startsWith("Invalid ");
  return isOwn && issue.path.length > 0 && valueAt(input, issue.path) === undefined;
}
