/** The tools of one agent: those that it began with, and those that come and go. */
import { z } from "zod";
import { InvalidInputError } from "../domain/errors.js";
import { takeJson } from "../domain/json.js";
import { didYouMean } from "../domain/nearest.js";
import type { ToolDeclaration } from "../providers/model.js";
import { AWAIT, AWAIT_TOOL } from "./handles/await.js";
import { type StatefulTool, statefulDeclaration } from "./handles/stateful_tool.js";
import type { Impact } from "./impact.js";
import { type AnyTool, isStateful, type Tool } from "./tools.js";

/** Tools that came together, and go together. */
export interface Registration {
  /** These instead, at the same place among the others. Nothing is changed if one of them is refused. */
  replace(tools: readonly AnyTool[]): void;
  /** Whoever calls one of them from now on is told that there is none. */
  remove(): void;
}

interface Entry {
  readonly tool: AnyTool;
  readonly declaration: ToolDeclaration;
}

/** As every provider takes it. */
const NAME = /^[A-Za-z0-9_-]{1,64}$/;

export class ToolSet {
  readonly #builtIn: readonly ToolDeclaration[];
  /** In the order in which they came: what comes later stands behind, and what a provider has cached stays as it was. */
  readonly #groups = new Set<{ entries: readonly Entry[] }>();
  #tools: ReadonlyMap<string, AnyTool> = new Map();
  #declarations: readonly ToolDeclaration[];

  constructor(builtIn: readonly ToolDeclaration[], tools: readonly AnyTool[]) {
    this.#builtIn = builtIn;
    this.#declarations = builtIn;
    this.add(tools);
  }

  add(tools: readonly AnyTool[]): Registration {
    const group = { entries: this.#checked(tools, new Set()) };
    this.#groups.add(group);
    this.#changed();
    return {
      replace: (others) => {
        if (!this.#groups.has(group)) throw new InvalidInputError("tools", "they were removed before");
        group.entries = this.#checked(others, new Set(group.entries.map(({ tool }) => tool.name)));
        this.#changed();
      },
      remove: () => {
        if (this.#groups.delete(group)) this.#changed();
      },
    };
  }

  /** The built-in ones first; the same bytes in every request for as long as none comes or goes. */
  get declarations(): readonly ToolDeclaration[] {
    return this.#declarations;
  }

  get all(): readonly AnyTool[] {
    return [...this.#tools.values()];
  }

  isTaken(name: string): boolean {
    return name === AWAIT || this.#tools.has(name) || this.#builtIn.some((one) => one.name === name);
  }

  getStateful(name: string): StatefulTool | undefined {
    const tool = this.#tools.get(name);
    return tool !== undefined && isStateful(tool) ? tool : undefined;
  }

  /** Whether it is the one that waits for calls of others. */
  isAwait(name: string): boolean {
    return name === AWAIT && this.#declarations.includes(AWAIT_TOOL);
  }

  impactOf(name: string): Impact | undefined {
    return this.#tools.get(name)?.impact;
  }

  get(name: string): Tool | undefined {
    const tool = this.#tools.get(name);
    return tool === undefined || isStateful(tool) ? undefined : tool;
  }

  /** What the model is told that asked for one that does not exist. */
  unknown(name: string): string {
    const names = this.#declarations.map((declaration) => declaration.name);
    const shown = JSON.stringify(name.slice(0, 100));
    return `there is no tool ${shown}${didYouMean(name.slice(0, 100), names)}; there are ${names.join(", ")}`;
  }

  /** `freed`: names that are about to be given up. */
  #checked(tools: readonly AnyTool[], freed: ReadonlySet<string>): Entry[] {
    const taken = new Set([...this.#builtIn.map(({ name }) => name), AWAIT]);
    for (const name of this.#tools.keys()) if (!freed.has(name)) taken.add(name);
    return tools.map((tool) => {
      if (!NAME.test(tool.name))
        throw new InvalidInputError("tools", `${JSON.stringify(tool.name)} must be 1 to 64 letters, digits, _ and -`);
      if (taken.has(tool.name))
        throw new InvalidInputError("tools", `there are two of the name ${tool.name}; the built-in names are taken`);
      taken.add(tool.name);
      return { tool, declaration: declarationOf(tool) };
    });
  }

  #changed(): void {
    const entries = [...this.#groups].flatMap((group) => group.entries);
    this.#tools = new Map(entries.map(({ tool }) => [tool.name, tool]));
    // Whoever can start nothing has nothing to wait for.
    const first = entries.findIndex(({ tool }) => isStateful(tool));
    const own = entries.flatMap(({ declaration }, index) =>
      index === first ? [AWAIT_TOOL, declaration] : declaration,
    );
    this.#declarations = [...this.#builtIn, ...own];
  }
}

function declarationOf(tool: AnyTool): ToolDeclaration {
  if (isStateful(tool)) return statefulDeclaration(tool);
  const { name, description, input, input_schema } = tool;
  if (input_schema !== undefined) return { name, description, input_schema };
  const { $schema: _, ...schema } = z.toJSONSchema(input, { io: "input", unrepresentable: "any" });
  return { name, description, input_schema: takeJson(JSON.parse(JSON.stringify(schema)), `tools.${name}.input`) };
}
