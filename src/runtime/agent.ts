/** The hosted agent: conversations with a model, in which it is told what happens around it. */
import { BLOCK_EXPLANATION, type Budget } from "../agent/block/block.js";
import { composerFor } from "../agent/compose.js";
import { NotFoundError, TidingsError } from "../domain/errors.js";
import { type ThreadId, type TurnId, threadId, turnId, type UserId } from "../domain/ids.js";
import type { Thread } from "../domain/journal.js";
import { LIMITS } from "../domain/limits.js";
import { parseInput, textSchema } from "../domain/parse.js";
import type { DeliveryPolicy } from "../domain/policy.js";
import { HOST, type Principal } from "../domain/principal.js";
import { isTurnOver, type Turn, type TurnState } from "../domain/turn.js";
import { pause } from "../platform/timers.js";
import type { Model } from "../providers/model.js";
import type { Store } from "../store/contract.js";
import { BUILTIN_TOOLS } from "./builtin_tools.js";
import { type Counters, newCounters } from "./counters.js";
import { type Deferred, deferred } from "./deferred.js";
import type { Emit } from "./events.js";
import { type AgentLimits, DEFAULT_LIMITS } from "./limits.js";
import { recover } from "./recovery.js";
import { ThreadRunner } from "./runner.js";
import type { Progress, Setting } from "./setting.js";
import { type Impact, type Tool, ToolSet } from "./tools.js";
import { Waker } from "./waker.js";

export interface AgentOptions {
  readonly model: Model;
  /** The operator's prompt. What explains the blocks of notifications is added; both never change. */
  readonly system?: string;
  readonly tools?: readonly Tool[];
  /** The operator's word on a tool's impact, asked at each call; null: as the tool says. */
  readonly impact?: (tool: string) => Impact | null;
  /** What is left for the end of a turn: carried to the next one, or told in one more step. */
  readonly turn_end?: () => "carry" | "step";
  readonly limits?: Partial<AgentLimits>;
  readonly budget?: Partial<Budget>;
  /** Something went wrong that no turn can go on from. */
  readonly onError?: (error: unknown) => void;
}

export interface Interrupted {
  /** As it is now. */
  readonly turn: Turn;
  /** `cancel_requested`: it is still coming to its end. The state of one that was over before. */
  readonly outcome: "interrupted" | "cancel_requested" | TurnState;
  /** Words that were to steer it and that it has not taken up. */
  readonly unconsumed: readonly string[];
  /** The turn that the reply began. */
  readonly successor: Turn | null;
}

const DEFAULT_BUDGET: Budget = { items: 10, tokens: 1_000, lines: 20 };
const INTERRUPT_MS = 5_000;
/** Threads that are kept in mind while nothing happens in them. */
const IDLE_RUNNERS_MAX = 256;

const contentSchema = textSchema(LIMITS.contentChars);

export class HostedAgent {
  readonly counters: Counters = newCounters();
  readonly #store: Store;
  readonly #setting: Setting;
  readonly #runners = new Map<ThreadId, ThreadRunner>();
  readonly #waker: Waker;
  readonly #listeners = new Map<(progress: Progress) => void, boolean>();
  readonly #awaited = new Map<TurnId, Set<Deferred<Turn>>>();
  #stopListening: () => void = () => undefined;
  #closed = false;
  /** Closed, and nothing runs any more. */
  #gone = false;

  /** Puts in order what a process before it has left, then begins. */
  static async start(store: Store, emit: Emit, options: AgentOptions, policy: DeliveryPolicy): Promise<HostedAgent> {
    const agent = new HostedAgent(store, emit, options, policy);
    await agent.#start();
    return agent;
  }

  private constructor(store: Store, emit: Emit, options: AgentOptions, policy: DeliveryPolicy) {
    const { model, system = "", tools = [], impact, turn_end, limits, budget, onError } = options;
    this.#store = store;
    const toolSet = new ToolSet(BUILTIN_TOOLS, tools);
    const broke = onError ?? (() => undefined);
    this.#setting = {
      store,
      emit,
      model,
      system: system.trim() === "" ? BLOCK_EXPLANATION : `${system}\n\n${BLOCK_EXPLANATION}`,
      tools: toolSet,
      limits: { ...DEFAULT_LIMITS, ...limits },
      compose: composerFor({ ...DEFAULT_BUDGET, ...budget }, () => model.form()),
      lease_ms: policy.leaseMs,
      counters: this.counters,
      impactOf: (name) => impact?.(name) ?? toolSet.get(name)?.impact ?? "external",
      turnEnd: turn_end ?? (() => "carry"),
      progress: (progress) => this.#progressed(progress),
      ended: (turn) => this.#ended(turn),
      broke,
      look: (user_id) => this.#waker.look(user_id),
    };
    this.#waker = new Waker(store, (thread_id, user_id) => this.#runnerOf(thread_id, user_id), broke);
  }

  async #start(): Promise<void> {
    const queued = await recover(this.#store);
    this.#stopListening = this.#store.onCommit((_seq, users) => {
      for (const user_id of users ?? []) this.#waker.committed(user_id);
    });
    for (const { thread_id, user_id } of queued) await this.#runnerOf(thread_id, user_id).next();
    await this.#waker.lookAtAll();
  }

  /** A user's message. The turn is active, or queued if the thread is busy or paused. */
  async startTurn(principal: Principal, input: { thread_id: string; content: string }): Promise<Turn> {
    const content = parseInput(contentSchema, input.content);
    return (await this.#runnerFor(principal, input.thread_id)).start(principal, content);
  }

  /** Words for the active turn, which it takes up at its next step. */
  async steer(
    principal: Principal,
    input: { thread_id: string; expected_turn_id?: string | undefined; content: string },
  ): Promise<Turn> {
    const content = parseInput(contentSchema, input.content);
    const expected = input.expected_turn_id === undefined ? null : turnId(input.expected_turn_id);
    return (await this.#runnerFor(principal, input.thread_id)).steer(content, expected);
  }

  /** To the active turn, else a turn of its own; says which. */
  async deliver(
    principal: Principal,
    input: { thread_id: string; content: string },
  ): Promise<{ turn: Turn; how: "started" | "queued" | "steered" }> {
    const content = parseInput(contentSchema, input.content);
    return (await this.#runnerFor(principal, input.thread_id)).deliver(principal, content);
  }

  /** Stops a turn, or, with words, goes on with these instead. */
  async interrupt(
    principal: Principal,
    input: { turn_id: string; content?: string | undefined },
  ): Promise<Interrupted> {
    const content = input.content === undefined ? null : parseInput(contentSchema, input.content);
    const turn = await this.#turn(principal, turnId(input.turn_id));
    if (turn.state === "queued") {
      await this.#store.editQueued(principal, turn.id, null);
      const removed = await this.#turn(principal, turn.id);
      if (isTurnOver(removed.state)) this.#ended(removed);
      return { turn: removed, outcome: removed.state, unconsumed: [], successor: null };
    }
    if (isTurnOver(turn.state)) return { turn, outcome: turn.state, unconsumed: [], successor: null };
    const cut = await this.#runnerOf(turn.thread_id, turn.user_id).interrupt(turn.id, content);
    if (cut === null) {
      // It came to its end by itself.
      const over = await this.#settled(turn.id);
      const now = await this.#turn(principal, turn.id);
      return { turn: now, outcome: over ? now.state : "cancel_requested", unconsumed: [], successor: null };
    }
    const waiting = new AbortController();
    const late = pause(INTERRUPT_MS, waiting.signal).then(() => null);
    const answer = await Promise.race([cut.answer, late]).finally(() => waiting.abort());
    const now = await this.#turn(principal, turn.id);
    if (answer === null) {
      cut.answer.catch(() => undefined);
      return { turn: now, outcome: "cancel_requested", unconsumed: [], successor: null };
    }
    return { turn: now, outcome: "interrupted", ...answer };
  }

  /** The agent rests: what was begun is brought to its end, and nothing is begun. */
  async pause(principal: Principal, thread_id: string): Promise<Thread> {
    const thread = await this.#store.pauseThread(principal, threadId(thread_id));
    this.#waker.look(thread.user_id);
    return thread;
  }

  async resume(principal: Principal, thread_id: string): Promise<Thread> {
    const thread = await this.#store.resumeThread(principal, threadId(thread_id));
    await this.#runnerOf(thread.id, thread.user_id).next();
    this.#waker.look(thread.user_id);
    return thread;
  }

  /** The thread is about to be closed: resolves when nothing runs in it any more. */
  async closing(thread_id: string): Promise<void> {
    const runner = this.#runners.get(threadId(thread_id));
    if (runner === undefined) return;
    await runner.closing();
    this.#runners.delete(runner.thread_id);
  }

  /** What happens in turns, as it happens. Of those that the user does not see only if `internal` is true. */
  onProgress(listener: (progress: Progress) => void, options: { readonly internal?: boolean } = {}): () => void {
    this.#listeners.set(listener, options.internal === true);
    return () => this.#listeners.delete(listener);
  }

  /** Resolves with the turn when it is over. */
  async ended(turn_id: string): Promise<Turn> {
    const id = turnId(turn_id);
    const waiting = deferred<Turn>();
    const waiters = this.#awaited.get(id) ?? new Set();
    this.#awaited.set(id, waiters.add(waiting));
    const turn = await this.#store.turn(HOST, id);
    const over = turn === undefined || isTurnOver(turn.state);
    if (!over && !this.#gone) return waiting.promise;
    waiters.delete(waiting);
    if (waiters.size === 0 && this.#awaited.get(id) === waiters) this.#awaited.delete(id);
    if (turn === undefined) throw new NotFoundError("turn", turn_id);
    if (over) return turn;
    throw new TidingsError("closed", "the host was closed before the turn was over");
  }

  /** It was over before it began: taken out of the queue, or its thread was closed. */
  turnGone(turn: Turn): void {
    this.#ended(turn);
  }

  /** Cuts short what runs; what it held is let go. */
  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.#stopListening();
    await this.#waker.stop();
    await Promise.allSettled([...this.#runners.values()].map((runner) => runner.close()));
    this.#gone = true;
    const closed = new TidingsError("closed", "the host was closed before the turn was over");
    for (const waiters of this.#awaited.values()) for (const { reject } of waiters) reject(closed);
    this.#awaited.clear();
  }

  async #runnerFor(principal: Principal, thread_id: string): Promise<ThreadRunner> {
    if (this.#closed) throw new TidingsError("closed", "the host was closed");
    const { id, user_id } = await this.#store.thread(principal, threadId(thread_id));
    return this.#runnerOf(id, user_id);
  }

  #runnerOf(thread_id: ThreadId, user_id: UserId): ThreadRunner {
    const known = this.#runners.get(thread_id);
    if (known !== undefined) return known;
    if (this.#runners.size >= IDLE_RUNNERS_MAX)
      for (const [id, runner] of this.#runners) if (runner.isIdle) this.#runners.delete(id);
    const runner = new ThreadRunner(this.#setting, thread_id, user_id);
    this.#runners.set(thread_id, runner);
    return runner;
  }

  async #turn(principal: Principal, id: TurnId): Promise<Turn> {
    const turn = await this.#store.turn(principal, id);
    if (turn === undefined) throw new NotFoundError("turn", id);
    return turn;
  }

  async #settled(id: TurnId): Promise<boolean> {
    const waiting = new AbortController();
    const ended = this.ended(id).then(
      () => true,
      () => false,
    );
    const late = pause(INTERRUPT_MS, waiting.signal).then(() => false);
    return await Promise.race([ended, late]).finally(() => waiting.abort());
  }

  #progressed(progress: Progress): void {
    for (const [listener, internal] of this.#listeners) {
      if (progress.internal && !internal) continue;
      try {
        listener(progress);
      } catch (error) {
        this.#setting.broke(error);
      }
    }
  }

  #ended(turn: Turn): void {
    for (const { resolve } of this.#awaited.get(turn.id) ?? []) resolve(turn);
    this.#awaited.delete(turn.id);
  }
}
