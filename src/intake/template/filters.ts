/** What may follow `|`. The value is the first parameter. */
import { type Callable, truncate } from "./functions.js";
import {
  characters,
  fieldOf,
  isEqual,
  isTrue,
  itemOf,
  jsonOf,
  keysOf,
  lookupPath,
  order,
  textOf,
} from "./operations.js";
import type { Run } from "./run.js";
import { passes, searching } from "./tests.js";
import { isoMs } from "./time.js";
import { isList, isObject, itemsIn, nameOf, put, ToonText, type Value } from "./value.js";

type Apply = Callable["apply"];

function filter(apply: Apply, parameters: readonly string[] = [], required = 0): Callable {
  return { parameters: ["value", ...parameters], required: required + 1, apply };
}

/** A filter on text: other values by the text they have. */
function onText(change: (text: string) => string): Callable {
  return filter((run, value) => {
    const text = textOf(run, value);
    run.making(text.length);
    return run.made(change(text));
  });
}

function onNumber(change: (number: number) => number): Callable {
  return filter((run, value) => change(numberOf(run, value)));
}

/** A filter on a list. Nothing has no items; the items of an object are its keys, as in a loop. */
function onList(
  apply: (run: Run, list: readonly Value[], one: Value, two: Value, three: Value) => Value,
  parameters: string[] = [],
) {
  return filter((run, value, one, two, three) => apply(run, itemsOf(run, value), one, two, three), parameters);
}

export const FILTERS: ReadonlyMap<string, Callable> = new Map<string, Callable>([
  ...named(["default", "d"], filter(orDefault, ["default_value", "boolean"])),
  ...named(["length", "count"], filter(lengthOf)),
  ["upper", onText((text) => text.toUpperCase())],
  ["lower", onText((text) => text.toLowerCase())],
  ["capitalize", onText((text) => text.slice(0, 1).toUpperCase() + text.slice(1).toLowerCase())],
  ["trim", onText((text) => text.trim())],
  ["replace", filter(replace, ["old", "new"], 2)],
  ["truncate", filter((run, value, length, end) => truncate(run, value, length ?? 255, end), ["length", "end"])],
  ["string", filter((run, value) => textOf(run, value))],
  ["tojson", filter((run, value) => jsonOf(run, value))],
  ["time", filter(timeOfDay)],
  ["int", filter((run, value, other) => asNumber(run, value, other, Math.trunc), ["default"])],
  ["float", filter((run, value, other) => asNumber(run, value, other, (number) => number), ["default"])],
  ["round", filter(round, ["precision"])],
  ["abs", onNumber(Math.abs)],
  ["first", onList((run, list) => itemOf(run, list, 0))],
  ["last", onList((run, list) => itemOf(run, list, list.length - 1))],
  ["list", onList((_, list) => list)],
  ["reverse", onList((_, list) => list.toReversed())],
  ["join", onList(join, ["separator", "attribute"])],
  ["sort", onList(sort, ["reverse", "attribute"])],
  ["unique", onList(unique, ["attribute"])],
  ["map", onList(map, ["filter", "attribute", "default"])],
  ["select", onList((run, list, test, other) => byTest(run, list, test, other, true), ["test", "other"])],
  ["reject", onList((run, list, test, other) => byTest(run, list, test, other, false), ["test", "other"])],
  ["selectattr", onList(byAttribute(true), ["attribute", "test", "other"])],
  ["rejectattr", onList(byAttribute(false), ["attribute", "test", "other"])],
  ["sum", onList(sum, ["attribute"])],
  ["min", onList((run, list, attribute) => extreme(run, list, attribute, -1), ["attribute"])],
  ["max", onList((run, list, attribute) => extreme(run, list, attribute, 1), ["attribute"])],
  ["items", filter(items)],
]);

/** `pick(tool="payload.tool_name", …)` makes rows for a table. Its parameters are the columns, so it stands apart. */
export function pick(run: Run, value: Value, columns: ReadonlyMap<string, Value>): Value {
  return itemsOf(run, value).map((item) => {
    const row: Record<string, Value> = {};
    for (const [name, path] of columns) put(row, name, attributeOf(run, item, path) ?? null);
    return row;
  });
}

function named(names: readonly string[], callable: Callable): [string, Callable][] {
  return names.map((name) => [name, callable]);
}

/** The items of a list, as a loop sees them. */
export function itemsOf(run: Run, value: Value): readonly Value[] {
  run.step();
  if (value === undefined || value === null) return [];
  const list = isList(value) ? value : isObject(value) ? keysOf(run, value) : undefined;
  if (list === undefined) throw run.failure(`${nameOf(value)} is no list`);
  run.step(list.length);
  // Nobody changes a list.
  return run.plain ? list : itemsIn(list);
}

function attributeOf(run: Run, item: Value, attribute: Value): Value {
  if (attribute === undefined) return item;
  if (typeof attribute === "number") return lookupPath(run, item, String(attribute));
  if (typeof attribute !== "string") throw run.failure(`an attribute is named by a text, not by ${nameOf(attribute)}`);
  run.step(attribute.length / 8);
  return lookupPath(run, item, attribute);
}

function numberOf(run: Run, value: Value): number {
  if (typeof value === "number") return value;
  throw run.failure(`${nameOf(value)} is no number`);
}

function orDefault(run: Run, value: Value, other: Value, boolean: Value): Value {
  const missing = value === undefined || (isTrue(run, boolean) && !isTrue(run, value));
  return missing ? (other ?? "") : value;
}

function lengthOf(run: Run, value: Value): Value {
  if (value === undefined || value === null) return 0;
  if (typeof value === "string" || value instanceof ToonText) return characters(run, textOf(run, value)).length;
  if (isList(value)) return value.length;
  if (!isObject(value)) throw run.failure(`${nameOf(value)} has no length`);
  return keysOf(run, value).length;
}

function replace(run: Run, value: Value, old: Value, fresh: Value): Value {
  const text = textOf(run, value);
  const from = textOf(run, old);
  const to = textOf(run, fresh);
  if (from === "") throw run.failure("replace needs a text to look for");
  searching(run, text, from);
  const parts = text.split(from);
  run.step(parts.length);
  run.making(text.length + (parts.length - 1) * (to.length - from.length));
  return parts.join(to);
}

const UTC = /^\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|1\d|2[0-8])T(?:[01]\d|2[0-3])(?::[0-5]\d){2}(?:\.\d{3})?Z$/;

/** The time of day, in UTC: `15:30:01`; undefined if it is no time. */
function timeOfDay(run: Run, value: Value): Value {
  const text = textOf(run, value);
  // As the store writes them: it says what is asked for.
  if (UTC.test(text)) return text.slice(11, 19);
  const ms = isoMs(text);
  return ms === undefined ? undefined : new Date(ms).toISOString().slice(-13, -5);
}

const NUMBER = /^[+-]?\d{1,20}(?:\.\d{1,20})?$/;

function asNumber(run: Run, value: Value, other: Value, change: (number: number) => number): Value {
  if (typeof value === "boolean") return value ? 1 : 0;
  if (typeof value === "number") return change(value);
  const text = typeof value === "string" && value.length <= 64 ? value.trim() : "";
  run.step();
  return NUMBER.test(text) ? change(Number(text)) : (other ?? 0);
}

function round(run: Run, value: Value, precision: Value): Value {
  const places = precision === undefined ? 0 : numberOf(run, precision);
  if (!Number.isInteger(places) || places < 0 || places > 12) throw run.failure("round takes 0 to 12 places");
  const number = numberOf(run, value);
  const rounded = Math.round(number * 10 ** places) / 10 ** places;
  return Number.isFinite(rounded) ? rounded : number;
}

function join(run: Run, list: readonly Value[], separator: Value, attribute: Value): string {
  const between = textOf(run, separator);
  let chars = 0;
  const texts = list.map((item) => {
    const text = textOf(run, attributeOf(run, item, attribute));
    chars += text.length + between.length;
    run.within(chars);
    return text;
  });
  return run.made(texts.join(between));
}

function sort(run: Run, list: readonly Value[], reverse: Value, attribute: Value): Value {
  const keyed = list.map((item) => ({ item, key: attributeOf(run, item, attribute) }));
  const sign = isTrue(run, reverse) ? -1 : 1;
  return keyed.sort((left, right) => sign * order(run, left.key, right.key)).map(({ item }) => item);
}

function unique(run: Run, list: readonly Value[], attribute: Value): Value {
  const seen = new Set<Value>();
  const large: Value[] = [];
  return list.filter((item) => {
    const key = attributeOf(run, item, attribute);
    run.step(typeof key === "string" ? 1 + key.length / 64 : 1);
    const isLarge = typeof key === "object" && key !== null;
    if (isLarge ? large.some((one) => isEqual(run, one, key)) : seen.has(key)) return false;
    if (isLarge) large.push(key);
    else seen.add(key);
    return true;
  });
}

/** `map(attribute="payload.tool_name")`, or `map("upper")` with a filter that needs nothing more. */
function map(run: Run, list: readonly Value[], name: Value, attribute: Value, other: Value): Value {
  if (name === undefined) {
    if (attribute === undefined) throw run.failure("map needs an attribute or the name of a filter");
    return list.map((item) => attributeOf(run, item, attribute) ?? other);
  }
  const found = typeof name === "string" && name !== "map" ? FILTERS.get(name) : undefined;
  if (found === undefined || found.required > 1) throw run.failure(`map cannot use the filter ${textOf(run, name)}`);
  return list.map((item) => {
    run.step();
    return found.apply(run, item);
  });
}

function byTest(run: Run, list: readonly Value[], test: Value, other: Value, wanted: boolean): Value {
  return list.filter((item) => passes(run, item, test, other) === wanted);
}

function byAttribute(wanted: boolean) {
  return (run: Run, list: readonly Value[], attribute: Value, test: Value, other: Value): Value => {
    if (attribute === undefined) throw run.failure("the name of an attribute is missing");
    return list.filter((item) => passes(run, attributeOf(run, item, attribute), test, other) === wanted);
  };
}

function sum(run: Run, list: readonly Value[], attribute: Value): Value {
  let total = 0;
  for (const item of list) total += numberOf(run, attributeOf(run, item, attribute));
  return run.finite(total);
}

function extreme(run: Run, list: readonly Value[], attribute: Value, sign: 1 | -1): Value {
  let best: { item: Value; key: Value } | undefined;
  for (const item of list) {
    const key = attributeOf(run, item, attribute);
    if (best === undefined || sign * order(run, key, best.key) > 0) best = { item, key };
  }
  return best?.item;
}

/** `{% for key, value in object | items %}`. */
function items(run: Run, value: Value): Value {
  if (value === undefined || value === null) return [];
  if (!isObject(value)) throw run.failure(`${nameOf(value)} is no object`);
  const keys = keysOf(run, value);
  run.step(keys.length);
  return keys.map((key) => [key, fieldOf(run, value, key)]);
}
