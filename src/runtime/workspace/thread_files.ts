/** Of the threads of one agent, what they know of files; as their calls say it. */
import type { ThreadId } from "../../domain/ids.js";
import type { KnownFile } from "../../domain/known_file.js";
import type { ToolOutcome } from "../tools.js";
import type { ToolFiles } from "./tool_files.js";

/** Whose conversation it is. */
export type Owner = Pick<KnownFile, "thread_id" | "user_id">;

export interface CallFiles extends ToolFiles {
  /** The call is over: what it has said counts, as far as the agent sees it. */
  done(outcome: ToolOutcome): Promise<ToolOutcome>;
}

export interface ThreadFiles {
  /** While calls run in a thread, nobody judges what is theirs; what is not is judged when this is let go. */
  hold(thread_id: ThreadId): () => Promise<void>;
  ofCall(owner: Owner): CallFiles;
  /** Of what goes on in the background. */
  ofHandle(owner: Owner): ToolFiles;
}

const NOTHING: CallFiles = {
  known: () => Promise.resolve("unknown"),
  read: () => Promise.resolve(),
  wrote: () => Promise.resolve(),
  done: (outcome) => Promise.resolve(outcome),
};

export const NO_FILES: ThreadFiles = {
  hold: () => () => Promise.resolve(),
  ofCall: () => NOTHING,
  ofHandle: () => NOTHING,
};
