/** What an agent can do: functions with a schema. */
import { z } from "zod";
import { InvalidInputError } from "../domain/errors.js";
import type { ThreadId, TurnId, UserId } from "../domain/ids.js";
import { type JsonObject, takeJson } from "../domain/json.js";
import { didYouMean } from "../domain/nearest.js";
import { later } from "../platform/timers.js";
import type { ToolDeclaration } from "../providers/model.js";

/** Whether anybody but the agent notices. */
export type Impact = "internal" | "external";

export interface ToolContext {
  readonly thread_id: ThreadId;
  readonly user_id: UserId;
  readonly turn_id: TurnId;
  readonly call_id: string;
  /** The call is wanted no more: it took too long, or the turn was cut short. */
  readonly signal: AbortSignal;
}

export interface Tool<Schema extends z.ZodType = z.ZodType> {
  readonly name: string;
  readonly description: string;
  readonly input: Schema;
  /** One that does not say is taken to be external. */
  readonly impact?: Impact;
  readonly timeout_ms?: number;
  run(input: z.output<Schema>, context: ToolContext): Promise<string> | string;
}

export interface ToolOutcome {
  readonly how: "success" | "failure" | "timeout" | "interrupted";
  readonly output: string;
}

/** As every provider takes it. */
const NAME = /^[A-Za-z0-9_-]{1,64}$/;
const OUTPUT_CHARS_MAX = 200_000;

/** The tools of one agent. */
export class ToolSet {
  /** The built-in ones first; the same bytes in every request. */
  readonly declarations: readonly ToolDeclaration[];
  readonly #tools = new Map<string, Tool>();

  constructor(builtIn: readonly ToolDeclaration[], tools: readonly Tool[]) {
    const taken = new Set(builtIn.map(({ name }) => name));
    for (const tool of tools) {
      if (!NAME.test(tool.name))
        throw new InvalidInputError("tools", `${JSON.stringify(tool.name)} must be 1 to 64 letters, digits, _ and -`);
      if (taken.has(tool.name))
        throw new InvalidInputError("tools", `there are two of the name ${tool.name}; the built-in names are taken`);
      taken.add(tool.name);
      this.#tools.set(tool.name, tool);
    }
    this.declarations = [...builtIn, ...tools.map(declarationOf)];
  }

  get(name: string): Tool | undefined {
    return this.#tools.get(name);
  }

  /** What the model is told that asked for one that does not exist. */
  unknown(name: string): string {
    const names = this.declarations.map((declaration) => declaration.name);
    const shown = JSON.stringify(name.slice(0, 100));
    return `there is no tool ${shown}${didYouMean(name.slice(0, 100), names)}; there are ${names.join(", ")}`;
  }
}

function declarationOf({ name, description, input }: Tool): ToolDeclaration {
  const { $schema: _, ...schema } = z.toJSONSchema(input, { io: "input", unrepresentable: "any" });
  return { name, description, input_schema: takeJson(JSON.parse(JSON.stringify(schema)), `tools.${name}.input`) };
}

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
    return { how: "success", output: shown(await tool.run(input, context)) };
  } catch (error) {
    return { how: "failure", output: shown(error instanceof Error ? error.message : error) };
  }
}

function shown(output: unknown): string {
  const text = (typeof output === "string" ? output : String(output)).toWellFormed();
  if (text.length <= OUTPUT_CHARS_MAX) return text;
  return `${text.slice(0, OUTPUT_CHARS_MAX).toWellFormed()}\n(cut off here: it had ${text.length} characters)`;
}
