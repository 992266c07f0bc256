/** What can be done with values. Everything whose cost depends on a value counts it. */
import { cleanText } from "../../domain/clean.js";
import type { Run } from "./run.js";
import {
  FORBIDDEN_NAMES,
  field,
  isList,
  isObject,
  itemAt,
  nameOf,
  put,
  RANKS,
  ToonText,
  type Value,
  type ValueObject,
} from "./value.js";

/** Its own keys, in their order. */
export function keysOf(run: Run, object: ValueObject): string[] {
  const keys = Object.keys(object);
  run.step(keys.length / 8);
  return keys;
}

/** An own value of an object; undefined of anything else. */
export function fieldOf(run: Run, value: Value, key: string): Value {
  if (!run.plain) return field(value, key);
  return isObject(value) && Object.hasOwn(value, key) ? value[key] : undefined;
}

export function itemOf(run: Run, list: readonly Value[], index: number): Value {
  if (!run.plain) return itemAt(list, index);
  return index >= 0 && index < list.length ? list[index] : undefined;
}

/** `a.b`, `a["b"]`, `a[0]`, `a[-1]`: undefined if there is no such thing, also where `a` itself is undefined. */
export function lookup(run: Run, value: Value, key: Value): Value {
  run.step();
  if (typeof key === "string") {
    if (FORBIDDEN_NAMES.has(key)) throw run.failure(`${JSON.stringify(key)} is no key that a template may ask for`);
    return fieldOf(run, value, key);
  }
  if (typeof key !== "number" || !Number.isInteger(key)) return undefined;
  if (isObject(value)) return fieldOf(run, value, String(key));
  const list = typeof value === "string" ? characters(run, value) : value;
  return isList(list) ? itemOf(run, list, key < 0 ? list.length + key : key) : undefined;
}

/** `payload.tool_name`, from the outside in. */
export function lookupPath(run: Run, value: Value, path: string): Value {
  let found = value;
  for (const key of keysIn(path)) found = lookup(run, found, isList(found) && INDEX.test(key) ? Number(key) : key);
  return found;
}

const INDEX = /^\d{1,9}$/;
const PATHS_MAX = 1_024;
const PATHS = new Map<string, readonly string[]>();

/** A template asks for the same few paths in every row. */
function keysIn(path: string): readonly string[] {
  let keys = PATHS.get(path);
  if (keys === undefined) {
    keys = path.split(".");
    if (PATHS.size >= PATHS_MAX) PATHS.clear();
    PATHS.set(path, keys);
  }
  return keys;
}

/** By code points: no character is ever cut in half. */
export function characters(run: Run, text: string): string[] {
  run.step(1 + text.length / 8);
  return Array.from(text);
}

export function isTrue(run: Run, value: Value): boolean {
  if (typeof value === "string") return value !== "";
  if (value === undefined || value === null || value === 0 || value === false) return false;
  if (isList(value)) return value.length > 0;
  if (value instanceof ToonText) return value.text !== "";
  return isObject(value) ? keysOf(run, value).length > 0 : true;
}

/** The text of a value, as `~`, `join` and the filters on text take it. */
export function textOf(run: Run, value: Value): string {
  if (typeof value === "string") return value;
  if (value === undefined) return "";
  if (value instanceof ToonText) return value.text;
  if (value === null || typeof value !== "object") return String(value);
  return jsonOf(run, value);
}

export function jsonOf(run: Run, value: Value): string {
  return run.made(JSON.stringify(cleanCopy(run, value)));
}

export type CleanJson = null | boolean | number | string | CleanJson[] | { [key: string]: CleanJson };

/** The first so many characters of a value's text, and some more, cleaned: its cost is theirs and not the whole text's. */
export function beginning(run: Run, value: Value, chars: number): { text: string; whole: boolean } {
  const units = unitsFor(chars);
  if (isList(value) || isObject(value)) {
    const json = run.made(JSON.stringify(cleanCopy(run, value, units)));
    return { text: json, whole: json.length <= units };
  }
  const text = textOf(run, value);
  return { text: cleaned(run, prefix(text, units)), whole: text.length <= units };
}

/** A character may be two units of a text, and one that is not seen may follow each. */
function unitsFor(chars: number): number {
  return 3 * chars + 16;
}

function prefix(text: string, units: number): string {
  if (text.length <= units) return text;
  const cutsPair = /[\ud800-\udbff]/.test(text.charAt(units - 1));
  return text.slice(0, cutsPair ? units - 1 : units);
}

/** More than a rendering can make, and a number that costs nothing to keep. */
const UNBOUNDED = 2 ** 30 - 1;

/**
 * A copy for an encoder: plain JSON within the limits, every text and key cleaned, undefined as null. A list that holds
 * one list many times is as large as what it looks like, so every item costs. Of two keys that cleaning makes equal, the
 * one that needed none stays, else the first. With `room`, what lies beyond so many characters of its JSON is left out.
 */
export function cleanCopy(run: Run, value: Value, room = UNBOUNDED): CleanJson {
  let chars = 0;
  let left = room;
  const text = (raw: string): string => {
    const seen = prefix(raw, unitsFor(left));
    chars += seen.length;
    run.within(chars);
    const clean = cleaned(run, seen);
    left -= clean.length + 2;
    return clean;
  };
  const copyOf = (one: Value, depth: number): CleanJson => {
    run.step(8);
    left -= 1;
    if (typeof one === "string") return text(one);
    if (one === undefined || one === null) return null;
    if (one instanceof ToonText) return text(one.text);
    if (typeof one !== "object") return one;
    if (depth >= run.limits.depth) throw run.overrun(`a value is nested deeper than ${run.limits.depth} levels`);
    if (isList(one)) {
      const items: CleanJson[] = [];
      for (let index = 0; index < one.length && left > 0; index += 1) {
        run.step();
        items.push(copyOf(itemOf(run, one, index), depth + 1));
      }
      return items;
    }
    if (!isObject(one)) return null;
    const copy: { [key: string]: CleanJson } = {};
    for (const key of keysOf(run, one)) {
      if (left <= 0) break;
      const name = text(key);
      if (name !== key && Object.hasOwn(copy, name)) continue;
      put(copy, name, copyOf(fieldOf(run, one, key), depth + 1));
    }
    return copy;
  };
  return copyOf(value, 0);
}

export function cleaned(run: Run, text: string): string {
  run.step(text.length / 16);
  const clean = cleanText(text);
  // What is removed costs the most.
  if (clean.length < text.length) run.step(text.length - clean.length);
  return clean;
}

export function isEqual(run: Run, left: Value, right: Value, depth = 0): boolean {
  run.step(4);
  if (left instanceof ToonText) return isEqual(run, left.text, right);
  if (right instanceof ToonText) return isEqual(run, left, right.text);
  if (typeof left === "string" && typeof right === "string") {
    run.step(Math.min(left.length, right.length) / 64);
    return left === right;
  }
  if (depth >= run.limits.depth) throw run.overrun(`a value is nested deeper than ${run.limits.depth} levels`);
  if (isList(left) && isList(right)) {
    if (left.length !== right.length) return false;
    for (let index = 0; index < left.length; index++)
      if (!isEqual(run, itemOf(run, left, index), itemOf(run, right, index), depth + 1)) return false;
    return true;
  }
  if (isObject(left) && isObject(right)) {
    const keys = keysOf(run, left);
    return (
      keys.length === keysOf(run, right).length &&
      keys.every(
        (key) =>
          Object.hasOwn(right, key) && isEqual(run, fieldOf(run, left, key), fieldOf(run, right, key), depth + 1),
      )
    );
  }
  return left === right;
}

/** Whether `left` comes before (negative) or after `right`: numbers with numbers, texts with texts. */
export function compare(run: Run, left: Value, right: Value): number {
  if (typeof left === "number" && typeof right === "number") return left - right;
  if (typeof left === "string" && typeof right === "string") return compareTexts(run, left, right);
  throw run.failure(`${nameOf(left)} and ${nameOf(right)} cannot be compared`);
}

function compareTexts(run: Run, left: string, right: string): number {
  run.step(1 + Math.min(left.length, right.length) / 64);
  return left < right ? -1 : left > right ? 1 : 0;
}

/** Total: values of different kinds are ordered by kind, lists and objects among themselves stay as they are. */
export function order(run: Run, left: Value, right: Value): number {
  run.step();
  const kinds = RANKS.indexOf(nameOf(left)) - RANKS.indexOf(nameOf(right));
  if (kinds !== 0) return kinds;
  if (typeof left === "number" || typeof left === "string") return compare(run, left, right);
  return typeof left === "boolean" ? Number(left) - Number(right) : 0;
}
