import { z } from "zod";
import { defineMethod } from "../method.js";
import { mcpServersResult } from "../results/host.js";

export const mcpList = defineMethod({
  name: "mcp/list",
  scope: "admin",
  summary: "The MCP servers, how they are, and their tools: offered, or held until somebody approves of them.",
  params: z.strictObject({}),
  result: mcpServersResult,
  async run(_params, { runtime }) {
    return { servers: await runtime.tidings.mcp.list() };
  },
});
