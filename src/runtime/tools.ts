/** What an agent can do: functions with a schema. */
import type { z } from "zod";
import type { ThreadId, TurnId, UserId } from "../domain/ids.js";
import type { JsonObject } from "../domain/json.js";
import { later } from "../platform/timers.js";
import { answerText } from "./answer_text.js";
import type { StatefulTool } from "./handles/stateful_tool.js";
import type { Impact } from "./impact.js";
import type { ToolFiles } from "./workspace/tool_files.js";

export interface ToolContext {
  readonly thread_id: ThreadId;
  readonly user_id: UserId;
  readonly turn_id: TurnId;
  readonly call_id: string;
  /** The call is wanted no more: it took too long, or the turn was cut short. */
  readonly signal: AbortSignal;
  /** Which files it reads and writes: the agent is told when others change them. */
  readonly files: ToolFiles;
}

export interface Tool<Schema extends z.ZodType = z.ZodType> {
  readonly name: string;
  readonly description: string;
  readonly input: Schema;
  /** What the model is told of the input, where that is another thing than `input` says: a JSON schema. */
  readonly input_schema?: JsonObject;
  /** One that does not say is taken to be external. */
  readonly impact?: Impact;
  readonly timeout_ms?: number;
  run(input: z.output<Schema>, context: ToolContext): Promise<string> | string;
}

/** Gives the parts of a tool the types that its input says; the tool is as it was. */
export function defineTool<Schema extends z.ZodType>(tool: StatefulTool<Schema>): StatefulTool<Schema>;
export function defineTool<Schema extends z.ZodType>(tool: Tool<Schema>): Tool<Schema>;
export function defineTool(tool: AnyTool): AnyTool {
  return tool;
}

/** One-shot, or one whose calls go on in the background. */
export type AnyTool = Tool | StatefulTool;

export function isStateful(tool: AnyTool): tool is StatefulTool {
  return "spawn" in tool;
}

export interface ToolOutcome {
  readonly how: "success" | "failure" | "timeout" | "interrupted";
  readonly output: string;
  /** What the agent has seen by it, and is not told again. */
  readonly observed?: readonly string[];
}

const OUTPUT_CHARS_MAX = 200_000;

/** The input as the tool wants it, or what is wrong with it. */
export function parsedInput(tool: Tool, input: JsonObject): { readonly value: unknown } | { readonly wrong: string } {
  const result = tool.input.safeParse(input);
  if (result.success) return { value: result.data };
  const problems = result.error.issues.map(({ path, message }) => `${path.join(".") || "input"}: ${message}`);
  return { wrong: problems.slice(0, 5).join("; ") };
}

/** How a call is bounded. */
export interface ToolBounds {
  readonly timeout_ms: number;
  /** The turn is cut short. */
  readonly cut: AbortSignal;
  /** How long a call may take then to come to its end. */
  readonly grace_ms: () => number;
}

/** Runs it until it is done, takes too long, or is wanted no more; one that goes on after that is not waited for. */
export function runTool(
  tool: Tool,
  input: unknown,
  context: Omit<ToolContext, "signal">,
  { timeout_ms, cut, grace_ms }: ToolBounds,
): Promise<ToolOutcome> {
  const ended = new AbortController();
  return new Promise<ToolOutcome>((resolve) => {
    const end = (outcome: ToolOutcome) => {
      stopTimer();
      cut.removeEventListener("abort", interrupt);
      resolve(outcome);
      ended.abort();
    };
    const interrupted: ToolOutcome = { how: "interrupted", output: INTERRUPTED };
    const interrupt = () => {
      stopTimer();
      stopTimer = later(grace_ms(), () => end(interrupted));
      ended.abort();
    };
    let stopTimer = later(timeout_ms, () => end({ how: "timeout", output: `timed out after ${timeout_ms} ms` }));
    if (cut.aborted) return end(interrupted);
    cut.addEventListener("abort", interrupt, { once: true });
    // What fails because it was cut short has not failed.
    void attempt(tool, input, { ...context, signal: ended.signal }).then((outcome) =>
      end(cut.aborted && outcome.how === "failure" ? interrupted : outcome),
    );
  });
}

/** What a call is told that was cut short. */
export const INTERRUPTED = "interrupted before it was done; what it had done by then is unknown";

async function attempt(tool: Tool, input: unknown, context: ToolContext): Promise<ToolOutcome> {
  try {
    return { how: "success", output: shown(answerText(await tool.run(input, context))) };
  } catch (error) {
    return { how: "failure", output: shown(error instanceof Error ? error.message : error) };
  }
}

function shown(output: unknown): string {
  const text = (typeof output === "string" ? output : String(output)).toWellFormed();
  if (text.length <= OUTPUT_CHARS_MAX) return text;
  return `${text.slice(0, OUTPUT_CHARS_MAX).toWellFormed()}\n(cut off here: it had ${text.length} characters)`;
}
