/** Tools whose calls go on while the agent does something else. */
import { z } from "zod";
import type { ThreadId, UserId } from "../../domain/ids.js";
import { type JsonObject, takeJson } from "../../domain/json.js";
import type { ToolDeclaration } from "../../providers/model.js";
import type { Impact } from "../impact.js";
import type { ToolFiles } from "../workspace/tool_files.js";

export const ACTIONS = ["spawn", "fetch", "apply", "abort"] as const;
export type Action = (typeof ACTIONS)[number];

/** What becomes of its running calls when a turn ends: they go on, the turn waits for them for a while, they are ended. */
export type TurnEndPolicy = "keep" | "await" | "abort";

/** What a tool has of one of its calls. */
export interface Handle {
  /** As the model named it. */
  readonly id: string;
  readonly thread_id: ThreadId;
  readonly user_id: UserId;
  /** It is wanted no more. */
  readonly signal: AbortSignal;
  /** Which files it reads and writes: the agent is told when others change them. */
  readonly files: ToolFiles;
  /** Something on the way; the agent reads it with `fetch`. Of very much, the beginning and the end are kept. */
  output(text: string): void;
  /** Waits for the agent to answer, by `apply`. */
  ask(question: string): Promise<string>;
  /** Text that the agent sends by `apply` while nothing was asked. What the listener throws is the agent's answer. */
  onInput(listener: (text: string) => void): void;
}

export interface Outcome {
  readonly result: string;
  /** What else is to be said of it, like `exit_code`. */
  readonly data?: JsonObject;
}

export interface StatefulTool<Schema extends z.ZodType = z.ZodType> {
  readonly name: string;
  readonly description: string;
  /** What `spawn` takes. */
  readonly input: Schema;
  /** One that does not say is taken to be external. */
  readonly impact?: Impact;
  /** Those that it offers beside `spawn` and `fetch`; all, unless it says otherwise. */
  readonly actions?: readonly Action[];
  /** `keep`, unless it or the operator says otherwise. */
  readonly turn_end?: TurnEndPolicy;
  /** What its agent is told without asking; all of it, unless it says otherwise. */
  readonly emits?: readonly ("stopped" | "waiting" | "failed")[];
  /** Runs until it is done, and answers what has come of it. What it throws is its error. */
  spawn(input: z.output<Schema>, handle: Handle): Promise<string | Outcome> | string | Outcome;
  /** Tidings closes; all its calls are over. */
  close?(): Promise<void>;
}

/** Why a call has come to nothing. Another error is one that would come again. */
export class HandleError extends Error {
  /** The same may succeed another time. */
  readonly transient: boolean;
  readonly data: JsonObject;

  constructor(message: string, options: { readonly transient?: boolean; readonly data?: JsonObject } = {}) {
    super(message);
    this.name = "HandleError";
    this.transient = options.transient ?? false;
    this.data = options.data ?? {};
  }
}

const HANDLE_ID = /^[A-Za-z0-9_.:-]{1,64}$/;
const TEXT_CHARS_MAX = 65_536;

export const handleIdSchema = z
  .string()
  .refine((id) => HANDLE_ID.test(id), "must be 1 to 64 letters, digits, _ . : and -");

export function offers({ actions = ACTIONS }: StatefulTool, action: Action): boolean {
  return action === "spawn" || action === "fetch" || actions.includes(action);
}

function callSchema(tool: StatefulTool) {
  const actions = ACTIONS.filter((action) => offers(tool, action)) as [Action, ...Action[]];
  return z.strictObject({
    action: z.enum(actions),
    handle: handleIdSchema.describe("Your name for the call: new with spawn, and the same with what follows."),
    input: tool.input.optional().describe("With spawn."),
    ...(offers(tool, "apply")
      ? { text: z.string().max(TEXT_CHARS_MAX).optional().describe("With apply: an answer, or input.") }
      : {}),
  });
}

/** A call of a stateful tool, as the model makes it. */
export interface HandleCall {
  readonly action: Action;
  readonly handle: string;
  readonly input?: unknown;
  readonly text?: string | undefined;
}

/** What it asks for, or what is wrong with it. */
export function parsedCall(tool: StatefulTool, input: JsonObject): HandleCall | { readonly wrong: string } {
  // What spawn takes is checked only with spawn, and is then not optional.
  const { input: given, ...rest } = input;
  const call = callSchema(tool).safeParse(input["action"] === "spawn" ? rest : input);
  if (!call.success) return { wrong: problemsOf(call.error, []) };
  if (call.data.action === "apply" && call.data.text === undefined) return { wrong: "text: apply needs it" };
  if (call.data.action !== "spawn") return call.data as HandleCall;
  const parsed = tool.input.safeParse(given ?? {});
  return parsed.success
    ? { ...(call.data as HandleCall), input: parsed.data }
    : { wrong: problemsOf(parsed.error, ["input"]) };
}

const PROBLEMS_SHOWN = 5;

export function problemsOf(error: z.ZodError, prefix: readonly string[]): string {
  const problems = error.issues.map(({ path, message }) => `${[...prefix, ...path].join(".") || "input"}: ${message}`);
  return problems.slice(0, PROBLEMS_SHOWN).join("; ");
}

const HOW =
  "It runs in the background: spawn starts it under a name of your choice and answers at once; you are told when it stops or asks something. fetch reads what it said and what has come of it";

export function statefulDeclaration(tool: StatefulTool): ToolDeclaration {
  const { name, description } = tool;
  const more = [
    ...(offers(tool, "apply") ? ["apply answers its question or sends it text"] : []),
    ...(offers(tool, "abort") ? ["abort ends it"] : []),
  ];
  const schema = z.toJSONSchema(callSchema(tool), { io: "input", unrepresentable: "any" });
  const { $schema: _, ...input_schema } = schema;
  return {
    name,
    description: `${description} ${[HOW, ...more].join("; ")}. \`await\` waits for several.`,
    input_schema: takeJson(JSON.parse(JSON.stringify(input_schema)), `tools.${name}.input`),
  };
}
