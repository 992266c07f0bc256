/** All servers of a hosted agent, as the configuration names them now. */
import type { McpServerConfig } from "../config/mcp.js";
import { isMiss, type Miss } from "../domain/errors.js";
import type { McpToolRecord } from "../domain/mcp.js";
import type { Clock } from "../platform/clock.js";
import type { HostedAgent } from "../runtime/agent.js";
import type { Emit } from "../runtime/events.js";
import { Guard } from "../runtime/handles/shell/guard.js";
import type { Store } from "../store/contract.js";
import { type Legacy, McpServer, type Warn } from "./server.js";
import { settingsOf } from "./settings.js";
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
    for (const [name, config] of wanted)
      if (!this.#servers.has(name))
        try {
          this.#begin(name, config);
        } catch (error) {
          // Of one that cannot even be begun, the others know nothing.
          this.#options.broke(error);
        }
  }

  /** What the configuration says from now on is for the next start. Those that are there stay. */
  stopFollowing(): void {
    this.#closed = true;
  }

  get(name: string): McpServerView | undefined {
    return this.#servers.get(name)?.server.view();
  }

  /** A tool was approved of: it is offered from now on. */
  async approved(answer: McpToolRecord | Miss): Promise<void> {
    if (!isMiss(answer)) await this.#servers.get(answer.server)?.server.approved(answer);
  }

  async close(): Promise<void> {
    this.stopFollowing();
    for (const { server } of this.#servers.values()) this.#leave(server);
    this.#servers.clear();
    await Promise.all(this.#leaving);
    await this.#guard.close();
  }

  #begin(name: string, config: McpServerConfig): void {
    const { agent, store, emit, clock, warn, broke } = this.#options;
    const server = new McpServer({
      name,
      settings: settingsOf(config),
      store,
      emit,
      clock,
      guard: this.#guard,
      registration: agent.addTools([]),
      isTaken: (tool) => agent.isToolName(tool),
      warn,
      broke,
      legacy: this.#legacies.get(name) ?? null,
    });
    this.#legacies.delete(name);
    this.#servers.set(name, { text: textOf(config), server });
    server.start();
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
