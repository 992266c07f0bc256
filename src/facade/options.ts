import { z } from "zod";
import type { Budget } from "../agent/block/block.js";
import type { AgentConfig } from "../config/config.js";
import type { McpServerConfig } from "../config/mcp.js";
import { InvalidInputError, type StoreError } from "../domain/errors.js";
import { LIMITS } from "../domain/limits.js";
import { fieldsSchema, parseInput } from "../domain/parse.js";
import { DEFAULT_POLICY, type DeliveryPolicy } from "../domain/policy.js";
import type { SubscriberInput } from "../intake/subscriber.js";
import type { Clock } from "../platform/clock.js";
import type { Model } from "../providers/model.js";
import type { BoundsInput } from "../runtime/bounds.js";
import type { HandleLimits } from "../runtime/handles/limits.js";
import type { ShellOptions } from "../runtime/handles/shell/shell.js";
import type { AnyTool } from "../runtime/tools.js";
import type { WorkspaceOptions } from "../runtime/workspace/workspace.js";
import { withoutUndefined } from "./without_undefined.js";

export interface OpenOptions {
  /** The data folder; made if it is not there. Default `.tidings`. */
  data?: string;
  /** Beside the built-in ones and those of the folder; one with the id of another takes its place. */
  subscribers?: readonly SubscriberInput[];
  /** The folder of subscriber files; default `subscribers` in the data folder; null: none. It may be missing. */
  subscribers_folder?: string | null;
  /** The switches; default `tidings.toml` in the data folder; null: none. It may be missing. */
  config_file?: string | null;
  /**
   * Whether edits of those files take effect by themselves, and the operator's inbox is told of what is wrong with them;
   * true unless said otherwise.
   */
  watch?: boolean;
  /** Something is wrong with a file of the above, in a line that says where and why. */
  onProblem?: (line: string) => void;
  /** Times and attempts that differ from the defaults. */
  policy?: Partial<DeliveryPolicy>;
  /**
   * `write` (default): be the folder's one writer. `read`: read beside one. `write_if_free`: write unless another
   * process does.
   */
  mode?: "write" | "read" | "write_if_free";
  /** How long to wait for another writer to end. Default 5,000 ms. */
  wait_ms?: number;
  /** Upper bound of the database file. */
  bytes_max?: number;
  /**
   * The agent that is hosted: a model by its provider's name (`rehearsal` needs no key), or one of your own, with its tools.
   * Without it threads are for other people's loops: `thread.collect`. A function is given what `[agent]` of the
   * configuration says, and decides.
   */
  agent?: AgentInput | ((config: AgentConfig) => AgentInput);
  /** Where time comes from. */
  clock?: Clock;
  /** The storage failed; everything that waited was rejected, and this Tidings is over. */
  onFailure?: (error: StoreError) => void;
}

/** A model by the name of its provider, or one of your own; and what its agent can do. */
export interface AgentInput extends BoundsInput {
  /** `openai`, `anthropic`, `openai-compatible`, `rehearsal` (the default) or `none`. */
  provider?: string;
  model?: string | Model;
  base_url?: string;
  /** The environment variable that holds the key. */
  api_key_env?: string;
  /** The operator's prompt. */
  system?: string;
  tools?: readonly AnyTool[];
  /** Lets the agent run commands on this machine; default: as `[agent.shell]` in the configuration says, else it cannot. */
  shell?: boolean | ShellOptions;
  /**
   * Lets the agent read and write files in a folder, and tells it when others change what it has read or written; default: as
   * `[agent.workspace]` in the configuration says, else it cannot.
   */
  workspace?: boolean | WorkspaceOptions;
  /**
   * MCP servers whose tools it has, by name, beside those of `[mcp.servers]` in the configuration, of which one with the same name is
   * left out; false: none at all.
   */
  mcp?: Readonly<Record<string, McpServerConfig>> | false;
  /**
   * What the rehearsal model brings to the stage: a command that fails and an MCP server that drops, for real; default: nothing.
   * With another model there is none of it.
   */
  props?: boolean;
  /** What bounds the calls that go on in the background. */
  handles?: Partial<HandleLimits>;
  /** How much one block may tell: 10 items and 1,000 tokens in full, 20 more in a line each, unless said otherwise. */
  budget?: Partial<Budget>;
}

/** What the hosted agent runs on. */
export type AgentView = Pick<Model, "provider" | "model">;

const pathSchema = z
  .string("must be a path")
  .min(1, "must not be empty")
  .refine((path) => !path.includes("\0"), "must be a path");
const functionSchema = z.custom((value) => typeof value === "function", "must be a function");

/** What is looked at more closely by those who use it (subscribers, the policy, the agent) is only of the right kind here. */
const openSchema = fieldsSchema({
  data: pathSchema.optional(),
  subscribers: z.array(z.unknown()).optional(),
  subscribers_folder: pathSchema.nullable().optional(),
  config_file: pathSchema.nullable().optional(),
  watch: z.boolean().optional(),
  onProblem: functionSchema.optional(),
  policy: z.custom(isObject, "must be an object").optional(),
  mode: z.enum(["write", "read", "write_if_free"]).optional(),
  // What is left of a wait may be a fraction.
  wait_ms: z.number().min(0).optional(),
  bytes_max: z.int().min(1).optional(),
  agent: z
    .custom(
      (value) => isObject(value) || typeof value === "function",
      "must be an object, or a function that gives one",
    )
    .optional(),
  clock: z.custom(isClock, "must be an object with the functions wall and monotonic").optional(),
  onFailure: functionSchema.optional(),
} satisfies Record<keyof OpenOptions, z.ZodType>);

/** Before anything is opened: a wrong option is named. They stay as they are, for they hold functions and objects of their own. */
export function checkOptions(options: OpenOptions): void {
  if (!isObject(options)) throw new InvalidInputError("options", 'must be an object, like { data: ".tidings" }');
  parseInput(openSchema, options);
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isClock(value: unknown): boolean {
  const { wall, monotonic } = (value ?? {}) as Partial<Clock>;
  return typeof wall === "function" && typeof monotonic === "function";
}

const policySchema = fieldsSchema({
  agentTtlMs: z.int().min(1).max(LIMITS.ttlMsMax).optional(),
  contextTtlMs: z.int().min(1).max(LIMITS.ttlMsMax).optional(),
  systemTtlMs: z.int().min(1).max(LIMITS.ttlMsMax).optional(),
  leaseMs: z.int().min(1).max(LIMITS.leaseMsMax).optional(),
  attemptsMax: z.int().min(1).max(100).optional(),
  backoffMs: z.int().min(0).max(LIMITS.leaseMsMax).optional(),
  pendingPerThread: z.int().min(1).max(LIMITS.pendingMax).optional(),
  pendingPerSource: z.int().min(1).max(LIMITS.pendingMax).optional(),
  criticalPerMinute: z.int().min(0).optional(),
});

export function parsePolicy(policy: Partial<DeliveryPolicy> | undefined): DeliveryPolicy {
  return { ...DEFAULT_POLICY, ...withoutUndefined(parseInput(policySchema, policy ?? {})) };
}
