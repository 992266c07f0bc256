/** The hosted agent: conversations with a model, in which it is told what happens around it. */
import { BLOCK_EXPLANATION, type Budget } from "../agent/block/block.js";
import { DEFAULT_BUDGET } from "../agent/block/budget.js";
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
import type { Compose, Store } from "../store/contract.js";
import type { Budgets } from "./budgets.js";
import { BUILTIN_TOOLS } from "./builtin_tools.js";
import { type Counters, newCounters } from "./counters.js";
import { type Deferred, deferred } from "./deferred.js";
import type { Emit } from "./events.js";
import { Handles } from "./handles/handles.js";
import { DEFAULT_HANDLE_LIMITS, type HandleLimits } from "./handles/limits.js";
import { type ShellOptions, shellTool } from "./handles/shell/shell.js";
import type { TurnEndPolicy } from "./handles/stateful_tool.js";
import { ProviderHealth } from "./health.js";
import type { Impact } from "./impact.js";
import { type AgentLimits, DEFAULT_LIMITS } from "./limits.js";
import { DEFAULT_LOOPS, type LoopOptions } from "./loops.js";
import { RateLimits } from "./rate_limits.js";
import { recover } from "./recovery.js";
import { ThreadRunner } from "./runner.js";
import type { Progress, Setting } from "./setting.js";
import { type Registration, ToolSet } from "./tool_set.js";
import { type AnyTool, isStateful } from "./tools.js";
import { Waker } from "./waker.js";
import { fileTools } from "./workspace/file_tools.js";
import { NO_FILES } from "./workspace/thread_files.js";
import { Workspace, type WorkspaceOptions } from "./workspace/workspace.js";

export interface AgentOptions {
  readonly model: Model;
  /** The operator's prompt. What explains the blocks of notifications is added; both never change. */
  readonly system?: string;
  readonly tools?: readonly AnyTool[];
  /** Lets the agent run commands on this machine; without it there is no such tool. */
  readonly shell?: ShellOptions;
  /** Lets the agent read and write files in a folder; it is told when others change what it knows of them. */
  readonly workspace?: WorkspaceOptions;
  /** Tidings' own files and folders: no part of the workspace. */
  readonly own_files?: readonly string[];
  readonly handles?: Partial<HandleLimits>;
  /** The operator's word on what becomes of a tool's running calls when a turn ends; null: as the tool says. */
  readonly handles_turn_end?: (tool: string) => TurnEndPolicy | null;
  /** The operator's word on a tool's impact, asked at each call; null: as the tool says. */
  readonly impact?: (tool: string) => Impact | null;
  /** What is left for the end of a turn: carried to the next one, or told in one more step. */
  readonly turn_end?: () => "carry" | "step";
  /** Also as a function, which is asked each time: what is in effect may change while it runs. So are the next two. */
  readonly limits?: Partial<AgentLimits> | (() => Partial<AgentLimits>);
  readonly budgets?: Budgets | (() => Budgets);
  /** How loops are found; null: nobody looks for them. */
  readonly loops?: Partial<LoopOptions> | null | (() => Partial<LoopOptions> | null);
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

const INTERRUPT_MS = 5_000;
/** Threads that are kept in mind while nothing happens in them. */
const IDLE_RUNNERS_MAX = 256;

/** As it is now, of what may be asked for each time. */
function now<Value>(value: Value | (() => Value)): Value {
  return typeof value === "function" ? (value as () => Value)() : value;
}

const contentSchema = textSchema(LIMITS.contentChars);

export class HostedAgent {
  readonly counters: Counters = newCounters();
  readonly health = new ProviderHealth();
  readonly #store: Store;
  readonly #setting: Setting;
  readonly #runners = new Map<ThreadId, ThreadRunner>();
  readonly #waker: Waker;
  readonly #workspace: Workspace | null;
  readonly #listeners = new Map<(progress: Progress) => void, boolean>();
  readonly #awaited = new Map<TurnId, Set<Deferred<Turn>>>();
  #stopListening: () => void = () => undefined;
  #rests = false;
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
    const {
      model,
      system = "",
      tools = [],
      shell,
      impact,
      turn_end,
      limits,
      budgets,
      loops,
      budget,
      onError,
    } = options;
    this.#store = store;
    const broke = onError ?? (() => undefined);
    const { workspace, own_files = [] } = options;
    this.#workspace = workspace === undefined ? null : new Workspace(store, emit, workspace, own_files, broke);
    const files = this.#workspace === null ? [] : fileTools(this.#workspace.folder, workspace?.read_only === true);
    const toolSet = new ToolSet(BUILTIN_TOOLS, [
      ...(shell === undefined ? [] : [shellTool(shell)]),
      ...files,
      ...tools,
    ]);
    const handles = new Handles({
      store,
      emit,
      limits: { ...DEFAULT_HANDLE_LIMITS, ...options.handles },
      files: this.#workspace ?? NO_FILES,
      turnEnd: options.handles_turn_end ?? (() => null),
      broke,
    });
    this.#setting = {
      store,
      emit,
      model,
      system: system.trim() === "" ? BLOCK_EXPLANATION : `${system}\n\n${BLOCK_EXPLANATION}`,
      tools: toolSet,
      handles,
      files: this.#workspace ?? NO_FILES,
      get limits() {
        return { ...DEFAULT_LIMITS, ...now(limits) };
      },
      get budgets() {
        return now(budgets) ?? {};
      },
      get loops() {
        const wanted = now(loops);
        return wanted === null ? null : { ...DEFAULT_LOOPS, ...wanted };
      },
      rateLimits: new RateLimits(),
      compose: composerFor({ ...DEFAULT_BUDGET, ...budget }, () => model.form()),
      lease_ms: policy.leaseMs,
      counters: this.counters,
      health: this.health,
      impactOf: (name) => impact?.(name) ?? toolSet.impactOf(name) ?? "external",
      turnEnd: turn_end ?? (() => "carry"),
      rests: () => this.#rests,
      progress: (progress) => this.#progressed(progress),
      ended: (turn) => this.#ended(turn),
      broke,
      look: (user_id) => this.#waker.look(user_id),
    };
    const runnerOf = (thread_id: ThreadId, user_id: UserId) => this.#runnerOf(thread_id, user_id);
    this.#waker = new Waker(store, runnerOf, broke, () => this.#rests);
  }

  /** How its agent is told. */
  get compose(): Compose {
    return this.#setting.compose;
  }

  async #start(): Promise<void> {
    const queued = await recover(this.#store);
    await this.#setting.handles.recover();
    await this.#workspace?.start();
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

  /** Nothing is begun in any thread until `goOn`; what was begun is brought to its end. */
  rest(): void {
    this.#rests = true;
  }

  /** With what has been said meanwhile, and with what waits. */
  async goOn(): Promise<void> {
    if (!this.#rests) return;
    this.#rests = false;
    const queued = (await this.#store.liveTurns(HOST, null)).filter(({ state }) => state === "queued");
    for (const { thread_id, user_id } of queued) await this.#runnerOf(thread_id, user_id).next();
    await this.#waker.lookAtAll();
  }

  /** The thread is about to be closed: resolves when nothing runs in it any more. */
  async closing(thread_id: string): Promise<void> {
    const id = threadId(thread_id);
    const runner = this.#runners.get(id);
    await runner?.closing();
    this.#runners.delete(id);
    await this.#setting.handles.closeThread(id);
    await this.#workspace?.closeThread(id);
  }

  /** What happens in turns, as it happens. Of those that the user does not see only if `internal` is true. */
  onProgress(listener: (progress: Progress) => void, options: { readonly internal?: boolean } = {}): () => void {
    this.#listeners.set(listener, options.internal === true);
    return () => this.#listeners.delete(listener);
  }

  /** What the user of a thread is being told, as far as it is said; null if nothing is. */
  saying(thread_id: ThreadId): { readonly turn_id: TurnId; readonly text: string } | null {
    return this.#runners.get(thread_id)?.saying ?? null;
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

  /** The store is over, and with it every turn: whoever waits for one is told why. */
  failed(error: Error): void {
    this.#gone = true;
    this.#giveUp(error);
  }

  #giveUp(error: Error): void {
    for (const waiters of this.#awaited.values()) for (const { reject } of waiters) reject(error);
    this.#awaited.clear();
  }

  /** It was over before it began: taken out of the queue, or its thread was closed. */
  turnGone(turn: Turn): void {
    this.#ended(turn);
  }

  /** What it can do beside what is built in. */
  get tools(): readonly AnyTool[] {
    return this.#setting.tools.all;
  }

  /** Whether somebody has it: one that is built in, or a tool. */
  isToolName(name: string): boolean {
    return this.#setting.tools.isTaken(name);
  }

  /** As the operator says, else as the tool does. */
  impactOf(tool: string): Impact {
    return this.#setting.impactOf(tool);
  }

  /** More that it can do, from its next call of the model on. */
  addTools(tools: readonly AnyTool[]): Registration {
    if (this.#closed) throw new TidingsError("closed", "the host was closed");
    return this.#setting.tools.add(tools);
  }

  /** They are removed already: what still goes on of them is brought to its end. */
  async toolsRemoved(tools: readonly AnyTool[]): Promise<void> {
    const { handles } = this.#setting;
    await Promise.all(tools.map((tool) => (isStateful(tool) ? handles.removeTool(tool) : undefined)));
  }

  /** Cuts short what runs; what it held is let go. */
  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.#stopListening();
    await this.#waker.stop();
    await Promise.allSettled([...this.#runners.values()].map((runner) => runner.close()));
    await this.#setting.handles.close();
    await Promise.all(this.tools.map((tool) => (isStateful(tool) ? tool.close?.() : undefined)));
    await this.#workspace?.close();
    this.#gone = true;
    this.#giveUp(new TidingsError("closed", "the host was closed before the turn was over"));
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
    this.#setting.handles.turnEnded(turn);
    for (const { resolve } of this.#awaited.get(turn.id) ?? []) resolve(turn);
    this.#awaited.delete(turn.id);
  }
}
