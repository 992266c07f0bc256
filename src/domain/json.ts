import { InvalidInputError } from "./errors.js";
import { LIMITS } from "./limits.js";

export type Json = null | boolean | number | string | readonly Json[] | JsonObject;
export interface JsonObject {
  readonly [key: string]: Json;
}

const FORBIDDEN_KEYS: ReadonlySet<string> = new Set(["__proto__", "constructor", "prototype"]);

/** A copy of `value`, which must be plain JSON within the limits; `field` names it in the error. */
function copied(value: unknown, field: string, depth: number, seen: { keys: number }): Json {
  switch (typeof value) {
    case "string":
      if (!value.isWellFormed()) throw new InvalidInputError(field, "holds a lone surrogate, which is not text");
      return value;
    case "boolean":
      return value;
    case "number":
      if (!Number.isFinite(value)) throw new InvalidInputError(field, "holds a number that JSON cannot express");
      // JSON has no -0.
      return value === 0 ? 0 : value;
    case "object":
      break;
    default:
      throw new InvalidInputError(field, `holds a ${typeof value}, which is not JSON`);
  }
  if (value === null) return null;
  if (depth > LIMITS.payloadDepth)
    throw new InvalidInputError(field, `is nested deeper than ${LIMITS.payloadDepth} levels`);
  if (Array.isArray(value)) {
    count(field, seen, value.length);
    const items: Json[] = [];
    for (const item of value) items.push(copied(item, field, depth + 1, seen));
    return items;
  }
  if (!isPlainObject(value)) throw new InvalidInputError(field, "holds an object that is not plain JSON");
  const copy: Record<string, Json> = {};
  for (const key of Object.keys(value)) {
    count(field, seen, 1);
    if (FORBIDDEN_KEYS.has(key)) throw new InvalidInputError(field, `has the forbidden key ${JSON.stringify(key)}`);
    if (!key.isWellFormed()) throw new InvalidInputError(field, "has a key with a lone surrogate, which is not text");
    copy[key] = copied(value[key], field, depth + 1, seen);
  }
  return copy;
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

/** From here on the engine's own sort is the faster one. */
const FEW = 16;

/** In place, by code units. */
function sorted(keys: string[]): string[] {
  if (keys.length > FEW) return keys.sort();
  for (let index = 1; index < keys.length; index += 1) {
    const key = keys[index] as string;
    let place = index;
    for (; place > 0 && (keys[place - 1] as string) > key; place -= 1) keys[place] = keys[place - 1] as string;
    keys[place] = key;
  }
  return keys;
}

/** The same value always gives the same text, whatever the order of its keys. */
export function canonicalJson(value: Json): string {
  if (typeof value === "string") return textJson(value);
  if (typeof value !== "object" || value === null) return String(value);
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(",")}]`;
  const object = value as JsonObject;
  const keys = sorted(Object.keys(object));
  if (keys.length === 0) return "{}";
  let text = "";
  for (let index = 0; index < keys.length; index += 1) {
    const key = keys[index] as string;
    text += `${index === 0 ? "{" : ","}${keyJson(key)}${canonicalJson(object[key] as Json)}`;
  }
  return `${text}}`;
}

const KNOWN_MAX = 1_024;
const KNOWN_CHARS_MAX = 64;
const KNOWN_KEYS = new Map<string, string>();

/** A key as it stands in an object's JSON, with its colon. Producers send the same few. */
function keyJson(key: string): string {
  let text = KNOWN_KEYS.get(key);
  if (text === undefined) {
    text = `${textJson(key)}:`;
    if (key.length > KNOWN_CHARS_MAX) return text;
    if (KNOWN_KEYS.size >= KNOWN_MAX) KNOWN_KEYS.clear();
    KNOWN_KEYS.set(key, text);
  }
  return text;
}

/** Nothing in it is escaped. */
const PLAIN = /^[\x20\x21\x23-\x5b\x5d-\x7e]*$/;

/** The JSON of a text, without asking for it where it is the text in quotes. */
export function textJson(text: string): string {
  return PLAIN.test(text) ? `"${text}"` : JSON.stringify(text);
}

class Given {
  constructor(object: object) {
    // biome-ignore lint/correctness/noConstructorReturn: so that a class below gives its private field to an object
    return object;
  }
}

/** The JSON text of an object, kept in the object itself, unseen. A WeakMap would cost more than making the text. */
class KeptText extends Given {
  readonly #text: string;

  constructor(object: JsonObject, text: string) {
    super(object);
    this.#text = text;
  }

  static of(object: JsonObject): string | undefined {
    return #text in object ? object.#text : undefined;
  }
}

/**
 * A copy of what came in at the border, checked; nobody outside has it, so that it cannot change any more, and its
 * JSON text is kept beside it.
 */
export function takeJson(value: unknown, field: string): JsonObject {
  if (!isPlainObject(value)) throw new InvalidInputError(field, "must be a JSON object");
  const copy = copied(value, field, 1, { keys: 0 }) as JsonObject;
  new KeptText(copy, JSON.stringify(copy));
  return copy;
}

/** The JSON text of an object; known already for one that `takeJson` made. */
export function jsonText(value: JsonObject): string {
  return KeptText.of(value) ?? JSON.stringify(value);
}
