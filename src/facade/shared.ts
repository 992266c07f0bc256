import type { McpServerConfig } from "../config/mcp.js";
import type { DeliveryPolicy } from "../domain/policy.js";
import type { Catalogue } from "../intake/catalogue.js";
import type { Intake } from "../intake/intake.js";
import type { McpServers } from "../mcp/servers.js";
import type { Props } from "../props/props.js";
import type { HostedAgent } from "../runtime/agent.js";
import type { Store } from "../store/contract.js";
import type { AgentView } from "./options.js";

export interface Shared {
  readonly store: Store;
  readonly catalogue: Catalogue;
  readonly intake: Intake;
  readonly policy: DeliveryPolicy;
  /** Whether this process is the folder's writer. */
  readonly writable: boolean;
  /** Null if none is hosted. */
  agent: HostedAgent | null;
  model: AgentView | null;
  /** Of the agent; null if none is hosted. */
  mcp: McpServers | null;
  /** The program's own servers; null: none at all. */
  ownMcp: ReadonlyMap<string, McpServerConfig> | null;
  /** What the rehearsal has brought; null: nothing. */
  props: Props | null;
  /** Wakes the watchers when Tidings closes or fails. */
  readonly ended: AbortController;
}

/** The store failed: whoever followed it is told so, and not that it simply ended. */
export function throwFailure(ended: AbortSignal): void {
  const { reason } = ended;
  if (ended.aborted && reason instanceof Error && reason.name !== "AbortError") throw reason;
}
