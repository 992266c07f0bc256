/** A way into a JSON value, as files name it: own keys, of an array its indexes, joined by dots. */
import type { Json, JsonObject } from "./json.js";
import { LIMITS } from "./limits.js";

export type JsonPath = readonly string[];

const FORBIDDEN: ReadonlySet<string> = new Set(["__proto__", "constructor", "prototype"]);
const KEY = /^[^.:\s]+$/;
const INDEX = /^(0|[1-9][0-9]{0,8})$/;

/** What is wrong with a path; null if it is one. */
export function pathProblem(path: JsonPath): string | null {
  if (path.length > LIMITS.payloadDepth) return `is deeper than ${LIMITS.payloadDepth} levels`;
  for (const key of path) {
    if (!KEY.test(key)) return "has an empty key, or one with a space";
    if (FORBIDDEN.has(key)) return `names ${key}, which no payload has`;
  }
  return null;
}

/** What is there; undefined if nothing is. */
export function atPath(value: Json, path: JsonPath): Json | undefined {
  let found: Json | undefined = value;
  for (const key of path) found = childOf(found, key);
  return found;
}

/** Own keys only: what an object inherits is not the producer's word. */
function childOf(value: Json | undefined, key: string): Json | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  if (Array.isArray(value)) return INDEX.test(key) ? value[Number(key)] : undefined;
  return Object.hasOwn(value, key) ? (value as JsonObject)[key] : undefined;
}
