/** All servers of a hosted agent, as the configuration names them now. */
import type { McpServerConfig } from "../config/mcp.js";
import { isMiss, type Miss } from "../domain/errors.js";
import type { McpToolRecord } from "../domain/mcp.js";
import type { Clock } from "../platform/clock.js";
import type { HostedAgent } from "../runtime/agent.js";
import type { Emit } from "../runtime/events.js";
import { Guard } from "../runtime/handles/shell/guard.js";
import type { Registration } from "../runtime/tool_set.js";
import type { Store } from "../store/contract.js";
import { type Legacy, McpServer, type ServerOptions, type Warn } from "./server.js";
import { type ServerSettings, settingsOf } from "./settings.js";
import { type LentServer, ThreadServers } from "./thread_servers.js";
import type { McpServerView } from "./views.js";

export interface ServersOptions {
  readonly agent: HostedAgent;
  readonly store: Store;
  readonly emit: Emit;
  readonly clock: Clock;
  readonly warn: Warn;
  readonly broke: (error: unknown) => void;
}

interface Kept {
  /** What it was made of. */
  readonly text: string;
  readonly server: McpServer;
}

export class McpServers {
  readonly #options: ServersOptions;
  readonly #guard = new Guard();
  readonly #servers = new Map<string, Kept>();
  readonly #leaving = new Set<Promise<void>>();
  /** By name, those that come with the package. */
  readonly #lent = new Map<string, ThreadServers>();
  /** Of those that were let go: one of the same name goes on with it. */
  readonly #legacies = new Map<string, Legacy>();
  #closed = false;

  constructor(options: ServersOptions) {
    this.#options = options;
  }

  /** From now on these: what is new is connected, what is gone or has changed is let go. Does not wait for any of it. */
  follow(configs: ReadonlyMap<string, McpServerConfig>): void {
    if (this.#closed) return;
    const wanted = new Map([...configs].filter(([, config]) => config.enable !== false));
    for (const [name, { text, server }] of [...this.#servers])
      if (text !== textOf(wanted.get(name))) {
        this.#servers.delete(name);
        this.#legacies.set(name, server.legacy());
        this.#leave(server);
      }
    for (const [name, lent] of this.#lent)
      if (wanted.has(name)) lent.withdraw();
      else lent.offer();
    for (const [name, config] of wanted)
      if (!this.#servers.has(name))
        try {
          this.#begin(name, config);
        } catch (error) {
          // Of one that cannot even be begun, the others know nothing.
          this.#options.broke(error);
        }
  }

  /** It is there from the next `follow` on, unless the configuration has one of its name; that goes before. */
  lend(lent: LentServer): void {
    const { agent } = this.#options;
    const settings: ServerSettings = { ...settingsOf(lent.config), approve: "never" };
    const isTaken = (tool: string) => agent.isToolName(tool);
    // Its tools are declared once, for all conversations.
    const undeclared: Registration = { replace: () => undefined, remove: () => undefined };
    const make = () =>
      this.#make(lent.name, settings, undeclared, { isTaken: () => false, legacy: null, awaited: true });
    const leave = (server: McpServer) => this.#leave(server);
    const registration = agent.addTools([]);
    this.#lent.set(lent.name, new ThreadServers({ lent, settings, registration, isTaken, make, leave }));
  }

  /** Of those that come with the package: the names, and what of their tools the agent has now. */
  get lent(): { readonly servers: readonly string[]; readonly tools: readonly string[] } {
    return { servers: [...this.#lent.keys()], tools: [...this.#lent.values()].flatMap(({ offered }) => offered) };
  }

  /** What the configuration says from now on is for the next start. Those that are there stay. */
  stopFollowing(): void {
    this.#closed = true;
  }

  get(name: string): McpServerView | undefined {
    return this.#servers.get(name)?.server.view() ?? this.#lent.get(name)?.view();
  }

  /** A tool was approved of: it is offered from now on. */
  async approved(answer: McpToolRecord | Miss): Promise<void> {
    if (!isMiss(answer)) await this.#servers.get(answer.server)?.server.approved(answer);
  }

  async close(): Promise<void> {
    this.stopFollowing();
    for (const { server } of this.#servers.values()) this.#leave(server);
    this.#servers.clear();
    for (const lent of this.#lent.values()) lent.withdraw();
    await Promise.all(this.#leaving);
    await this.#guard.close();
  }

  #begin(name: string, config: McpServerConfig): void {
    const { agent } = this.#options;
    const server = this.#make(name, settingsOf(config), agent.addTools([]), {
      isTaken: (tool) => agent.isToolName(tool),
      legacy: this.#legacies.get(name) ?? null,
    });
    this.#legacies.delete(name);
    this.#servers.set(name, { text: textOf(config), server });
    server.start();
  }

  #make(
    name: string,
    settings: ServerSettings,
    registration: Registration,
    rest: Pick<ServerOptions, "isTaken" | "legacy" | "awaited">,
  ): McpServer {
    const { store, emit, clock, warn, broke } = this.#options;
    return new McpServer({
      name,
      settings,
      registration,
      store,
      emit,
      clock,
      guard: this.#guard,
      warn,
      broke,
      ...rest,
    });
  }

  #leave(server: McpServer): void {
    const leaving = server
      .close()
      .catch(this.#options.broke)
      .finally(() => this.#leaving.delete(leaving));
    this.#leaving.add(leaving);
  }
}

function textOf(config: McpServerConfig | undefined): string {
  return JSON.stringify(config ?? null);
}
