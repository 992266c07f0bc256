/**
 * Switches that are off for nothing: no subscriber takes what they name, or a known type was probably meant. Kinds are
 * anybody's to invent, so that none is refused; it is said instead.
 */
import type { Config } from "../config/config.js";
import { matchesType } from "../domain/event.js";
import { didYouMean } from "../domain/nearest.js";
import { PAYLOADS } from "../domain/payloads.js";
import { kindOf, type OffSwitch, offSwitches } from "./switches.js";

/** A line each. `patterns`: what all subscribers take, also those that are off, which may be on tomorrow. */
export function idleSwitches(config: Config, patterns: readonly string[]): string[] {
  const off = [...offSwitches(config)];
  if (off.length === 0) return [];
  const types = takenTypes(patterns);
  return off.flatMap((one) => {
    const remark = remarkOn(one, patterns, types);
    return remark === "" ? [] : [`${one.at.path.join(".")} = false (${config.file}:${one.at.line}) ${remark}`];
  });
}

/** Each type that is known by its name, and that somebody takes. */
function takenTypes(patterns: readonly string[]): readonly string[] {
  const known = Object.keys(PAYLOADS).filter((type) => patterns.some((pattern) => matchesType(pattern, type)));
  return [...known, ...patterns.filter((pattern) => !pattern.endsWith(".*"))];
}

/** Empty if there is nothing to say. */
function remarkOn(one: OffSwitch, patterns: readonly string[], types: readonly string[]): string {
  const { at, source, name, concerns } = one;
  const written = String(at.path.at(-1));
  const inTable = name === null || written === name;
  const sourceIsTaken = patterns.some((pattern) => kindOf(pattern).source === source);
  if (inTable && !sourceIsTaken) return idle(`anything of ${source}${didYouMean(source, patterns.map(firstWord))}`);
  if (name === null || types.some(concerns)) return "";
  const near = types.filter((type) => !sourceIsTaken || kindOf(type).source === source);
  const hint = didYouMean(written, inTable ? near.map((type) => kindOf(type).name) : near);
  if (!patterns.some(concerns)) return idle(`${source}.${name}${hint}`);
  // A prefix takes it, so that it may well be meant, unless it is nearly a type that is known.
  return hint === "" ? "" : `is about ${source}.${name}, which is no known event type${hint}`;
}

/** What is notified with words of its own passes by the subscribers, not by the switches. */
function idle(what: string): string {
  return `concerns only what notify() tells: no subscriber takes ${what}`;
}

function firstWord(pattern: string): string {
  return pattern.slice(0, pattern.indexOf("."));
}
