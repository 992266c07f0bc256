/** From the words of the command line to a command and its checked values. */
import { type ParseArgsConfig, parseArgs } from "node:util";
import type { JsonObject } from "../domain/json.js";
import { type Command, type Listed, loadCommand } from "./command.js";
import { UsageError } from "./exit.js";
import { didYouMean } from "./nearest.js";
import type { Option, Options } from "./options.js";
import { PROGRAM_OPTIONS } from "./settings.js";
import { parseDuration } from "./text.js";

type Value = boolean | string | number | JsonObject | undefined;

export interface Parsed {
  /** Undefined for `tidings` alone. */
  readonly command: Command | undefined;
  /** What was typed where a command's name stands. */
  readonly typed: readonly string[];
  readonly words: readonly string[];
  readonly tokens: readonly Token[];
}

interface Token {
  readonly name: string;
  readonly rawName: string;
  readonly value: string | undefined;
  readonly inline: boolean;
}

/** Finds the command and loads it; options may stand before its name and after. */
export async function parseLine(line: readonly string[], listed: readonly Listed[]): Promise<Parsed> {
  const commands = await Promise.all(candidates(line, listed).map(loadCommand));
  const tokens = split(line, Object.assign({}, PROGRAM_OPTIONS, ...commands.map(({ options }) => options)) as Options);
  const typed = wordsOf(tokens);
  const command = named(typed, commands);
  return {
    command,
    typed,
    words: command === undefined ? [] : typed.slice(command.name.split(" ").length),
    tokens: tokens.flatMap((token) =>
      token.kind === "option"
        ? [{ name: token.name, rawName: token.rawName, value: token.value, inline: token.inlineValue ?? false }]
        : [],
    ),
  };
}

/** The one that is named, as a rule. */
function candidates(line: readonly string[], listed: readonly Listed[]): readonly Listed[] {
  const tokens = split(line, PROGRAM_OPTIONS);
  const foreign = tokens.findIndex((token) => token.kind === "option" && !Object.hasOwn(PROGRAM_OPTIONS, token.name));
  const found = named(wordsOf(foreign === -1 ? tokens : tokens.slice(0, foreign)), listed);
  if (found !== undefined) return [found];
  // Before the name stands an option of some command, which alone knows whether the next word is its value or the name.
  return foreign === -1 ? [] : listed;
}

function named<One extends { readonly name: string }>(words: readonly string[], all: readonly One[]): One | undefined {
  return [2, 1]
    .map((length) => words.slice(0, length).join(" "))
    .flatMap((name) => all.filter((candidate) => candidate.name === name))
    .at(0);
}

function split(line: readonly string[], options: Options) {
  return parseArgs({
    args: [...line],
    options: parseArgsOptions(options),
    allowPositionals: true,
    strict: false,
    tokens: true,
  }).tokens;
}

function wordsOf(tokens: ReturnType<typeof split>): string[] {
  return tokens.flatMap((token) => (token.kind === "positional" ? [token.value] : []));
}

function parseArgsOptions(options: Options): NonNullable<ParseArgsConfig["options"]> {
  return Object.fromEntries(
    Object.entries(options).map(([name, option]) => [
      name,
      option.kind === "flag"
        ? { type: "boolean" as const, ...(option.short === undefined ? {} : { short: option.short }) }
        : { type: "string" as const },
    ]),
  );
}

/** Checks the options against the command's own and the common ones. */
export function valuesOf(tokens: readonly Token[], options: Options, owner: string): Record<string, Value> {
  const values: Record<string, Value> = {};
  for (const [name, option] of Object.entries(options)) values[name] = option.kind === "flag" ? false : undefined;
  for (const token of tokens) {
    const option = Object.hasOwn(options, token.name) ? options[token.name] : undefined;
    if (option === undefined) throw unknownOption(token, options, owner);
    values[token.name] = readValue(token, option);
  }
  return values;
}

function unknownOption(token: Token, options: Options, owner: string): UsageError {
  const known = Object.keys(options).map((name) => `--${name}`);
  const hint = didYouMean(token.rawName, known) || ".";
  const message = `unknown option ${token.rawName}${hint} See \`${owner} --help\`.`;
  return new UsageError(message, token.rawName);
}

function readValue(token: Token, option: Option): Value {
  const name = token.rawName;
  if (option.kind === "flag") {
    if (token.inline) throw new UsageError(`${name} takes no value`, name);
    return true;
  }
  const { value } = token;
  if (value === undefined) throw new UsageError(`${name} needs a value: ${name} ${option.value}`, name);
  // The likely case is a forgotten value; who means it writes it with an equals sign.
  if (!token.inline && value.startsWith("-") && value.length > 1)
    throw new UsageError(`${name} needs a value; if ${value} is meant, write ${name}=${value}`, name);
  return converted(name, value, option);
}

function converted(name: string, value: string, option: Exclude<Option, { kind: "flag" }>): Value {
  switch (option.kind) {
    case "text":
      return value;
    case "choice":
      if (option.choices.includes(value)) return value;
      throw new UsageError(
        `${name}: ${JSON.stringify(value)} is none of ${option.choices.join(", ")}${didYouMean(value, option.choices)}`,
        name,
      );
    case "integer":
      if (/^[0-9]{1,15}$/.test(value) && inRange(Number(value), option)) return Number(value);
      throw new UsageError(`${name}: must be a whole number ${rangeText(option)}, not ${JSON.stringify(value)}`, name);
    case "duration": {
      const ms = parseDuration(value);
      if (ms !== undefined) return ms;
      throw new UsageError(
        `${name}: must be a number with a unit (ms, s, m, h, d) like 30d, not ${JSON.stringify(value)}`,
        name,
      );
    }
    case "json":
      return jsonObject(name, value);
  }
}

type Range = Pick<Extract<Option, { kind: "integer" }>, "min" | "max">;

function inRange(value: number, { min, max = Number.POSITIVE_INFINITY }: Range): boolean {
  return value >= min && value <= max;
}

function rangeText({ min, max }: Range): string {
  return max === undefined ? `of at least ${min}` : `from ${min} to ${max}`;
}

function jsonObject(name: string, text: string): JsonObject {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new UsageError(`${name}: is not JSON: ${error instanceof Error ? error.message : String(error)}`, name);
  }
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new UsageError(`${name}: must be a JSON object, like '{"key": "value"}'`, name);
  return value as JsonObject;
}

/** Exactly one word, or the option that stands for it. */
export function oneWord(words: readonly string[], what: string): string {
  const [word, extra] = words;
  if (word === undefined) throw new UsageError(`${what} is missing`, what);
  if (extra !== undefined)
    throw new UsageError(`unexpected ${JSON.stringify(extra)}: there is one ${what}; quote it if it has spaces`, what);
  return word;
}

export function noWords(words: readonly string[]): void {
  const [word] = words;
  if (word !== undefined) throw new UsageError(`unexpected ${JSON.stringify(word)}: this command takes options only`);
}
