/**
 * The values of a template: plain JSON, undefined, and text that `toon()` made. Whatever else a context holds (functions,
 * getters, dates, instances of classes) is undefined here. Values never change once made, so none can hold itself.
 */

export type Value = undefined | null | boolean | number | string | ToonText | readonly Value[] | ValueObject;
export interface ValueObject {
  readonly [key: string]: Value;
}

/** What the encoder gave. Printed where it can stand as it is, it is not encoded again. */
export class ToonText {
  constructor(
    readonly text: string,
    /** One string, number, boolean or null: it may stand after a key. */
    readonly scalar: boolean,
  ) {}
}

/** Names that lead to JavaScript's own machinery elsewhere. Here they lead nowhere, and are refused to say so. */
export const FORBIDDEN_NAMES: ReadonlySet<string> = new Set(["__proto__", "constructor", "prototype"]);

export function isList(value: Value): value is readonly Value[] {
  return Array.isArray(value);
}

export function isObject(value: Value): value is ValueObject {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof ToonText);
}

/** An own value of an object or list; never one of its prototype, and no getter is called. */
function own(holder: object, key: string): Value {
  const found = Object.getOwnPropertyDescriptor(holder, key);
  return found === undefined ? undefined : plainValue(found.value);
}

export function plainValue(value: unknown): Value {
  switch (typeof value) {
    case "string":
    case "boolean":
      return value;
    case "number":
      return Number.isFinite(value) ? value : undefined;
    case "object": {
      if (value === null || value instanceof ToonText) return value;
      if (Array.isArray(value)) return value;
      const prototype = Object.getPrototypeOf(value);
      return prototype === Object.prototype || prototype === null ? (value as ValueObject) : undefined;
    }
    default:
      return undefined;
  }
}

export function itemAt(list: readonly Value[], index: number): Value {
  return own(list, String(index));
}

/** A copy of a list's items. */
export function itemsIn(list: readonly Value[]): Value[] {
  const items: Value[] = [];
  for (let index = 0; index < list.length; index++) items.push(itemAt(list, index));
  return items;
}

export function field(value: Value, key: string): Value {
  return isObject(value) ? own(value, key) : undefined;
}

/** `object[key] = value` for any key. Without a prototype every key would be just a key, and each read a search. */
export function put<Item>(object: Record<string, Item>, key: string, value: Item): void {
  if (key !== "__proto__") object[key] = value;
  else Object.defineProperty(object, key, { value, configurable: true, enumerable: true, writable: true });
}

export const RANKS = ["nothing", "null", "a boolean", "a number", "a text", "a list", "an object"] as const;

/** For error messages, and the order among values of different kinds. */
export function nameOf(value: Value): (typeof RANKS)[number] {
  if (value === undefined) return "nothing";
  if (value === null) return "null";
  if (value instanceof ToonText || typeof value === "string") return "a text";
  if (typeof value === "boolean") return "a boolean";
  if (typeof value === "number") return "a number";
  return isList(value) ? "a list" : "an object";
}
