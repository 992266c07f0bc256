/** What a template may call. There is nothing else to call: no methods, no macros, nothing of JavaScript. */
import { encode } from "@toon-format/toon";
import { beginning, characters, cleanCopy, cleaned, textOf } from "./operations.js";
import type { Run } from "./run.js";
import { agoWords, isoMs } from "./time.js";
import { tableOf } from "./toon.js";
import { nameOf, ToonText, type Value } from "./value.js";

/** Parameters by position, up to four; each can be named, too. `apply` gets undefined where none was given. */
export interface Callable {
  readonly parameters: readonly string[];
  readonly required: number;
  readonly apply: (run: Run, first: Value, second?: Value, third?: Value, fourth?: Value) => Value;
}

export const FUNCTIONS: ReadonlyMap<string, Callable> = new Map<string, Callable>([
  ["toon", { parameters: ["value"], required: 1, apply: toon }],
  ["ago", { parameters: ["time"], required: 1, apply: ago }],
  ["truncate", { parameters: ["text", "length", "end"], required: 2, apply: truncate }],
]);

/** In TOON, by the official encoder. Objects with the same keys in a list become a table. */
function toon(run: Run, value: Value): ToonText {
  const table = tableOf(run, value);
  if (table !== undefined) return toonText(run, table, false);
  const copy = cleanCopy(run, value);
  return toonText(run, encode(copy), typeof copy !== "object" || copy === null);
}

function toonText(run: Run, text: string, scalar: boolean): ToonText {
  run.making(text.length);
  // Quotes and escapes cost the most; an own text was made for each.
  run.step(text.length / 4);
  return new ToonText(text, scalar);
}

/** How long before `now`; undefined if it is no time. */
function ago(run: Run, time: Value): Value {
  const ms = isoMs(textOf(run, time));
  const nowMs = isoMs(run.now);
  return ms === undefined || nowMs === undefined ? undefined : agoWords(ms, nowMs);
}

/** At most `length` characters, the sign of omission among them. What it costs depends on them, not on the text. */
export function truncate(run: Run, value: Value, length: Value, end?: Value): string {
  if (typeof length !== "number" || !Number.isInteger(length) || length < 1)
    throw run.failure(`truncate needs a whole number of characters from 1 on, not ${nameOf(length)}`);
  if (typeof value === "string" && value.length <= length) return cleaned(run, value);
  const { text, whole } = beginning(run, value, length);
  if (whole && text.length <= length) return text;
  const sign = end === undefined ? ["…"] : characters(run, beginning(run, end, length).text);
  const all = characters(run, text);
  if (whole && all.length <= length) return text;
  const kept = all.slice(0, Math.max(0, length - sign.length)).join("");
  return run.made(kept.trimEnd() + sign.slice(0, length).join(""));
}
