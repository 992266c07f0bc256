/** The switches of kinds, in each of their forms: what is said of which kind, where, and whether two of them disagree. */
import { valueAt } from "../domain/issue_words.js";
import type { KeyPath } from "./locate.js";
import type { KeyProblem } from "./problems.js";

/** A switch as it stands in the file. */
export interface Switch {
  readonly on: boolean;
  readonly path: KeyPath;
  readonly line: number;
}

/** Of one source: `mcp`, with its names: `disconnected`. */
export interface SourceSwitches {
  /** Null: nothing is said, and it is on. */
  readonly enable: Switch | null;
  readonly names: ReadonlyMap<string, Switch>;
}

/** On which line of the file a key stands. */
export type LineOf = (path: KeyPath) => number;

const KINDS: KeyPath = ["conversation", "notifications", "kinds"];
/** In the place of a name: the switch of the whole source. */
const ENABLE = "enable";

interface Said {
  readonly source: string;
  readonly name: string;
  readonly on: boolean;
  readonly path: KeyPath;
}

/** Everything that a file says of kinds; what is no switch is passed over. */
function* saidIn(content: unknown): Generator<Said> {
  for (const [key, value] of entriesAt(content, KINDS)) {
    const path = [...KINDS, key];
    const dot = key.indexOf(".");
    if (typeof value === "boolean" && dot > 0)
      yield { source: sourceName(key.slice(0, dot)), name: key.slice(dot + 1), on: value, path };
    for (const [name, on] of entriesAt(content, path))
      if (typeof on === "boolean") yield { source: sourceName(key), name, on, path: [...path, name] };
  }
}

function entriesAt(content: unknown, path: KeyPath): [string, unknown][] {
  const table = valueAt(content, path);
  return typeof table === "object" && table !== null ? Object.entries(table) : [];
}

/** Whatever is said of a kind that was said to be otherwise before: which of them is meant, nobody can know. */
export function contradictions(content: unknown, lineOf: LineOf): KeyProblem[] {
  const firsts = new Map<string, Said>();
  return [...saidIn(content)].flatMap((said) => {
    const kind = `${said.source}.${said.name}`;
    const first = firsts.get(kind) ?? said;
    firsts.set(kind, first);
    if (first.on === said.on) return [];
    const other = `${first.path.join(".")} on line ${lineOf(first.path)}`;
    return [{ path: said.path, reason: `says ${said.on}, and ${other} says ${first.on}; say it once` }];
  });
}

/** By source. Of what is said several times, the first is the one that is named. */
export function kindSwitches(content: unknown, lineOf: LineOf): ReadonlyMap<string, SourceSwitches> {
  const sources = new Map<string, { enable: Switch | null; names: Map<string, Switch> }>();
  for (const { source, name, on, path } of saidIn(content)) {
    const found = sources.get(source) ?? { enable: null, names: new Map() };
    sources.set(source, found);
    const said = { on, path, line: lineOf(path) };
    if (name === ENABLE) found.enable ??= said;
    else if (!found.names.has(name)) found.names.set(name, said);
  }
  return sources;
}

/** Of one tool, by name: `waiting`. */
export function toolSwitches(content: unknown, tool: string, lineOf: LineOf): ReadonlyMap<string, Switch> {
  const table = ["conversation", "tools", tool, "notifications"];
  const switches = new Map<string, Switch>();
  for (const [name, on] of entriesAt(content, table)) {
    const path = [...table, name];
    if (typeof on === "boolean") switches.set(name, { on, path, line: lineOf(path) });
  }
  return switches;
}

/** Handles of tools were once a source of their own. */
export function sourceName(name: string): string {
  return name === "handle" ? "tool" : name;
}
