/**
 * What was approved of a server's tools. A tool is trusted as it is first seen, or when the operator says so; one that looks
 * otherwise later is held until the operator has approved of that.
 */
import type { McpToolRecord, SeenTool } from "../domain/mcp.js";
import type { Store } from "../store/contract.js";
import { MCP_LIMITS } from "./limits.js";
import type { ListedTool, RefusedTool } from "./looks.js";
import type { Approve } from "./settings.js";

const PAGE = 200;

export interface Judged {
  /** Of what is listed now, in its order. */
  readonly records: readonly McpToolRecord[];
  /** Those that are held since now. */
  readonly held: readonly McpToolRecord[];
  readonly refused: readonly RefusedTool[];
}

export class Pins {
  readonly #store: Store;
  readonly #server: string;
  readonly #approve: Approve;
  #known: Map<string, McpToolRecord> | null = null;

  constructor(store: Store, server: string, approve: Approve) {
    this.#store = store;
    this.#server = server;
    this.#approve = approve;
  }

  async judge(listed: readonly ListedTool[]): Promise<Judged> {
    if (this.#approve === "never") return { records: listed.map((one) => this.#trusted(one)), held: [], refused: [] };
    this.#known ??= new Map((await seenTools(this.#store, this.#server)).map((record) => [record.tool, record]));
    const known = this.#known;
    const seen: SeenTool[] = [];
    const refused: RefusedTool[] = [];
    for (const { tool, look } of listed) {
      const before = known.get(tool);
      const place = { server: this.#server, tool, look };
      if (before === undefined) {
        if (known.size + seen.length >= MCP_LIMITS.toolsKnown)
          refused.push({ tool, reason: `its server has had more than ${MCP_LIMITS.toolsKnown} different tools` });
        else seen.push({ ...place, by: this.#approve === "first_use" ? "first_use" : null });
      } else if (before.approved?.digest === look.digest) {
        if (before.held !== null) seen.push({ ...place, by: "as_before" });
      } else if (before.held?.digest !== look.digest) seen.push({ ...place, by: null });
    }
    const changed = seen.length === 0 ? [] : await this.#store.seeMcpTools(seen);
    for (const record of changed) this.#take(record);
    return {
      records: listed.flatMap(({ tool }) => known.get(tool) ?? []),
      held: changed.filter(({ held }) => held !== null),
      refused,
    };
  }

  /** Nothing is remembered of it: another version of the package may show it otherwise. */
  #trusted({ tool, look }: ListedTool): McpToolRecord {
    return { server: this.#server, tool, approved: look, held: null, seq: 0, at: 0 };
  }

  /** It was approved of. */
  approved(record: McpToolRecord): void {
    this.#take(record);
  }

  /** Answers may overtake one another: what is newer stays. */
  #take(record: McpToolRecord): void {
    const known = this.#known?.get(record.tool);
    if (known === undefined || known.seq < record.seq) this.#known?.set(record.tool, record);
  }
}

/** All that were ever seen, of all servers or of one. */
export async function seenTools(store: Store, server: string | null): Promise<McpToolRecord[]> {
  const found: McpToolRecord[] = [];
  let after = server === null ? null : { server, tool: "" };
  for (;;) {
    const page: readonly McpToolRecord[] = await store.mcpTools(after, PAGE);
    found.push(...page.filter((record) => server === null || record.server === server));
    const last = page.at(-1);
    if (last === undefined || page.length < PAGE || (server !== null && last.server !== server)) return found;
    after = last;
  }
}
