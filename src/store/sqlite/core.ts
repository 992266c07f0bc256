import type { ThreadId, UserId } from "../../domain/ids.js";
import type { DeliveryPolicy } from "../../domain/policy.js";
import type { IdSource } from "../../platform/ids.js";
import type { Editor } from "../contract.js";
import type { AgentQueue } from "./agent_queue.js";
import type { AwarenessOf } from "./aware.js";
import type { Backlog } from "./backlog.js";
import type { Batches } from "./batches.js";
import type { Blocks } from "./blocks.js";
import type { Carriers } from "./carriers.js";
import type { Connection } from "./connection.js";
import type { DedupeWindows } from "./dedupe.js";
import type { DueHints } from "./due.js";
import type { Figures } from "./figures.js";
import type { Handles } from "./handles.js";
import type { Journal } from "./journal.js";
import type { KnownFiles } from "./known_files.js";
import type { Leases } from "./leases.js";
import type { Ledger } from "./ledger.js";
import type { LiveBlocks } from "./live_blocks.js";
import type { McpTools } from "./mcp_tools.js";
import type { Pauses } from "./pauses.js";
import type { ProducerIds } from "./producer_ids.js";
import type { CriticalQuota } from "./quota.js";
import type { Rows } from "./rows.js";
import type { Settings } from "./settings.js";
import type { Threads } from "./threads.js";
import type { Tokens } from "./tokens.js";
import type { Turns } from "./turns.js";
import type { Usage } from "./usage.js";
import type { UserCounts } from "./user_counts.js";
import type { UserRows } from "./user_rows.js";

/** What the operations of this store share. */
export interface Core {
  readonly connection: Connection;
  readonly file: string;
  readonly ids: IdSource;
  readonly policy: DeliveryPolicy;
  readonly editor: Editor;
  readonly blocks: Blocks;
  readonly userRows: UserRows;
  readonly liveBlocks: LiveBlocks;
  readonly userCounts: UserCounts;
  readonly due: DueHints;
  readonly journal: Journal;
  readonly producerIds: ProducerIds;
  readonly ledger: Ledger;
  readonly dedupe: DedupeWindows;
  readonly batches: Batches;
  readonly rows: Rows;
  readonly backlog: Backlog;
  readonly quota: CriticalQuota;
  readonly figures: Figures;
  readonly leases: Leases;
  readonly carriers: Carriers;
  readonly turns: Turns;
  readonly handles: Handles;
  readonly knownFiles: KnownFiles;
  readonly usage: Usage;
  readonly mcpTools: McpTools;
  readonly queue: AgentQueue;
  readonly awareness: AwarenessOf;
  readonly pauses: Pauses;
  readonly threads: Threads;
  readonly tokens: Tokens;
  readonly settings: Settings;
}

/** All but what is made of the rest. */
export type CoreBase = Omit<Core, "awareness">;

export interface Owner {
  readonly user_id: UserId;
  readonly thread_id: ThreadId | null;
}
