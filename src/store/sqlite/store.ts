import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { BlockForm } from "../../domain/conversation.js";
import type { Miss } from "../../domain/errors.js";
import { InvalidInputError, StoreError, TidingsError } from "../../domain/errors.js";
import type { Event } from "../../domain/event.js";
import type { HandleRecord, NewHandleRecord } from "../../domain/handle.js";
import type {
  CarrierId,
  EventId,
  JournalId,
  LeaseId,
  NotificationId,
  SubscriberId,
  ThreadId,
  TokenId,
  TurnId,
  UserId,
} from "../../domain/ids.js";
import { journalId } from "../../domain/ids.js";
import type { JournalEntry, Thread } from "../../domain/journal.js";
import type { KnownFile, KnownFilePlace } from "../../domain/known_file.js";
import type { McpToolRecord, SeenTool } from "../../domain/mcp.js";
import type { Point } from "../../domain/points.js";
import type { DeliveryPolicy } from "../../domain/policy.js";
import { mayAct, type Principal } from "../../domain/principal.js";
import type { Resolution } from "../../domain/series.js";
import type { UserSettings } from "../../domain/settings.js";
import type { Token } from "../../domain/token.js";
import type { Turn } from "../../domain/turn.js";
import { dayOf, NOTHING, type ThreadBudgets } from "../../domain/usage.js";
import { type Clock, JournalClock } from "../../platform/clock.js";
import { IdSource } from "../../platform/ids.js";
import { every } from "../../platform/timers.js";
import type {
  Acceptance,
  Accepted,
  AcceptOutcome,
  BeginTurn,
  BegunTurn,
  CarrierOutcome,
  CarrierRecord,
  Claim,
  ClaimRequest,
  Collected,
  CollectRequest,
  CommandRequest,
  CommitListener,
  Counts,
  DayPlace,
  DayUsage,
  Editor,
  EndTurn,
  HandleBounds,
  HandlePlace,
  JournalPage,
  Lease,
  LedgerRecord,
  ListFilter,
  McpToolPlace,
  NewToken,
  Page,
  PruneStep,
  SeriesPage,
  SeriesStep,
  Shown,
  Standing,
  Store,
  Stored,
  StoreFacts,
  StoreFigures,
  ThreadSummary,
  ThreadUsage,
  TurnStep,
  UsageNow,
  Waiting,
} from "../contract.js";
import { accept } from "./accept.js";
import { AgentQueue } from "./agent_queue.js";
import { Awareness } from "./awareness.js";
import { Backlog } from "./backlog.js";
import { backupTo } from "./backup.js";
import { Batches } from "./batches.js";
import { BlockMembers } from "./block_members.js";
import { Blocks } from "./blocks.js";
import { failCarrier, renewCarrier, sendCarrier, settleCarrier } from "./carrier_operations.js";
import { Carriers } from "./carriers.js";
import { runCommand, runCommands } from "./changes.js";
import { checkStorage } from "./check.js";
import { Checkpoints } from "./checkpoints.js";
import { claim } from "./claim.js";
import { collect, isReady } from "./collect.js";
import { CommitQueue, closedError, type Transaction } from "./commit.js";
import type { Connection } from "./connection.js";
import type { Core, CoreBase } from "./core.js";
import { DATABASE_FILE, engineVersion, openDatabase } from "./database.js";
import { DedupeWindows } from "./dedupe.js";
import { type DueHint, DueHints, FIRST_HINT } from "./due.js";
import { codeOf, storeError } from "./failure.js";
import { Figures } from "./figures.js";
import { flushSome } from "./flush.js";
import { forgetHandles, recordHandle } from "./handle_operations.js";
import { Handles } from "./handles.js";
import { Journal } from "./journal.js";
import { isPendingAbout, recordFiles } from "./known_file_operations.js";
import { KnownFiles } from "./known_files.js";
import { Leases } from "./leases.js";
import { HELD_COLUMNS, type HeldRow, heldOf, Ledger } from "./ledger.js";
import { Lists } from "./list.js";
import { LiveBlocks } from "./live_blocks.js";
import { WriterLock } from "./lock.js";
import { approveMcpTool, seeMcpTools } from "./mcp_tool_operations.js";
import { McpTools } from "./mcp_tools.js";
import { Meta } from "./meta.js";
import { SCHEMA_VERSION } from "./migrate.js";
import { observe } from "./observation.js";
import { Pauses } from "./pauses.js";
import { ProducerIds } from "./producer_ids.js";
import { Prune } from "./prune.js";
import { CriticalQuota } from "./quota.js";
import { Redrives } from "./redrive.js";
import { Rows } from "./rows.js";
import { Series } from "./series.js";
import { Settings } from "./settings.js";
import { settingsOf, updateSettings } from "./settings_operations.js";
import { standingOf } from "./standings.js";
import { SubscriberMatches } from "./subscriber_matches.js";
import { summariesOf } from "./summaries.js";
import { Sweep } from "./sweep.js";
import { beginClose, moveOut, pauseThread, resumeThread, startThread } from "./thread_operations.js";
import { Threads } from "./threads.js";
import { createToken, revokeToken } from "./token_operations.js";
import { Tokens } from "./tokens.js";
import { beginTurn, editQueued, endTurn, queueTurn, renewTurn, stepTurn } from "./turn_operations.js";
import { Turns, turnOf } from "./turns.js";
import { Usage } from "./usage.js";
import { UserCounts } from "./user_counts.js";
import { UserRows } from "./user_rows.js";
import { Waitings } from "./waiting.js";

/** The lane of everything that is not an event. */
const CONTROL_LANE = "";
/** After time jumped ahead, leases hold at least this much longer; and half of what they hold at all, if that is more. */
const GRACE_MS = 2_000;
const FLUSH_SLICE = 64;
const SERIES_SLICE = 256;
const READER_POLL_MS = 200;
const SYNCHRONOUS = ["OFF", "NORMAL", "FULL", "EXTRA"];

export interface SqliteOptions {
  /** The data folder. */
  readonly folder: string;
  readonly policy: DeliveryPolicy;
  readonly clock: Clock;
  readonly editor: Editor;
  /**
   * `write`: be the one writer, waiting up to `waitMs` for another to end. `read`: read beside a writer.
   * `write_if_free`: write if nobody does, else read.
   */
  readonly mode: "write" | "read" | "write_if_free";
  readonly waitMs: number;
  readonly bytesMax?: number;
  /** The storage failed and the store has stopped. */
  readonly onFailure?: (error: StoreError) => void;
}

export async function openSqliteStore(options: SqliteOptions): Promise<SqliteStore> {
  const lock = await lockFor(options);
  try {
    const { bytesMax } = options;
    const connection = openDatabase(options.folder, {
      readonly: lock === undefined,
      ...(bytesMax === undefined ? {} : { bytesMax }),
    });
    return storeOn(connection, lock, options);
  } catch (error) {
    lock?.release();
    throw error;
  }
}

/** Tables that are missing show when the statements are prepared. */
function storeOn(connection: Connection, lock: WriterLock | undefined, options: SqliteOptions): SqliteStore {
  try {
    return new SqliteStore(connection, lock, options);
  } catch (error) {
    connection.close();
    const file = join(options.folder, DATABASE_FILE);
    if (codeOf(error) === "SQLITE_ERROR")
      throw new StoreError("store_corrupt", `${file} lacks a part of its schema; restore a backup.`, error);
    throw storeError(error, file) ?? error;
  }
}

function journalIdOf(meta: Meta, file: string): JournalId {
  const id = meta.text("journal_id");
  if (id === undefined) throw new StoreError("store_corrupt", `${file} has no journal id; restore a backup.`);
  return journalId(id);
}

async function lockFor(options: SqliteOptions): Promise<WriterLock | undefined> {
  if (options.mode === "read") return undefined;
  try {
    mkdirSync(options.folder, { recursive: true, mode: 0o700 });
  } catch (error) {
    throw storeError(error, options.folder) ?? error;
  }
  if (options.mode === "write_if_free") return WriterLock.tryAcquire(options.folder);
  return WriterLock.acquire(options.folder, options.waitMs);
}

/** What is everybody's is the host's alone, and what is another user's is nobody's. */
function mustSee(principal: Principal, user_id: UserId | null): void {
  if (user_id === null ? principal.kind === "host" : mayAct(principal, user_id)) return;
  throw new InvalidInputError("user_id", "must be the caller's own");
}

type Together = <Value>(read: () => Value) => Value;

export class SqliteStore implements Store {
  readonly journal_id: JournalId;
  /** Whether this process is the folder's writer. */
  readonly writable: boolean;
  readonly #connection: Connection;
  readonly #lock: WriterLock | undefined;
  readonly #options: SqliteOptions;
  readonly #core: Core;
  readonly #clock: JournalClock;
  readonly #queue: CommitQueue | undefined;
  readonly #checkpoints: Checkpoints | undefined;
  readonly #sweep: Sweep;
  readonly #redrives: Redrives;
  readonly #lists: Lists;
  readonly #waitings: Waitings;
  readonly #together: Together;
  readonly #prune: Prune;
  readonly #series: Series;
  readonly #matches: SubscriberMatches;
  readonly #listeners = new Set<CommitListener>();
  /** Snapshots that are being read: a backup, an audit. */
  readonly #moments = new Set<Promise<unknown>>();
  #stopPolling: (() => void) | undefined;
  #closed = false;
  #closing: Promise<void> | undefined;

  constructor(connection: Connection, lock: WriterLock | undefined, options: SqliteOptions) {
    this.#connection = connection;
    this.#lock = lock;
    this.#options = options;
    this.writable = lock !== undefined;
    const ids = new IdSource();
    const blocks = new Blocks(connection);
    const members = new BlockMembers(connection, blocks);
    const userRows = new UserRows(connection, blocks);
    const liveBlocks = new LiveBlocks(blocks, userRows);
    const userCounts = new UserCounts(blocks, userRows, liveBlocks, lock !== undefined);
    const due = new DueHints(connection);
    const batches = new Batches(connection);
    const backlog = new Backlog(connection);
    const rows = new Rows(connection, lock !== undefined);
    const figures = new Figures(connection, lock !== undefined);
    const meta = new Meta(connection);
    const journal = new Journal(connection, blocks, meta);
    const core: CoreBase = {
      connection,
      file: join(options.folder, DATABASE_FILE),
      ids,
      policy: options.policy,
      editor: options.editor,
      blocks,
      userRows,
      liveBlocks,
      userCounts,
      due,
      journal,
      producerIds: new ProducerIds(connection),
      ledger: new Ledger(
        connection,
        { blocks, members, liveBlocks, userCounts, due, batches, backlog, rows, figures },
        meta,
        lock !== undefined,
      ),
      dedupe: new DedupeWindows(),
      batches,
      rows,
      backlog,
      quota: new CriticalQuota(options.policy.criticalPerMinute),
      figures,
      leases: new Leases(connection),
      carriers: new Carriers(connection),
      turns: new Turns(connection),
      handles: new Handles(connection),
      knownFiles: new KnownFiles(connection),
      usage: new Usage(connection),
      mcpTools: new McpTools(connection),
      queue: new AgentQueue(connection),
      pauses: new Pauses(connection),
      threads: new Threads(connection),
      tokens: new Tokens(connection),
      settings: new Settings(connection, lock !== undefined),
    };
    this.#lists = new Lists(core);
    this.#core = { ...core, awareness: new Awareness(connection, core.ledger, this.#lists) };
    this.#clock = new JournalClock(options.clock, journal.last().at);
    this.#sweep = new Sweep(connection);
    this.#redrives = new Redrives(connection);
    this.#waitings = new Waitings(connection);
    this.#together = connection.transaction((read: () => unknown) => read()) as Together;
    this.#prune = new Prune(connection, meta);
    this.#matches = new SubscriberMatches(connection);
    this.#series = new Series(connection, meta, this.#matches);
    this.journal_id = journalIdOf(meta, core.file);
    if (!this.writable) return;
    core.dedupe.rebuild(connection, this.#clock.now());
    batches.rebuild();
    const checkpoints = new Checkpoints(connection, core.file);
    this.#checkpoints = checkpoints;
    this.#queue = new CommitQueue(connection, core.file, {
      now: () => this.#clock.now(),
      begun: (transaction) => this.#begun(transaction),
      gather: (gathers) => core.ledger.gather(gathers),
      ending: () => {
        core.ledger.gather(false);
        journal.writeOut();
        liveBlocks.settleDoubts();
      },
      monotonic: () => options.clock.monotonic(),
      committed: (ms, operations) => {
        figures.committed(ms, operations);
        this.#committed(journal.takeUsers());
        checkpoints.committed(operations);
      },
      failed: (error) => options.onFailure?.(error),
    });
  }

  #begun(transaction: Transaction): void {
    if (this.#clock.takeJump() === 0) return;
    const { leaseMs } = this.#options.policy;
    this.#core.leases.grace(transaction.at + Math.max(GRACE_MS, Math.ceil(leaseMs / 2)));
  }

  #committed(users: ReadonlySet<UserId> | undefined): void {
    const { lastSeq } = this.#core.journal;
    for (const listener of this.#listeners) listener(lastSeq, users);
  }

  #write<Value>(lane: string, run: (transaction: Transaction) => Value, gathers = false): Promise<Value> {
    if (this.#closing !== undefined) return Promise.reject(closedError());
    if (this.#queue !== undefined) return this.#queue.write(lane, run, gathers);
    return Promise.reject(
      new StoreError("read_only", `${this.#core.file} was opened for reading; another process is its writer.`),
    );
  }

  async #read<Value>(run: (core: Core) => Value): Promise<Value> {
    if (this.#queue?.failure !== undefined) throw this.#queue.failure;
    if (this.#closed) throw closedError();
    try {
      // A subscriber's own words may ask, while an event is being decided on.
      if (this.#connection.inTransaction) this.#core.ledger.writeOut();
      return run(this.#core);
    } catch (error) {
      throw storeError(error, this.#core.file) ?? error;
    }
  }

  /** Several statements as of one moment; each would otherwise take and free SQLite's lock by itself. */
  #readTogether<Value>(run: (core: Core) => Value): Promise<Value> {
    return this.#read((core) => (this.#connection.inTransaction ? run(core) : this.#together(() => run(core))));
  }

  accept(principal: Principal, acceptance: Acceptance): Promise<Accepted> {
    const run = (transaction: Transaction) => {
      const accepted = accept(this.#core, transaction, principal, acceptance);
      this.#core.figures.accepted(accepted.outcome);
      return accepted;
    };
    return this.#write(acceptance.event.source, run, true);
  }

  acceptMany(principal: Principal, acceptances: readonly Acceptance[]): Promise<AcceptOutcome[]> {
    return Promise.all(
      acceptances.map((acceptance) =>
        this.accept(principal, acceptance).then(
          (accepted): AcceptOutcome => ({ accepted }),
          (error: unknown): AcceptOutcome => {
            if (error instanceof TidingsError && !(error instanceof StoreError)) return { error };
            throw error;
          },
        ),
      ),
    );
  }

  command(principal: Principal, request: CommandRequest): Promise<Stored | Miss> {
    const run = (transaction: Transaction) => runCommand(this.#core, transaction, principal, request);
    // An acknowledgement reads what it changes, and nothing else of the ledger.
    return this.#write(CONTROL_LANE, run, request.command.column === "ack");
  }

  commandMany(principal: Principal, requests: readonly CommandRequest[]): Promise<(Stored | Miss)[]> {
    return this.#write(CONTROL_LANE, (transaction) => runCommands(this.#core, transaction, principal, requests));
  }

  claim(principal: Principal, request: ClaimRequest): Promise<Claim> {
    return this.#write(CONTROL_LANE, (transaction) => claim(this.#core, transaction, principal, request));
  }

  collect(principal: Principal, request: CollectRequest): Promise<Collected | null> {
    return this.#write(CONTROL_LANE, (transaction) => collect(this.#core, transaction, principal, request));
  }

  sendCarrier(principal: Principal, id: CarrierId, form: BlockForm | null): Promise<CarrierOutcome | Miss> {
    return this.#write(CONTROL_LANE, (transaction) => sendCarrier(this.#core, transaction, principal, id, form));
  }

  beginTurn(principal: Principal, request: BeginTurn): Promise<BegunTurn | null> {
    return this.#write(CONTROL_LANE, (transaction) => beginTurn(this.#core, transaction, principal, request));
  }

  stepTurn(principal: Principal, step: TurnStep): Promise<{ readonly carrier: Collected | null } | Miss> {
    return this.#write(CONTROL_LANE, (transaction) => stepTurn(this.#core, transaction, principal, step));
  }

  endTurn(principal: Principal, end: EndTurn): Promise<Turn | Miss> {
    return this.#write(CONTROL_LANE, (transaction) => endTurn(this.#core, transaction, principal, end));
  }

  renewTurn(principal: Principal, id: TurnId, lease_ms: number): Promise<Lease | Miss> {
    return this.#write(CONTROL_LANE, (transaction) => renewTurn(this.#core, transaction, principal, id, lease_ms));
  }

  queueTurn(principal: Principal, thread_id: ThreadId, content: string): Promise<Turn> {
    return this.#write(CONTROL_LANE, (transaction) =>
      queueTurn(this.#core, transaction, principal, thread_id, content),
    );
  }

  editQueued(principal: Principal, id: TurnId, content: string | null): Promise<Turn | Miss> {
    return this.#write(CONTROL_LANE, (transaction) => editQueued(this.#core, transaction, principal, id, content));
  }

  pauseThread(principal: Principal, id: ThreadId): Promise<Thread> {
    return this.#write(CONTROL_LANE, (transaction) => pauseThread(this.#core, transaction, principal, id));
  }

  resumeThread(principal: Principal, id: ThreadId): Promise<Thread> {
    return this.#write(CONTROL_LANE, (transaction) => resumeThread(this.#core, transaction, principal, id));
  }

  threadsOf(principal: Principal, user_id: UserId, after: ThreadId | null, limit: number): Promise<readonly Thread[]> {
    return this.#read((core) => (mayAct(principal, user_id) ? core.threads.ofUser(user_id, after, limit) : []));
  }

  threadSummaries(
    principal: Principal,
    user_id: UserId,
    after: ThreadId | null,
    limit: number,
  ): Promise<readonly ThreadSummary[]> {
    return this.#readTogether((core) =>
      mayAct(principal, user_id)
        ? summariesOf(core, this.#lists, user_id, core.threads.ofUser(user_id, after, limit))
        : [],
    );
  }

  turn(principal: Principal, id: TurnId): Promise<Turn | undefined> {
    return this.#read((core) => {
      const turn = core.turns.byId(id);
      return turn === undefined || !mayAct(principal, turn.user_id) ? undefined : turnOf(turn);
    });
  }

  liveTurns(principal: Principal, thread_id: ThreadId | null): Promise<readonly Turn[]> {
    return this.#read((core) => {
      if (thread_id !== null) return core.turns.liveIn(core.threads.owned(principal, thread_id).id).map(turnOf);
      return principal.kind === "host" ? core.turns.live().map(turnOf) : [];
    });
  }

  conversation(
    principal: Principal,
    thread_id: ThreadId,
    after: number,
    limit: number,
  ): Promise<readonly JournalEntry[]> {
    return this.#read((core) => core.journal.conversation(core.threads.owned(principal, thread_id).id, after, limit));
  }

  floor(principal: Principal, thread_id: ThreadId, after: number, limit: number): Promise<readonly Shown[]> {
    return this.#readTogether((core) =>
      core.awareness.floor(core.threads.owned(principal, thread_id).id, after, limit),
    );
  }

  conversationBefore(
    principal: Principal,
    thread_id: ThreadId,
    before: number,
    limit: number,
  ): Promise<readonly JournalEntry[]> {
    return this.#read((core) =>
      core.journal.conversationBefore(core.threads.owned(principal, thread_id).id, before, limit),
    );
  }

  floorBefore(principal: Principal, thread_id: ThreadId, before: number, limit: number): Promise<readonly Shown[]> {
    return this.#readTogether((core) =>
      core.awareness.floorBefore(core.threads.owned(principal, thread_id).id, before, limit),
    );
  }

  waiting(principal: Principal, user_id: UserId | null): Promise<readonly Waiting[]> {
    return this.#read(() => {
      const own = principal.kind === "host" ? user_id : principal.user_id;
      if (user_id !== null && own !== user_id) return [];
      return own === null ? this.#waitings.all() : this.#waitings.of(own);
    });
  }

  renewCarrier(principal: Principal, id: CarrierId, lease_ms: number): Promise<Lease | Miss> {
    return this.#write(CONTROL_LANE, (transaction) => renewCarrier(this.#core, transaction, principal, id, lease_ms));
  }

  settleCarrier(
    principal: Principal,
    id: CarrierId,
    acknowledged: ReadonlySet<NotificationId>,
  ): Promise<CarrierOutcome | Miss> {
    return this.#write(CONTROL_LANE, (transaction) =>
      settleCarrier(this.#core, transaction, principal, id, acknowledged),
    );
  }

  failCarrier(principal: Principal, id: CarrierId, note: string | null): Promise<CarrierOutcome | Miss> {
    return this.#write(CONTROL_LANE, (transaction) => failCarrier(this.#core, transaction, principal, id, note));
  }

  renew(principal: Principal, lease_id: LeaseId, lease_ms: number): Promise<Lease | Miss> {
    return this.#write(CONTROL_LANE, (transaction): Lease | Miss => {
      const row = this.#core.leases.get(lease_id);
      if (row === undefined || !mayAct(principal, row.user_id) || row.expires_at <= transaction.at)
        return {
          miss: "stale_lease",
          id: lease_id,
          message: `lease ${lease_id} is over; collect again for what is pending`,
        };
      const expires_at = Math.max(row.expires_at, transaction.at + lease_ms);
      transaction.wrote = true;
      this.#core.leases.renew(lease_id, expires_at);
      return { id: lease_id, owner: row.owner, expires_at };
    });
  }

  redrive(principal: Principal, id: NotificationId): Promise<Stored | Miss> {
    return this.#write(CONTROL_LANE, (transaction) => this.#redrives.redrive(this.#core, transaction, principal, id));
  }

  startThread(
    principal: Principal,
    user_id: UserId,
    thread_id: ThreadId | null,
    budgets: ThreadBudgets | null = null,
  ): Promise<Thread> {
    return this.#write(CONTROL_LANE, (transaction) =>
      startThread(this.#core, transaction, principal, user_id, thread_id, budgets),
    );
  }

  async closeThread(principal: Principal, thread_id: ThreadId): Promise<Thread> {
    const thread = await this.#write(CONTROL_LANE, (transaction) =>
      beginClose(this.#core, transaction, principal, thread_id),
    );
    await this.#moveOut(thread_id);
    return { ...thread, state: "closed" };
  }

  async #moveOut(thread_id: ThreadId): Promise<void> {
    for (let after: number | null = 0; after !== null; ) {
      const from: number = after;
      after = await this.#write(CONTROL_LANE, (transaction) => moveOut(this.#core, transaction, thread_id, from));
    }
  }

  observe(principal: Principal, thread_id: ThreadId, subject: string): Promise<readonly Stored[]> {
    return this.#write(CONTROL_LANE, (transaction) => observe(this.#core, transaction, principal, thread_id, subject));
  }

  recordHandle(principal: Principal, record: NewHandleRecord): Promise<HandleRecord> {
    return this.#write(CONTROL_LANE, (transaction) => recordHandle(this.#core, transaction, principal, record));
  }

  forgetHandles(principal: Principal, thread_id: ThreadId, bounds: HandleBounds): Promise<number> {
    const run = (transaction: Transaction) => forgetHandles(this.#core, transaction, principal, thread_id, bounds);
    return this.#write(CONTROL_LANE, run);
  }

  recordFiles(
    principal: Principal,
    thread_id: ThreadId,
    files: readonly KnownFile[],
    forgotten: readonly string[],
  ): Promise<void> {
    return this.#write(CONTROL_LANE, (transaction) =>
      recordFiles(this.#core, transaction, principal, thread_id, files, forgotten),
    );
  }

  seeMcpTools(seen: readonly SeenTool[]): Promise<readonly McpToolRecord[]> {
    return this.#write(CONTROL_LANE, (transaction) => seeMcpTools(this.#core, transaction, seen));
  }

  approveMcpTool(server: string, tool: string, digest: string | null): Promise<McpToolRecord | Miss> {
    return this.#write(CONTROL_LANE, (transaction) => approveMcpTool(this.#core, transaction, server, tool, digest));
  }

  createToken(principal: Principal, token: NewToken): Promise<Token> {
    return this.#write(CONTROL_LANE, (transaction) => createToken(this.#core, transaction, principal, token));
  }

  revokeToken(principal: Principal, id: TokenId): Promise<Token | undefined> {
    return this.#write(CONTROL_LANE, (transaction) => revokeToken(this.#core, transaction, principal, id));
  }

  settings(principal: Principal, user_id: UserId): Promise<UserSettings> {
    return this.#read((core) => settingsOf(core, principal, user_id));
  }

  updateSettings(principal: Principal, settings: UserSettings): Promise<UserSettings> {
    return this.#write(CONTROL_LANE, (transaction) => updateSettings(this.#core, transaction, principal, settings));
  }

  tokenByDigest(digest: string): Promise<Token | undefined> {
    return this.#read((core) => core.tokens.byDigest(digest));
  }

  tokens(principal: Principal, after: TokenId | null, limit: number): Promise<readonly Token[]> {
    return this.#read((core) => core.tokens.page(principal, after, limit));
  }

  now(): number {
    return this.#clock.now();
  }

  async sweep(limit: number): Promise<number> {
    const { due, closing } = await this.#read((core) => ({
      due: this.#sweep.isDue(core, this.#clock.now()),
      closing: core.threads.closing(),
    }));
    if (closing !== undefined) await this.#moveOut(closing);
    if (!due) return 0;
    let acted = 0;
    for (let after: DueHint | null = FIRST_HINT; after !== null && acted < limit; ) {
      const from: DueHint = after;
      const step = await this.#write(CONTROL_LANE, (transaction) =>
        this.#sweep.run(this.#core, transaction, limit - acted, from),
      );
      acted += step.acted;
      // Whatever cannot be ended now is tried again at the next tick, not at once and for ever.
      if (step.acted === 0 && step.after === from) break;
      after = step.after;
    }
    return acted;
  }

  get(principal: Principal, id: NotificationId): Promise<Stored | undefined> {
    return this.#read((core) => {
      const held = core.ledger.byId(id);
      return held === undefined || !mayAct(principal, held.delivery.user_id) ? undefined : core.ledger.stored(held);
    });
  }

  list(principal: Principal, filter: ListFilter): Promise<Page> {
    return this.#readTogether(() => this.#lists.list(principal, filter));
  }

  counts(principal: Principal, user_id: UserId): Promise<Counts> {
    return this.#readTogether(() => this.#lists.counts(principal, user_id));
  }

  eventEntry(principal: Principal, id: EventId): Promise<JournalEntry | undefined> {
    return this.#read((core) => {
      const entry = core.journal.ofEvent(id);
      return entry !== undefined && mayAct(principal, entry.user_id) ? entry : undefined;
    });
  }

  async events(principal: Principal, ids: readonly EventId[]): Promise<Event[]> {
    const entries = await Promise.all(ids.map((id) => this.eventEntry(principal, id)));
    return entries.flatMap((entry) => (entry?.type === "event" ? [entry.event] : []));
  }

  story(principal: Principal, id: NotificationId): Promise<JournalEntry[] | undefined> {
    return this.#read((core) => {
      const held = core.ledger.byId(id);
      if (held === undefined || !mayAct(principal, held.delivery.user_id)) return undefined;
      const entries: JournalEntry[] = [];
      for (let seq: number | null = held.last_seq; seq !== null; ) {
        const entry = core.journal.read(seq);
        if (entry === undefined) break;
        entries.push(entry);
        seq = entry.changes.find((change) => change.notification_id === id)?.prev ?? null;
      }
      return entries.reverse();
    });
  }

  redrivenAs(principal: Principal, id: NotificationId): Promise<NotificationId | null> {
    return this.#read((core) => {
      const held = core.ledger.byId(id);
      if (held === undefined || !mayAct(principal, held.delivery.user_id)) return null;
      return this.#redrives.of(held.number);
    });
  }

  entries(principal: Principal, after: number, limit: number): Promise<JournalPage> {
    return this.#read((core) => core.journal.page(principal, after, limit));
  }

  lastSeq(): Promise<number> {
    return this.#read((core) => core.journal.refresh());
  }

  onCommit(listener: CommitListener): () => void {
    this.#listeners.add(listener);
    if (!this.writable) this.#pollForCommits();
    return () => {
      this.#listeners.delete(listener);
      if (this.#listeners.size === 0) {
        this.#stopPolling?.();
        this.#stopPolling = undefined;
      }
    };
  }

  /** A reader is not told of the writer's commits; it sees SQLite's counter move. */
  #pollForCommits(): void {
    if (this.#stopPolling !== undefined) return;
    let version = this.#dataVersion();
    this.#stopPolling = every(READER_POLL_MS, async () => {
      if (this.#closed) return;
      const now = this.#dataVersion();
      if (now === undefined || now === version) return;
      version = now;
      this.#core.journal.refresh();
      this.#committed(undefined);
    });
  }

  /** Undefined if it cannot be asked now; the next poll asks again. */
  #dataVersion(): unknown {
    try {
      return this.#connection.pragma("data_version", { simple: true });
    } catch {
      return undefined;
    }
  }

  ledger(afterNumber: number, limit: number): Promise<readonly LedgerRecord[]> {
    return this.#read((core) => {
      const rows = this.#connection
        .prepare(
          `SELECT ${HELD_COLUMNS} FROM deliveries d JOIN notifications n ON n.number = d.number
           WHERE d.number > ? ORDER BY d.number LIMIT ?`,
        )
        .raw()
        .all(afterNumber, limit);
      return (rows as HeldRow[]).map((row) => {
        const held = heldOf(row);
        return { ...held, shown: core.ledger.shown(held.number) };
      });
    });
  }

  threads(after: ThreadId | null, limit: number): Promise<readonly Thread[]> {
    return this.#read((core) => core.threads.page(after, limit));
  }

  thread(principal: Principal, id: ThreadId): Promise<Thread> {
    return this.#read((core) => core.threads.owned(principal, id));
  }

  handle(principal: Principal, thread_id: ThreadId, id: string): Promise<HandleRecord | undefined> {
    return this.#read((core) => core.handles.get(core.threads.owned(principal, thread_id).id, id));
  }

  mcpTools(after: McpToolPlace | null, limit: number): Promise<readonly McpToolRecord[]> {
    return this.#read((core) => core.mcpTools.page(after, limit));
  }

  handles(after: HandlePlace | null, limit: number): Promise<readonly HandleRecord[]> {
    return this.#read((core) => core.handles.page(after, limit));
  }

  knownFiles(after: KnownFilePlace | null, limit: number): Promise<readonly KnownFile[]> {
    return this.#read((core) => core.knownFiles.page(after, limit));
  }

  isPendingAbout(principal: Principal, thread_id: ThreadId, subject: string): Promise<boolean> {
    return this.#readTogether((core) => isPendingAbout(core, principal, thread_id, subject));
  }

  usage(principal: Principal, thread_id: ThreadId): Promise<UsageNow> {
    return this.#read((core) => {
      const { id, user_id } = core.threads.owned(principal, thread_id);
      return { thread: core.usage.ofThread(id), day: this.#usedToday(core, user_id) };
    });
  }

  usageToday(principal: Principal, user_id: UserId): Promise<UsageNow["day"]> {
    return this.#read((core) => {
      const { day, ...used } = this.#usedToday(core, user_id);
      return { ...(mayAct(principal, user_id) ? used : NOTHING), day };
    });
  }

  #usedToday(core: Core, user_id: UserId): UsageNow["day"] {
    const day = dayOf(this.now());
    return { ...core.usage.ofDay(user_id, day), day };
  }

  threadUsage(after: ThreadId | null, limit: number): Promise<readonly ThreadUsage[]> {
    return this.#read((core) => core.usage.threads(after, limit));
  }

  dayUsage(after: DayPlace | null, limit: number): Promise<readonly DayUsage[]> {
    return this.#read((core) => core.usage.days(after, limit));
  }

  isReady(principal: Principal, thread_id: ThreadId, point: Point): Promise<boolean> {
    return this.#readTogether((core) => isReady(core, this.#clock.now(), principal, thread_id, point));
  }

  carriers(afterSeq: number, limit: number): Promise<readonly CarrierRecord[]> {
    return this.#read((core) => core.carriers.page(afterSeq, limit));
  }

  check(): Promise<string[]> {
    return this.#read(() => checkStorage(this.#connection));
  }

  facts(): Promise<StoreFacts> {
    return this.#read((core) => {
      const simple = (name: string) => this.#connection.pragma(name, { simple: true }) as number;
      return {
        engine: "sqlite",
        engine_version: engineVersion(this.#connection),
        schema_version: SCHEMA_VERSION,
        journal_id: this.journal_id,
        floor_seq: this.#prune.floorSeq(),
        last_seq: core.journal.refresh(),
        last_at: core.journal.last().at,
        synchronous: this.writable ? (SYNCHRONOUS[simple("synchronous")] ?? "unknown") : "reader",
        journal_mode: String(this.#connection.pragma("journal_mode", { simple: true })),
        bytes: simple("page_count") * simple("page_size"),
      };
    });
  }

  figures(): Promise<StoreFigures> {
    return this.#readTogether((core) =>
      core.figures.read((number) => core.ledger.byNumber(number)?.notification.created_at),
    );
  }

  standing(principal: Principal, user_id: UserId | null): Promise<Standing> {
    return this.#readTogether((core) => {
      mustSee(principal, user_id);
      return standingOf(core, user_id);
    });
  }

  async addUp(limit: number): Promise<SeriesStep> {
    const seq = await this.#read(() => this.#series.seq);
    // Nothing is committed for nothing.
    if (seq >= this.#core.journal.lastSeq) return { counted: 0, seq, end: true };
    return this.#write(CONTROL_LANE, (transaction) => this.#series.addUp(this.#core, transaction, limit));
  }

  series(
    principal: Principal,
    user_id: UserId | null,
    resolution: Resolution,
    from: number,
    to: number,
  ): Promise<SeriesPage> {
    return this.#readTogether(() => {
      mustSee(principal, user_id);
      return { points: this.#series.points(resolution, user_id, from, to), seq: this.#series.seq };
    });
  }

  lastMatches(
    principal: Principal,
    user_id: UserId,
    subscriber_id: SubscriberId,
    limit: number,
  ): Promise<readonly JournalEntry[]> {
    return this.#readTogether((core) => {
      mustSee(principal, user_id);
      return this.#matches
        .newest(user_id, subscriber_id)
        .slice(0, limit)
        .flatMap((seq) => core.journal.read(seq) ?? []);
    });
  }

  async prune(olderThanMs: number, onStep?: (done: PruneStep) => void): Promise<PruneStep> {
    // What goes must have been counted.
    while (!(await this.addUp(SERIES_SLICE)).end);
    let cursor = await this.#write(CONTROL_LANE, (transaction) =>
      this.#prune.begin(this.#core, transaction, transaction.at - olderThanMs),
    );
    const { floor } = cursor;
    for (;;) {
      const from = cursor;
      const next = await this.#write(CONTROL_LANE, (transaction) => this.#prune.slice(this.#core, transaction, from));
      if (next === null) break;
      cursor = next;
      onStep?.(cursor.done);
    }
    await this.#write(CONTROL_LANE, (transaction) => this.#prune.finish(transaction, this.#core, floor));
    return cursor.done;
  }

  /** From a snapshot: SQLite would begin anew with every commit of another process. */
  backup(file: string, onProgress?: (done: number, total: number) => void): Promise<void> {
    return this.#atThisMoment((connection) => backupTo(connection, file, onProgress));
  }

  snapshot<Value>(read: (moment: Store) => Promise<Value>): Promise<Value> {
    return this.#atThisMoment((connection) => read(new SqliteStore(connection, undefined, this.#options)));
  }

  /** A connection of its own in a read transaction; ends when `use` does. */
  async #atThisMoment<Value>(use: (connection: Connection) => Promise<Value>): Promise<Value> {
    const connection = await this.#read(() => openDatabase(this.#options.folder, { readonly: true }));
    const using = this.#useMoment(connection, use);
    const ended = using.catch(() => {});
    this.#moments.add(ended);
    try {
      return await using;
    } finally {
      this.#moments.delete(ended);
    }
  }

  async #useMoment<Value>(connection: Connection, use: (connection: Connection) => Promise<Value>): Promise<Value> {
    try {
      connection.exec("BEGIN");
      // The transaction begins with its first read.
      connection.prepare("SELECT count(*) FROM meta").get();
      return await use(connection);
    } catch (error) {
      throw storeError(error, this.#core.file) ?? error;
    } finally {
      connection.close();
    }
  }

  /** Nobody is left to end their windows: what is open is worded, and shown, now. */
  async #flushAll(queue: CommitQueue): Promise<void> {
    await queue.idle();
    try {
      while (await queue.write(CONTROL_LANE, (transaction) => flushSome(this.#core, transaction, FLUSH_SLICE)));
    } catch (error) {
      // Whatever is still open is in the store, and the next opening ends it.
      if (!(error instanceof StoreError)) throw error;
    }
  }

  /** Asked again, it is answered when the first is done. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    if (this.#queue !== undefined) await this.#flushAll(this.#queue);
    await this.#queue?.drain();
    await this.#checkpoints?.end();
    this.#closed = true;
    this.#stopPolling?.();
    await Promise.all(this.#moments);
    this.#connection.close();
    this.#lock?.release();
  }
}
