/**
 * What the rehearsal model brings to the stage: tools that are real, and that fail when they are told to, so that what
 * Tidings does about it can be seen without a key and without permissions. See docs/WEB.md.
 */
import type { LentServer } from "../mcp/thread_servers.js";
import type { AnyTool } from "../runtime/tools.js";
import { DOCUMENTS } from "./documents.js";
import { nightlyBuildTool } from "./nightly_build.js";

export interface Props {
  readonly tools: readonly AnyTool[];
  readonly server: LentServer;
}

/** Null where there are no groups of processes. */
export function props(): Props | null {
  return process.platform === "win32" ? null : { tools: [nightlyBuildTool()], server: DOCUMENTS };
}
