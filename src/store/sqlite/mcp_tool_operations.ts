/** What MCP servers say that they can do, and what was approved of it. */
import type { Miss } from "../../domain/errors.js";
import { LOCAL_USER } from "../../domain/ids.js";
import type { Approval, McpToolRecord, SeenTool, ToolLook } from "../../domain/mcp.js";
import type { Transaction } from "./commit.js";
import type { Core } from "./core.js";

export function seeMcpTools(core: Core, transaction: Transaction, seen: readonly SeenTool[]): McpToolRecord[] {
  return seen.map(({ server, tool, look, by }) => {
    const before = core.mcpTools.get(server, tool);
    return record(core, transaction, { server, tool, approved: before?.approved ?? null }, look, by);
  });
}

export function approveMcpTool(
  core: Core,
  transaction: Transaction,
  server: string,
  tool: string,
  digest: string | null,
): McpToolRecord | Miss {
  const id = `${server} ${tool}`;
  const before = core.mcpTools.get(server, tool);
  if (before === undefined)
    return {
      miss: "not_found",
      id,
      message: `no tool ${JSON.stringify(tool)} of ${JSON.stringify(server)} was ever seen`,
    };
  const { held, approved } = before;
  if (digest !== null && digest !== (held ?? approved)?.digest)
    return {
      miss: "stale_revision",
      id,
      message: `${tool} of ${server} looks otherwise now than what was approved of here; look at it again`,
    };
  if (held === null) return before;
  return record(core, transaction, before, held, "operator");
}

function record(
  core: Core,
  transaction: Transaction,
  { server, tool, approved }: Pick<McpToolRecord, "server" | "tool" | "approved">,
  look: ToolLook,
  by: Approval | null,
): McpToolRecord {
  const body = { type: "mcp_tool", server, tool, by, look, changes: [] } as const;
  const seq = core.journal.append(transaction, LOCAL_USER, null, body);
  const { at } = transaction;
  const looks = by === null ? { approved, held: look } : { approved: look, held: null };
  const made: McpToolRecord = { server, tool, ...looks, seq, at };
  core.mcpTools.put(made);
  return made;
}
