/** What others call things, in the words of our events: always the same for the same, and two that differ stay apart. */
import { LIMITS } from "../../domain/limits.js";
import { sha256 } from "../../platform/secret.js";

const DIGEST_CHARS = 22;
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is replaced
const CONTROL = /[\u0000-\u001f\u007f]+/g;
const NOT_OF_A_TYPE = /[^A-Za-z0-9_-]+/g;

/** As it is where it fits; what is longer ends with a digest of the whole. */
export function fitted(text: string, charsMax: number): string {
  if (text.length <= charsMax) return text;
  return `${text.slice(0, charsMax - DIGEST_CHARS - 1).toWellFormed()}~${sha256(text).slice(0, DIGEST_CHARS)}`;
}

/** On one line, and fitted. */
export function lineOf(text: string, charsMax: number): string {
  return fitted(text.toWellFormed().replace(CONTROL, " ").trim(), charsMax);
}

/**
 * A type of ours: two to five segments. One that is a type already stays as it is. What a segment may not have becomes
 * `-`, empty segments go, those after the fourth are one, and a single one gets `family` before it. Null if nothing is left.
 */
export function typeOf(text: string, family: string): string | null {
  const segments = text
    .split(".")
    .map((segment) => segment.replace(NOT_OF_A_TYPE, "-").replace(/^-+|-+$/g, ""))
    .filter((segment) => segment !== "");
  if (segments.length === 0) return null;
  if (segments.length < LIMITS.typeSegmentsMin) segments.unshift(family);
  const own = segments.slice(0, LIMITS.typeSegmentsMax - 1);
  const rest = segments.slice(LIMITS.typeSegmentsMax - 1).join("-");
  const type = rest === "" ? own.join(".") : [...own, rest].join(".");
  // A digest has no other letters than a segment may have.
  return type.length <= LIMITS.typeChars ? type : fitted(type, LIMITS.typeChars).replace(/\.*~/, "-");
}
