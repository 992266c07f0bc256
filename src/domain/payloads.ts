/**
 * What the payload of an event of a known type holds. Further keys are welcome. A payload that does not fit is no reason to
 * refuse its event: it is taken in and told all the same, and its story says what is wrong with it.
 */
import { z } from "zod";
import { issueWords } from "./issue_words.js";
import type { JsonObject } from "./json.js";
import { type FieldCheck, quickCheck } from "./quick_check.js";

const text = z.string();
const name = text.min(1);
const count = z.number().min(0);
const words = { message: text.optional(), reason: text.optional(), error_message: text.optional() };

const toolCall = z.looseObject({ tool_name: name, call_id: text.optional() });
const failedCall = toolCall.extend({
  error_type: text.optional(),
  error_message: text.optional(),
  retry_count: count.optional(),
  timeout_ms: count.optional(),
});

const handle = z
  .looseObject({
    tool_name: name,
    handle: text.optional(),
    handle_id: text.optional(),
    question: text.optional(),
    error_message: text.optional(),
    exit_code: z.number().optional(),
    transient: z.boolean().optional(),
  })
  .refine(({ handle: named, handle_id }) => named !== undefined || handle_id !== undefined, {
    path: ["handle"],
    message: "is required",
  });

function budget(budget_type: string) {
  return z.looseObject({
    budget_type: z.literal(budget_type),
    current: count,
    limit: count,
    percentage: count.optional(),
    remaining: count.optional(),
    /** Of what it is the budget: of the turn, the conversation, or the user's day. */
    scope: z.enum(["turn", "thread", "day"]).optional(),
    /** Which day (UTC). */
    day: z.iso.date().optional(),
  });
}

const turn = z.looseObject({
  turn_id: text.optional(),
  source: text.optional(),
  internal: z.boolean().optional(),
  status: text.optional(),
  reason: text.optional(),
});

const loop = z.looseObject({ pattern: name, repetitions: z.int().min(1), window_seconds: count });

const names = z.array(text);
const mcp = z.looseObject({
  server: name,
  attempts: count.optional(),
  /** Of the server's log, or of its resources: how many came before this one that were too many to be told. */
  dropped: count.optional(),
  uri: text.optional(),
  ...words,
});
const mcpTools = mcp.extend({
  tools: z
    .union([text, names, z.looseObject({ added: names, removed: names, held: names, approved: names }).partial()])
    .optional(),
  /** Of the tools that are held: what was approved, and what they look like now. */
  held: z
    .array(
      z.looseObject({
        tool: text,
        before: text.nullable(),
        now: text,
        input_before: text.optional(),
        input_now: text.optional(),
      }),
    )
    .optional(),
});

const rateLimit = z.looseObject({
  provider: name,
  what: text.optional(),
  limit: count.optional(),
  remaining: count.optional(),
  retry_after_ms: count.optional(),
  reset_at: text.optional(),
  ...words,
});

const subagent = z.looseObject({ name: text.optional(), task: text.optional(), summary: text.optional(), ...words });

export const PAYLOADS = {
  "tool.call.pending": toolCall,
  "tool.call.success": toolCall,
  "tool.call.failure": failedCall,
  "tool.call.timeout": failedCall,
  "tool.stopped": handle,
  "tool.waiting": handle,
  "tool.failed": handle,
  "handle.stopped": handle,
  "handle.waiting": handle,
  "handle.failed": handle,
  "budget.token.warning": budget("token"),
  "budget.token.exceeded": budget("token"),
  "budget.iteration.warning": budget("iteration"),
  "budget.iteration.exceeded": budget("iteration"),
  "budget.timeout.warning": budget("timeout"),
  "budget.timeout.exceeded": budget("timeout"),
  "agent.turn.start": turn,
  "agent.turn.end": turn,
  "agent.loop.detected": loop,
  "mcp.disconnected": mcp,
  "mcp.unresponsive": mcp,
  "mcp.reconnected": mcp,
  "mcp.tools_changed": mcpTools,
  "mcp.resource_updated": mcp.extend({ uri: name }),
  "mcp.log": mcp.extend({ message: text, level: text.optional() }),
  "workspace.file.changed": z.looseObject({ path: name, change: text.optional(), message: text.optional() }),
  "config.reloaded": z.looseObject({
    file: text.nullable(),
    changed: z.array(text),
    restart: z.array(text).optional(),
    ...words,
  }),
  "rate_limit.hit": rateLimit,
  "rate_limit.low": rateLimit.extend({ limit: count, remaining: count }),
  "subagent.complete": subagent,
  "subagent.failed": subagent,
  "cli.event": z.looseObject({ message: text.optional() }),
} as const satisfies Readonly<Record<string, z.ZodType>>;

const KNOWN: ReadonlyMap<unknown, FieldCheck> = new Map<unknown, FieldCheck>([
  [text, (value) => typeof value === "string"],
  [name, (value) => typeof value === "string" && value.length > 0],
  [count, (value) => typeof value === "number" && value >= 0],
]);

const SCHEMAS = new Map(
  Object.entries(PAYLOADS).map(([type, schema]) => [type, { schema, isFit: quickCheck(schema, KNOWN) }]),
);

/** What is wrong with the payload of an event; null if it fits, and for a type that nobody knows. */
export function payloadProblem(type: string, payload: JsonObject): string | null {
  const known = SCHEMAS.get(type);
  if (known === undefined || known.isFit?.(payload)) return null;
  const result = known.schema.safeParse(payload);
  const [issue] = result.error?.issues ?? [];
  if (issue === undefined) return null;
  const missing = issue.code === "invalid_type" && issue.message.endsWith("received undefined");
  return `payload.${issue.path.join(".")}: ${missing ? "is required" : issueWords(issue)}`;
}
