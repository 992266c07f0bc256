/** What may follow `is`, and the names that `select`, `reject`, `selectattr` and `rejectattr` take. */

import { compare, isEqual, isTrue, textOf } from "./operations.js";
import type { Run } from "./run.js";
import { isList, isObject, itemsIn, nameOf, ToonText, type Value } from "./value.js";

type Test = (run: Run, value: Value) => boolean;
type Comparison = (run: Run, value: Value, other: Value) => boolean;

const isText = (value: Value) => typeof value === "string" || value instanceof ToonText;
const isWhole = (value: Value): value is number => typeof value === "number" && Number.isInteger(value);

export const TESTS: ReadonlyMap<string, Test> = new Map<string, Test>([
  ["defined", (_, value) => value !== undefined],
  ["undefined", (_, value) => value === undefined],
  ["none", (_, value) => value === null],
  ["string", (_, value) => isText(value)],
  ["number", (_, value) => typeof value === "number"],
  ["integer", (_, value) => isWhole(value)],
  ["boolean", (_, value) => typeof value === "boolean"],
  ["true", (_, value) => value === true],
  ["false", (_, value) => value === false],
  ["sequence", (_, value) => isList(value)],
  ["mapping", (_, value) => isObject(value)],
  ["even", (_, value) => isWhole(value) && value % 2 === 0],
  ["odd", (_, value) => isWhole(value) && value % 2 !== 0],
]);

export const COMPARISONS: ReadonlyMap<string, Comparison> = new Map<string, Comparison>([
  ["==", isEqual],
  ["!=", (run, value, other) => !isEqual(run, value, other)],
  ["<", (run, value, other) => compare(run, value, other) < 0],
  ["<=", (run, value, other) => compare(run, value, other) <= 0],
  [">", (run, value, other) => compare(run, value, other) > 0],
  [">=", (run, value, other) => compare(run, value, other) >= 0],
  ["in", contains],
  ["not in", (run, value, other) => !contains(run, value, other)],
]);

const SPELLINGS: ReadonlyMap<string, string> = new Map([
  ["equalto", "=="],
  ["eq", "=="],
  ["ne", "!="],
  ["lt", "<"],
  ["le", "<="],
  ["gt", ">"],
  ["ge", ">="],
]);

/** A part of a text, an item of a list, a key of an object; nothing is in what is none of these. */
function contains(run: Run, value: Value, container: Value): boolean {
  if (isList(container)) {
    run.step(container.length);
    return (run.plain ? container : itemsIn(container)).some((item) => isEqual(run, value, item));
  }
  if (isObject(container)) return typeof value === "string" && Object.hasOwn(container, value);
  if (!isText(container) || !isText(value)) return false;
  const text = textOf(run, container);
  const part = textOf(run, value);
  searching(run, text, part);
  return text.includes(part);
}

/** A search may cost the product of both lengths. */
export function searching(run: Run, text: string, part: string): void {
  run.step(1 + (text.length * (part.length + 1)) / 1024);
}

/** Whether `value` passes the test of that name; without a name, whether it is true. */
export function passes(run: Run, value: Value, name: Value, other: Value): boolean {
  run.step();
  if (name === undefined) return isTrue(run, value);
  if (typeof name === "string") {
    const test = TESTS.get(name);
    if (test !== undefined) return test(run, value);
    const comparison = COMPARISONS.get(SPELLINGS.get(name) ?? name);
    if (comparison !== undefined) return comparison(run, value, other);
  }
  throw run.failure(`there is no test ${typeof name === "string" ? JSON.stringify(name) : nameOf(name)}`);
}
