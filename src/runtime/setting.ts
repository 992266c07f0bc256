/** What all turns of one agent have in common. */
import type { ThreadId, TurnId, UserId } from "../domain/ids.js";
import type { JsonObject } from "../domain/json.js";
import type { Turn } from "../domain/turn.js";
import type { Model } from "../providers/model.js";
import type { Compose, Store } from "../store/contract.js";
import type { Budgets } from "./budgets.js";
import type { Counters } from "./counters.js";
import type { Emit } from "./events.js";
import type { Handles } from "./handles/handles.js";
import type { ProviderHealth } from "./health.js";
import type { Impact } from "./impact.js";
import type { AgentLimits } from "./limits.js";
import type { LoopOptions } from "./loops.js";
import type { RateLimits } from "./rate_limits.js";
import type { ToolSet } from "./tool_set.js";
import type { ThreadFiles } from "./workspace/thread_files.js";

export type Shown =
  /** `offset`: how many characters of the same answer came before it. */
  | { readonly type: "text"; readonly delta: string; readonly offset: number }
  | { readonly type: "call"; readonly id: string; readonly name: string; readonly input: JsonObject };

/** What a user can watch while it happens. It may be dropped: all that counts is in the journal. */
export type Progress = Shown & {
  readonly thread_id: ThreadId;
  readonly turn_id: TurnId;
  readonly user_id: UserId;
  readonly internal: boolean;
};

export interface Setting {
  readonly store: Store;
  readonly emit: Emit;
  readonly model: Model;
  /** The whole prompt; it never changes. */
  readonly system: string;
  readonly tools: ToolSet;
  readonly handles: Handles;
  readonly files: ThreadFiles;
  /** As they are now, like the two that follow. */
  readonly limits: AgentLimits;
  readonly budgets: Budgets;
  /** Null: nobody looks for loops. */
  readonly loops: LoopOptions | null;
  readonly rateLimits: RateLimits;
  readonly compose: Compose;
  readonly lease_ms: number;
  readonly counters: Counters;
  readonly health: ProviderHealth;
  impactOf(tool: string): Impact;
  turnEnd(): "carry" | "step";
  /** Nothing is begun now, in no thread; what was begun is brought to its end. */
  rests(): boolean;
  progress(progress: Progress): void;
  /** A turn is over. */
  ended(turn: Turn): void;
  /** Something went wrong that no turn can go on from. */
  broke(error: unknown): void;
  /** What is done about what waits may be another thing now. */
  look(user_id: UserId): void;
}

/** In whose name the hosted agent holds a thread. */
export const OWNER = "hosted";
/** How many are looked at for one block; what goes in is the budget's to say. */
export const CANDIDATES = 100;
