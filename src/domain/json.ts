import { InvalidInputError } from "./errors.js";
import { LIMITS } from "./limits.js";

export type Json = null | boolean | number | string | readonly Json[] | JsonObject;
export interface JsonObject {
  readonly [key: string]: Json;
}

const FORBIDDEN_KEYS: ReadonlySet<string> = new Set(["__proto__", "constructor", "prototype"]);

/** Checks that `value` is plain JSON within the limits; `field` names it in the error. */
function assertJsonObject(value: unknown, field: string): asserts value is JsonObject {
  if (!isPlainObject(value)) throw new InvalidInputError(field, "must be a JSON object");
  walk(value, field, 1, { keys: 0 });
}

function walk(value: unknown, field: string, depth: number, seen: { keys: number }): void {
  switch (typeof value) {
    case "string":
      if (!value.isWellFormed()) throw new InvalidInputError(field, "holds a lone surrogate, which is not text");
      return;
    case "boolean":
      return;
    case "number":
      if (!Number.isFinite(value)) throw new InvalidInputError(field, "holds a number that JSON cannot express");
      return;
    case "object":
      break;
    default:
      throw new InvalidInputError(field, `holds a ${typeof value}, which is not JSON`);
  }
  if (value === null) return;
  if (depth > LIMITS.payloadDepth)
    throw new InvalidInputError(field, `is nested deeper than ${LIMITS.payloadDepth} levels`);
  if (Array.isArray(value)) {
    count(field, seen, value.length);
    for (const item of value) walk(item, field, depth + 1, seen);
    return;
  }
  if (!isPlainObject(value)) throw new InvalidInputError(field, "holds an object that is not plain JSON");
  for (const key of Object.keys(value)) {
    count(field, seen, 1);
    if (FORBIDDEN_KEYS.has(key)) throw new InvalidInputError(field, `has the forbidden key ${JSON.stringify(key)}`);
    if (!key.isWellFormed()) throw new InvalidInputError(field, "has a key with a lone surrogate, which is not text");
    walk(value[key], field, depth + 1, seen);
  }
}

function count(field: string, seen: { keys: number }, more: number): void {
  seen.keys += more;
  if (seen.keys > LIMITS.payloadKeys)
    throw new InvalidInputError(field, `has more than ${LIMITS.payloadKeys} keys and array items`);
}

function isPlainObject(value: unknown): value is Record<string, unknown> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
  const prototype = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

/** The same value always gives the same text, whatever the order of its keys. */
export function canonicalJson(value: Json): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const object = value as JsonObject;
  const keys = Object.keys(object).sort();
  return `{${keys.map((key) => `${JSON.stringify(key)}:${canonicalJson(object[key] as Json)}`).join(",")}}`;
}

const texts = new WeakMap<JsonObject, string>();

/**
 * A copy of what came in at the border, checked; nobody outside has it, so that it cannot change any more, and its
 * JSON text is kept beside it.
 */
export function takeJson(value: unknown, field: string): JsonObject {
  assertJsonObject(value, field);
  const text = JSON.stringify(value);
  const copy = JSON.parse(text) as JsonObject;
  texts.set(copy, text);
  return copy;
}

/** The JSON text of an object; known already for one that `takeJson` made. */
export function jsonText(value: JsonObject): string {
  return texts.get(value) ?? JSON.stringify(value);
}
