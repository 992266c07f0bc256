import { z } from "zod";
import type { NewTokenAnswer } from "../../access/tokens.js";
import { SCOPES, type TokenView } from "../../domain/token.js";
import type { McpLookView, McpServerView, McpToolView } from "../../mcp/views.js";
import type { PruneStep } from "../../store/contract.js";
import type { AgentView } from "../../tidings.js";
import type { HookWithoutSecret } from "../ingest/secrets.js";
import { LOG_LEVELS, type LogLine } from "../log.js";
import { RESET_REASONS } from "../notifications.js";
import type { RestView } from "../rest.js";
import { schemaOf } from "./plain.js";
import { count, id, text, time } from "./words.js";

const token = schemaOf<TokenView>()(
  z.strictObject({
    id,
    name: text.nullable(),
    user_id: id,
    scopes: z.array(z.enum(SCOPES)),
    created_at: time,
    expires_at: time.nullable(),
    revoked_at: time.nullable(),
  }),
);

export const tokenResult = token;
export const tokensResult = z.strictObject({ tokens: z.array(token) });
export const newTokenResult = schemaOf<NewTokenAnswer>()(token.extend({ token: text }));

const look = schemaOf<McpLookView>()(z.strictObject({ digest: text, description: text, input_schema: text }));

export const mcpToolResult = schemaOf<McpToolView>()(
  z.strictObject({
    tool: text,
    name: text.nullable(),
    state: z.enum(["offered", "held", "gone"]),
    approved: look.nullable(),
    held: look.nullable(),
  }),
);

const mcpServer = schemaOf<McpServerView>()(
  z.strictObject({
    name: text,
    transport: z.enum(["stdio", "http"]).nullable(),
    state: z.enum(["connecting", "connected", "unresponsive", "away", "off", "idle", "unknown"]),
    reason: text.nullable(),
    pid: count.nullable(),
    attempts: count,
    calls: count,
    tools: z.array(mcpToolResult),
    refused: z.array(z.strictObject({ tool: text, reason: text })),
    log_dropped: count,
  }),
);

export const mcpServersResult = z.strictObject({ servers: z.array(mcpServer) });

const agent = schemaOf<AgentView>()(z.strictObject({ provider: text, model: text })).nullable();

export const initializeResult = z.strictObject({ version: text, journal_id: id, seq: count, user_id: id, agent });

export const restResult = schemaOf<RestView>()(
  z.strictObject({ state: z.enum(["running", "paused"]), resumes_at: time.nullable() }),
);

const status = {
  status: z.literal("running"),
  ...restResult.shape,
  events_processed: count,
  version: text,
  started_at: time,
  journal_id: id,
  user_id: id,
  agent,
  tools: z.array(text),
  props: z.array(text),
};

/** Admin's token is told more. */
export const statusResult = z.union([
  z.strictObject(status),
  z.strictObject({
    ...status,
    pid: count,
    connections: count,
    hooks_without_secret: z.array(
      schemaOf<HookWithoutSecret>()(z.strictObject({ name: text, secret_env: z.array(text) })),
    ),
    last_seq: count,
    floor_seq: count,
    bytes: count,
  }),
]);

const line = schemaOf<LogLine>()(
  z.strictObject({
    time,
    level: z.enum(LOG_LEVELS),
    message: text,
    fields: z.record(z.string(), z.union([z.string(), z.number(), z.boolean(), z.null()])),
  }),
);

export const logResult = z.strictObject({ lines: z.array(line), following: z.boolean() });

export const pruneResult = schemaOf<PruneStep>()(
  z.strictObject({ entries: count, notifications: count, visited: count }),
);

export const resumeResult = z.strictObject({
  resumed: z.boolean(),
  reset: z.enum(RESET_REASONS).nullable(),
  journal_id: id,
  oldest_seq: count,
  newest_seq: count,
});
