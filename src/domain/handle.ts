/** A call of a tool that goes on while the agent does something else, by the name that the model gave it. */
import type { ThreadId, UserId } from "./ids.js";
import type { JsonObject } from "./json.js";

/** `running`: at work. `waiting`: for an answer. `stopped`: with a result. `failed`: stopped with an error. */
export const HANDLE_STATES = ["running", "waiting", "stopped", "failed"] as const;
export type HandleState = (typeof HANDLE_STATES)[number];

export function isHandleOver(state: HandleState): boolean {
  return state === "stopped" || state === "failed";
}

/** What a handle has come to, as it is kept. */
export interface HandleDetail {
  /** While it waits. */
  readonly question?: string;
  /** Of one that has stopped. */
  readonly result?: string;
  /** Of one that has failed; `transient`: the same may succeed another time. */
  readonly error?: { readonly message: string; readonly transient: boolean };
  /** What it said on the way, as far as it is kept. */
  readonly output?: string;
  /** What else its tool says of it, like the code that a process ended with. */
  readonly data?: JsonObject;
  /** The states that its agent is told of without asking, if its tool says so; else all. */
  readonly emits?: readonly HandleState[];
}

/** As the journal has it. */
export interface HandleRecord {
  readonly thread_id: ThreadId;
  readonly user_id: UserId;
  readonly id: string;
  readonly tool: string;
  readonly state: HandleState;
  /** The `seq` of the entry that says so: names of handles are used again, this is not. */
  readonly generation: number;
  readonly at: number;
  readonly detail: HandleDetail;
}

export type NewHandleRecord = Pick<HandleRecord, "thread_id" | "id" | "tool" | "state" | "detail">;

/** What an event about it is about; see `subject.ts`. */
export function handleSubject(id: string, generation: number): string {
  return `handle:${id}#gen-${generation}`;
}
