/** What a schema refuses, in plain words. A schema's own words, where it has some, stay as they are. */
import type { z } from "zod";

/** How the words begin that zod has by itself. */
const OWN = /^(?:Too big|Too small|Invalid\b)/;

const KINDS: Readonly<Record<string, string>> = {
  string: "text",
  number: "a number",
  int: "a whole number",
  boolean: "true or false",
  array: "a list",
  tuple: "a list",
  object: "an object",
  record: "an object",
};

/** `kinds`: other names for kinds of values, as a file has them. */
export function issueWords(issue: z.core.$ZodIssue, kinds: Readonly<Record<string, string>> = KINDS): string {
  if (!OWN.test(issue.message)) return issue.message;
  switch (issue.code) {
    case "invalid_type":
      return `must be ${kinds[issue.expected] ?? KINDS[issue.expected] ?? issue.expected}`;
    case "invalid_value":
      return `must be ${issue.values.length === 1 ? "" : "one of "}${issue.values.map(String).join(", ")}`;
    case "too_big":
      return issue.exact === true ? exactly(issue.origin, issue.maximum) : atMost(issue);
    case "too_small":
      return issue.exact === true ? exactly(issue.origin, issue.minimum) : atLeast(issue);
    case "not_multiple_of":
      return `must be a multiple of ${issue.divisor}`;
    case "invalid_format":
      return issue.pattern === undefined ? `must be of the form ${issue.format}` : `must match ${issue.pattern}`;
    case "invalid_union":
      return eitherOf(issue, kinds) ?? "is not of the documented form";
    default:
      return "is not of the documented form";
  }
}

/** The value that a path leads to; undefined where it leads nowhere. */
export function valueAt(content: unknown, path: readonly PropertyKey[]): unknown {
  let value = content;
  for (const part of path) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, part)) return undefined;
    value = (value as Record<PropertyKey, unknown>)[part];
  }
  return value;
}

function atMost({ origin, maximum, inclusive }: z.core.$ZodIssueTooBig): string {
  if (origin === "string") return `is longer than ${maximum} characters`;
  const unit = unitOf(origin);
  if (unit !== null) return `must have at most ${maximum} ${unit}`;
  return inclusive === false ? `must be less than ${maximum}` : `must be at most ${maximum}`;
}

function atLeast({ origin, minimum, inclusive }: z.core.$ZodIssueTooSmall): string {
  const unit = unitOf(origin);
  if (unit !== null) return Number(minimum) === 1 ? "must not be empty" : `must have at least ${minimum} ${unit}`;
  return inclusive === false ? `must be more than ${minimum}` : `must be at least ${minimum}`;
}

function exactly(origin: string, size: number | bigint): string {
  return `must have exactly ${size} ${unitOf(origin) ?? "parts"}`;
}

/** Null for numbers, which have no size but their value. */
function unitOf(origin: string): string | null {
  switch (origin) {
    case "string":
      return "characters";
    case "array":
    case "set":
    case "map":
    case "tuple":
      return "items";
    case "object":
    case "record":
      return "keys";
    default:
      return null;
  }
}

/** Where each of several forms is refused as a whole, for what it is. */
function eitherOf({ errors }: z.core.$ZodIssueInvalidUnion, kinds: Readonly<Record<string, string>>): string | null {
  const wholes = errors.map(([issue, ...more]) =>
    issue !== undefined && more.length === 0 && issue.path.length === 0 ? issue : undefined,
  );
  const words = wholes.map((issue) => (issue === undefined ? "" : issueWords(issue, kinds)));
  if (words.length === 0 || !words.every((one) => one.startsWith("must be "))) return null;
  return `must be ${[...new Set(words.map((one) => one.slice("must be ".length)))].join(" or ")}`;
}
