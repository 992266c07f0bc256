/** The facade: everything a program does with Tidings starts at `Tidings.open`. */
import { join } from "node:path";
import { z } from "zod";
import { Tokens } from "./access/tokens.js";
import type { Budget } from "./agent/block/block.js";
import { Carriers } from "./agent/carriers.js";
import type { AgentConfig } from "./config/config.js";
import { Deliveries, viewOrMiss } from "./delivery/deliveries.js";
import { type Explanation, explain } from "./delivery/explain.js";
import { type FeedBatch, feed } from "./delivery/feed.js";
import { watchPages } from "./delivery/watch.js";
import { Watchdog } from "./delivery/watchdog.js";
import { CHANNELS, type Channel } from "./domain/axes.js";
import { type Miss, NotFoundError, StoreError } from "./domain/errors.js";
import { type EventInput, parseEvent } from "./domain/event.js";
import {
  type EventId,
  type JournalId,
  LOCAL_USER,
  type NotificationId,
  notificationId,
  type SubscriberId,
  threadId,
  type UserId,
  userId,
} from "./domain/ids.js";
import type { JournalEntry, MatchOutcome } from "./domain/journal.js";
import { LIMITS } from "./domain/limits.js";
import {
  ACK_ACTIONS,
  type AckAction,
  type NotificationView,
  type NotificationWithEvents,
  type NotifyInput,
  parseNotify,
} from "./domain/notification.js";
import { parseInput, wordSchema } from "./domain/parse.js";
import { DEFAULT_POLICY, type DeliveryPolicy } from "./domain/policy.js";
import { HOST, mayAct, type Principal, userPrincipal } from "./domain/principal.js";
import { missNotFound } from "./domain/reducer.js";
import { ALL_GRANTS, type Grants } from "./domain/token.js";
import { STATES, type State } from "./domain/transitions.js";
import { viewOf } from "./domain/view.js";
import { Catalogue } from "./intake/catalogue.js";
import { Intake } from "./intake/intake.js";
import {
  checkedDisabled,
  disabledSchema,
  type SettingsView,
  type SubscriberList,
  settingsView,
  subscriberList,
} from "./intake/listing.js";
import { Operator } from "./intake/operator.js";
import type { SubscriberInput } from "./intake/subscriber.js";
import { type Clock, systemClock } from "./platform/clock.js";
import type { Model } from "./providers/model.js";
import { openModel } from "./providers/open.js";
import { type AgentOptions, HostedAgent } from "./runtime/agent.js";
import { Conversation, type ThreadView, Turns, threadView } from "./runtime/conversation.js";
import type { Counters } from "./runtime/counters.js";
import type { AgentLimits } from "./runtime/limits.js";
import type { Progress } from "./runtime/setting.js";
import { type ThreadPush, ThreadPushes } from "./runtime/thread_pushes.js";
import type { Tool } from "./runtime/tools.js";
import { type AuditReport, audit } from "./store/audit.js";
import type { Acceptance, Accepted, AcceptOutcome, Counts, PruneStep, Store, StoreFacts } from "./store/contract.js";
import { openSqliteStore } from "./store/sqlite/store.js";

export interface OpenOptions {
  /** The data folder; made if it is not there. Default `.tidings`. */
  data?: string;
  /** Beside the built-in ones and those of the folder; one with the id of another takes its place. */
  subscribers?: readonly SubscriberInput[];
  /** The folder of subscriber files; default `subscribers` in the data folder; null: none. It may be missing. */
  subscribers_folder?: string | null;
  /** The switches; default `tidings.toml` in the data folder; null: none. It may be missing. */
  config_file?: string | null;
  /**
   * Whether edits of those files take effect by themselves, and the operator's inbox is told of what is wrong with them;
   * true unless said otherwise.
   */
  watch?: boolean;
  /** Something is wrong with a file of the above, in a line that says where and why. */
  onProblem?: (line: string) => void;
  /** Times and attempts that differ from the defaults. */
  policy?: Partial<DeliveryPolicy>;
  /**
   * `write` (default): be the folder's one writer. `read`: read beside one. `write_if_free`: write unless another
   * process does.
   */
  mode?: "write" | "read" | "write_if_free";
  /** How long to wait for another writer to end. Default 5,000 ms. */
  wait_ms?: number;
  /** Upper bound of the database file. */
  bytes_max?: number;
  /**
   * The agent that is hosted: a model by its provider's name (`rehearsal` needs no key), or one of your own, with its tools.
   * Without it threads are for other people's loops: `thread.collect`. A function is given what `[agent]` of the
   * configuration says, and decides.
   */
  agent?: AgentInput | ((config: AgentConfig) => AgentInput);
  /** Where time comes from. */
  clock?: Clock;
  /** The storage failed; everything that waited was rejected, and this Tidings is over. */
  onFailure?: (error: StoreError) => void;
}

/** A model by the name of its provider, or one of your own; and what its agent can do. */
export interface AgentInput {
  /** `openai`, `anthropic`, `openai-compatible`, `rehearsal` (the default) or `none`. */
  provider?: string;
  model?: string | Model;
  base_url?: string;
  /** The environment variable that holds the key. */
  api_key_env?: string;
  /** The operator's prompt. */
  system?: string;
  tools?: readonly Tool[];
  limits?: Partial<AgentLimits>;
  /** How much one block may tell: 10 items and 1,000 tokens in full, 20 more in a line each, unless said otherwise. */
  budget?: Partial<Budget>;
}

/** What the hosted agent runs on. */
export type AgentView = Pick<Model, "provider" | "model">;

/** What users are to be shown, in the order of the journal. */
export interface ShownBatch extends FeedBatch {
  /** What happened in the conversations that somebody follows. */
  readonly conversations: readonly ThreadPush[];
}

export interface EmitAnswer {
  /** The host's id of the event. */
  id: EventId;
  seq: number;
  outcome: Accepted["outcome"];
  matches: { subscriber_id: SubscriberId; outcome: MatchOutcome; notification: NotificationView }[];
}

/** One event of many: its answer, or the error that it alone got. */
export type EmitOutcome = EmitAnswer | { error: Error };

export interface NotifyAnswer {
  id: NotificationId;
  seq: number;
  state: State;
  channel: Channel;
}

export interface ListInput {
  user_id?: string | undefined;
  thread_id?: string | undefined;
  channel?: Channel | undefined;
  state?: State | undefined;
  /** On a system channel, and neither clicked nor dismissed. */
  unread?: boolean | undefined;
  /** On a system channel, and not yet acknowledged in any way. */
  unacknowledged?: boolean | undefined;
  limit?: number | undefined;
  after?: string | undefined;
}

export interface ListAnswer {
  /** Newest first. */
  notifications: NotificationView[];
  /** For the next page; a page may be short while this is set. */
  next: string | null;
}

export interface InboxAnswer {
  items: { notification: NotificationView; seq: number }[];
  counts: Counts;
  /** The journal's newest entry at that moment. */
  seq: number;
}

export interface AckInput {
  id: string;
  /** The revision that was seen: an old one does not settle a newer text. */
  revision: number;
  action: AckAction;
}

export interface SettingsInput {
  user_id?: string | undefined;
  /** All that this user wants to have switched off. */
  disabled_subscribers: readonly string[];
}

export const listSchema = z.strictObject({
  user_id: wordSchema(LIMITS.idChars).optional(),
  thread_id: wordSchema(LIMITS.idChars).optional(),
  channel: z.enum(CHANNELS).optional(),
  state: z.enum(STATES).optional(),
  unread: z.boolean().optional(),
  unacknowledged: z.boolean().optional(),
  limit: z.int().min(1).max(LIMITS.listLimit).default(100),
  after: z.string().optional(),
});

export const ackSchema = z.strictObject({
  id: wordSchema(LIMITS.idChars),
  revision: z.int().min(1),
  action: z.enum(ACK_ACTIONS),
});

const idSchema = wordSchema(LIMITS.idChars);
const watchSchema = z.int().min(0);

interface Shared {
  readonly store: Store;
  readonly catalogue: Catalogue;
  readonly intake: Intake;
  readonly policy: DeliveryPolicy;
  /** Null if none is hosted. */
  agent: HostedAgent | null;
  model: AgentView | null;
  /** Wakes the watchers when Tidings closes or fails. */
  readonly ended: AbortController;
}

/** What one principal can do. `Tidings` itself is the host's; `tidings.as(user)` is a user's. */
export class TidingsView {
  /** Ownership by agents: claim, renew, settle, release, promote. */
  readonly deliveries: Deliveries;
  /** What agents are told: collect, renew, settle, fail, by the id of a thread or a carrier. */
  readonly carriers: Carriers;
  protected readonly shared: Shared;
  readonly #principal: Principal;
  readonly #grants: Grants;

  constructor(shared: Shared, principal: Principal, grants: Grants) {
    this.shared = shared;
    this.#principal = principal;
    this.#grants = grants;
    this.deliveries = new Deliveries(shared.store, principal, shared.policy);
    this.carriers = new Carriers(shared.store, principal, shared.policy, shared.ended.signal);
  }

  /** Takes an event in. Resolves when it is on disk. */
  async emit(event: EventInput): Promise<EmitAnswer> {
    return emitAnswer(await this.shared.store.accept(this.#principal, this.#acceptance(event)));
  }

  /** Takes many in; one that is refused does not hold up the others. Their order is kept for each source. */
  async emitMany(events: readonly EventInput[]): Promise<EmitOutcome[]> {
    parseInput(z.array(z.unknown()).max(LIMITS.emitManyEvents), events);
    const parsed = events.map((event) => attempt(() => this.#acceptance(event)));
    const good = parsed.flatMap((one) => ("value" in one ? [one.value] : []));
    const outcomes = (await this.shared.store.acceptMany(this.#principal, good)).values();
    return parsed.map((one): EmitOutcome => {
      if ("error" in one) return one;
      const outcome = outcomes.next().value as AcceptOutcome;
      return "error" in outcome ? outcome : emitAnswer(outcome.accepted);
    });
  }

  #acceptance(event: EventInput): Acceptance {
    return this.shared.intake.forEvent(parseEvent(this.#own(event)), this.#grants);
  }

  /** Tells somebody something in the caller's own words. Resolves when it is on disk. */
  async notify(input: NotifyInput): Promise<NotifyAnswer> {
    const parsed = parseNotify(this.#own(input));
    const accepted = await this.shared.store.accept(
      this.#principal,
      this.shared.intake.forNotify(parsed, this.#grants),
    );
    const [match] = accepted.matches;
    if (match === undefined) throw new NotFoundError("notification", accepted.event_id);
    const { state, channel, id } = match.stored.delivery;
    return { id, seq: accepted.seq, state, channel };
  }

  /** The user has seen it (`rendered`), or done with it (`clicked`, `dismissed`). A miss says what is in the way. */
  async ack(input: AckInput): Promise<NotificationView | Miss> {
    const { id, revision, action } = parseInput(ackSchema, input);
    const answer = await this.shared.store.command(this.#principal, {
      id: notificationId(id),
      command: { column: "ack", revision, action },
      operation: "ack",
    });
    return viewOrMiss(answer);
  }

  async list(input: ListInput = {}): Promise<ListAnswer> {
    const { user_id, thread_id, ...rest } = parseInput(listSchema, input);
    const page = await this.shared.store.list(this.#principal, {
      ...withoutUndefined(rest),
      limit: rest.limit,
      ...(user_id === undefined ? {} : { user_id: userId(user_id) }),
      ...(thread_id === undefined ? {} : { thread_id: threadId(thread_id) }),
    });
    return { notifications: page.stored.map(viewOf), next: page.next };
  }

  /**
   * What waits for a user now: the newest that nobody has acknowledged, oldest entry first, with the `seq` of the
   * newest journal entry about each. What happens after `seq` is told by `feed`.
   */
  async inbox(limit: number, user_id: string = this.#defaultUser()): Promise<InboxAnswer> {
    const { store } = this.shared;
    const user = userId(user_id);
    const [page, counts] = await Promise.all([
      store.list(this.#principal, { user_id: user, unacknowledged: true, limit }),
      store.counts(this.#principal, user),
    ]);
    const items = page.stored.map((stored) => ({ notification: viewOf(stored), seq: stored.seq }));
    items.sort((one, other) => one.seq - other.seq);
    return { items, counts, seq: page.seq };
  }

  /** How much waits for a user; capped. */
  counts(user_id: string = this.#defaultUser()): Promise<Counts> {
    return this.shared.store.counts(this.#principal, userId(user_id));
  }

  /** One notification with the events behind it. */
  async read(id: string): Promise<NotificationWithEvents | Miss> {
    const stored = await this.shared.store.get(this.#principal, notificationId(id));
    if (stored === undefined) return missNotFound(id);
    const events = await this.shared.store.events(this.#principal, stored.event_ids);
    return { ...viewOf(stored), events };
  }

  /** The whole way of an event or a notification, in words. */
  async explain(id: string): Promise<Explanation | Miss> {
    const explanation = await explain(this.shared.store, this.#principal, id);
    return (
      explanation ?? { miss: "not_found", id, message: `no event or notification ${JSON.stringify(id)} for this user` }
    );
  }

  /** Sends a dead letter again, as a new notification that names it. Once. */
  async redrive(id: string): Promise<NotificationView | Miss> {
    return viewOrMiss(await this.shared.store.redrive(this.#principal, notificationId(id)));
  }

  /**
   * The journal as it grows: from after `after`, or from now on; 0 is the oldest that there is. A cursor whose next
   * entries retention has removed is refused with `cursor_too_old`, never passed over.
   */
  watch(options: { after?: number; signal?: AbortSignal } = {}): AsyncGenerator<JournalEntry, void, undefined> {
    const { after } = options;
    const start = after === undefined ? this.shared.store.lastSeq() : parseInput(watchSchema, after);
    return this.#watchFrom(start, options.signal);
  }

  async *#watchFrom(
    start: number | Promise<number>,
    asked?: AbortSignal,
  ): AsyncGenerator<JournalEntry, void, undefined> {
    const { store, ended } = this.shared;
    const signal = asked === undefined ? ended.signal : AbortSignal.any([asked, ended.signal]);
    for await (const page of watchPages(store, this.#principal, start, signal)) {
      for (const entry of page.entries) {
        yield entry;
        if (signal.aborted) break;
      }
    }
    if (!asked?.aborted) throwFailure(ended.signal);
  }

  /** Opens a conversation; idempotent by its id. */
  async startThread(input: { user_id?: string; thread_id?: string } = {}): Promise<ThreadView> {
    const parsed = parseInput(threadSchema, input);
    const owner = userId(parsed.user_id ?? this.#defaultUser());
    const wanted = parsed.thread_id === undefined ? null : threadId(parsed.thread_id);
    return threadView(await this.shared.store.startThread(this.#principal, owner, wanted));
  }

  /** A conversation: what is said in it, what its agent is told there, and when. */
  thread(thread_id: string): Conversation {
    const { store, agent } = this.shared;
    return new Conversation(store, this.#principal, agent, this.carriers, thread_id, this.#defaultUser());
  }

  /** Turns by their own id: read, interrupt, ended, and those that are queued. */
  get turns(): Turns {
    return new Turns(this.shared.store, this.#principal, this.shared.agent);
  }

  /** A user's conversations, the most recently active first. */
  async threads(input: { user_id?: string; after?: string; limit?: number } = {}): Promise<ThreadView[]> {
    const { user_id = this.#defaultUser(), after, limit } = parseInput(threadsSchema, input);
    const last = after === undefined ? null : threadId(after);
    const threads = await this.shared.store.threadsOf(this.#principal, userId(user_id), last, limit);
    return threads.map(threadView);
  }

  /**
   * What the hosted agent says and does, as it happens, in this principal's conversations. It may be dropped; all that counts
   * is in the journal. Of turns that the user does not see only if `internal` is true.
   */
  onProgress(listener: (progress: Progress) => void, options: { internal?: boolean } = {}): () => void {
    const { agent } = this.shared;
    if (agent === null) return () => undefined;
    return agent.onProgress((progress) => {
      if (mayAct(this.#principal, progress.user_id)) listener(progress);
    }, options);
  }

  /** Closes it: what was in it goes to the user's inbox, or ends. */
  async closeThread(thread_id: string): Promise<ThreadView> {
    return this.thread(thread_id).close();
  }

  /** The agent has seen this by itself: what is pending about it, now or later, is withdrawn. */
  async observe(input: { thread_id: string; subject: string }): Promise<NotificationView[]> {
    const { thread_id, subject } = parseInput(observeSchema, input);
    const withdrawn = await this.shared.store.observe(this.#principal, threadId(thread_id), subject);
    return withdrawn.map(viewOf);
  }

  /** What a user has switched off. */
  async settings(user_id: string = this.#defaultUser()): Promise<SettingsView> {
    const { store, catalogue } = this.shared;
    const user = userId(parseInput(idSchema, user_id));
    return settingsView(catalogue, await store.settings(this.#principal, user));
  }

  /** Takes effect at the next delivery. A core subscriber, or one that is not there, is refused. */
  async updateSettings(input: SettingsInput): Promise<SettingsView> {
    const { store, catalogue } = this.shared;
    const { user_id = this.#defaultUser(), disabled_subscribers } = parseInput(settingsSchema, input);
    const user = userId(user_id);
    const before = await store.settings(this.#principal, user);
    const disabled = checkedDisabled(catalogue, before.disabled_subscribers, disabled_subscribers);
    const after = await store.updateSettings(this.#principal, { user_id: user, disabled_subscribers: disabled });
    return settingsView(catalogue, after);
  }

  /** Every subscriber with its state for this user, and what is wrong with their files. */
  async subscribers(user_id: string = this.#defaultUser()): Promise<SubscriberList> {
    const { store, catalogue } = this.shared;
    const user = userId(parseInput(idSchema, user_id));
    return subscriberList(catalogue, await store.settings(this.#principal, user));
  }

  #defaultUser(): UserId {
    return this.#principal.kind === "user" ? this.#principal.user_id : LOCAL_USER;
  }

  /** What a user sends without a user's name is that user's. */
  #own<Input>(input: Input): Input {
    if (this.#principal.kind === "host" || typeof input !== "object" || input === null) return input;
    const named = (input as { user_id?: string | undefined }).user_id;
    return { ...input, user_id: named ?? this.#principal.user_id };
  }
}

export const settingsSchema = z.strictObject({
  user_id: wordSchema(LIMITS.idChars).optional(),
  disabled_subscribers: disabledSchema,
});

const threadSchema = z.strictObject({
  user_id: wordSchema(LIMITS.idChars).optional(),
  thread_id: wordSchema(LIMITS.idChars).optional(),
});

const threadsSchema = z.strictObject({
  user_id: wordSchema(LIMITS.idChars).optional(),
  after: wordSchema(LIMITS.idChars).optional(),
  limit: z.int().min(1).max(LIMITS.listLimit).default(100),
});

const observeSchema = z.strictObject({
  thread_id: wordSchema(LIMITS.idChars),
  subject: wordSchema(LIMITS.subjectChars),
});

/** The notification plane on one data folder. */
export class Tidings extends TidingsView {
  readonly journal_id: JournalId;
  /** Whether this process is the folder's writer. */
  readonly writable: boolean;
  /** Who may speak to a server on this folder. */
  readonly tokens: Tokens;
  readonly #watchdog: Watchdog | undefined;
  readonly #operator: Operator;

  private constructor(shared: Shared, writable: boolean, watchdog: Watchdog | undefined, operator: Operator) {
    super(shared, HOST, ALL_GRANTS);
    this.tokens = new Tokens(shared.store);
    this.journal_id = shared.store.journal_id;
    this.writable = writable;
    this.#watchdog = watchdog;
    this.#operator = operator;
  }

  /** Opens a data folder and starts its watchdog. */
  static async open(options: OpenOptions = {}): Promise<Tidings> {
    const policy = parsePolicy(options.policy);
    const ended = new AbortController();
    const { bytes_max, data = ".tidings", mode = "write" } = options;
    const watch = mode !== "read" && (options.watch ?? true);
    const catalogue = await Catalogue.open({
      subscribers: options.subscribers ?? [],
      folder: options.subscribers_folder === undefined ? join(data, "subscribers") : options.subscribers_folder,
      config_file: options.config_file === undefined ? join(data, "tidings.toml") : options.config_file,
      watch,
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
    const operator = new Operator(store, intake, options.onProblem ?? (() => {}));
    const watchdog = store.writable
      ? new Watchdog(store, (error) => {
          const failure = new StoreError(
            "store_io",
            "the watchdog stopped on an error of its own; open it again",
            error,
          );
          ended.abort(failure);
          options.onFailure?.(failure);
        })
      : undefined;
    try {
      await watchdog?.start();
      if (watch && store.writable) await operator.follow(catalogue);
      else operator.log(catalogue.problems);
    } catch (error) {
      await catalogue.close();
      await store.close();
      throw error;
    }
    const shared: Shared = { store, catalogue, intake, policy, ended, agent: null, model: null };
    const tidings = new Tidings(shared, store.writable, watchdog, operator);
    const { agent } = options;
    if (agent === undefined) return tidings;
    try {
      const wanted = typeof agent === "function" ? agent(catalogue.config.agent) : agent;
      shared.agent = await hostAgent(tidings, shared, wanted, options.onProblem ?? (() => {}));
    } catch (error) {
      await tidings.close();
      throw error;
    }
    return tidings;
  }

  /** What the hosted agent runs on; null if none is hosted. */
  get agent(): AgentView | null {
    return this.shared.model;
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

  /** The journal's newest entry. */
  lastSeq(): Promise<number> {
    return this.shared.store.lastSeq();
  }

  /** Checks every guarantee over the whole store, as it is at this moment; others go on meanwhile. */
  audit(onProgress?: (what: string, done: number) => void): Promise<AuditReport> {
    return this.shared.store.snapshot((moment) => audit(moment, onProgress));
  }

  /** Removes settled history older than this; dead letters, live items and open threads stay. */
  prune(options: { older_than_ms: number; onStep?: (done: PruneStep) => void }): Promise<PruneStep> {
    const olderThanMs = parseInput(z.int().min(0), options.older_than_ms);
    return this.shared.store.prune(olderThanMs, options.onStep);
  }

  /** Copies the database, while it is in use, to a file that does not exist yet. */
  backup(file: string, onProgress?: (done: number, total: number) => void): Promise<void> {
    return this.shared.store.backup(file, onProgress);
  }

  facts(): Promise<StoreFacts> {
    return this.shared.store.facts();
  }

  /** Commits what waits, ends the watchers and lets the folder go. */
  async close(): Promise<void> {
    const stopped = this.#watchdog?.stop();
    const { agent, catalogue, ended, store } = this.shared;
    if (agent !== null) await agent.close();
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

async function hostAgent(
  tidings: Tidings,
  shared: Shared,
  input: AgentInput,
  onProblem: (line: string) => void,
): Promise<HostedAgent | null> {
  const { store, catalogue, policy } = shared;
  const { provider, model, base_url, api_key_env, ...rest } = input;
  if (provider === "none") return null;
  if (!tidings.writable) throw new StoreError("read_only", "an agent can be hosted only by the folder's writer");
  const opened =
    typeof model === "object"
      ? model
      : await openModel({
          provider: provider ?? "rehearsal",
          model: model ?? "",
          ...(base_url === undefined ? {} : { base_url }),
          ...(api_key_env === undefined ? {} : { api_key_env }),
        });
  shared.model = { provider: opened.provider, model: opened.model };
  const options: AgentOptions = {
    ...rest,
    model: opened,
    impact: (tool) => catalogue.config.tools.get(tool)?.impact ?? null,
    turn_end: () => catalogue.config.notifications.turn_end,
    onError: (error) => onProblem(`the hosted agent: ${error instanceof Error ? error.message : String(error)}`),
  };
  return HostedAgent.start(store, (event) => tidings.emit(event), options, policy);
}

/** The store failed: whoever followed it is told so, and not that it simply ended. */
function throwFailure(ended: AbortSignal): void {
  const { reason } = ended;
  if (ended.aborted && reason instanceof Error && reason.name !== "AbortError") throw reason;
}

const policySchema = z.strictObject({
  agentTtlMs: z.int().min(1).max(LIMITS.ttlMsMax).optional(),
  contextTtlMs: z.int().min(1).max(LIMITS.ttlMsMax).optional(),
  systemTtlMs: z.int().min(1).max(LIMITS.ttlMsMax).optional(),
  leaseMs: z.int().min(1).max(LIMITS.leaseMsMax).optional(),
  attemptsMax: z.int().min(1).max(100).optional(),
  backoffMs: z.int().min(0).max(LIMITS.leaseMsMax).optional(),
  pendingPerThread: z.int().min(1).max(LIMITS.pendingMax).optional(),
  pendingPerSource: z.int().min(1).max(LIMITS.pendingMax).optional(),
  criticalPerMinute: z.int().min(0).optional(),
});

function parsePolicy(policy: Partial<DeliveryPolicy> | undefined): DeliveryPolicy {
  return { ...DEFAULT_POLICY, ...withoutUndefined(parseInput(policySchema, policy ?? {})) };
}

function emitAnswer(accepted: Accepted): EmitAnswer {
  return {
    id: accepted.event_id,
    seq: accepted.seq,
    outcome: accepted.outcome,
    matches: accepted.matches.map(({ subscriber_id, outcome, stored }) => ({
      subscriber_id,
      outcome,
      notification: viewOf(stored),
    })),
  };
}

function attempt<Value>(make: () => Value): { value: Value } | { error: Error } {
  try {
    return { value: make() };
  } catch (error) {
    if (error instanceof Error) return { error };
    throw error;
  }
}

type Defined<T> = { [Key in keyof T]?: Exclude<T[Key], undefined> };

function withoutUndefined<T extends object>(input: T): Defined<T> {
  return Object.fromEntries(Object.entries(input).filter(([, value]) => value !== undefined)) as Defined<T>;
}
