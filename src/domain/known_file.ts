/** A file that an agent has read or written, as the agent knows it. */
import type { ThreadId, UserId } from "./ids.js";

/** What a file was at a moment; null where one is meant that was not there. */
export interface FileState {
  readonly size: number;
  readonly mtime_ms: number;
  /** Of its content; null: it was too large to be read, and is told by its size and time. */
  readonly hash: string | null;
}

export function isSameState(one: FileState | null, other: FileState | null): boolean {
  if (one === null || other === null) return one === other;
  if (one.hash !== null && other.hash !== null) return one.hash === other.hash;
  return one.size === other.size && one.mtime_ms === other.mtime_ms;
}

export type FileChange = "modified" | "deleted" | "created";

/** A change that its agent was told, or will be. */
export interface Announcement {
  readonly state: FileState | null;
  readonly change: FileChange;
  readonly generation: number;
  /** The agent has written over it before it was told: it is to be told, whatever the file becomes. */
  readonly overwritten?: true;
}

export interface KnownFile {
  readonly thread_id: ThreadId;
  readonly user_id: UserId;
  /** The workspace that it is in. */
  readonly folder: string;
  /** From that folder. */
  readonly path: string;
  /** As the agent has read or written it, or has been told. */
  readonly seen: FileState | null;
  /** What became of it since, if that was announced. */
  readonly announced: Announcement | null;
  /** Grows with everything that is kept of it, and is never used again for the same path. */
  readonly generation: number;
  /** When the agent had to do with it last. */
  readonly at: number;
}

/** Where a page of them ended. */
export type KnownFilePlace = Pick<KnownFile, "thread_id" | "path">;
