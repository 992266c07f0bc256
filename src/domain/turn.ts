/** One cycle of work in a conversation: from a message to the answer that ends it. */
import type { ThreadId, TurnId, UserId } from "./ids.js";

/**
 * `queued`: waits for its thread. `active`: runs under a lease. `completed`: the agent had its say. `failed`: it could not;
 * what it held is let go. `interrupted`: cut short by us, and another goes on. `stopped`: cut short by the user.
 * `removed`: taken out of the queue.
 */
export const TURN_STATES = ["queued", "active", "completed", "failed", "interrupted", "stopped", "removed"] as const;
export type TurnState = (typeof TURN_STATES)[number];

/** How a turn that was active ends. */
export type TurnEnd = Extract<TurnState, "completed" | "failed" | "interrupted" | "stopped">;

export function isTurnOver(state: TurnState): boolean {
  return state !== "queued" && state !== "active";
}

/** Who opened it. */
export const CHAT_SOURCES = ["user", "system"] as const;
export type ChatSource = (typeof CHAT_SOURCES)[number];

export interface Turn {
  readonly id: TurnId;
  readonly user_id: UserId;
  readonly thread_id: ThreadId;
  readonly state: TurnState;
  readonly source: ChatSource;
  /** Nothing of it is shown to the user: all that it holds is for the agent to decide about. */
  readonly internal: boolean;
  /** The message that it began with, or will. */
  readonly content: string;
  readonly created_at: number;
  /** Why it ended as it did. */
  readonly note: string | null;
  /** The turn that goes on with what it was about. */
  readonly continued_by: TurnId | null;
}
