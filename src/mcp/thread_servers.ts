/**
 * A server of which each conversation has a process of its own, begun by its first call and let go a while after its last. What one
 * conversation does to its process is nobody else's: no other call is lost by it, and nobody else is told.
 */
import { z } from "zod";
import type { McpServerConfig } from "../config/mcp.js";
import type { ThreadId } from "../domain/ids.js";
import type { JsonObject } from "../domain/json.js";
import { later } from "../platform/timers.js";
import type { Registration } from "../runtime/tool_set.js";
import type { Tool, ToolContext } from "../runtime/tools.js";
import { MCP_LIMITS, MCP_TIMES } from "./limits.js";
import { listingOf } from "./looks.js";
import { offeredName } from "./names.js";
import type { McpServer } from "./server.js";
import type { ServerSettings } from "./settings.js";
import type { McpServerView, McpToolView } from "./views.js";

/** One that comes with the package: what it offers is known without asking it, and needs nobody's approval. */
export interface LentServer {
  readonly name: string;
  readonly config: McpServerConfig;
  /** As it lists them. */
  readonly tools: readonly unknown[];
}

export interface ThreadServersOptions {
  readonly lent: LentServer;
  readonly settings: ServerSettings;
  readonly registration: Registration;
  readonly isTaken: (name: string) => boolean;
  /** One that is not started yet. */
  readonly make: () => McpServer;
  /** It is waited for when all of them are closed. */
  readonly leave: (server: McpServer) => void;
}

interface Kept {
  readonly server: McpServer;
  calls: number;
  stopIdle: () => void;
}

const inputSchema = z.record(z.string(), z.unknown());

export class ThreadServers {
  readonly #options: ThreadServersOptions;
  readonly #tools: readonly Tool[];
  readonly #views: readonly McpToolView[];
  /** The one that was used last stands last. */
  readonly #kept = new Map<ThreadId, Kept>();
  #offered = false;

  constructor(options: ThreadServersOptions) {
    this.#options = options;
    const { lent, settings, isTaken } = options;
    const listed = listingOf(lent.tools, null).tools;
    const named = listed.map((one) => ({ ...one, name: offeredName(lent.name, one.tool, isTaken) }));
    this.#tools = named.map(({ tool, name, look }) => ({
      name,
      description: look.description,
      input: inputSchema,
      input_schema: look.input_schema,
      impact: settings.impact,
      timeout_ms: settings.call_timeout_ms,
      run: (input, context) => this.#call(tool, input as JsonObject, context),
    }));
    this.#views = named.map(({ tool, name }) => ({ tool, name, state: "offered", approved: null, held: null }));
  }

  /** What the agent has of it now. */
  get offered(): readonly string[] {
    return this.#offered ? this.#tools.map(({ name }) => name) : [];
  }

  offer(): void {
    if (this.#offered) return;
    this.#offered = true;
    this.#options.registration.replace(this.#tools);
  }

  /** Nothing of it runs any more; it may be offered again. */
  withdraw(): void {
    if (!this.#offered) return;
    this.#offered = false;
    this.#options.registration.replace([]);
    for (const thread_id of [...this.#kept.keys()]) this.#letGo(thread_id);
  }

  /** As the conversation has it that has used it last. */
  view(): McpServerView {
    const { name } = this.#options.lent;
    const kept = [...this.#kept.values()];
    const calls = kept.reduce((sum, one) => sum + one.calls, 0);
    const none = { transport: "stdio", state: "idle", reason: null, pid: null, attempts: 0, log_dropped: 0 } as const;
    return { ...none, ...kept.at(-1)?.server.view(), name, calls, tools: this.#views, refused: [] };
  }

  async #call(tool: string, input: JsonObject, context: ToolContext): Promise<string> {
    const { thread_id } = context;
    const kept = this.#of(thread_id);
    kept.stopIdle();
    kept.calls += 1;
    try {
      return await kept.server.call(tool, input, context);
    } finally {
      kept.calls -= 1;
      if (kept.calls === 0) this.#waitIdle(thread_id, kept);
    }
  }

  #of(thread_id: ThreadId): Kept {
    const known = this.#kept.get(thread_id);
    if (known === undefined) this.#makeRoom();
    const kept = known ?? { server: this.#options.make(), calls: 0, stopIdle: () => undefined };
    this.#kept.delete(thread_id);
    this.#kept.set(thread_id, kept);
    if (known === undefined) kept.server.start();
    return kept;
  }

  #makeRoom(): void {
    if (this.#kept.size < MCP_LIMITS.threadServers) return;
    const [idle] = [...this.#kept].filter(([, { calls }]) => calls === 0);
    if (idle === undefined)
      throw new Error(
        `${MCP_LIMITS.threadServers} conversations call the MCP server ${this.#options.lent.name} at this moment, each in a process of its own. The call was not made: try again later`,
      );
    this.#letGo(idle[0]);
  }

  /** One that is away is awaited first: its conversation was told that it is connected again. */
  #waitIdle(thread_id: ThreadId, kept: Kept): void {
    if (this.#kept.get(thread_id) !== kept) return;
    kept.stopIdle = later(MCP_TIMES.threadIdleMs, () => {
      if (kept.server.view().state === "connected") this.#letGo(thread_id);
      else this.#waitIdle(thread_id, kept);
    });
  }

  #letGo(thread_id: ThreadId): void {
    const kept = this.#kept.get(thread_id);
    if (kept === undefined) return;
    this.#kept.delete(thread_id);
    kept.stopIdle();
    this.#options.leave(kept.server);
  }
}
