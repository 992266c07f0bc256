/**
 * What every store promises. Nothing above this line knows which store it has.
 *
 * - A write resolves after its commit, and `seq` is in commit order: a reader that has seen `n` never sees a smaller
 *   one appear later.
 * - Writes that are asked for together share a commit. A miss is a value; bad input rejects that one operation and
 *   writes nothing; a failure of the disk stops the store: everything that waits is rejected, nothing is retried,
 *   and nothing that was answered is lost.
 * - Time is the store's own clock. It never goes back.
 * - Every operation on what users have names its principal, and what is another user's does not exist. Upkeep (sweep,
 *   prune, backup, audit and what it reads) is the host's alone.
 */
import type { Axes, Channel } from "../domain/axes.js";
import type { CarrierEnd, CarrierState } from "../domain/carrier.js";
import type { BlockForm, CarrierBlock, Embedded, Item } from "../domain/conversation.js";
import type { Miss } from "../domain/errors.js";
import type { Event, NewEvent } from "../domain/event.js";
import type { HandleRecord, NewHandleRecord } from "../domain/handle.js";
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
} from "../domain/ids.js";
import type { JournalEntry, MatchOutcome, Operation, Thread } from "../domain/journal.js";
import type { JsonObject } from "../domain/json.js";
import type { KnownFile, KnownFilePlace } from "../domain/known_file.js";
import type { McpToolRecord, SeenTool } from "../domain/mcp.js";
import type { Kept } from "../domain/notification.js";
import type { Point } from "../domain/points.js";
import type { Principal } from "../domain/principal.js";
import type { InjectionPoint, Priority } from "../domain/priority.js";
import type { Command } from "../domain/reducer.js";
import type { Resolution, Tally } from "../domain/series.js";
import type { UserSettings } from "../domain/settings.js";
import type { Severity } from "../domain/severity.js";
import type { Scope, Token } from "../domain/token.js";
import type { State } from "../domain/transitions.js";
import type { ChatSource, Turn, TurnEnd } from "../domain/turn.js";
import type { Spent, ThreadBudgets } from "../domain/usage.js";

/** One line of a notification: the latest event with a key, how often it came, and the timestamp of the first. */
export interface Row {
  readonly event: Event;
  readonly count: number;
  readonly since: string;
}

export interface Words {
  readonly content: string;
  /** Why these are general words and not the template's; null if they are the template's. */
  readonly degraded: string | null;
}

/**
 * What a store asks inside its transactions, at the moment of a delivery: in which words, and whether it is to be told at
 * all. It answers at once and never throws.
 */
export interface Editor {
  /** What a notification of this subscriber says of these rows; there is at least one. */
  words(subscriber_id: SubscriberId, rows: readonly Row[], now: number): Words;
  /** The rule that holds an event back, in words for its story; undefined if none does. */
  held(
    event: Event,
    subscriber_id: SubscriberId,
    priority: Priority,
    disabled: readonly SubscriberId[],
  ): string | undefined;
  /** Whether `held` can say anything at all for a user who has disabled these. */
  holdsAny(disabled: readonly SubscriberId[]): boolean;
}

/** What one subscriber makes of an event, before the store decides whether it merges. */
export interface Draft {
  readonly subscriber_id: SubscriberId;
  /** Below the subscriber's severity filter: kept, and never delivered. */
  readonly filtered: boolean;
  readonly severity: Severity;
  readonly priority: Priority;
  readonly inject_at: InjectionPoint;
  readonly axes: Axes;
  readonly ttl_ms: number | null;
  /** Its own words; null: those of its subscriber, which the editor is asked for when they are needed. */
  readonly content: string | null;
  readonly data: JsonObject | null;
  readonly directive: string | null;
  readonly dedupe_key: string | null;
  readonly dedupe_window_ms: number;
  /** How many events that differ go into one notification, and how long it waits for them; null: it is by itself. */
  readonly batch: { readonly window_ms: number; readonly max_size: number } | null;
  /** What the story shall say of it beside the rest. */
  readonly note: string | null;
  /** How long it may wait for an idle agent to be woken for it; null: nobody is woken. */
  readonly wake_ms: number | null;
}

export interface Acceptance {
  readonly event: NewEvent;
  readonly drafts: readonly Draft[];
}

/** A notification with the ids of the events behind it: the first, and the latest up to the limit. */
export interface Stored extends Kept {
  readonly event_ids: readonly EventId[];
  /** The newest journal entry about it. */
  readonly seq: number;
}

export interface Match {
  readonly subscriber_id: SubscriberId;
  readonly outcome: MatchOutcome;
  readonly stored: Stored;
}

export interface Accepted {
  readonly event_id: EventId;
  readonly seq: number;
  readonly outcome: "accepted" | "duplicate" | "unmatched";
  readonly matches: readonly Match[];
}

/** One acceptance of many: its answer, or the error that it alone got. */
export type AcceptOutcome = { readonly accepted: Accepted } | { readonly error: Error };

export interface CommandRequest {
  readonly id: NotificationId;
  readonly command: Command;
  readonly operation: Operation;
}

export interface ClaimRequest {
  /** Whose items; a `user` principal can only name itself. */
  readonly user_id: UserId;
  /** Items of this thread, and the user's items that are bound to none. Without it: only the latter. */
  readonly thread_id?: ThreadId;
  /** Exactly these; without it, what is pending, by priority and then age. */
  readonly ids?: readonly NotificationId[];
  readonly limit: number;
  readonly owner: string;
  readonly lease_ms: number;
}

export interface Lease {
  readonly id: LeaseId;
  readonly owner: string;
  readonly expires_at: number;
}

export interface Claim {
  /** Null if nothing was claimed. */
  readonly lease: Lease | null;
  /** What is held now; `lease_epoch` of each delivery is the fence that settles it. */
  readonly claimed: readonly Stored[];
  /** For the ids that were asked for and not had. */
  readonly misses: readonly Miss[];
}

export interface CollectRequest {
  /** Whose thread it is to be if the host names one that nobody has opened; null: such a one is not found. */
  readonly user_id: UserId | null;
  readonly thread_id: ThreadId;
  readonly point: Point;
  readonly limit: number;
  /** How much the texts of one carrier may come to; one item goes in whatever its size. */
  readonly bytes_max?: number;
  readonly owner: string;
  readonly lease_ms: number;
  /** What needs no acknowledgement is DELIVERED at once. */
  readonly auto_settle: boolean;
  readonly compose: Compose;
  /** What the system has shown the user is told also if there is nothing else. */
  readonly awareness_alone: boolean;
}

/** What the system has shown the user, for the agent to know. */
export interface Aware {
  /** Shown in the conversation since the agent was last told of such, oldest first. */
  readonly seen: readonly Stored[];
  /** How many more there are than `seen` has. */
  readonly seen_more: number;
  /** The newest unread one of the inbox and how many there are (capped), if the agent has not been told of it; else null. */
  readonly inbox: { readonly unread: number; readonly newest: Stored } | null;
}

export interface Composed {
  /** The first of the candidates, and in which form each is told. */
  readonly told: readonly Embedded[];
  /** The whole text; empty if there is nothing to tell. */
  readonly text: string;
}

/**
 * Makes the text of a carrier, inside the transaction that collects: only what it tells is collected. It answers at once
 * and never throws. `candidates`: by priority, then oldest first; `more`: how many wait beyond them.
 */
export type Compose = (
  candidates: readonly Stored[],
  more: number,
  aware: Aware,
  now: number,
) => Composed & { readonly form: BlockForm };

/** What an agent is told, and holds until it says what became of it. */
export interface Collected {
  readonly id: CarrierId;
  readonly thread_id: ThreadId;
  readonly point: Point;
  readonly state: CarrierState;
  /** Null if nothing of it is held. */
  readonly lease: Lease | null;
  /** By priority, then oldest first. */
  readonly items: readonly Stored[];
  /** What the delivery point would take too, and the limit left; capped. */
  readonly more: number;
  /** As `compose` gave them. */
  readonly embedded: readonly Embedded[];
  readonly block: CarrierBlock;
}

/** A hosted agent's turn is to begin: with a user's message, or of the system's own accord. */
export interface BeginTurn {
  readonly thread_id: ThreadId;
  /** The queued one that begins; null: a new one. */
  readonly turn_id: TurnId | null;
  readonly source: ChatSource;
  /** The message; one of the system is worded by what is told. A queued turn has its own. */
  readonly content: string | ((told: readonly Stored[]) => string);
  readonly point: Point;
  readonly limit: number;
  readonly compose: Compose;
  readonly owner: string;
  readonly lease_ms: number;
  /** The active turn that this one succeeds: it ends in the same commit, and what it holds passes on. */
  readonly succeeds: {
    readonly turn_id: TurnId;
    readonly items: readonly Item[];
    readonly note: string | null;
    /** See `TurnStep`. */
    readonly spent?: Spent;
    /** See `TurnStep`. */
    readonly observed?: readonly string[];
  } | null;
}

export interface BegunTurn {
  readonly turn: Turn;
  readonly lease: Lease;
  /** What was said in it so far. */
  readonly items: readonly Item[];
  /** Null if there is nothing to tell. */
  readonly carrier: Collected | null;
}

/** Something is said or done in a turn. */
export interface TurnStep {
  readonly turn_id: TurnId;
  readonly items: readonly Item[];
  /** What the turn has used since it last said so. */
  readonly spent?: Spent;
  /** Subjects that the agent sees by itself with these items; see `observe`. What is pending about them is not collected. */
  readonly observed?: readonly string[];
  /** What waits is told with it. */
  readonly collect: { readonly point: Point; readonly limit: number; readonly compose: Compose } | null;
}

/** How much of what handles have come to is kept in a thread, and how long. What was read goes first, then what is oldest. */
export interface HandleBounds {
  readonly retention_ms: number;
  readonly kept: number;
  readonly chars: number;
}

/** Where a page of tools of MCP servers ended. */
export type McpToolPlace = Pick<McpToolRecord, "server" | "tool">;

/** Where a page of handles ended. */
export type HandlePlace = Pick<HandleRecord, "thread_id" | "id">;

/** How a turn ends, which says what becomes of what it holds. */
export interface EndTurn {
  readonly turn_id: TurnId;
  readonly state: Extract<TurnEnd, "completed" | "failed" | "stopped">;
  readonly items: readonly Item[];
  readonly note: string | null;
  /** See `TurnStep`. */
  readonly spent?: Spent;
  /** See `TurnStep`. */
  readonly observed?: readonly string[];
}

/** What the turns of a thread have used, and those of its user on one day (UTC, days since 1970), in all threads. */
export interface UsageNow {
  readonly thread: Spent;
  readonly day: Spent & { readonly day: number };
}

export type ThreadUsage = Spent & { readonly thread_id: ThreadId };
export type DayUsage = Spent & DayPlace;

/** Where a page of days ended. */
export interface DayPlace {
  readonly user_id: UserId;
  readonly day: number;
}

/** Something that an idle thread's agent is woken for. */
export interface Waiting {
  readonly id: NotificationId;
  readonly user_id: UserId;
  /** Null: any of the user's. */
  readonly thread_id: ThreadId | null;
  readonly channel: Channel;
  readonly priority: Priority;
  readonly must_narrate: boolean;
  readonly created_at: number;
  /** How long it may wait for its agent to be woken. */
  readonly wait_ms: number;
  /** After a failure: not before then. */
  readonly not_before: number;
  /** While its batch takes further rows: until when. */
  readonly open_until: number | null;
}

/** What became of one item of a carrier. */
export interface CarriedItem {
  readonly id: NotificationId;
  /** Where the carrier's end has brought it; where it is now, if it was lost before or is still held. */
  readonly state: State;
  /** It was taken from the holder before, and not touched. */
  readonly lost: boolean;
}

export interface CarrierOutcome {
  readonly id: CarrierId;
  readonly state: CarrierState;
  readonly items: readonly CarriedItem[];
}

/** A notification as it is kept, for `audit`. */
export interface LedgerRecord extends Kept {
  readonly number: number;
  readonly last_seq: number;
  /** In which conversation the system has shown it, and by which entry. */
  readonly shown: readonly { readonly thread_id: ThreadId; readonly seq: number }[];
}

/** A carrier as it is kept, for `audit`. */
export interface CarrierRecord {
  readonly id: CarrierId;
  readonly user_id: UserId;
  readonly thread_id: ThreadId;
  readonly point: Point;
  readonly state: CarrierState;
  readonly ended: CarrierEnd | null;
  readonly lease_id: LeaseId | null;
  /** The turn of a hosted agent that it belongs to. */
  readonly turn_id: TurnId | null;
  /** The entry that opened it, and the newest one about it. */
  readonly seq: number;
  readonly last_seq: number;
  /** As they were when they were collected. `state`: what its end has made of them; null while held, and if lost. */
  readonly items: readonly {
    readonly number: number;
    readonly revision: number;
    readonly lease_epoch: number;
    readonly state: State | null;
  }[];
}

/** A notification that the system showed in a conversation. */
export interface Shown {
  /** The entry that showed it. */
  readonly seq: number;
  readonly stored: Stored;
}

/** What a list of conversations shows of one. */
export interface ThreadSummary {
  readonly thread: Thread;
  /** When something was last done in it. */
  readonly active_at: number;
  /** The user's first words; null where nothing was said at its beginning. */
  readonly first_words: string | null;
  /** The turn that runs, if the user sees it. */
  readonly active_turn: TurnId | null;
  /** Messages that wait for their turn. */
  readonly queued: number;
  /** What the system showed in it and the user has neither clicked nor dismissed; capped. */
  readonly unread: number;
}

export interface ListFilter {
  readonly user_id?: UserId;
  readonly thread_id?: ThreadId;
  /** One of them, or any of several. */
  readonly channel?: Channel | readonly Channel[];
  readonly state?: State | readonly State[];
  readonly severity?: Severity | readonly Severity[];
  /** Shown by the system and neither clicked nor dismissed. Needs one user. */
  readonly unread?: boolean;
  /** Shown by the system and not yet acknowledged in any way. Needs one user. */
  readonly unacknowledged?: boolean;
  readonly limit: number;
  /** The `next` of the page before. */
  readonly after?: string;
}

/** Newest first. A page may be short, even empty, while `next` is set: a filter that matches little. */
export interface Page {
  readonly stored: readonly Stored[];
  readonly next: string | null;
  /** The journal's newest entry at the moment of reading: what comes after it is not in the page. */
  readonly seq: number;
}

export interface JournalPage {
  readonly entries: readonly JournalEntry[];
  /** Where to go on; also when no entry of this page was the principal's. */
  readonly after: number;
  /** Below it retention has removed what was settled. */
  readonly floor: number;
  /** Whether the end of the journal was reached. */
  readonly end: boolean;
}

/** Capped, so that a count never costs more than the cap. */
export interface Counts {
  readonly unacknowledged: number;
  readonly unread: number;
  readonly cap: number;
}

export interface PruneStep {
  readonly entries: number;
  readonly notifications: number;
  /** Journal entries looked at so far. */
  readonly visited: number;
}

export interface NewToken {
  readonly user_id: UserId;
  readonly name: string | null;
  readonly scopes: readonly Scope[];
  readonly ttl_ms: number | null;
  /** SHA-256 of its text. */
  readonly digest: string;
}

export interface StoreFacts {
  readonly engine: string;
  readonly engine_version: string;
  readonly schema_version: number;
  readonly journal_id: JournalId;
  readonly floor_seq: number;
  readonly last_seq: number;
  /** The time of the newest entry; ahead of the machine's clock if that was once set wrong. */
  readonly last_at: number;
  readonly synchronous: string;
  readonly journal_mode: string;
  readonly bytes: number;
}

/** How much there is now, and what has happened since the store was opened. Of all users; nobody is named. */
export interface StoreFigures {
  /** What is live, and the dead letters; what is not listed is none. */
  readonly depth: readonly { readonly state: State; readonly channel: Channel; readonly count: number }[];
  /** When the oldest that is live on a channel was made. One that stands behind very many older ones of others may be left out. */
  readonly oldest: readonly { readonly channel: Channel; readonly created_at: number }[];
  readonly events: Readonly<Record<Accepted["outcome"], number>>;
  /** How many deliveries came into each state. */
  readonly entered: Readonly<Record<State, number>>;
  /** Blocks that agents were told, and their tokens, estimated. */
  readonly blocks_told: number;
  readonly tokens_told: number;
  readonly commits: {
    readonly count: number;
    readonly operations: number;
    /** All of them together; and how many took no longer than this. */
    readonly ms: number;
    readonly buckets: readonly { readonly ms: number; readonly count: number }[];
  };
}

/** How much there is now: of one user, or of all. */
export type Standing = Pick<StoreFigures, "depth" | "oldest"> & {
  /** Shown, and not yet acknowledged in any way; shown, and neither clicked nor dismissed. Capped. */
  readonly counts: Counts;
};

/** What has happened in one step, which begins at `at`. */
export interface SeriesPoint {
  readonly at: number;
  readonly tally: Tally;
}

export interface SeriesPage {
  /** Oldest first. */
  readonly points: readonly SeriesPoint[];
  /** The newest entry that is counted. */
  readonly seq: number;
}

/** How far the series have been added up. */
export interface SeriesStep {
  /** Entries that were counted now. */
  readonly counted: number;
  /** The newest that is counted. */
  readonly seq: number;
  /** Whether that is the end of the journal. */
  readonly end: boolean;
}

export type CommitListener = (lastSeq: number, users: ReadonlySet<UserId> | undefined) => void;

export interface Store {
  readonly journal_id: JournalId;

  accept(principal: Principal, acceptance: Acceptance): Promise<Accepted>;
  /** In slices, sharing the writer with everyone else fairly by source. */
  acceptMany(principal: Principal, acceptances: readonly Acceptance[]): Promise<AcceptOutcome[]>;
  command(principal: Principal, request: CommandRequest): Promise<Stored | Miss>;
  commandMany(principal: Principal, requests: readonly CommandRequest[]): Promise<(Stored | Miss)[]>;
  claim(principal: Principal, request: ClaimRequest): Promise<Claim>;
  renew(principal: Principal, lease_id: LeaseId, lease_ms: number): Promise<Lease | Miss>;
  /**
   * What an agent is to be told at a delivery point of its thread: that thread's and the user's own items, with the
   * batches that are still open. Null if there is nothing. Refused while another owner has one open.
   */
  collect(principal: Principal, request: CollectRequest): Promise<Collected | null>;
  renewCarrier(principal: Principal, id: CarrierId, lease_ms: number): Promise<Lease | Miss>;
  /** The agent was told. What it must tell the user and has not acknowledged goes to the user now. */
  settleCarrier(
    principal: Principal,
    id: CarrierId,
    acknowledged: ReadonlySet<NotificationId>,
  ): Promise<CarrierOutcome | Miss>;
  /** The agent was not told: what it holds is let go. */
  failCarrier(principal: Principal, id: CarrierId, note: string | null): Promise<CarrierOutcome | Miss>;
  /**
   * The provider has begun to answer: the agent was told. What needs no more is DELIVERED; what the agent handles is held
   * until its turn ends. `form`: the one in which the block went out, if it is another than the one recorded.
   */
  sendCarrier(principal: Principal, id: CarrierId, form: BlockForm | null): Promise<CarrierOutcome | Miss>;
  /**
   * Begins a turn, and collects for it, in one commit. Null: one of the system's own accord has nothing to tell any more.
   * Refused while another turn is active in the thread, unless it is the one that this one succeeds; while the thread
   * is paused or closed; while somebody else's agent holds it.
   */
  beginTurn(principal: Principal, request: BeginTurn): Promise<BegunTurn | null>;
  /** Adds to an active turn, and collects for it, in one commit. The carrier is null if nothing is told. */
  stepTurn(principal: Principal, step: TurnStep): Promise<{ readonly carrier: Collected | null } | Miss>;
  /**
   * Ends an active turn and what it holds. Completed: all is DELIVERED, but what the agent had to tell the user and has not
   * acknowledged, which goes to the user. Failed: all is let go. Stopped by the user: what it had to tell goes to the
   * user, the rest waits without waking anybody.
   */
  endTurn(principal: Principal, end: EndTurn): Promise<Turn | Miss>;
  renewTurn(principal: Principal, id: TurnId, lease_ms: number): Promise<Lease | Miss>;
  /** A message for later: the thread is busy, or paused. */
  queueTurn(principal: Principal, thread_id: ThreadId, content: string): Promise<Turn>;
  /** Changes the message of a queued turn, or takes it out of the queue (null). */
  editQueued(principal: Principal, id: TurnId, content: string | null): Promise<Turn | Miss>;
  pauseThread(principal: Principal, id: ThreadId): Promise<Thread>;
  resumeThread(principal: Principal, id: ThreadId): Promise<Thread>;
  redrive(principal: Principal, id: NotificationId): Promise<Stored | Miss>;
  /** Idempotent by its id, unless other budgets are given than it was started with. */
  startThread(
    principal: Principal,
    user_id: UserId,
    thread_id: ThreadId | null,
    budgets?: ThreadBudgets | null,
  ): Promise<Thread>;
  closeThread(principal: Principal, thread_id: ThreadId): Promise<Thread>;
  /** The agent has seen this itself: withdraws what is pending about it, now and later. */
  observe(principal: Principal, thread_id: ThreadId, subject: string): Promise<readonly Stored[]>;
  /** What a handle of a thread is doing now, or has come to. One of the same name is replaced. */
  recordHandle(principal: Principal, record: NewHandleRecord): Promise<HandleRecord>;
  /** Removes handles of a thread that have stopped and are too many, too large or too old; answers how many. */
  forgetHandles(principal: Principal, thread_id: ThreadId, bounds: HandleBounds): Promise<number>;
  /** What a thread's agent knows of files now, and which of them it need not know any more. Of a thread that is over, nothing is kept. */
  recordFiles(
    principal: Principal,
    thread_id: ThreadId,
    files: readonly KnownFile[],
    forgotten: readonly string[],
  ): Promise<void>;
  /** Tools of MCP servers as they are now; the host's alone. */
  seeMcpTools(seen: readonly SeenTool[]): Promise<readonly McpToolRecord[]>;
  /** What is held of a tool is approved; only if it has this digest, unless that is null. The host's alone. */
  approveMcpTool(server: string, tool: string, digest: string | null): Promise<McpToolRecord | Miss>;
  createToken(principal: Principal, token: NewToken): Promise<Token>;
  /** Idempotent; undefined for one that does not exist. */
  revokeToken(principal: Principal, id: TokenId): Promise<Token | undefined>;
  updateSettings(principal: Principal, settings: UserSettings): Promise<UserSettings>;
  /** The watchdog's step: acts on at most `limit` overdue deliveries; answers how many. */
  sweep(limit: number): Promise<number>;

  get(principal: Principal, id: NotificationId): Promise<Stored | undefined>;
  /** Nothing is disabled unless the user said so. */
  settings(principal: Principal, user_id: UserId): Promise<UserSettings>;
  /** Also one that is revoked or has expired. */
  tokenByDigest(digest: string): Promise<Token | undefined>;
  /** Oldest first, after one of them. */
  tokens(principal: Principal, after: TokenId | null, limit: number): Promise<readonly Token[]>;
  /** The store's clock. */
  now(): number;
  list(principal: Principal, filter: ListFilter): Promise<Page>;
  counts(principal: Principal, user_id: UserId): Promise<Counts>;
  /** The entry that accepted an event. */
  eventEntry(principal: Principal, id: EventId): Promise<JournalEntry | undefined>;
  events(principal: Principal, ids: readonly EventId[]): Promise<Event[]>;
  /** All entries about a notification, oldest first. */
  story(principal: Principal, id: NotificationId): Promise<JournalEntry[] | undefined>;
  /** What a dead letter was redriven as. */
  redrivenAs(principal: Principal, id: NotificationId): Promise<NotificationId | null>;
  entries(principal: Principal, after: number, limit: number): Promise<JournalPage>;
  lastSeq(): Promise<number>;
  thread(principal: Principal, id: ThreadId): Promise<Thread>;
  /** A user's threads, the most recently active first, after one of them. */
  threadsOf(principal: Principal, user_id: UserId, after: ThreadId | null, limit: number): Promise<readonly Thread[]>;
  /** The same, with what is to be seen of each at a glance. */
  threadSummaries(
    principal: Principal,
    user_id: UserId,
    after: ThreadId | null,
    limit: number,
  ): Promise<readonly ThreadSummary[]>;
  /** As it was recorded last. */
  handle(principal: Principal, thread_id: ThreadId, id: string): Promise<HandleRecord | undefined>;
  /** All that are kept, by thread and name; the host's alone. */
  handles(after: HandlePlace | null, limit: number): Promise<readonly HandleRecord[]>;
  /** All that are kept, by thread and path; the host's alone. */
  knownFiles(after: KnownFilePlace | null, limit: number): Promise<readonly KnownFile[]>;
  /** Whether the thread's agent is still to be told something about this subject, in this generation. */
  isPendingAbout(principal: Principal, thread_id: ThreadId, subject: string): Promise<boolean>;
  /** What was used in a thread, and by its user today. */
  usage(principal: Principal, thread_id: ThreadId): Promise<UsageNow>;
  /** What was used by a user today. */
  usageToday(principal: Principal, user_id: UserId): Promise<UsageNow["day"]>;
  /** All that were ever seen, by server and name; the host's alone. */
  mcpTools(after: McpToolPlace | null, limit: number): Promise<readonly McpToolRecord[]>;
  turn(principal: Principal, id: TurnId): Promise<Turn | undefined>;
  /** Those of a thread that are queued or active, oldest first. Of all threads for null, which is the host's alone. */
  liveTurns(principal: Principal, thread_id: ThreadId | null): Promise<readonly Turn[]>;
  /** What was said and done in a thread, and what its agent was told: entries of the types `turn` and `carrier`. */
  conversation(
    principal: Principal,
    thread_id: ThreadId,
    after: number,
    limit: number,
  ): Promise<readonly JournalEntry[]>;
  /** The newest of those that stand before an entry, oldest first. */
  conversationBefore(
    principal: Principal,
    thread_id: ThreadId,
    before: number,
    limit: number,
  ): Promise<readonly JournalEntry[]>;
  /** What was shown in a thread's conversation by the system, oldest first, with the entry that showed it. */
  floor(principal: Principal, thread_id: ThreadId, after: number, limit: number): Promise<readonly Shown[]>;
  floorBefore(principal: Principal, thread_id: ThreadId, before: number, limit: number): Promise<readonly Shown[]>;
  /**
   * What agents are to be woken for: of one user, or of all for the host. The most urgent of each thread (and of what is bound to
   * none), then the oldest; capped for each, so that none hides another's.
   */
  waiting(principal: Principal, user_id: UserId | null): Promise<readonly Waiting[]>;
  /** Whether a collect would find something that waits for nothing more: no batch that is still open. */
  isReady(principal: Principal, thread_id: ThreadId, point: Point): Promise<boolean>;

  /**
   * Called after each commit, with the newest `seq` and the users that it was about. Also tells a reader of another
   * process's commits, without the users.
   */
  onCommit(listener: CommitListener): () => void;

  /**
   * Runs `read` on this moment of the store, as if nobody wrote meanwhile; everybody goes on writing. What it is given
   * is over when `read` is.
   */
  snapshot<Value>(read: (moment: Store) => Promise<Value>): Promise<Value>;
  /** The ledger by number, for `audit`. */
  ledger(afterNumber: number, limit: number): Promise<readonly LedgerRecord[]>;
  threads(after: ThreadId | null, limit: number): Promise<readonly Thread[]>;
  /** What was used, for `audit`. */
  threadUsage(after: ThreadId | null, limit: number): Promise<readonly ThreadUsage[]>;
  dayUsage(after: DayPlace | null, limit: number): Promise<readonly DayUsage[]>;
  /** By the entry that opened them, for `audit`. */
  carriers(afterSeq: number, limit: number): Promise<readonly CarrierRecord[]>;
  /** Checks of the storage itself: its integrity, its schema, and that what is kept beside the journal and the ledger says what they say. */
  check(): Promise<string[]>;
  facts(): Promise<StoreFacts>;
  figures(): Promise<StoreFigures>;
  /** How much there is now, of one user; of all for null, which is the host's alone. */
  standing(principal: Principal, user_id: UserId | null): Promise<Standing>;
  /** Counts at most `limit` further entries of the journal into the series: once each, whatever happens. */
  addUp(limit: number): Promise<SeriesStep>;
  /**
   * The steps from `from` to before `to` in which something happened, of one user; of all for null, which is the host's
   * alone. As far as they have been added up.
   */
  series(
    principal: Principal,
    user_id: UserId | null,
    resolution: Resolution,
    from: number,
    to: number,
  ): Promise<SeriesPage>;
  /**
   * The entries of the newest events that a subscriber took for a user, newest first; as far as they have been added up, and
   * without those that retention has removed.
   */
  lastMatches(
    principal: Principal,
    user_id: UserId,
    subscriber_id: SubscriberId,
    limit: number,
  ): Promise<readonly JournalEntry[]>;
  /** Removes settled history older than `olderThanMs`, in slices; calls `onStep` after each. */
  prune(olderThanMs: number, onStep?: (done: PruneStep) => void): Promise<PruneStep>;
  backup(file: string, onProgress?: (done: number, total: number) => void): Promise<void>;
  close(): Promise<void>;
}
