import type { RemoteTidings } from "../../client/remote.js";
import type { ThreadItem } from "../../runtime/thread_items.js";
import type { AgentView } from "../../tidings.js";
import type { Output } from "../output.js";

/** What a conversation is led with. */
export interface ChatSetting {
  readonly remote: RemoteTidings;
  readonly agent: AgentView;
  readonly thread_id: string;
  /** What was said in it before, the last of it. */
  readonly before: readonly ThreadItem[];
  readonly output: Output;
  /** What a suggested command needs to act on the same folder or server. */
  readonly dataFlag: string;
  /** Resolves when the process is asked to end. */
  readonly stopped: Promise<void>;
}
