/** `tidings.toml`: what the operator has set. Unknown keys are errors; what is not said is on. */
import { parse, TomlError } from "smol-toml";
import { z } from "zod";
import { TidingsError } from "../domain/errors.js";
import { didYouMean } from "../domain/nearest.js";
import { KeyLocator, type KeyPath } from "./locate.js";
import { mergeRepeatedTables } from "./repeated_tables.js";

/** Of one source: `mcp`, with its names: `disconnected`. */
export interface SourceSwitches {
  readonly enable: boolean;
  readonly names: ReadonlyMap<string, boolean>;
}

export interface ToolConfig {
  readonly source: string | null;
  readonly stateful: boolean;
  readonly impact: "internal" | "external" | null;
  readonly turn_end: "keep" | "await" | "abort" | null;
  readonly notifications: ReadonlyMap<string, boolean>;
}

export interface Config {
  /** The file that it was read from; null if there is none. */
  readonly file: string | null;
  readonly notifications: { readonly enable: boolean; readonly kinds: ReadonlyMap<string, SourceSwitches> };
  readonly tools: ReadonlyMap<string, ToolConfig>;
}

export const EMPTY_CONFIG: Config = {
  file: null,
  notifications: { enable: true, kinds: new Map() },
  tools: new Map(),
};

/** What is wrong with the file, and where. */
export class ConfigError extends TidingsError {
  readonly file: string;
  readonly line: number;
  readonly key: string;
  readonly reason: string;

  constructor(file: string, line: number, key: string, reason: string) {
    super("invalid_input", `${file}:${line}: ${key === "" ? "" : `${key} `}${reason}`);
    this.name = "ConfigError";
    this.file = file;
    this.line = line;
    this.key = key;
    this.reason = reason;
  }
}

const NAME = /^[A-Za-z0-9_-]+$/;
const KIND = /^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)+$/;

const switchesSchema = z.record(z.string(), z.boolean());

const toolSchema = z.strictObject({
  source: z.string().min(1).optional(),
  stateful: z.boolean().optional(),
  impact: z.enum(["internal", "external"]).optional(),
  turn_end: z.enum(["keep", "await", "abort"]).optional(),
  notifications: switchesSchema.optional(),
});

type Kinds = Record<string, boolean | Record<string, boolean>>;

/** Of a source: `enable` and names; or, with its name in full, one kind: `"mcp.reconnected" = false`. */
const kindsSchema = z.record(z.string(), z.unknown()).transform((kinds, context) => {
  const refuse = (path: string[], message: string) => context.addIssue({ code: "custom", path, message });
  for (const [key, value] of Object.entries(kinds)) {
    if (typeof value === "boolean") {
      if (!KIND.test(key)) refuse([key], 'must be a table, or a kind in full, like "mcp.reconnected"');
      continue;
    }
    if (!NAME.test(key)) refuse([key], "must be the name of a source, like mcp");
    const table = switchesSchema.safeParse(value);
    for (const { path } of table.error?.issues ?? []) refuse([key, ...path.map(String)], "must be true or false");
  }
  return kinds as Kinds;
});

const notificationsSchema = z.strictObject({ enable: z.boolean().optional(), kinds: kindsSchema.optional() });

const conversationSchema = z.strictObject({
  notifications: notificationsSchema.optional(),
  tools: z.record(z.string(), toolSchema).optional(),
});

const fileSchema = z.strictObject({ conversation: conversationSchema.optional() });

/** Which keys each table may have, for the hint about one that it may not. */
const TABLES = {
  "": fileSchema,
  conversation: conversationSchema,
  "conversation.notifications": notificationsSchema,
} as const;

/** Reads it, or throws the first thing that is wrong as `ConfigError`. */
export function parseConfig(source: string, file: string): Config {
  const { text, lineOf } = mergeRepeatedTables(source);
  let content: unknown;
  try {
    content = parse(text);
  } catch (error) {
    if (!(error instanceof TomlError)) throw error;
    const [reason = ""] = error.message.split("\n");
    throw new ConfigError(
      file,
      lineOf(error.line),
      "",
      `is not valid TOML: ${reason.replace(/^Invalid TOML document: /, "")}`,
    );
  }
  const result = fileSchema.safeParse(content);
  if (!result.success) throw problem(result.error.issues, file, new KeyLocator(text), lineOf);
  return configOf(result.data, file);
}

function problem(
  issues: readonly z.core.$ZodIssue[],
  file: string,
  locator: KeyLocator,
  lineOf: (line: number) => number,
): ConfigError {
  const [issue] = issues;
  const path: KeyPath = issue?.path.map((part) => (typeof part === "symbol" ? String(part) : part)) ?? [];
  const unknown = issue?.code === "unrecognized_keys" ? issue.keys[0] : undefined;
  const at = unknown === undefined ? path : [...path, unknown];
  const reason = unknown === undefined ? (issue?.message ?? "") : unknownKey(path, unknown);
  return new ConfigError(file, lineOf(locator.find(at).line), at.join("."), reason);
}

function unknownKey(path: KeyPath, key: string): string {
  const table =
    path[0] === "conversation" && path[1] === "tools" ? toolSchema : TABLES[path.join(".") as keyof typeof TABLES];
  const known = table === undefined ? [] : Object.keys(table.shape);
  return `is not a known key${didYouMean(key, known) || (known.length === 0 ? "" : `; known here: ${known.join(", ")}`)}`;
}

function configOf({ conversation }: z.output<typeof fileSchema>, file: string): Config {
  const { enable = true, kinds = {} } = conversation?.notifications ?? {};
  const sources = new Map<string, { enable: boolean; names: Map<string, boolean> }>();
  const of = (name: string) => {
    const source = sourceName(name);
    const found = sources.get(source) ?? { enable: true, names: new Map() };
    sources.set(source, found);
    return found;
  };
  for (const [key, value] of Object.entries(kinds)) {
    if (typeof value === "boolean") {
      const dot = key.indexOf(".");
      of(key.slice(0, dot)).names.set(key.slice(dot + 1), value);
      continue;
    }
    const source = of(key);
    for (const [name, on] of Object.entries(value)) {
      if (name === "enable") source.enable = on;
      else source.names.set(name, on);
    }
  }
  const tools = Object.entries(conversation?.tools ?? {}).map(([name, tool]): [string, ToolConfig] => [
    name,
    {
      source: tool.source ?? null,
      stateful: tool.stateful ?? false,
      impact: tool.impact ?? null,
      turn_end: tool.turn_end ?? null,
      notifications: new Map(Object.entries(tool.notifications ?? {})),
    },
  ]);
  return { file, notifications: { enable, kinds: sources }, tools: new Map(tools) };
}

/** The keys, in full, whose values differ between two versions. */
export function changedKeys(before: Config, after: Config): string[] {
  const was = valuesOf(before);
  const is = valuesOf(after);
  return [...new Set([...was.keys(), ...is.keys()])].filter((key) => was.get(key) !== is.get(key)).sort();
}

/** Without what holds when nothing is said. */
function valuesOf({ notifications, tools }: Config): ReadonlyMap<string, string | boolean> {
  const values = new Map<string, string | boolean>();
  const note = (key: string, value: string | boolean | null, preset: string | boolean | null) => {
    if (value !== null && value !== preset) values.set(`conversation.${key}`, value);
  };
  note("notifications.enable", notifications.enable, true);
  for (const [source, { enable, names }] of notifications.kinds) {
    note(`notifications.kinds.${source}.enable`, enable, true);
    for (const [name, on] of names) note(`notifications.kinds.${source}.${name}`, on, true);
  }
  for (const [tool, { source, stateful, impact, turn_end, notifications: names }] of tools) {
    note(`tools.${tool}.source`, source, null);
    note(`tools.${tool}.stateful`, stateful, false);
    note(`tools.${tool}.impact`, impact, null);
    note(`tools.${tool}.turn_end`, turn_end, null);
    for (const [name, on] of names) note(`tools.${tool}.notifications.${name}`, on, true);
  }
  return values;
}

/** Handles of tools were once a source of their own. */
export function sourceName(name: string): string {
  return name === "handle" ? "tool" : name;
}
