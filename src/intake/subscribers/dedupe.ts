import { canonicalJson, type Json, type JsonObject, textJson } from "../../domain/json.js";
import { atPath, type JsonPath, pathProblem } from "../../domain/json_path.js";
import { didYouMean } from "../../domain/nearest.js";
import type { Severity } from "../../domain/severity.js";
import { sha256 } from "../../platform/secret.js";

/** What a key is made of. */
export interface KeyedEvent {
  readonly type: string;
  readonly source: string;
  readonly severity: Severity;
  readonly subject: string | null;
  readonly payload: JsonObject;
}

const FIELDS = ["type", "source", "severity", "subject"] as const;
type Field = (typeof FIELDS)[number];
type Part = { readonly field: Field } | { readonly path: JsonPath };

const EXPRESSION_CHARS = 500;
const PARTS_MAX = 16;

/** What stands for a part that the event lacks; no JSON text begins so, so it is no value's text. */
const MISSING = "~";

/**
 * Which events count as the same one, as a subscriber's file says it: `type:payload.tool_name`. Parts are joined by `:`;
 * each is a field of the event, or a path into its payload by own keys (of an array: by index).
 */
export class DedupeExpression {
  readonly text: string;
  readonly #parts: readonly Part[];

  private constructor(text: string, parts: readonly Part[]) {
    this.text = text;
    this.#parts = parts;
  }

  /** The expression, or why it is none. */
  static parse(text: string): DedupeExpression | { readonly reason: string } {
    if (text.length > EXPRESSION_CHARS) return { reason: `is longer than ${EXPRESSION_CHARS} characters` };
    const words = text.split(":");
    if (words.length > PARTS_MAX) return { reason: `has more than ${PARTS_MAX} parts` };
    const parts: Part[] = [];
    for (const word of words) {
      const part = partOf(word);
      if ("reason" in part) return part;
      parts.push(part);
    }
    return new DedupeExpression(text, parts);
  }

  /**
   * Two events have the same key if and only if every part is the same: the same JSON value, or missing in both. A long
   * key is a digest of it.
   */
  keyOf(event: KeyedEvent): string {
    let text = "";
    for (let index = 0; index < this.#parts.length; index += 1) {
      if (index > 0) text += ",";
      text += textOf(partValue(event, this.#parts[index] as Part));
    }
    return bounded("expression", text);
  }
}

/**
 * The key of an event that has none, for a subscriber without an expression: all that tells what happened, so that
 * different failures of one source stay apart. When it happened, and the producer's id, are not in it.
 */
export function derivedKey({ type, source, severity, subject, payload }: KeyedEvent): string {
  const what = `${type},${severity},${textJson(source)},${subject === null ? "null" : textJson(subject)}`;
  return bounded("derived", `${what},${canonicalJson(payload)}`);
}

/** Keys are kept with every notification, and looked up: what is longer than this is shorter as a digest. */
const KEY_CHARS = 80;
/** 132 bits: two texts that differ never have the same, by accident or by design. */
const DIGEST_CHARS = 22;

function bounded(kind: string, text: string): string {
  const isShort = kind.length + 1 + text.length <= KEY_CHARS;
  return isShort ? `${kind}:${text}` : `${kind}#${sha256(text).slice(0, DIGEST_CHARS)}`;
}

function partOf(word: string): Part | { readonly reason: string } {
  if (isField(word)) return { field: word };
  const named = JSON.stringify(word);
  const [root, ...path] = word.split(".");
  if (root !== "payload")
    return {
      reason: `${named} is not a part; parts are type, source, severity, subject and payload.KEY, joined by :${didYouMean(word, FIELDS)}`,
    };
  if (path.length === 0) return { reason: "payload alone is not a part: name a key of it, like payload.tool_name" };
  const problem = pathProblem(path);
  return problem === null ? { path } : { reason: `${named} ${problem}` };
}

function isField(word: string): word is Field {
  return (FIELDS as readonly string[]).includes(word);
}

function partValue(event: KeyedEvent, part: Part): Json | undefined {
  if ("field" in part) return event[part.field] ?? undefined;
  return atPath(event.payload, part.path);
}

function textOf(value: Json | undefined): string {
  return value === undefined ? MISSING : canonicalJson(value);
}
