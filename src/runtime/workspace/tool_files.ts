/** `changed`, `removed`: by others, since the agent has read it, written it or been told. */
export type FileKnowledge = "unknown" | "same" | "changed" | "removed";

/**
 * What a tool says of the files that it has to do with: by it the agent is told when others change them. A path is one of the
 * workspace, from its folder or in full; what is outside, and everything where there is no workspace, is let pass without
 * effect. `content`: what was read or written, all of it; without it the file is looked at.
 */
export interface ToolFiles {
  /** How the file is now to the agent as it was when it decided on the call: ask before you write over it. */
  known(path: string, content?: string | Uint8Array): Promise<FileKnowledge>;
  /** The agent sees this file by the call. */
  read(path: string, content?: string | Uint8Array): Promise<void>;
  /** The call has written, or removed, this file. */
  wrote(path: string, content?: string | Uint8Array): Promise<void>;
}
