/** What can be done with values. Everything whose cost depends on a value counts it. */
import { cleanText } from "../../domain/clean.js";
import type { Run } from "./run.js";
import {
  FORBIDDEN_NAMES,
  field,
  isList,
  isObject,
  itemAt,
  itemsIn,
  nameOf,
  newObject,
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

/** `a.b`, `a["b"]`, `a[0]`, `a[-1]`: undefined if there is no such thing, also where `a` itself is undefined. */
export function lookup(run: Run, value: Value, key: Value): Value {
  run.step();
  if (typeof key === "string") {
    if (FORBIDDEN_NAMES.has(key)) throw run.failure(`${JSON.stringify(key)} is no key that a template may ask for`);
    return field(value, key);
  }
  if (typeof key !== "number" || !Number.isInteger(key)) return undefined;
  if (isObject(value)) return field(value, String(key));
  const list = typeof value === "string" ? characters(run, value) : value;
  return isList(list) ? itemAt(list, key < 0 ? list.length + key : key) : undefined;
}

/** `payload.tool_name`, from the outside in. */
export function lookupPath(run: Run, value: Value, path: string): Value {
  let found = value;
  for (const key of path.split("."))
    found = lookup(run, found, /^\d{1,9}$/.test(key) && isList(found) ? Number(key) : key);
  return found;
}

/** By code points: no character is ever cut in half. */
export function characters(run: Run, text: string): string[] {
  run.step(1 + text.length / 8);
  return Array.from(text);
}

export function isTrue(run: Run, value: Value): boolean {
  if (value === undefined || value === null || value === "" || value === 0 || value === false) return false;
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

/**
 * A copy for an encoder: plain JSON within the limits, every text and key cleaned, undefined as null. A list that holds
 * one list many times is as large as what it looks like, so every item costs. Of two keys that cleaning makes equal, the
 * one that needed none stays, else the first.
 */
export function cleanCopy(run: Run, value: Value): CleanJson {
  let chars = 0;
  const text = (raw: string): string => {
    chars += raw.length;
    run.within(chars);
    return cleaned(run, raw);
  };
  const copyOf = (one: Value, depth: number): CleanJson => {
    run.step(8);
    if (typeof one === "string") return text(one);
    if (one === undefined || one === null) return null;
    if (one instanceof ToonText) return text(one.text);
    if (typeof one !== "object") return one;
    if (depth >= run.limits.depth) throw run.overrun(`a value is nested deeper than ${run.limits.depth} levels`);
    if (isList(one)) {
      run.step(one.length);
      return itemsIn(one).map((item) => copyOf(item, depth + 1));
    }
    if (!isObject(one)) return null;
    const copy = newObject() as { [key: string]: CleanJson };
    for (const key of keysOf(run, one)) {
      const name = text(key);
      if (name !== key && Object.hasOwn(copy, name)) continue;
      copy[name] = copyOf(field(one, key), depth + 1);
    }
    return copy;
  };
  return copyOf(value, 0);
}

export function cleaned(run: Run, text: string): string {
  run.step(text.length / 16);
  const clean = cleanText(text);
  // What is removed costs the most.
  run.step(text.length - clean.length);
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
      if (!isEqual(run, itemAt(left, index), itemAt(right, index), depth + 1)) return false;
    return true;
  }
  if (isObject(left) && isObject(right)) {
    const keys = keysOf(run, left);
    return (
      keys.length === keysOf(run, right).length &&
      keys.every((key) => Object.hasOwn(right, key) && isEqual(run, field(left, key), field(right, key), depth + 1))
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
