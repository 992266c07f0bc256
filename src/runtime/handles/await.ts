/** The built-in tool that waits for handles. */
import { z } from "zod";
import type { JsonObject } from "../../domain/json.js";
import type { ToolDeclaration } from "../../providers/model.js";
import { handleIdSchema, problemsOf } from "./stateful_tool.js";

export const AWAIT = "await";

const SECS_PRESET = 60;
const SECS_MAX = 300;
const NAMED_MAX = 1_000;

export const AWAIT_TOOL: ToolDeclaration = {
  name: AWAIT,
  description:
    "Waits for calls that run in the background, by the handles you gave them: until any of `any` and all of `all` have stopped (status completed), until one of them asks something or the user speaks (pending), or until the time is over (timed_out).",
  input_schema: {
    type: "object",
    properties: {
      any: { type: "array", items: { type: "string" }, description: "Handles of which one is enough." },
      all: { type: "array", items: { type: "string" }, description: "Handles that all have to stop." },
      timeout_secs: { type: "number", description: `${SECS_PRESET} unless said otherwise; at most ${SECS_MAX}.` },
    },
    additionalProperties: false,
  },
};

const handlesSchema = z.array(handleIdSchema).max(NAMED_MAX).default([]);
const schema = z
  .strictObject({
    any: handlesSchema,
    all: handlesSchema,
    timeout_secs: z.number().min(0).max(SECS_MAX).default(SECS_PRESET),
  })
  .refine(({ any, all }) => any.length + all.length > 0, "name handles in any or all");

export interface Wish {
  readonly any: readonly string[];
  readonly all: readonly string[];
  readonly timeout_ms: number;
}

export function parsedAwait(input: JsonObject): Wish | { readonly wrong: string } {
  const parsed = schema.safeParse(input);
  if (!parsed.success) return { wrong: problemsOf(parsed.error, []) };
  const { any, all, timeout_secs } = parsed.data;
  return { any, all, timeout_ms: Math.ceil(timeout_secs * 1_000) };
}

export type AwaitStatus = "completed" | "pending" | "timed_out";

/** Null: it goes on waiting. One that asks something does not stop by itself: waiting for it would be in vain. */
export function judge(
  { any, all }: Pick<Wish, "any" | "all">,
  over: (id: string) => boolean,
  asks: (id: string) => boolean,
): AwaitStatus | null {
  if ((any.length === 0 || any.some(over)) && all.every(over)) return "completed";
  return [...any, ...all].some(asks) ? "pending" : null;
}
