/** The prop that drops: an MCP server with a few documents, whose process can be ended in the middle of a call. */
import type { LentServer } from "../mcp/thread_servers.js";
import { DOCUMENT_TOOLS } from "./document_tools.js";
import { programOf } from "./programs.js";

export const DOCUMENTS: LentServer = {
  name: "documents",
  config: {
    ...programOf("documents"),
    impact: "internal",
    connect_timeout_secs: 20,
    call_timeout_secs: 20,
    reconnect_max_secs: 2,
  },
  tools: DOCUMENT_TOOLS,
};
