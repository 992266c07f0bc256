/** JSON as it comes from outside. */
import { InvalidInputError } from "../domain/errors.js";
import type { ServerLimits } from "./limits.js";

const utf8 = new TextDecoder("utf-8", { fatal: true });

export type JsonBounds = Pick<ServerLimits, "jsonDepth" | "jsonKeys">;

/** It is JSON, but more of it than anybody goes through. */
export class JsonShapeError extends InvalidInputError {
  /** What it is all the same. */
  readonly value: unknown;

  constructor(reason: string, value: unknown) {
    super("", reason);
    this.value = value;
  }
}

/** Text that is no UTF-8, no JSON, or nested too deep is told apart. Of a key that is there twice, the last counts. */
export function parseJson(bytes: Uint8Array, bounds: JsonBounds): unknown {
  let text: string;
  try {
    text = utf8.decode(bytes);
  } catch {
    throw new InvalidInputError("", "is not UTF-8");
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new InvalidInputError("", `is not JSON: ${why.slice(0, 200)}`);
  }
  const tooMuch = problemOf(value, bounds);
  if (tooMuch !== undefined) throw new JsonShapeError(tooMuch, value);
  return value;
}

/** What is too much of it, if anything is. It is gone through no deeper, and no further, than it may be. */
function problemOf(value: unknown, { jsonDepth, jsonKeys }: JsonBounds): string | undefined {
  let keys = 0;
  const isFine = (one: unknown, depth: number): boolean => {
    if (typeof one !== "object" || one === null) return true;
    if (depth === jsonDepth) return false;
    const values = Array.isArray(one) ? one : Object.values(one);
    keys += values.length;
    return keys <= jsonKeys && values.every((inner) => isFine(inner, depth + 1));
  };
  if (isFine(value, 0)) return undefined;
  return keys > jsonKeys
    ? `has more than ${jsonKeys} keys and array items`
    : `is nested deeper than ${jsonDepth} levels`;
}
