import { approveSchema } from "../../mcp/registry.js";
import { defineMethod } from "../method.js";
import { mcpToolResult } from "../results/host.js";

export const mcpApprove = defineMethod({
  name: "mcp/approve",
  scope: "admin",
  summary: "A tool of an MCP server that is held may be used as it looks now, or as it looked when it had this digest.",
  params: approveSchema,
  result: mcpToolResult,
  run(params, { runtime }) {
    return runtime.tidings.mcp.approve(params);
  },
});
