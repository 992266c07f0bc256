/** What is wrong with a file that a schema has refused, in words that say what to do. */
import type { z } from "zod";
import { issueWords, valueAt } from "../domain/issue_words.js";
import { didYouMean } from "../domain/nearest.js";
import type { KeyPath } from "./locate.js";

/** One thing that is wrong in a file, and where. */
export interface KeyProblem {
  readonly path: KeyPath;
  readonly reason: string;
}

/** Where it is in its file; null where it is about the whole of it. */
export interface PlacedProblem {
  readonly line: number | null;
  readonly column: number | null;
  /** The key, like `batching.window_ms`. */
  readonly key: string | null;
  readonly reason: string;
}

export function placedLine(file: string, { line, column, key, reason }: PlacedProblem): string {
  const place = [file, line, line === null ? null : column].filter((part) => part !== null).join(":");
  return `${place}: ${key === null ? "" : `${key} `}${reason}`;
}

/** Everything that is wrong with `content`. `unknownKey` says what to do with a key that its table may not have. */
export function keyProblems(
  issues: readonly z.core.$ZodIssue[],
  content: unknown,
  unknownKey: (path: KeyPath, key: string) => string,
): KeyProblem[] {
  return issues.flatMap((issue) => problemsOf(issue, content, unknownKey));
}

function problemsOf(
  issue: z.core.$ZodIssue,
  content: unknown,
  unknownKey: (path: KeyPath, key: string) => string,
): KeyProblem[] {
  const path = issue.path.map((part) => (typeof part === "symbol" ? String(part) : part));
  const value = valueAt(content, path);
  switch (issue.code) {
    case "unrecognized_keys":
      return issue.keys.map((key) => ({ path: [...path, key], reason: unknownKey(path, key) }));
    case "invalid_value": {
      if (value === undefined) return [{ path, reason: "is required" }];
      const allowed = issue.values.map(String);
      const hint = typeof value === "string" ? didYouMean(value, allowed) : "";
      const choice = allowed.length === 1 ? "must be" : "must be one of";
      return [{ path, reason: `${choice} ${allowed.join(", ")}, not ${shown(value)}${hint}` }];
    }
    case "invalid_type":
      if (value === undefined) return [{ path, reason: "is required" }];
      return [{ path, reason: `${issueWords(issue, KINDS)}, not ${shown(value)}` }];
    case "too_big":
    case "too_small": {
      const words = issueWords(issue, KINDS);
      return [{ path, reason: typeof value === "number" ? `${words}, not ${shown(value)}` : words }];
    }
    default:
      return [{ path, reason: issueWords(issue, KINDS) }];
  }
}

const KINDS: Readonly<Record<string, string>> = {
  string: "text in quotes",
  boolean: "true or false",
  array: "a list",
  object: "a table",
  record: "a table",
};

const SHOWN_CHARS = 60;

/** A value of the file, for a message. */
export function shown(value: unknown): string {
  if (typeof value === "string") {
    const text = JSON.stringify(value);
    return text.length > SHOWN_CHARS ? `${text.slice(0, SHOWN_CHARS)}…` : text;
  }
  if (Array.isArray(value)) return "a list";
  if (value instanceof Date) return "a date";
  return typeof value === "object" ? "a table" : String(value);
}
