/** What a method is: its name, the scope it needs, the form of its parameters, and what it does. One file each. */
import type { z } from "zod";
import type { Miss } from "../domain/errors.js";
import type { Scope } from "../domain/token.js";
import type { Tidings } from "../tidings.js";
import type { Caller } from "./access.js";
import type { Cursor } from "./cursor.js";
import type { EventCounts } from "./event_counts.js";
import type { Bounds } from "./frames.js";
import type { Log } from "./log.js";
import type { NotificationName, ResetReason } from "./notifications.js";
import type { Rest } from "./rest.js";
import type { Answered } from "./results/plain.js";
import type { ClientView } from "./view.js";
import type { Waits } from "./waits.js";

/** What methods work on. */
export interface Runtime {
  readonly tidings: Tidings;
  readonly version: string;
  readonly started_at: string;
  /** Open streams. */
  connections(): number;
  /** Whether a stream could go on from there. */
  canResume(cursor: Cursor): Promise<Resumption>;
  readonly waits: Waits;
  readonly events: EventCounts;
  readonly log: Log;
  readonly rest: Rest;
}

/** Whether a stream goes on from a cursor, and what of the journal can be told. */
export interface Resumption extends Bounds {
  /** Null: it goes on. */
  readonly reset: ResetReason | null;
}

/** A stream that is told things, and not only answered. */
export interface Session {
  /** From now on it is told what it asks for here. */
  initialize(view: ClientView): Promise<void>;
  /** After the answer, it is told what has happened after the cursor, and goes on from there. */
  resume(cursor: Cursor): Promise<Resumption>;
  /** Lines of the log are told from now on. */
  followLog(): void;
  /** A call is about to cause what it announces. */
  announcing(announced: Announced): void;
  /** What it has announced is told, and what else it has caused is told after its answer. */
  announce(announced: Announced, result: unknown): Promise<void>;
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

/** What a call causes, as its own stream hears of it. */
export interface Announced {
  /** These are told before the answer, if they are about the thread or the turns that the answer names. */
  readonly before: readonly NotificationName[];
  /** Whether items that come while it runs stand after the answer; of others it may take a while. */
  readonly items: boolean;
}

export interface Method {
  readonly name: string;
  readonly scope: Scope;
  readonly summary: string;
  readonly params: z.ZodType;
  /** The form of what it answers. Nobody checks it while it runs: the types do, and tests. */
  readonly result: z.ZodType;
  readonly announced?: Announced;
  /** Answers the result, or the `Miss` that says why nothing changed. */
  run(params: unknown, context: Context): Promise<unknown>;
}

/** Ties the types of what `run` takes and answers to their schemas. */
export function defineMethod<Params extends z.ZodType, Result extends z.ZodType>(
  method: Omit<Method, "params" | "result" | "run"> & {
    readonly params: Params;
    readonly result: Result;
    run(params: z.output<Params>, context: Context): Promise<Answered<z.output<Result>> | Miss>;
  },
): Method {
  return method as Method;
}
