/** What the agent has of a server: tools with the looks that were approved. */
import { z } from "zod";
import type { JsonObject } from "../domain/json.js";
import type { McpToolRecord } from "../domain/mcp.js";
import type { Registration } from "../runtime/tool_set.js";
import type { Tool, ToolContext } from "../runtime/tools.js";
import { MCP_LIMITS } from "./limits.js";
import type { RefusedTool } from "./looks.js";
import { offeredName } from "./names.js";
import type { ServerSettings } from "./settings.js";
import { type McpToolView, toolView } from "./views.js";

export interface OfferOptions {
  readonly name: string;
  readonly settings: ServerSettings;
  readonly registration: Registration;
  readonly isTaken: (name: string) => boolean;
  readonly run: (tool: string, input: JsonObject, context: ToolContext) => Promise<string>;
}

/** The server itself says what it takes. */
const inputSchema = z.record(z.string(), z.unknown());

export class Offer {
  readonly #options: OfferOptions;
  #records: ReadonlyMap<string, McpToolRecord> = new Map();
  /** By the server's names, what the agent calls them. */
  #names: ReadonlyMap<string, string> = new Map();
  #refused: readonly RefusedTool[] = [];
  /** Those for which no name is left. */
  #nameless: readonly RefusedTool[] = [];

  constructor(options: OfferOptions) {
    this.#options = options;
  }

  get refused(): readonly RefusedTool[] {
    return [...this.#nameless, ...this.#refused].slice(0, MCP_LIMITS.refusedShown);
  }

  isHeld(tool: string): boolean {
    return this.#records.get(tool)?.held != null;
  }

  views(): McpToolView[] {
    const nameless = new Set(this.#nameless.map(({ tool }) => tool));
    const listed = [...this.#records.values()].filter(({ tool }) => !nameless.has(tool));
    return listed.map((record) => toolView(record, this.#names.get(record.tool) ?? null, true));
  }

  /** What the server lists now. Answers what is new, and what is not there any more. */
  replace(
    records: readonly McpToolRecord[],
    refused: readonly RefusedTool[],
  ): { readonly added: readonly string[]; readonly removed: readonly string[] } {
    const before = this.#records;
    this.#records = new Map(records.map((record) => [record.tool, newer(record, before.get(record.tool))]));
    this.#refused = refused;
    this.#publish();
    return {
      added: [...this.#records.keys()].filter((tool) => !before.has(tool)),
      removed: [...before.keys()].filter((tool) => !this.#records.has(tool)),
    };
  }

  /** Of one of them. Whether it is listed, and this is news. */
  update(record: McpToolRecord): boolean {
    const before = this.#records.get(record.tool);
    if (before === undefined || before.seq >= record.seq) return false;
    this.#records = new Map([...this.#records, [record.tool, record]]);
    this.#publish();
    return true;
  }

  /** One that is held stays declared as it was approved: whoever calls it is told, and what a provider has cached stays good. */
  #publish(): void {
    const { name, settings, registration, isTaken, run } = this.#options;
    const names = new Map<string, string>();
    const nameless: RefusedTool[] = [];
    const own = new Set(this.#names.values());
    const given = new Set<string>();
    const isElsewhere = (one: string) => !own.has(one) && isTaken(one);
    const tools = [...this.#records.values()].flatMap(({ tool, approved }): Tool[] => {
      if (approved === null) return [];
      const called = offeredName(name, tool, isElsewhere);
      if (given.has(called) || isElsewhere(called)) {
        nameless.push({ tool, reason: `another tool is called ${called}` });
        return [];
      }
      given.add(called);
      names.set(tool, called);
      return [
        {
          name: called,
          description: approved.description,
          input: inputSchema,
          input_schema: approved.input_schema,
          impact: settings.impact,
          timeout_ms: settings.call_timeout_ms,
          run: (input, context) => run(tool, input as JsonObject, context),
        },
      ];
    });
    registration.replace(tools);
    this.#names = names;
    this.#nameless = nameless;
  }
}

function newer(one: McpToolRecord, other: McpToolRecord | undefined): McpToolRecord {
  return other === undefined || other.seq <= one.seq ? one : other;
}
