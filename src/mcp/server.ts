/**
 * One server, kept: connected, watched by pings, and connected again when it is gone. What it offers is declared for as long as it
 * is configured, whether it is there or not.
 */
import type { LogLevel } from "../config/mcp.js";
import type { JsonObject } from "../domain/json.js";
import type { McpToolRecord } from "../domain/mcp.js";
import { backoff } from "../platform/backoff.js";
import type { Clock } from "../platform/clock.js";
import { later, pause } from "../platform/timers.js";
import { VERSION } from "../platform/version.js";
import { deferred } from "../runtime/deferred.js";
import type { Emit } from "../runtime/events.js";
import type { Guard } from "../runtime/handles/shell/guard.js";
import type { Registration } from "../runtime/tool_set.js";
import type { ToolContext } from "../runtime/tools.js";
import type { Store } from "../store/contract.js";
import { Audience } from "./audience.js";
import { Connection, LostCall, ToolFailure } from "./connection.js";
import { disconnected, logged, type News, reconnected, resourceUpdated, toolsChanged, unresponsive } from "./events.js";
import { heldId, heldNotice, heldRefusal } from "./held.js";
import { MCP_LIMITS, MCP_TIMES } from "./limits.js";
import { listingOf } from "./looks.js";
import { Offer } from "./offer.js";
import { Pins } from "./pins.js";
import type { ServerSettings } from "./settings.js";
import { Trickle } from "./trickle.js";
import type { McpServerView, McpState } from "./views.js";
import { wordsOf } from "./words.js";

/** The operator has to do something. With an id, it is told once and never again; answers whether it is now. */
export type Warn = (kind: string, words: string, id?: string) => Promise<boolean>;

/** What a server that takes the place of another goes on with: who is told, and of what they were told. */
export interface Legacy {
  readonly audience: Audience;
  readonly toldAway: boolean;
  readonly returns: readonly number[];
}

export interface ServerOptions {
  readonly name: string;
  readonly settings: ServerSettings;
  readonly store: Store;
  readonly emit: Emit;
  readonly clock: Clock;
  readonly guard: Guard;
  readonly registration: Registration;
  /** Whether a tool of this name is somebody else's. */
  readonly isTaken: (name: string) => boolean;
  readonly warn: Warn;
  /** Something went wrong that is nobody's doing. */
  readonly broke: (error: unknown) => void;
  /** Of the one that had its name before; null if there was none. */
  readonly legacy: Legacy | null;
  /** It was begun by a call, which waits until it is there, or cannot be. */
  readonly awaited?: boolean;
}

export class McpServer {
  readonly #options: ServerOptions;
  readonly #audience: Audience;
  readonly #pins: Pins;
  readonly #offer: Offer;
  readonly #logs: Trickle;
  readonly #updates: Trickle;
  readonly #relists: Trickle;
  readonly #closing = new AbortController();
  /** It was tried once to connect it. */
  readonly #tried = deferred<void>();
  #run: Promise<void> = Promise.resolve();
  #connection: Connection | null = null;
  #state: McpState = "connecting";
  #reason: string | null = null;
  #plain: string | null = null;
  /** Attempts to connect since it was there last. */
  #attempts = 0;
  /** That it is gone was told, and not yet that it is back. */
  #toldAway: boolean;
  #returns: number[];
  #stopReturn: () => void = () => undefined;
  #calls = 0;
  #listed = false;
  #listing: Promise<void> | null = null;
  #listAgain = false;

  constructor(options: ServerOptions) {
    const { name, settings, store, emit, clock, registration, isTaken, legacy } = options;
    this.#options = options;
    this.#audience = legacy?.audience ?? new Audience(store, emit, clock);
    this.#toldAway = legacy?.toldAway ?? false;
    this.#returns = [...(legacy?.returns ?? [])];
    this.#pins = new Pins(store, name, settings.approve);
    const run = (tool: string, input: JsonObject, context: ToolContext) => this.call(tool, input, context);
    this.#offer = new Offer({ name, settings, registration, isTaken, run });
    this.#logs = new Trickle(MCP_LIMITS.logsPerMinute, clock);
    this.#updates = new Trickle(MCP_LIMITS.updatesPerMinute, clock);
    this.#relists = new Trickle(MCP_LIMITS.relistsPerMinute, clock);
  }

  /** It goes on by itself from here. */
  start(): void {
    this.#run = this.#keep().catch(this.#options.broke);
  }

  view(): McpServerView {
    const { name, settings } = this.#options;
    return {
      name,
      transport: settings.way.kind,
      state: this.#state,
      reason: this.#reason,
      pid: this.#connection?.pid ?? null,
      attempts: this.#attempts,
      calls: this.#calls,
      tools: this.#offer.views(),
      refused: this.#offer.refused,
      log_dropped: this.#logs.dropped,
    };
  }

  legacy(): Legacy {
    return { audience: this.#audience, toldAway: this.#toldAway, returns: this.#returns };
  }

  /** For a conversation: what the tool answers. Whatever is wrong is said in the words of the error. */
  async call(tool: string, input: JsonObject, { thread_id, user_id, signal }: ToolContext): Promise<string> {
    const { name, awaited } = this.#options;
    this.#audience.used(thread_id, user_id);
    if (awaited === true) await this.#tried.promise;
    if (this.#offer.isHeld(tool)) throw new Error(heldRefusal(name, tool));
    const connection = this.#connection;
    if (connection === null || connection.gone.aborted) {
      const reason = (this.#audience.isShared ? this.#plain : this.#reason) ?? "it is not connected yet";
      throw new Error(
        `the MCP server ${name} is away: ${reason}. The call was not made. It is being reconnected: go on without it, or try again later`,
      );
    }
    this.#calls += 1;
    const over = this.#audience.calls(thread_id);
    try {
      return await connection.call(tool, input, signal);
    } catch (error) {
      if (error instanceof ToolFailure) throw error;
      if (error instanceof LostCall)
        throw new Error(
          `the connection to the MCP server ${name} broke during the call: ${wordsOf(error)}. What the call had done by then is unknown`,
          { cause: error },
        );
      if (!connection.gone.aborted) throw new Error(wordsOf(error), { cause: error });
      throw new Error(
        `the MCP server ${name} went away during the call: ${this.#audience.isShared ? connection.plainReason : connection.reason}. What the call had done by then is unknown. The server is being reconnected`,
        { cause: error },
      );
    } finally {
      this.#calls -= 1;
      over();
    }
  }

  /** The operator has approved of a tool. */
  async approved(record: McpToolRecord): Promise<void> {
    this.#pins.approved(record);
    if (this.#closing.signal.aborted || !this.#offer.update(record)) return;
    const changes = { added: [], removed: [], held: [], approved: [record.tool] };
    await this.#tell(toolsChanged(this.#options.name, changes));
  }

  /** Nothing of it is left then, and nobody is told. */
  async close(): Promise<void> {
    if (this.#closing.signal.aborted) return this.#run;
    this.#closing.abort();
    this.#tried.resolve();
    // At once: another server may take its name now.
    this.#options.registration.remove();
    this.#stopReturn();
    this.#state = "off";
    await this.#connection?.close("it is not wanted any more");
    await this.#run;
  }

  async #keep(): Promise<void> {
    const { settings, clock } = this.#options;
    const { signal } = this.#closing;
    for (let failures = 0; !signal.aborted; failures += 1) {
      const begun = clock.monotonic();
      await this.#once();
      if (signal.aborted) return;
      if (clock.monotonic() - begun >= MCP_TIMES.stableMs && this.#attempts === 0) failures = 0;
      await pause(backoff(failures, MCP_TIMES.reconnectBaseMs, settings.reconnect_max_ms), signal);
    }
  }

  /** From an attempt to connect to its failure, or to the end of the connection. */
  async #once(): Promise<void> {
    const { settings, guard } = this.#options;
    const { signal } = this.#closing;
    this.#attempts += 1;
    let connection: Connection;
    try {
      connection = await Connection.open(settings, guard, this.#hearing(), VERSION, signal);
      this.#connection = connection;
      await this.#list(connection);
    } catch (error) {
      await this.#connection?.close(wordsOf(error));
      this.#connection = null;
      this.#away(wordsOf(error));
      return;
    }
    // It may have gone while its tools were looked at.
    if (!connection.gone.aborted) this.#back();
    await this.#watch(connection);
    this.#connection = null;
    this.#away(connection.reason, connection.plainReason);
    await connection.close(connection.reason);
  }

  /** Until it is gone. */
  async #watch(connection: Connection): Promise<void> {
    const { ping_ms, ping_timeout_ms, pings_unanswered_max } = this.#options.settings;
    let soon = new AbortController();
    connection.onDoubt(() => soon.abort());
    for (let missed = 0; !connection.gone.aborted; ) {
      await pause(ping_ms, AbortSignal.any([connection.gone, soon.signal]));
      if (connection.gone.aborted) return;
      soon = new AbortController();
      const pong = await connection.ping();
      if (pong === "failed") return;
      missed = pong === "missed" ? missed + 1 : 0;
      if (pong === "answered") this.#answers();
      else {
        this.#silent(`no answer to a ping within ${ping_timeout_ms} ms`);
        // One that is at work may have no time for pings: a call has a time limit of its own.
        if (missed >= pings_unanswered_max && this.#calls === 0)
          await connection.close(`${missed} pings in a row were not answered`);
      }
    }
  }

  /** `plain`: without the server's own words, which are for the operator, and for a user who is alone with it. */
  #away(reason: string, plain = reason): void {
    if (this.#closing.signal.aborted) return;
    const { name, warn } = this.#options;
    this.#stopReturn();
    this.#state = "away";
    this.#reason = reason;
    this.#plain = plain;
    this.#tried.resolve();
    if (this.#toldAway) return;
    this.#toldAway = true;
    void this.#tell(disconnected(name, this.#audience.isShared ? plain : reason, this.#attempts));
    if (!this.#listed)
      void warn("mcp.not_connected", `The MCP server ${name} could not be connected: ${reason}. It is tried again.`);
  }

  #silent(reason: string): void {
    this.#state = "unresponsive";
    this.#reason = reason;
    this.#plain = reason;
    this.#stopReturn();
    if (this.#toldAway) return;
    this.#toldAway = true;
    void this.#tell(unresponsive(this.#options.name, reason));
  }

  #answers(): void {
    if (this.#state === "unresponsive") this.#back();
  }

  #back(): void {
    if (this.#closing.signal.aborted) return;
    const { clock, name } = this.#options;
    const attempts = this.#attempts;
    this.#attempts = 0;
    this.#state = "connected";
    this.#reason = null;
    this.#plain = null;
    this.#tried.resolve();
    if (!this.#toldAway) return;
    const tell = () => {
      this.#toldAway = false;
      void this.#tell(reconnected(name, attempts));
    };
    const now = clock.monotonic();
    this.#returns = this.#returns.filter((at) => now - at < MCP_TIMES.returnsWithinMs);
    // One that comes and goes is gone, for whoever wants to use it, until it stays.
    if (this.#returns.length >= MCP_TIMES.returnsTold) this.#stopReturn = later(MCP_TIMES.stableMs, tell);
    else tell();
    this.#returns.push(now);
  }

  #hearing() {
    const { name } = this.#options;
    return {
      toolsChanged: () => this.#listLater(),
      resourceUpdated: (uri: string) => {
        const dropped = this.#updates.take();
        if (dropped !== null) void this.#tell(resourceUpdated(name, uri, dropped));
      },
      logged: (level: LogLevel, words: string) => {
        const dropped = this.#logs.take();
        if (dropped !== null && !this.#closing.signal.aborted)
          void this.#audience.tellCaller(logged(name, level, words, dropped));
      },
    };
  }

  /** However often it says so: one look at a time, and not all the time. */
  #listLater(): void {
    if (this.#listing !== null) {
      this.#listAgain = true;
      return;
    }
    const { signal } = this.#closing;
    const look = async () => {
      do {
        this.#listAgain = false;
        const often = this.#relists.take() === null;
        await pause(often ? MCP_TIMES.stableMs : MCP_TIMES.relistMs, signal);
        const connection = this.#connection;
        if (connection === null || connection.gone.aborted || signal.aborted) return;
        // What goes wrong with the connection is seen by whoever watches it.
        await this.#list(connection).catch(() => undefined);
      } while (this.#listAgain);
    };
    this.#listing = look().finally(() => {
      this.#listing = null;
    });
  }

  async #list(connection: Connection): Promise<void> {
    const { name, settings } = this.#options;
    const { tools, refused } = listingOf(await connection.listTools(), settings.tools);
    const judged = await this.#pins.judge(tools);
    if (this.#closing.signal.aborted) return;
    const { added, removed } = this.#offer.replace(judged.records, [...refused, ...judged.refused]);
    const first = !this.#listed;
    this.#listed = true;
    const held = judged.held.map(({ tool }) => tool);
    const changes = { added: first ? [] : added, removed, held, approved: [] };
    if (Object.values(changes).some((list) => list.length > 0))
      await this.#tell(toolsChanged(name, changes, judged.held));
    await this.#notice(first ? judged.records.filter((record) => record.held !== null) : judged.held, judged.held);
  }

  /**
   * The operator is told of each that is held, once. Whoever was killed before that does it at the next start, and tells then, too,
   * what may not have been told: that it is held.
   */
  async #notice(held: readonly McpToolRecord[], told: readonly McpToolRecord[]): Promise<void> {
    const { name, warn } = this.#options;
    const late: McpToolRecord[] = [];
    for (const record of held.slice(0, MCP_LIMITS.heldTold)) {
      const isNews = await warn("mcp.tool_held", heldNotice(record), heldId(record));
      if (isNews && !told.includes(record)) late.push(record);
    }
    if (late.length === 0) return;
    const changes = { added: [], removed: [], held: late.map(({ tool }) => tool), approved: [] };
    await this.#tell(toolsChanged(name, changes, late));
  }

  #tell(news: News): Promise<void> {
    return this.#closing.signal.aborted ? Promise.resolve() : this.#audience.tell(news);
  }
}
