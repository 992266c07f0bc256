/** What a program may say of its agent's bounds and tools, as it is checked when the agent is opened. */
import { z } from "zod";
import { fieldsSchema } from "../domain/parse.js";

/** No timer waits longer. */
const MS_MAX = 2_147_483_647;
const count = z.int().min(1).optional();
const amount = z.int().min(0).optional();
const wait = z.int().min(0).max(MS_MAX).optional();
const word = z.string().min(1, "must not be empty").optional();
const variable = z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/, "must be the names of environment variables");

export const limitsSchema = fieldsSchema({
  iterations: count,
  tokens: count,
  time_ms: z.int().min(1).max(MS_MAX).optional(),
  tool_timeout_ms: z.int().min(1).max(MS_MAX).optional(),
  retries: z.int().min(0).max(100).optional(),
  retry_base_ms: wait,
});

export const handlesSchema = fieldsSchema({
  live: count,
  retention_ms: amount,
  kept: amount,
  kept_chars: amount,
  turn_end_ms: wait,
  abort_ms: wait,
});

export const shellSchema = fieldsSchema({
  command_lines: z.boolean().optional(),
  folder: word,
  environment: z.array(variable).optional(),
  time_limit_secs: z.number().positive().max(86_400).optional(),
  output_bytes_max: count,
  processes_max: z.int().min(1).max(1_000).optional(),
  kill_after_ms: wait,
});

export const workspaceSchema = fieldsSchema({
  folder: word,
  read_only: z.boolean().optional(),
  files_max: z.int().min(1).max(10_000).optional(),
});
