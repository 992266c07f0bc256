/** The facade: everything a program does with Tidings starts at `Tidings.open`. */
import { join } from "node:path";
import { z } from "zod";
import { Tokens } from "./access/tokens.js";
import type { Hooks } from "./config/hooks.js";
import type { ServerLimits } from "./config/server_limits.js";
import { feed, type Pace, replay } from "./delivery/feed.js";
import { SeriesFollower } from "./delivery/series.js";
import { Watchdog } from "./delivery/watchdog.js";
import { StoreError } from "./domain/errors.js";
import { type JournalId, type UserId, userId } from "./domain/ids.js";
import { LIMITS } from "./domain/limits.js";
import { parseInput, wordSchema } from "./domain/parse.js";
import { HOST, userPrincipal } from "./domain/principal.js";
import { ALL_GRANTS, type Grants } from "./domain/token.js";
import type { ShownBatch } from "./facade/answers.js";
import { hostAgent, mcpConfigs } from "./facade/hosting.js";
import { type AgentView, checkOptions, type OpenOptions, parsePolicy } from "./facade/options.js";
import { type Shared, throwFailure } from "./facade/shared.js";
import { TidingsView } from "./facade/view.js";
import { Catalogue } from "./intake/catalogue.js";
import { Intake } from "./intake/intake.js";
import { Operator } from "./intake/operator.js";
import { McpRegistry } from "./mcp/registry.js";
import { McpServers } from "./mcp/servers.js";
import { type Clock, systemClock } from "./platform/clock.js";
import type { Counters } from "./runtime/counters.js";
import { ThreadPushes } from "./runtime/thread_pushes.js";
import { ToolRegistry } from "./runtime/tool_registry.js";
import { type AuditReport, audit } from "./store/audit.js";
import type { PruneStep, StoreFacts, StoreFigures } from "./store/contract.js";
import { openSqliteStore } from "./store/sqlite/store.js";

export {
  type AckInput,
  ackSchema,
  type ChangedInput,
  changedSchema,
  type EmitAnswer,
  type EmitOutcome,
  type InboxAnswer,
  type ListAnswer,
  type ListInput,
  listSchema,
  type NotifyAnswer,
  type SettingsInput,
  type ShownBatch,
  settingsSchema,
} from "./facade/answers.js";
export { matchesSchema } from "./facade/matches.js";
export type { AgentInput, AgentView, OpenOptions } from "./facade/options.js";
export { type PreviewAnswer, type PreviewInput, previewSchema } from "./facade/preview.js";
export { type SeriesAnswer, type SeriesInput, seriesSchema } from "./facade/series.js";
export { TidingsView } from "./facade/view.js";

const idSchema = wordSchema(LIMITS.idChars);

/** The notification plane on one data folder. */
export class Tidings extends TidingsView {
  readonly journal_id: JournalId;
  /** Whether this process is the folder's writer. */
  readonly writable: boolean;
  /** Who may speak to a server on this folder. */
  readonly tokens: Tokens;
  readonly #watchdog: Watchdog | undefined;
  readonly #follower: SeriesFollower | undefined;
  readonly #operator: Operator;

  private constructor(
    shared: Shared,
    watchdog: Watchdog | undefined,
    follower: SeriesFollower | undefined,
    operator: Operator,
  ) {
    super(shared, HOST, ALL_GRANTS);
    this.tokens = new Tokens(shared.store);
    this.journal_id = shared.store.journal_id;
    this.writable = shared.writable;
    this.#watchdog = watchdog;
    this.#follower = follower;
    this.#operator = operator;
  }

  /** Opens a data folder and starts its watchdog. */
  static async open(options: OpenOptions = {}): Promise<Tidings> {
    checkOptions(options);
    const policy = parsePolicy(options.policy);
    const ended = new AbortController();
    const { bytes_max, data = ".tidings", mode = "write" } = options;
    const watch = mode !== "read" && (options.watch ?? true);
    const onProblem = options.onProblem ?? (() => {});
    const { subscribers_folder = join(data, "subscribers"), config_file = join(data, "tidings.toml") } = options;
    const catalogue = await Catalogue.open({
      subscribers: options.subscribers ?? [],
      folder: subscribers_folder,
      config_file,
      watch,
      broke: (error) => onProblem(`Configuration: ${error instanceof Error ? error.message : String(error)}`),
    });
    const store = await openSqliteStore({
      folder: data,
      editor: catalogue,
      policy,
      clock: options.clock ?? systemClock,
      mode,
      waitMs: options.wait_ms ?? 5_000,
      ...(bytes_max === undefined ? {} : { bytesMax: bytes_max }),
      onFailure: (error) => {
        ended.abort(error);
        options.onFailure?.(error);
      },
    }).catch(async (error: unknown) => {
      await catalogue.close();
      throw error;
    });
    const intake = new Intake(catalogue);
    const operator = new Operator(store, intake, onProblem);
    const stopped = (who: string) => (error: unknown) => {
      const failure = new StoreError("store_io", `${who} stopped on an error of its own; open it again`, error);
      ended.abort(failure);
      options.onFailure?.(failure);
    };
    const watchdog = store.writable ? new Watchdog(store, stopped("the watchdog")) : undefined;
    const follower = store.writable ? new SeriesFollower(store, stopped("the counting")) : undefined;
    try {
      await watchdog?.start();
      if (watch && store.writable) await operator.follow(catalogue);
      else operator.log(catalogue.problems);
    } catch (error) {
      await catalogue.close();
      await store.close();
      throw error;
    }
    const shared: Shared = {
      store,
      catalogue,
      intake,
      policy,
      writable: store.writable,
      ended,
      agent: null,
      model: null,
      mcp: null,
      ownMcp: new Map(),
      props: null,
    };
    follower?.start();
    const tidings = new Tidings(shared, watchdog, follower, operator);
    const { agent } = options;
    if (agent === undefined) return tidings;
    try {
      const wanted = typeof agent === "function" ? agent(catalogue.config.agent) : agent;
      const own = [data, subscribers_folder, config_file].filter((path) => path !== null);
      shared.agent = await hostAgent(shared, (event) => tidings.emitOwn(event), wanted, own, onProblem);
      const { signal } = ended;
      signal.addEventListener("abort", () => {
        if (signal.reason instanceof StoreError) shared.agent?.failed(signal.reason);
      });
      tidings.#useMcp(options.clock ?? systemClock, onProblem);
    } catch (error) {
      await tidings.close();
      throw error;
    }
    return tidings;
  }

  /** Who may report by a signed request, as the configuration says it now. */
  get hooks(): Hooks {
    return this.shared.catalogue.config.hooks;
  }

  /** What `[server.limits]` of the configuration says. */
  get serverLimits(): Partial<ServerLimits> {
    return this.shared.catalogue.config.server.limits;
  }

  /** What the hosted agent runs on; null if none is hosted. */
  get agent(): AgentView | null {
    return this.shared.model;
  }

  /** What the hosted agent can do: one's own tools come and go here. */
  readonly tools = new ToolRegistry(() => this.shared.agent);

  /** Of its tools, those that the rehearsal has brought. */
  get props(): readonly string[] {
    const { props, mcp } = this.shared;
    return props === null ? [] : [...props.tools.map(({ name }) => name), ...(mcp?.lent.tools ?? [])];
  }

  /** MCP servers: how they are, and which of their tools wait for somebody to approve of them. */
  readonly mcp = new McpRegistry({
    store: this.shared.store,
    configs: () => mcpConfigs(this.shared),
    servers: () => this.shared.mcp,
  });

  /** Connects them, and follows the configuration. Nobody waits for them. */
  #useMcp(clock: Clock, onProblem: (line: string) => void): void {
    const { agent, store, catalogue } = this.shared;
    if (agent === null) return;
    const servers = new McpServers({
      agent,
      store,
      emit: (event) => this.emitOwn(event),
      clock,
      warn: (kind, words, id) => this.#operator.warn(kind, words, id),
      broke: (error) => onProblem(`MCP: ${error instanceof Error ? error.message : String(error)}`),
    });
    this.shared.mcp = servers;
    const { ownMcp, props } = this.shared;
    if (props !== null && ownMcp !== null) servers.lend(props.server);
    servers.follow(mcpConfigs(this.shared));
    catalogue.onChange(() => servers.follow(mcpConfigs(this.shared)));
  }

  /** The hosted agent brings to its end what was begun, and begins nothing until `resumeAgent`; ends with this process. */
  restAgent(): void {
    this.shared.agent?.rest();
  }

  async resumeAgent(): Promise<void> {
    await this.shared.agent?.goOn();
  }

  /** What the hosted agent has done since it was started; null if none is hosted. */
  get agentCounters(): Readonly<Counters> | null {
    return this.shared.agent?.counters ?? null;
  }

  /**
   * The same plane as one user sees it: nothing of anybody else exists. `grants` says what of what is sent may be
   * critical, or an instruction to the agent; code of the same process has all of them.
   */
  as(user_id: string, grants: Grants = ALL_GRANTS): TidingsView {
    const user = userId(parseInput(idSchema, user_id));
    return new TidingsView(this.shared, userPrincipal(user), grants);
  }

  /**
   * What users are to be shown, as it happens from now on, of those that `wants` names; what happens in their
   * conversations too, of those that `follows` names.
   */
  feed(
    wants: (user_id: UserId) => boolean,
    signal: AbortSignal,
    follows: (user_id: UserId) => boolean = () => false,
  ): AsyncGenerator<ShownBatch, void, undefined> {
    // The end is looked up now, and not when the first batch is asked for.
    return this.#feedFrom(this.shared.store.lastSeq(), wants, signal, follows);
  }

  async *#feedFrom(
    start: Promise<number>,
    wants: (user_id: UserId) => boolean,
    asked: AbortSignal,
    follows: (user_id: UserId) => boolean,
  ): AsyncGenerator<ShownBatch, void, undefined> {
    const { store, ended } = this.shared;
    const threads = new ThreadPushes(store);
    for await (const batch of feed(store, start, wants, AbortSignal.any([asked, ended.signal])))
      yield { ...batch, conversations: await threads.of(batch.entries, batch.pushes, follows) };
    if (!asked.aborted) throwFailure(ended.signal);
  }

  /**
   * What a user was to be shown after `after`, as `feed` would have told it then. Refused with `cursor_too_old` where
   * retention has removed any of it. `end`: that was all; whoever asks on gets what has come since. `pace` is asked before
   * each piece of the way.
   */
  async *replay(
    user_id: UserId,
    after: number,
    { conversations, pace }: { readonly conversations: boolean; readonly pace: Pace },
  ): AsyncGenerator<ShownBatch & { readonly end: boolean }, void, undefined> {
    const { store } = this.shared;
    const threads = new ThreadPushes(store, pace);
    for await (const batch of replay(store, user_id, after, pace))
      yield { ...batch, conversations: await threads.of(batch.entries, batch.pushes, () => conversations) };
  }

  /** The journal's newest entry. */
  lastSeq(): Promise<number> {
    return this.shared.store.lastSeq();
  }

  /** Checks every guarantee over the whole store, as it is at this moment; others go on meanwhile. */
  audit(onProgress?: (what: string, done: number) => void): Promise<AuditReport> {
    return this.shared.store.snapshot((moment) => audit(moment, onProgress));
  }

  /**
   * Removes settled history older than this; dead letters, live items and open threads stay. What hooks would take again
   * is known for as long as they would.
   */
  prune(options: { older_than_ms: number; onStep?: (done: PruneStep) => void }): Promise<PruneStep> {
    const olderThanMs = parseInput(z.int().min(0), options.older_than_ms);
    return this.shared.store.prune(Math.max(olderThanMs, replayableMs(this.hooks)), options.onStep);
  }

  /** Copies the database, while it is in use, to a file that does not exist yet. */
  backup(file: string, onProgress?: (done: number, total: number) => void): Promise<void> {
    return this.shared.store.backup(file, onProgress);
  }

  facts(): Promise<StoreFacts> {
    return this.shared.store.facts();
  }

  /** How much waits and what has happened since this was opened, of all users: for whoever watches over it. */
  figures(): Promise<StoreFigures> {
    return this.shared.store.figures();
  }

  /** Commits what waits, ends the watchers and lets the folder go. */
  async close(): Promise<void> {
    const stopped = Promise.all([this.#watchdog?.stop(), this.#follower?.stop()]);
    const { agent, catalogue, ended, mcp, store } = this.shared;
    // An edit of the configuration must not give tools to an agent that ends.
    mcp?.stopFollowing();
    if (agent !== null) await agent.close();
    if (mcp !== null) await mcp.close();
    ended.abort();
    // Both at once: from here on nothing new is taken.
    await Promise.all([catalogue.close(), store.close()]);
    await this.#operator.close();
    await stopped;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

/** For how long a message that a hook has taken could be sent again: it may have been signed ahead of our time. */
function replayableMs(hooks: Hooks): number {
  return Math.max(0, ...[...hooks.values()].map(({ tolerance_secs }) => 2_000 * (tolerance_secs ?? 0)));
}
