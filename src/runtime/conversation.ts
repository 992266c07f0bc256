import { z } from "zod";
import type { Carriers } from "../agent/carriers.js";
import { AgentThread } from "../agent/thread.js";
import type { ConversationEvent } from "../domain/conversation.js";
import { ConflictError, isMiss, type Miss, NotFoundError } from "../domain/errors.js";
import { type ThreadId, type TurnId, turnId, type UserId } from "../domain/ids.js";
import type { JournalEntry, Thread } from "../domain/journal.js";
import { LIMITS } from "../domain/limits.js";
import { parseInput, textSchema, wordSchema } from "../domain/parse.js";
import type { Principal } from "../domain/principal.js";
import { isoTime } from "../domain/time.js";
import { isTurnOver, type Turn, type TurnState } from "../domain/turn.js";
import type { ThreadBudgets } from "../domain/usage.js";
import type { Shown, Store, ThreadSummary } from "../store/contract.js";
import type { HostedAgent } from "./agent.js";
import type { BudgetLimits } from "./budgets.js";
import { conversationStream } from "./stream.js";
import { ItemReader, type ThreadItem } from "./thread_items.js";

export interface ThreadView {
  thread_id: ThreadId;
  user_id: UserId;
  state: "open" | "paused" | "closed";
  created_at: string;
  /** What it may use, as whoever started it has said; null: nothing was said. */
  budgets: ThreadBudgets | null;
}

export interface StartThreadInput {
  user_id?: string | undefined;
  thread_id?: string | undefined;
  /** What its turns may use together, each of these at least 1; where the operator has set less, that holds. */
  budgets?: BudgetLimits | undefined;
}

/** A conversation in a list. */
export interface ThreadSummaryView extends ThreadView {
  /** When something was last done in it. */
  active_at: string;
  /** The user's first words, on one line; null where there are none. */
  title: string | null;
  /** The turn that runs; null if none does, or none that the user sees. */
  active_turn_id: TurnId | null;
  /** Messages that wait for their turn. */
  queued: number;
  /** What the system showed in it and the user has neither clicked nor dismissed; capped. */
  unread: number;
}

export interface TurnView {
  turn_id: TurnId;
  thread_id: ThreadId;
  state: TurnState;
  /** Who opened it. */
  source: Turn["source"];
  /** The user sees nothing of it. */
  internal: boolean;
  /** The message that it began with, or will. */
  content: string;
  created_at: string;
  /** Why it ended as it did. */
  note: string | null;
  /** The turn that goes on with what it was about, if it was interrupted. */
  continued_by: TurnId | null;
}

export interface InterruptAnswer {
  turn: TurnView;
  /** `cancel_requested`: it is still coming to its end. The state of one that was over before. */
  outcome: "interrupted" | "cancel_requested" | TurnState;
  /** Words that were to steer it and that it has not taken up. */
  unconsumed: string[];
  /** The turn that the reply began. */
  successor: TurnView | null;
}

export interface ReadOptions {
  /** The `next` of the page before. */
  after?: number | undefined;
  /** The newest that stand before this: the `previous` of a page, or a number above all. `after` does not count then. */
  before?: number | undefined;
  limit?: number | undefined;
  /** Also what the agent was told. */
  observe?: boolean | undefined;
  /** Also turns that the user does not see. */
  internal?: boolean | undefined;
}

/** Its words are an item. */
export type PageTurn = Omit<TurnView, "content">;

export interface ThreadPage {
  thread: ThreadView;
  items: ThreadItem[];
  /** Those that the items are of, and at the end of the conversation those that run or wait. */
  turns: PageTurn[];
  /** For the next page; null at the end. */
  next: number | null;
  /** With `before`: for the page that stands before this one; null at the beginning. */
  previous: number | null;
  /** The newest entry of the journal when it was read: what is pushed with a higher one came later, or while it was read. */
  seq: number;
  /** What the agent has said so far of an answer that it is still giving; at the end of the conversation. */
  saying: Saying | null;
}

export interface Saying {
  turn_id: TurnId;
  text: string;
}

const contentSchema = textSchema(LIMITS.contentChars);
export const readSchema = z.strictObject({
  after: z.int().min(0).default(0),
  before: z.int().min(1).optional(),
  limit: z.int().min(1).max(LIMITS.listLimit).default(LIMITS.listLimit),
  observe: z.boolean().default(false),
  internal: z.boolean().default(false),
});
const idSchema = wordSchema(LIMITS.idChars);
/** How far is looked for what became of what stands on a page. */
const FINISH_PAGES = 5;
const FINISH_ENTRIES = 100;

/** A part of a conversation. */
interface Range extends Pick<ThreadPage, "next" | "previous"> {
  readonly entries: readonly JournalEntry[];
  readonly shown: readonly Shown[];
}

/** A conversation: as its agent has it, and as its user. */
export class Conversation extends AgentThread {
  readonly #store: Store;
  readonly #principal: Principal;
  readonly #agent: HostedAgent | null;

  constructor(
    store: Store,
    principal: Principal,
    agent: HostedAgent | null,
    carriers: Carriers,
    id: string,
    user_id: UserId,
  ) {
    super(carriers, id, user_id);
    this.#store = store;
    this.#principal = principal;
    this.#agent = agent;
  }

  /** A user's message: the turn is active, or queued while the thread is busy or paused. */
  async say(content: string): Promise<TurnView> {
    return turnView(await this.#hosted().startTurn(this.#principal, { thread_id: this.id, content }));
  }

  /** Words for the turn that is active, which it takes up at its next step. Refused if none is. */
  async steer(content: string, options: { expected_turn_id?: string | undefined } = {}): Promise<TurnView> {
    return turnView(await this.#hosted().steer(this.#principal, { thread_id: this.id, content, ...options }));
  }

  /** To the turn that is active, else a turn of its own; says which. */
  async deliver(content: string): Promise<{ turn: TurnView; how: "started" | "queued" | "steered" }> {
    const { turn, how } = await this.#hosted().deliver(this.#principal, { thread_id: this.id, content });
    return { turn: turnView(turn), how };
  }

  /** Its agent rests. What waits for it waits, with its deadlines; what is critical goes to the user. */
  async pause(): Promise<ThreadView> {
    if (this.#agent !== null) return threadView(await this.#agent.pause(this.#principal, this.id));
    return threadView(await this.#store.pauseThread(this.#principal, this.id));
  }

  async resume(): Promise<ThreadView> {
    if (this.#agent !== null) return threadView(await this.#agent.resume(this.#principal, this.id));
    return threadView(await this.#store.resumeThread(this.#principal, this.id));
  }

  /** What was in it goes to the user's inbox, or ends; a turn that runs is cut short. */
  async close(): Promise<ThreadView> {
    if (this.#agent === null) return threadView(await this.#store.closeThread(this.#principal, this.id));
    const left = await this.#store.liveTurns(this.#principal, this.id);
    await this.#agent.closing(this.id);
    const closed = await this.#store.closeThread(this.#principal, this.id);
    for (const { id } of left) await this.#gone(this.#agent, id);
    return threadView(closed);
  }

  /** Whoever waits for its end is told. */
  async #gone(agent: HostedAgent, id: TurnId): Promise<void> {
    const turn = await this.#store.turn(this.#principal, id);
    if (turn !== undefined && isTurnOver(turn.state)) agent.turnGone(turn);
  }

  /** Messages that wait for their turn, oldest first, and the one that is active. */
  async turns(): Promise<TurnView[]> {
    return (await this.#store.liveTurns(this.#principal, this.id)).map(turnView);
  }

  /** As people see it, oldest first. */
  async read(options: ReadOptions = {}): Promise<ThreadPage> {
    const { after, before, limit, observe, internal } = parseInput(readSchema, options);
    const thread = await this.#store.thread(this.#principal, this.id);
    const seq = await this.#store.lastSeq();
    const range = before === undefined ? this.#after(after, limit) : this.#before(before, limit, seq);
    const { entries, shown, next, previous } = await range;
    const reader = new ItemReader();
    const turns = await this.#turnsOf(entries, next === null);
    for (const { id, internal: hidden } of turns) if (hidden) reader.hide(id);
    for (const entry of entries) reader.read(entry);
    for (const { id, state } of turns) if (state !== "queued") reader.settle(id, isTurnOver(state));
    if (next !== null) await this.#finish(reader, next);
    for (const one of shown) reader.show(one);
    return {
      thread: threadView(thread),
      items: reader.items({ observe, internal }),
      turns: turns.filter((turn) => internal || !turn.internal).map(pageTurn),
      next,
      previous,
      seq,
      // After the entries: what is still being said is in none of them.
      saying: next === null ? (this.#agent?.saying(this.id) ?? null) : null,
    };
  }

  /** As far as both were read. */
  async #after(after: number, limit: number): Promise<Range> {
    const [entries, shown] = await Promise.all([
      this.#store.conversation(this.#principal, this.id, after, limit),
      this.#store.floor(this.#principal, this.id, after, limit),
    ]);
    const ends = [entries, shown].flatMap((page) => (page.length >= limit ? [page.at(-1)?.seq ?? after] : []));
    const next = ends.length === 0 ? null : Math.min(...ends);
    const isIn = ({ seq }: { seq: number }) => next === null || seq <= next;
    return { entries: entries.filter(isIn), shown: shown.filter(isIn), next, previous: null };
  }

  async #before(before: number, limit: number, newest: number): Promise<Range> {
    const [entries, shown] = await Promise.all([
      this.#store.conversationBefore(this.#principal, this.id, before, limit),
      this.#store.floorBefore(this.#principal, this.id, before, limit),
    ]);
    const begins = [entries, shown].flatMap((page) => (page.length >= limit ? [page[0]?.seq ?? before] : []));
    const previous = begins.length === 0 ? null : Math.max(...begins);
    const isIn = ({ seq }: { seq: number }) => previous === null || seq >= previous;
    return {
      entries: entries.filter(isIn),
      shown: shown.filter(isIn),
      next: before > newest ? null : before - 1,
      previous,
    };
  }

  /** A page may begin after the entry that says of a turn that the user does not see it. */
  async #turnsOf(entries: readonly JournalEntry[], end: boolean): Promise<Turn[]> {
    const ids = new Set(
      entries.flatMap((entry) => ("turn_id" in entry && entry.turn_id !== null ? [entry.turn_id] : [])),
    );
    const turns = await Promise.all([...ids].map((id) => this.#store.turn(this.#principal, id)));
    const live = end ? await this.#store.liveTurns(this.#principal, this.id) : [];
    return [...turns.flatMap((turn) => turn ?? []), ...live.filter(({ id }) => !ids.has(id))];
  }

  /** What became of a call, or of words that were to steer, may stand on the next page. */
  async #finish(reader: ItemReader, after: number): Promise<void> {
    for (let from = after, pages = 0; reader.isUnfinished && pages < FINISH_PAGES; pages += 1) {
      const later = await this.#store.conversation(this.#principal, this.id, from, FINISH_ENTRIES);
      for (const entry of later) reader.finish(entry);
      const last = later.at(-1);
      if (last === undefined || later.length < FINISH_ENTRIES) return;
      from = last.seq;
    }
  }

  /** The conversation stream, in its serial form. */
  async events(): Promise<ConversationEvent[]> {
    return conversationStream(this.#store, this.#principal, this.id);
  }

  #hosted(): HostedAgent {
    return hosted(this.#agent);
  }
}

/** Turns by their own id. */
export class Turns {
  readonly #store: Store;
  readonly #principal: Principal;
  readonly #agent: HostedAgent | null;

  constructor(store: Store, principal: Principal, agent: HostedAgent | null) {
    this.#store = store;
    this.#principal = principal;
    this.#agent = agent;
  }

  async read(turn_id: string): Promise<TurnView | Miss> {
    const turn = await this.#store.turn(this.#principal, turnId(parseInput(idSchema, turn_id)));
    if (turn !== undefined) return turnView(turn);
    return { miss: "not_found", id: turn_id, message: `no turn ${JSON.stringify(turn_id)} for this user` };
  }

  /** Stops it; with words, goes on with these instead. */
  async interrupt(turn_id: string, options: { content?: string | undefined } = {}): Promise<InterruptAnswer> {
    const input = { turn_id: parseInput(idSchema, turn_id), ...options };
    const { turn, successor, outcome, unconsumed } = await hosted(this.#agent).interrupt(this.#principal, input);
    return {
      turn: turnView(turn),
      outcome,
      unconsumed: [...unconsumed],
      successor: successor === null ? null : turnView(successor),
    };
  }

  /** Resolves when it is over. */
  async ended(turn_id: string): Promise<TurnView> {
    const turn = await this.read(turn_id);
    if (isMiss(turn)) throw new NotFoundError("turn", turn_id);
    return turnView(await hosted(this.#agent).ended(turn_id));
  }

  /** Changes the message of one that is queued. */
  async update(turn_id: string, content: string): Promise<TurnView | Miss> {
    return this.#edited(turn_id, parseInput(contentSchema, content));
  }

  /** Takes one that is queued out of the queue. */
  remove(turn_id: string): Promise<TurnView | Miss> {
    return this.#edited(turn_id, null);
  }

  async #edited(turn_id: string, content: string | null): Promise<TurnView | Miss> {
    const id = turnId(parseInput(idSchema, turn_id));
    const turn = await this.#store.editQueued(this.#principal, id, content);
    if (isMiss(turn)) return turn;
    if (isTurnOver(turn.state)) this.#agent?.turnGone(turn);
    return turnView(turn);
  }
}

function hosted(agent: HostedAgent | null): HostedAgent {
  if (agent !== null) return agent;
  throw new ConflictError(
    "no_agent",
    "no agent is hosted here; open with the option agent, or serve with --provider (rehearsal needs no key)",
  );
}

export function threadView({ id, user_id, state, created_at, paused_at, budgets }: Thread): ThreadView {
  const shown = state !== "open" ? "closed" : paused_at === null ? "open" : "paused";
  return { thread_id: id, user_id, state: shown, created_at: isoTime(created_at), budgets };
}

const TITLE_CHARS = 80;

export function summaryView(summary: ThreadSummary): ThreadSummaryView {
  const { thread, active_at, first_words, active_turn, queued, unread } = summary;
  return {
    ...threadView(thread),
    active_at: isoTime(active_at),
    title: first_words === null ? null : titleOf(first_words),
    active_turn_id: active_turn,
    queued,
    unread,
  };
}

function titleOf(words: string): string {
  const line = words.replace(/\s+/g, " ").trim();
  const characters = [...line];
  return characters.length > TITLE_CHARS ? `${characters.slice(0, TITLE_CHARS - 1).join("")}…` : line;
}

function pageTurn(turn: Turn): PageTurn {
  const { content: _, ...view } = turnView(turn);
  return view;
}

export function turnView(turn: Turn): TurnView {
  const { id, thread_id, state, source, internal, content, created_at, note, continued_by } = turn;
  const at = isoTime(created_at);
  return { turn_id: id, thread_id, state, source, internal, content, created_at: at, note, continued_by };
}
