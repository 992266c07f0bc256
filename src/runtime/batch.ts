/** The calls of one answer: run side by side, answered in their order. */
import type { Item, ToolCallResponse } from "../domain/conversation.js";
import type { Turn } from "../domain/turn.js";
import { crashPoint } from "../platform/crashpoint.js";
import { isBuiltIn, runBuiltIn } from "./builtin_tools.js";
import type { AskedCall } from "./call.js";
import type { Holdings } from "./holdings.js";
import { promoteForTools } from "./promotion.js";
import type { Setting } from "./setting.js";
import { parsedInput, runTool, type ToolOutcome } from "./tools.js";

export interface Batch {
  readonly setting: Setting;
  readonly turn: Turn;
  readonly holdings: Holdings;
  readonly calls: readonly AskedCall[];
  /** The turn is cut short. */
  readonly cut: AbortSignal;
  /** How long a call may take then to come to its end. */
  readonly grace_ms: () => number;
  readonly record: (items: readonly Item[]) => Promise<unknown>;
}

export interface Done {
  readonly call: AskedCall;
  readonly outcome: ToolOutcome;
  /** In milliseconds, how long it had. */
  readonly bound: number;
}

type Plan =
  | { readonly how: "refused"; readonly output: string }
  | { readonly how: "built_in" }
  | { readonly how: "tool"; readonly run: () => Promise<ToolOutcome>; readonly bound: number };

export async function runBatch(batch: Batch): Promise<readonly Done[]> {
  const plans = batch.calls.map((call) => ({ call, plan: planOf(batch, call) }));
  const { setting, turn, holdings } = batch;
  const external = plans.flatMap(({ call, plan }) =>
    plan.how === "tool" && setting.impactOf(call.name) === "external" ? [call.name] : [],
  );
  if (turn.internal && external.length > 0) await promoteForTools(setting.store, turn, holdings, external);
  // Built-in ones one after the other: what is told in a batch may be acknowledged in it.
  let before: Promise<unknown> = Promise.resolve();
  return Promise.all(
    plans.map(async ({ call, plan }): Promise<Done> => {
      switch (plan.how) {
        case "refused":
          return { call, outcome: { how: "failure", output: plan.output }, bound: 0 };
        case "built_in": {
          const context = { ...setting, turn, call_id: call.id, holdings, record: batch.record };
          const running = before.then(() => runBuiltIn(call.name, call.input, context));
          before = running;
          return { call, outcome: await running, bound: 0 };
        }
        case "tool": {
          const running = plan.run();
          crashPoint("tool.started");
          const outcome = await running;
          crashPoint("tool.done");
          return { call, outcome, bound: plan.bound };
        }
      }
    }),
  );
}

function planOf({ setting, turn, cut, grace_ms }: Batch, call: AskedCall): Plan {
  const { tools, counters, limits } = setting;
  const { name, input, malformed } = call;
  const tool = tools.get(name);
  if (tool === undefined && !isBuiltIn(name)) {
    counters.unknown_tools += 1;
    return { how: "refused", output: tools.unknown(name) };
  }
  if (malformed !== undefined) {
    counters.malformed_calls += 1;
    return { how: "refused", output: `the arguments cannot be used: ${malformed}` };
  }
  if (tool === undefined) return { how: "built_in" };
  const parsed = parsedInput(tool, input);
  if ("wrong" in parsed) {
    counters.malformed_calls += 1;
    return { how: "refused", output: `the arguments cannot be used: ${parsed.wrong}` };
  }
  const context = { thread_id: turn.thread_id, user_id: turn.user_id, turn_id: turn.id, call_id: call.id };
  const bound = tool.timeout_ms ?? limits.tool_timeout_ms;
  const run = () => runTool(tool, parsed.value, context, { timeout_ms: bound, cut, grace_ms });
  return { how: "tool", run, bound };
}

export function resultOf({ call, outcome }: Done): ToolCallResponse {
  const { id, name } = call;
  return { type: "tool_call_response", id, name, output: outcome.output, is_error: outcome.how !== "success" };
}
