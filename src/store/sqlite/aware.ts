import type { ThreadId, UserId } from "../../domain/ids.js";
import type { Aware, Shown } from "../contract.js";

/** How far a block makes its agent aware: to which entry of its thread, and to which number of the inbox. */
export interface AwareTo {
  readonly seq: number;
  readonly inbox: number;
}

/** What an agent knows of what the system has shown its user. */
export interface AwarenessOf {
  /** What the thread's agent has not been told of, and where its cursors then are. */
  of(thread_id: ThreadId, user_id: UserId): { aware: Aware; to: AwareTo };
  /** What was shown in a thread, by the entry that showed it. */
  floor(thread_id: ThreadId, after: number, limit: number): Shown[];
  floorBefore(thread_id: ThreadId, before: number, limit: number): Shown[];
}
