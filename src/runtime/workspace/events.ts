/** What is told of files, in the words of the built-in subscriber `workspace_change`. */
import type { EventInput } from "../../domain/event.js";
import type { Announcement, FileState, KnownFile } from "../../domain/known_file.js";
import { sha256 } from "../../platform/secret.js";

const SOURCE = "workspace";
const TYPE = "workspace.file.changed";
/** By which the agent sees what has become of it. */
export const READ_FILE = "read_file";

const SUBJECT_CHARS_MAX = 400;

/** What an event about it is about; see `domain/subject.ts`. */
export function fileSubject(path: string, generation: number): string {
  const name = path.length <= SUBJECT_CHARS_MAX ? path : `sha256-${sha256(path)}`;
  return `file:${name}#gen-${generation}`;
}

type Owner = Pick<KnownFile, "thread_id" | "user_id">;

export interface Change extends Announcement {
  readonly path: string;
}

/** The same change is the same event: it can be told again without harm. */
export function fileChanged({ thread_id, user_id }: Owner, one: Change): EventInput {
  const { path, change, state, generation } = one;
  return {
    id: `file:${sha256(`${thread_id}\n${lineOf(one)}`)}`,
    type: TYPE,
    source: SOURCE,
    severity: "info",
    user_id,
    thread_id,
    subject: fileSubject(path, generation),
    payload: { path, change, ...(state === null ? {} : { size: state.size }), read_with: READ_FILE },
  };
}

/** The rest of very many at once. */
export function filesChanged({ thread_id, user_id }: Owner, changes: readonly Change[]): EventInput {
  const id = `files:${sha256(`${thread_id}\n${changes.map(lineOf).join("\n")}`)}`;
  return {
    id,
    // As many others a moment later are others.
    dedupe_key: id,
    type: TYPE,
    source: SOURCE,
    severity: "info",
    user_id,
    thread_id,
    payload: {
      path: `${changes.length} more files that you know`,
      change: "changed",
      count: changes.length,
      read_with: READ_FILE,
    },
  };
}

function lineOf({ path, generation, state }: Change): string {
  return JSON.stringify([path, generation, stateText(state)]);
}

function stateText(state: FileState | null): string {
  if (state === null) return "gone";
  return state.hash ?? `${state.size} ${state.mtime_ms}`;
}
