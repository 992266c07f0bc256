import { z } from "zod";
import { Carriers } from "../agent/carriers.js";
import { type Changed, changed } from "../delivery/changed.js";
import { Deliveries, viewOrMiss } from "../delivery/deliveries.js";
import { type Explanation, explain } from "../delivery/explain.js";
import { watchPages } from "../delivery/watch.js";
import { type Miss, NotFoundError } from "../domain/errors.js";
import { checkForeignId, type EventInput, type NewEvent, ownId, parseEvent } from "../domain/event.js";
import { LOCAL_USER, notificationId, threadId, type UserId, userId } from "../domain/ids.js";
import type { JournalEntry } from "../domain/journal.js";
import { LIMITS } from "../domain/limits.js";
import {
  type NotificationView,
  type NotificationWithEvents,
  type NotifyInput,
  parseNotify,
} from "../domain/notification.js";
import { parseInput, wordSchema } from "../domain/parse.js";
import { mayAct, type Principal } from "../domain/principal.js";
import { missNotFound } from "../domain/reducer.js";
import type { Grants } from "../domain/token.js";
import { viewOf } from "../domain/view.js";
import {
  checkedDisabled,
  type SettingsView,
  type SubscriberList,
  settingsView,
  subscriberList,
} from "../intake/listing.js";
import { threadBudgets, threadBudgetsSchema } from "../runtime/budgets.js";
import {
  Conversation,
  type StartThreadInput,
  summaryView,
  type ThreadSummaryView,
  type ThreadView,
  Turns,
  threadView,
} from "../runtime/conversation.js";
import type { Progress } from "../runtime/setting.js";
import { type UsageAnswer, usageAnswer } from "../runtime/usage.js";
import type { Acceptance, Accepted, AcceptOutcome, Counts } from "../store/contract.js";
import {
  type AckInput,
  type ChangedInput,
  changedSchema,
  type EmitAnswer,
  type EmitOutcome,
  type InboxAnswer,
  type ListAnswer,
  type ListInput,
  listSchema,
  type NotifyAnswer,
  parseAck,
  type SettingsInput,
  settingsSchema,
} from "./answers.js";
import { lastMatches, matchesSchema } from "./matches.js";
import { type PreviewAnswer, type PreviewInput, previewAnswer, previewSchema } from "./preview.js";
import { type SeriesAnswer, type SeriesInput, seriesAnswer, seriesSchema } from "./series.js";
import { type Shared, throwFailure } from "./shared.js";
import { withoutUndefined } from "./without_undefined.js";

const idSchema = wordSchema(LIMITS.idChars);
const watchSchema = z.int().min(0);

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

  /** What the host itself reports. */
  protected async emitOwn(event: EventInput): Promise<EmitAnswer> {
    const { id, ...rest } = event;
    const own = parseEvent(id === undefined ? rest : { ...rest, id: ownId(id) });
    return emitAnswer(await this.shared.store.accept(this.#principal, this.#accepting(own)));
  }

  #acceptance(event: EventInput): Acceptance {
    const parsed = parseEvent(this.#own(event));
    checkForeignId(parsed);
    return this.#accepting(parsed);
  }

  #accepting(event: NewEvent): Acceptance {
    return this.shared.intake.forEvent(event, this.#grants);
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
    const { id, revision, action } = parseAck(input);
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
   * Notifications that have changed since an earlier answer, whoever owns them, each once and as it is now. Ask without a
   * cursor, then list: what changes from then on is told.
   */
  async changed(input: ChangedInput = {}, more: { signal?: AbortSignal; bytes_max?: number } = {}): Promise<Changed> {
    const { after, limit, wait_ms } = parseInput(changedSchema, input);
    const { store, ended } = this.shared;
    const over = more.signal === undefined ? ended.signal : AbortSignal.any([more.signal, ended.signal]);
    const bytes_max = more.bytes_max ?? Number.POSITIVE_INFINITY;
    const answer = await changed(store, this.#principal, { after, limit, wait_ms, bytes_max, over });
    throwFailure(ended.signal);
    return answer;
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

  /**
   * Opens a conversation; idempotent by its id. `budgets`: what its turns may use together; where the operator has set less, that
   * holds.
   */
  async startThread(input: StartThreadInput = {}): Promise<ThreadView> {
    const parsed = parseInput(startSchema, input);
    const owner = userId(parsed.user_id ?? this.#defaultUser());
    const wanted = parsed.thread_id === undefined ? null : threadId(parsed.thread_id);
    const budgets = threadBudgets(parsed.budgets);
    return threadView(await this.shared.store.startThread(this.#principal, owner, wanted, budgets));
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
  async threads(input: { user_id?: string; after?: string; limit?: number } = {}): Promise<ThreadSummaryView[]> {
    const { user_id = this.#defaultUser(), after, limit } = parseInput(threadsSchema, input);
    const last = after === undefined ? null : threadId(after);
    const threads = await this.shared.store.threadSummaries(this.#principal, userId(user_id), last, limit);
    return threads.map(summaryView);
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

  /** What the hosted agent has used for a user today (UTC), in all conversations; and in one, which is its user's then. */
  async usage(input: { user_id?: string; thread_id?: string } = {}): Promise<UsageAnswer> {
    const { user_id = this.#defaultUser(), thread_id } = parseInput(threadSchema, input);
    const { store } = this.shared;
    if (thread_id === undefined) return usageAnswer(await store.usageToday(this.#principal, userId(user_id)), null);
    const { thread, day } = await store.usage(this.#principal, threadId(thread_id));
    return usageAnswer(day, thread);
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

  /**
   * Every subscriber with its state for this user, and what is wrong with their files; with as many of the events that each took
   * last as `matches` says.
   */
  async subscribers(
    user_id: string = this.#defaultUser(),
    options: { matches?: number } = {},
  ): Promise<SubscriberList> {
    const { store, catalogue } = this.shared;
    const user = userId(parseInput(idSchema, user_id));
    const settings = await store.settings(this.#principal, user);
    const wanted = parseInput(matchesSchema, options.matches ?? 0);
    if (wanted === 0) return subscriberList(catalogue, settings);
    return subscriberList(catalogue, settings, await lastMatches(this.shared, this.#principal, user, wanted));
  }

  /** What a subscriber would make of an event. Nothing is stored. */
  previewSubscriber(input: PreviewInput): Promise<PreviewAnswer> {
    const asked = parseInput(previewSchema, input);
    const user = userId(asked.user_id ?? this.#defaultUser());
    return previewAnswer(this.shared, this.#principal, user, asked);
  }

  /** What has happened over time, and how it stands now: of a user, or, for the host, of all if it names none. */
  series(input: SeriesInput = {}): Promise<SeriesAnswer> {
    const asked = parseInput(seriesSchema, input);
    const named = asked.user_id === undefined ? null : userId(asked.user_id);
    const own = this.#principal.kind === "user" ? this.#principal.user_id : null;
    return seriesAnswer(this.shared, this.#principal, named ?? own, asked);
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

const threadSchema = z.strictObject({
  user_id: wordSchema(LIMITS.idChars).optional(),
  thread_id: wordSchema(LIMITS.idChars).optional(),
});
const startSchema = threadSchema.extend({ budgets: threadBudgetsSchema.optional() });

const threadsSchema = z.strictObject({
  user_id: wordSchema(LIMITS.idChars).optional(),
  after: wordSchema(LIMITS.idChars).optional(),
  limit: z.int().min(1).max(LIMITS.listLimit).default(100),
});

const observeSchema = z.strictObject({
  thread_id: wordSchema(LIMITS.idChars),
  subject: wordSchema(LIMITS.subjectChars),
});

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
