/** What a method is: its name, the scope it needs, the form of its parameters, and what it does. One file each. */
import type { z } from "zod";
import type { Scope } from "../domain/token.js";
import type { Tidings } from "../tidings.js";
import type { Caller } from "./access.js";
import type { Waits } from "./waits.js";

/** What methods work on. */
export interface Runtime {
  readonly tidings: Tidings;
  readonly version: string;
  readonly started_at: string;
  /** Open WebSocket connections. */
  connections(): number;
  readonly waits: Waits;
}

/** What a client wants to hear of conversations beside what every client is told. */
export interface ClientView {
  readonly conversation: boolean;
  /** Also what the agent was told. */
  readonly observe: boolean;
}

/** A connection that is told things, and not only answered. */
export interface Session {
  /** From now on it is told what it asks for here. */
  initialize(view: ClientView): Promise<void>;
  /** Resolves when it was told of all that is committed now. */
  told(): Promise<void>;
}

export interface Context {
  readonly caller: Caller;
  readonly runtime: Runtime;
  /** How large the answer should be at most. */
  readonly bytesMax: number;
  /** Null where a call has no more than its answer. */
  readonly session: Session | null;
  /** Whoever called has gone, or the server is going: nobody waits any more. */
  readonly gone: AbortSignal;
}

export interface Method {
  readonly name: string;
  readonly scope: Scope;
  readonly summary: string;
  readonly params: z.ZodType;
  /** It changes a thread or a turn: whoever is told of that hears it before the answer. */
  readonly announced?: true;
  /** Answers the result, or the `Miss` that says why nothing changed. */
  run(params: unknown, context: Context): Promise<unknown>;
}

/** Ties the type of `run`'s parameters to their schema. */
export function defineMethod<Params extends z.ZodType>(
  method: Omit<Method, "params" | "run"> & {
    readonly params: Params;
    run(params: z.output<Params>, context: Context): Promise<unknown>;
  },
): Method {
  return method as Method;
}
