/** `tidings.toml`: what the operator has set. Unknown keys are errors; what is not said is on. */
import { z } from "zod";
import { TidingsError } from "../domain/errors.js";
import { didYouMean } from "../domain/nearest.js";
import { type Hooks, hookSchema, hooksOf, hooksSchema, hookValues } from "./hooks.js";
import {
  contradictions,
  kindSwitches,
  type LineOf,
  type SourceSwitches,
  type Switch,
  sourceName,
  toolSwitches,
} from "./kind_switches.js";
import { KeyLocator, type KeyPath } from "./locate.js";
import { MCP_SERVER_KEYS, type McpServerConfig, mcpServersSchema } from "./mcp.js";
import { keyProblems, type PlacedProblem, placedLine, shown } from "./problems.js";
import { mergeRepeatedTables } from "./repeated_tables.js";
import { limitKey, limitsOf, type ServerLimits, serverLimitsSchema } from "./server_limits.js";
import { parseToml } from "./toml.js";

export interface ToolConfig {
  readonly source: string | null;
  readonly stateful: boolean;
  readonly impact: "internal" | "external" | null;
  readonly turn_end: "keep" | "await" | "abort" | null;
  readonly notifications: ReadonlyMap<string, Switch>;
}

/** What the hosted agent may run on this machine. */
export interface ShellConfig {
  readonly command_lines?: boolean;
  readonly folder?: string;
  readonly environment?: readonly string[];
  readonly time_limit_secs?: number;
  readonly output_bytes_max?: number;
  readonly processes_max?: number;
}

/** Where the hosted agent may read and write files. */
export interface WorkspaceConfig {
  readonly folder?: string;
  readonly read_only?: boolean;
  readonly files_max?: number;
}

/** What the agent may use; what is not said is as it is without a word. */
export interface BudgetConfig {
  readonly tokens?: number;
  readonly iterations?: number;
  readonly time_secs?: number;
}

export interface BudgetsConfig {
  readonly turn: BudgetConfig;
  readonly thread: BudgetConfig;
  readonly day: BudgetConfig;
}

/** How loops are found. */
export interface LoopsConfig {
  readonly enable?: boolean;
  readonly repetitions?: number;
  readonly window_secs?: number;
}

/** The model of the agent that is hosted. */
export interface AgentConfig {
  readonly provider: string | null;
  readonly model: string | null;
  readonly base_url: string | null;
  /** The environment variable that holds the key. */
  readonly api_key_env: string | null;
  /** Whether a server gives the rehearsal model its props; null: as if nothing was said. */
  readonly props: boolean | null;
  /** Null: it may run nothing. */
  readonly shell: ShellConfig | null;
  /** Null: it has to do with no files. */
  readonly workspace: WorkspaceConfig | null;
  readonly budgets: BudgetsConfig;
  readonly loops: LoopsConfig;
}

export interface Config {
  /** The file that it was read from; null if there is none. */
  readonly file: string | null;
  readonly notifications: {
    readonly enable: boolean;
    readonly kinds: ReadonlyMap<string, SourceSwitches>;
    /** What is left for the end of a turn: carried to the next one, or told in one more step. */
    readonly turn_end: "carry" | "step";
  };
  readonly agent: AgentConfig;
  /** MCP servers whose tools the hosted agent has, by name. */
  readonly mcp: ReadonlyMap<string, McpServerConfig>;
  readonly tools: ReadonlyMap<string, ToolConfig>;
  readonly hooks: Hooks;
  readonly server: { readonly limits: Partial<ServerLimits> };
}

export const EMPTY_CONFIG: Config = {
  file: null,
  notifications: { enable: true, kinds: new Map(), turn_end: "carry" },
  agent: {
    provider: null,
    model: null,
    base_url: null,
    api_key_env: null,
    props: null,
    shell: null,
    workspace: null,
    budgets: { turn: {}, thread: {}, day: {} },
    loops: {},
  },
  mcp: new Map(),
  tools: new Map(),
  hooks: new Map(),
  server: { limits: {} },
};

/** Everything that is wrong with the file, and where. */
export class ConfigError extends TidingsError {
  readonly file: string;
  readonly problems: readonly PlacedProblem[];

  constructor(file: string, problems: readonly PlacedProblem[]) {
    super("invalid_input", problems.map((problem) => placedLine(file, problem)).join("; "));
    this.name = "ConfigError";
    this.file = file;
    this.problems = problems;
  }
}

const NAME = /^[A-Za-z0-9_-]+$/;
const NAMES = /^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$/;
/** How a switch for a whole source might be called. There is one such word, so that none is taken for a kind's name. */
const NEAR_ENABLE: ReadonlySet<string> = new Set(["enabled", "disable", "disabled"]);

type Refuse = (path: readonly string[], message: string) => void;

/** Names of kinds, and whether they are on. */
function checkNames(
  table: unknown,
  path: readonly string[],
  refuse: Refuse,
  refusal: (name: string, value: unknown) => string,
): void {
  if (typeof table !== "object" || table === null || Array.isArray(table) || table instanceof Date) {
    refuse(path, `must be a table, not ${shown(table)}`);
    return;
  }
  for (const [name, value] of Object.entries(table)) {
    const refused = refusal(name, value);
    if (refused !== "") refuse([...path, name], refused);
    else if (typeof value === "object" && !Array.isArray(value))
      refuse(
        [...path, name],
        `must be true or false, not a table; a name with dots stands in quotes, like "call.failure"`,
      );
    else if (typeof value !== "boolean") refuse([...path, name], `must be true or false, not ${shown(value)}`);
    else if (!NAMES.test(name)) refuse([...path, name], "is no name of a kind, like reconnected");
  }
}

const toolNamesSchema = z.unknown().superRefine((table, context) => {
  const refuse: Refuse = (path, message) => context.addIssue({ code: "custom", path: [...path], message });
  checkNames(table, [], refuse, (name) => {
    if (name === "enable" || NEAR_ENABLE.has(name))
      return "is not a known key: a tool has no switch for all of its kinds; name them, like waiting = false";
    const [source = "", ...rest] = name.split(".");
    if (sourceName(source) !== "tool") return "";
    return `is not a known key: the kinds of a tool stand without their source, like ${rest.join(".") || "waiting"} = false`;
  });
});

const toolSchema = z.strictObject({
  source: z.string().min(1, "must not be empty").optional(),
  stateful: z.boolean().optional(),
  impact: z.enum(["internal", "external"]).optional(),
  turn_end: z.enum(["keep", "await", "abort"]).optional(),
  notifications: toolNamesSchema.optional(),
});

/** Of a source: `enable` and names; or, with its name in full, one kind: `"mcp.reconnected" = false`. */
const kindsSchema = z.record(z.string(), z.unknown()).superRefine((kinds, context) => {
  const refuse: Refuse = (path, message) => context.addIssue({ code: "custom", path: [...path], message });
  for (const [key, value] of Object.entries(kinds)) {
    const [source = "", ...rest] = key.split(".");
    const name = rest.join(".");
    if (typeof value !== "boolean") {
      if (!NAME.test(key)) refuse([key], "must be the name of a source, like mcp");
      else
        checkNames(value, [key], refuse, (one, on) => (NEAR_ENABLE.has(one) ? UNKNOWN_ENABLE : inFull(key, one, on)));
    } else if (name === "enable" || NEAR_ENABLE.has(name))
      refuse(
        [key],
        `is not a known key: a whole source is switched by enable in [conversation.notifications.kinds.${source}]`,
      );
    else if (name === "" || !NAMES.test(key))
      refuse([key], 'must be a table, or a kind in full, like "mcp.reconnected"');
  }
});

const UNKNOWN_ENABLE = "is not a known key; did you mean enable?";

/** Refuses a kind in full in the table of its source, where it would be another: `tool.tool.stopped`. */
function inFull(source: string, name: string, value: unknown): string {
  const [first = "", ...rest] = name.split(".");
  // Without quotes, what stands behind the dot is a table.
  const [like] = rest.length > 0 ? [rest.join(".")] : typeof value === "object" ? Object.keys(value ?? {}) : [];
  if (like === undefined || sourceName(first) !== sourceName(source)) return "";
  return `is not a known key: the kinds of a source stand without it, like ${like} = false`;
}

const notificationsSchema = z.strictObject({
  enable: z.boolean().optional(),
  kinds: kindsSchema.optional(),
  turn_end: z.enum(["carry", "step"]).optional(),
});

const conversationSchema = z.strictObject({
  notifications: notificationsSchema.optional(),
  tools: z.record(z.string(), toolSchema).optional(),
});

const word = z.string().min(1, "must not be empty");
const variable = /^[A-Za-z_][A-Za-z0-9_]*$/;
const shellSchema = z.strictObject({
  enable: z.boolean(),
  command_lines: z.boolean().optional(),
  folder: word.optional(),
  environment: z.array(z.string().regex(variable, "must be the names of environment variables")).optional(),
  time_limit_secs: z.int().min(1).max(86_400).optional(),
  output_bytes_max: z.int().min(1).optional(),
  processes_max: z.int().min(1).max(1_000).optional(),
});
const workspaceSchema = z.strictObject({
  enable: z.boolean(),
  folder: word.optional(),
  read_only: z.boolean().optional(),
  files_max: z.int().min(1).max(10_000).optional(),
});
const budgetSchema = z.strictObject({
  tokens: z.int().min(1).optional(),
  iterations: z.int().min(1).optional(),
  time_secs: z.int().min(1).max(86_400).optional(),
});
const budgetsSchema = z.strictObject({
  turn: budgetSchema.optional(),
  thread: budgetSchema.extend({ time_secs: z.int().min(1).optional() }).optional(),
  day: budgetSchema.optional(),
});
const loopsSchema = z.strictObject({
  enable: z.boolean().optional(),
  repetitions: z.int().min(2).max(50).optional(),
  window_secs: z.int().min(1).max(86_400).optional(),
});
const agentSchema = z.strictObject({
  provider: word.optional(),
  model: word.optional(),
  base_url: z.url({ protocol: /^https?$/, error: "must be an address, like http://localhost:11434/v1" }).optional(),
  api_key_env: z.string().regex(variable, "must be the name of an environment variable, not the key itself").optional(),
  props: z.boolean().optional(),
  shell: shellSchema.optional(),
  workspace: workspaceSchema.optional(),
  budgets: budgetsSchema.optional(),
  loops: loopsSchema.optional(),
});

const mcpSchema = z.strictObject({ servers: mcpServersSchema.optional() });

const serverSchema = z.strictObject({ limits: serverLimitsSchema.optional() });

const fileSchema = z.strictObject({
  conversation: conversationSchema.optional(),
  agent: agentSchema.optional(),
  mcp: mcpSchema.optional(),
  hooks: hooksSchema.optional(),
  server: serverSchema.optional(),
});

/** Which keys each table may have, for the hint about one that it may not. */
const TABLES: Readonly<Record<string, readonly string[]>> = {
  "": Object.keys(fileSchema.shape),
  agent: Object.keys(agentSchema.shape),
  "agent.shell": Object.keys(shellSchema.shape),
  "agent.workspace": Object.keys(workspaceSchema.shape),
  "agent.budgets": Object.keys(budgetsSchema.shape),
  "agent.budgets.turn": Object.keys(budgetSchema.shape),
  "agent.budgets.thread": Object.keys(budgetSchema.shape),
  "agent.budgets.day": Object.keys(budgetSchema.shape),
  "agent.loops": Object.keys(loopsSchema.shape),
  conversation: Object.keys(conversationSchema.shape),
  "conversation.notifications": Object.keys(notificationsSchema.shape),
  "conversation.tools.NAME": Object.keys(toolSchema.shape),
  mcp: Object.keys(mcpSchema.shape),
  "mcp.servers.NAME": MCP_SERVER_KEYS,
  server: Object.keys(serverSchema.shape),
  "server.limits": Object.keys(serverLimitsSchema.shape),
  "hooks.NAME": Object.keys(hookSchema.shape),
};

/** Reads it, or throws everything that is wrong with it as `ConfigError`. */
export function parseConfig(source: string, file: string): Config {
  const merged = "problem" in parseToml(source) ? mergeRepeatedTables(source) : undefined;
  const { text, lineOf } = merged ?? { text: source, lineOf: (line: number) => line };
  const toml = parseToml(text);
  if ("problem" in toml) {
    const { line, column, reason } = toml.problem;
    throw new ConfigError(file, [{ line: lineOf(line), column, key: null, reason }]);
  }
  const locator = new KeyLocator(text);
  const placeOf = (path: KeyPath) => {
    const { line, column } = locator.find(path);
    return { line: lineOf(line), column };
  };
  const lineOfKey: LineOf = (path) => placeOf(path).line;
  const result = fileSchema.safeParse(toml.content);
  const problems = [
    ...keyProblems(result.error?.issues ?? [], toml.content, unknownKey),
    ...contradictions(toml.content, lineOfKey),
  ];
  if (result.success && problems.length === 0) return configOf(result.data, file, lineOfKey);
  throw new ConfigError(
    file,
    problems.map(({ path, reason }) => ({ ...placeOf(path), key: path.join("."), reason })),
  );
}

function unknownKey(path: KeyPath, key: string): string {
  const table = tableAt(path);
  const known = TABLES[table] ?? [];
  const near = didYouMean(key, known);
  if (near !== "") return `is not a known key${near}`;
  const home = Object.keys(TABLES).find((name) => TABLES[name]?.includes(key));
  return home === undefined || home === ""
    ? `is not a known key; known here: ${known.join(", ")}`
    : `is not a known key; it belongs into [${home}]`;
}

function tableAt(path: KeyPath): string {
  if (path.length === 3 && path[1] === "tools") return "conversation.tools.NAME";
  if (path.length === 3 && path[0] === "mcp") return "mcp.servers.NAME";
  if (path.length === 2 && path[0] === "hooks") return "hooks.NAME";
  return path.join(".");
}

function configOf(content: z.output<typeof fileSchema>, file: string, lineOf: LineOf): Config {
  const { conversation, agent, mcp, hooks, server } = content;
  const { enable = true, turn_end = "carry" } = conversation?.notifications ?? {};
  const { provider = null, model = null, base_url = null, api_key_env = null, props = null } = agent ?? {};
  const { enable: runs = false, ...shell } = agent?.shell ?? {};
  const { enable: works = false, ...workspace } = agent?.workspace ?? {};
  const tools = Object.entries(conversation?.tools ?? {}).map(([name, tool]): [string, ToolConfig] => [
    name,
    {
      source: tool.source ?? null,
      stateful: tool.stateful ?? false,
      impact: tool.impact ?? null,
      turn_end: tool.turn_end ?? null,
      notifications: toolSwitches(content, name, lineOf),
    },
  ]);
  return {
    file,
    notifications: { enable, kinds: kindSwitches(content, lineOf), turn_end },
    agent: {
      provider,
      model,
      base_url,
      api_key_env,
      props,
      shell: runs ? withoutUndefined<ShellConfig>(shell) : null,
      workspace: works ? withoutUndefined<WorkspaceConfig>(workspace) : null,
      budgets: budgetsOf(agent?.budgets ?? {}),
      loops: withoutUndefined<LoopsConfig>(agent?.loops ?? {}),
    },
    mcp: mcp?.servers ?? new Map(),
    tools: new Map(tools),
    hooks: hooksOf(hooks),
    server: { limits: limitsOf(server?.limits ?? {}) },
  };
}

/** The keys, in full, whose values differ between two versions. */
export function changedKeys(before: Config, after: Config): string[] {
  const was = valuesOf(before);
  const is = valuesOf(after);
  return [...new Set([...was.keys(), ...is.keys()])].filter((key) => was.get(key) !== is.get(key)).sort();
}

/** Without what holds when nothing is said. */
function valuesOf({ notifications, agent, mcp, tools, hooks, server }: Config): ReadonlyMap<string, string | boolean> {
  const values = new Map<string, string | boolean>(hookValues(hooks));
  const note = (key: string, value: string | boolean | null, preset: string | boolean | null) => {
    if (value !== null && value !== preset) values.set(`conversation.${key}`, value);
  };
  const { shell, workspace, budgets, loops, ...model } = agent;
  for (const [key, value] of Object.entries(model)) if (value !== null) values.set(`agent.${key}`, value);
  if (shell !== null) values.set("agent.shell.enable", true);
  for (const [key, value] of Object.entries(shell ?? {})) values.set(`agent.shell.${key}`, String(value));
  for (const [scope, most] of Object.entries(budgets))
    for (const [key, value] of Object.entries(most)) values.set(`agent.budgets.${scope}.${key}`, String(value));
  for (const [key, value] of Object.entries(loops)) values.set(`agent.loops.${key}`, String(value));
  if (workspace !== null) values.set("agent.workspace.enable", true);
  for (const [key, value] of Object.entries(workspace ?? {})) values.set(`agent.workspace.${key}`, String(value));
  for (const [name, server] of mcp)
    for (const [key, value] of Object.entries(server)) values.set(`mcp.servers.${name}.${key}`, JSON.stringify(value));
  for (const [name, value] of Object.entries(server.limits))
    values.set(`server.limits.${limitKey(name)}`, String(value));
  note("notifications.turn_end", notifications.turn_end, "carry");
  note("notifications.enable", notifications.enable, true);
  for (const [source, { enable, names }] of notifications.kinds) {
    note(`notifications.kinds.${source}.enable`, enable?.on ?? true, true);
    for (const [name, { on }] of names) note(`notifications.kinds.${source}.${name}`, on, true);
  }
  for (const [tool, { source, stateful, impact, turn_end, notifications: names }] of tools) {
    note(`tools.${tool}.source`, source, null);
    note(`tools.${tool}.stateful`, stateful, false);
    note(`tools.${tool}.impact`, impact, null);
    note(`tools.${tool}.turn_end`, turn_end, null);
    for (const [name, { on }] of names) note(`tools.${tool}.notifications.${name}`, on, true);
  }
  return values;
}

function budgetsOf({ turn = {}, thread = {}, day = {} }: z.output<typeof budgetsSchema>): BudgetsConfig {
  const of = (most: z.output<typeof budgetSchema>) => withoutUndefined<BudgetConfig>(most);
  return { turn: of(turn), thread: of(thread), day: of(day) };
}

function withoutUndefined<Table extends object>(
  table: {
    readonly [Key in keyof Table]?: Table[Key] | undefined;
  },
): Table {
  return Object.fromEntries(Object.entries(table).filter(([, value]) => value !== undefined)) as Table;
}
