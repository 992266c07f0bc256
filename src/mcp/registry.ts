/** What the operator can see and approve of, whether an agent is hosted here or not. */
import { z } from "zod";
import type { McpServerConfig } from "../config/mcp.js";
import { isMiss, type Miss } from "../domain/errors.js";
import { LIMITS } from "../domain/limits.js";
import { parseInput, wordSchema } from "../domain/parse.js";
import type { Store } from "../store/contract.js";
import { seenTools } from "./pins.js";
import type { McpServers } from "./servers.js";
import { type McpServerView, type McpToolView, toolView } from "./views.js";

export interface ApproveInput {
  server: string;
  /** The server's name for it. */
  tool: string;
  /** What is approved of, as `list` shows it: if the tool looks otherwise by now, it stays held. */
  digest?: string | undefined;
}

export const approveSchema = z.strictObject({
  server: wordSchema(LIMITS.idChars),
  tool: wordSchema(LIMITS.idChars),
  digest: wordSchema(LIMITS.idChars).optional(),
});

export interface McpPlace {
  readonly store: Store;
  /** By name; also those that are switched off. */
  configs(): ReadonlyMap<string, McpServerConfig>;
  /** Null if no agent is hosted here. */
  servers(): McpServers | null;
}

export class McpRegistry {
  readonly #place: McpPlace;

  constructor(place: McpPlace) {
    this.#place = place;
  }

  /** Each server that is configured, or whose tools were ever seen, with these. */
  async list(): Promise<McpServerView[]> {
    const { store, configs, servers } = this.#place;
    const seen = await seenTools(store, null);
    const configured = configs();
    const lent = servers()?.lent.servers ?? [];
    const names = new Set([...configured.keys(), ...lent, ...seen.map(({ server }) => server)]);
    return [...names].map((name) => {
      const view = servers()?.get(name) ?? unseen(name, configured.get(name), servers() !== null);
      const listed = new Set(view.tools.map(({ tool }) => tool));
      const known = seen.filter(({ server, tool }) => server === name && !listed.has(tool));
      return { ...view, tools: [...view.tools, ...known.map((record) => toolView(record, null, false))] };
    });
  }

  /** The tool as it is now: it may be used from the next call of the model on. */
  async approve(input: ApproveInput): Promise<McpToolView | Miss> {
    const { server, tool, digest } = parseInput(approveSchema, input);
    const answer = await this.#place.store.approveMcpTool(server, tool, digest ?? null);
    if (isMiss(answer)) return answer;
    const servers = this.#place.servers();
    await servers?.approved(answer);
    const shown = servers?.get(server)?.tools.find((one) => one.tool === tool);
    return shown ?? toolView(answer, null, false);
  }
}

function unseen(name: string, config: McpServerConfig | undefined, hosted: boolean): McpServerView {
  return {
    name,
    transport: config === undefined ? null : config.url === undefined ? "stdio" : "http",
    state: config?.enable === false || hosted ? "off" : "unknown",
    reason: null,
    pid: null,
    attempts: 0,
    calls: 0,
    tools: [],
    refused: [],
    log_dropped: 0,
  };
}
