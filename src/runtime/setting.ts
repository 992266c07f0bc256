/** What all turns of one agent have in common. */
import type { ThreadId, TurnId, UserId } from "../domain/ids.js";
import type { JsonObject } from "../domain/json.js";
import type { Turn } from "../domain/turn.js";
import type { Model } from "../providers/model.js";
import type { Compose, Store } from "../store/contract.js";
import type { Counters } from "./counters.js";
import type { Emit } from "./events.js";
import type { AgentLimits } from "./limits.js";
import type { Impact, ToolSet } from "./tools.js";

export type Shown =
  | { readonly type: "text"; readonly delta: string }
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
  readonly limits: AgentLimits;
  readonly compose: Compose;
  readonly lease_ms: number;
  readonly counters: Counters;
  impactOf(tool: string): Impact;
  turnEnd(): "carry" | "step";
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
