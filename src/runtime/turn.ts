/** One turn: calls of the model and of its tools, until it has had its say or is cut short. */
import { setMaxListeners } from "node:events";
import type { ChatRequest, ChatResponse, Item, Steer } from "../domain/conversation.js";
import { assert, isMiss } from "../domain/errors.js";
import type { EventInput } from "../domain/event.js";
import type { Point } from "../domain/points.js";
import { HOST } from "../domain/principal.js";
import type { Turn } from "../domain/turn.js";
import { dayOf } from "../domain/usage.js";
import { crashPoint } from "../platform/crashpoint.js";
import { every, pause } from "../platform/timers.js";
import { ModelError, type ModelReport, type Usage } from "../providers/model.js";
import { usageFrom } from "../providers/usage.js";
import type { BegunTurn, EndTurn, TurnStep } from "../store/contract.js";
import { type Done, resultOf, runBatch } from "./batch.js";
import { type Standing, usedUpWords } from "./budgets.js";
import { ACKNOWLEDGE, isBuiltIn } from "./builtin_tools.js";
import { type Answer, type AskedCall, callModel } from "./call.js";
import {
  budgetExceeded,
  callSubject,
  loopDetected,
  rateLimitHit,
  rateLimitLow,
  toolDone,
  toolPending,
} from "./events.js";
import type { Holdings } from "./holdings.js";
import { notRun, partial, requestOf, responseOf, steerRequest, systemRequest } from "./items.js";
import { retryDelay } from "./limits.js";
import type { LoopDetector } from "./loops.js";
import { type Left, type Legacy, LostTurn, TurnRecord } from "./record.js";
import { refuseMore } from "./room.js";
import type { Setting, Shown } from "./setting.js";
import { Spending } from "./spending.js";
import { BACKGROUND, GO_ON, reminderWords, TURN_END } from "./words.js";

/** `calling`: the model answers. `tools`: its tools run. `between`: neither; it goes on at once. */
export type Activity = "calling" | "tools" | "between";

/** Why a turn is cut short. What becomes of it then is its thread's to say. */
export interface Cut {
  readonly why: "critical" | "preempt" | "reply" | "stop" | "closing" | "host_closed";
}

export type RunEnd<Why extends Cut> =
  | { readonly how: "over"; readonly turn: Turn }
  /** It is still active; `left` is what it has yet to record. */
  | {
      readonly how: "cut";
      readonly cut: Why;
      readonly left: Left;
      readonly steers: readonly Steer[];
      /** Whether an answer was cut off. */
      readonly answering: boolean;
      /** Words of the user that are not answered. */
      readonly asked: readonly string[];
    }
  /** It is not ours any more. */
  | { readonly how: "lost" };

/** What is counted of the turns that the system opens by itself. */
export interface SystemCalls {
  /** The model is called in one. */
  called(): void;
  /** Whether there is no room for a call that can be spared. */
  tooMany(): boolean;
}

/** How long tools may take to come to their end when their turn is cut short. */
const TOOL_GRACE_MS = 6_000;

export class TurnRun<Why extends Cut> {
  readonly turn: Turn;
  activity: Activity = "between";
  /** Of the answer that it is giving. */
  said = "";
  readonly #setting: Setting;
  readonly #record: TurnRecord;
  readonly #holdings: Holdings;
  readonly #system: SystemCalls;
  readonly #spending: Spending;
  readonly #loops: LoopDetector;
  readonly #abort = new AbortController();
  #steers: Steer[] = [];
  /** Words of the user that it has yet to answer. */
  #asked: readonly string[];
  /** Aborted when there are words of the user to take up. */
  #spokenTo = new AbortController();
  #steersSoFar = 0;
  #cut: Why | null = null;
  #isLost = false;
  #outOfTime: Standing | null = null;
  #ending = false;
  /** It was cut short, and somebody else goes on with it. */
  #left = false;
  /** What the provider has said of the tokens of the call that is under way. */
  #reported: Usage | null = null;
  #answered = false;
  #retries = 0;
  #resumed = false;
  #reminded = false;
  #stepped = false;
  /** It has waited for what its tools do in the background. */
  #awaited = false;

  constructor(
    setting: Setting,
    begun: BegunTurn,
    legacy: Legacy,
    point: Point,
    system: SystemCalls,
    loops: LoopDetector,
  ) {
    this.turn = begun.turn;
    this.#spending = new Spending(setting, this.turn);
    this.#record = new TurnRecord(setting, begun, legacy, point, () => this.#spending.take());
    this.#loops = loops;
    this.#holdings = legacy.holdings;
    this.#setting = setting;
    this.#system = system;
    this.#asked = begun.turn.source === "user" ? [begun.turn.content] : legacy.asked;
    // Each call of a batch listens.
    setMaxListeners(0, this.#abort.signal);
  }

  /** Why it is to be cut short, if it is. */
  get pendingCut(): Why | null {
    return this.#cut;
  }

  /** What it leaves to the turn that succeeds it. */
  get legacy(): Legacy {
    return this.#record.legacy(this.#asked);
  }

  /** What it has used and has not recorded: for whoever ends it. */
  takeSpent(): Pick<TurnStep, "spent"> {
    return this.#spending.take();
  }

  /** Words of the user for it to take up; false if it is too late for that. */
  async steer(content: string): Promise<boolean> {
    if (this.#ending || this.#isCut) return false;
    refuseMore(this.#steers.length, this.turn.thread_id);
    this.#steersSoFar += 1;
    const steer: Steer = { type: "steer", steer: this.#steersSoFar, content };
    this.#steers.push(steer);
    const answer = await this.#setting.store.stepTurn(HOST, { turn_id: this.turn.id, items: [steer], collect: null });
    if (!isMiss(answer)) {
      this.#spokenTo.abort();
      return true;
    }
    this.#steers = this.#steers.filter((one) => one !== steer);
    return false;
  }

  /** Stops it where it is; false if that is too late. What the user wants goes before what the system does. */
  cut(cut: Why): boolean {
    const first = this.#cut === null || (this.#cut.why === "critical" && !this.#left);
    if (this.#ending || this.#isLost || !first) return false;
    this.#cut = cut;
    this.#abort.abort();
    return true;
  }

  async run(): Promise<RunEnd<Why>> {
    const { lease_ms } = this.#setting;
    crashPoint("turn.begun");
    const stopRenewing = every(Math.max(1, Math.floor(lease_ms / 3)), () => this.#renew());
    this.#spending.watch((standing) => {
      this.#outOfTime = standing;
      this.#abort.abort();
    });
    try {
      return await this.#loop();
    } catch (error) {
      if (!(error instanceof LostTurn)) throw error;
      this.#lose();
      return { how: "lost" };
    } finally {
      stopRenewing();
      this.#spending.stop();
    }
  }

  async #renew(): Promise<void> {
    try {
      const answer = await this.#setting.store.renewTurn(HOST, this.turn.id, this.#setting.lease_ms);
      if (isMiss(answer) && !this.#ending) this.#lose();
    } catch {
      // The store is over, and every other write says so too.
    }
  }

  #lose(): void {
    this.#isLost = true;
    this.#abort.abort();
  }

  get #isCut(): boolean {
    return this.#cut !== null || this.#isLost || this.#outOfTime !== null;
  }

  async #loop(): Promise<RunEnd<Why>> {
    for (;;) {
      const over = await this.#spending.usedUp();
      if (this.#isCut) return await this.#cutShort([], false);
      if (over !== null) return await this.#exceed(over, []);
      const end = await this.#after(await this.#call());
      if (end !== null) return end;
    }
  }

  /** Null: it goes on with another call. */
  #after(answer: Answer): Promise<RunEnd<Why> | null> {
    const usage = answer.how === "whole" ? (answer.usage ?? this.#reported) : this.#reported;
    if (usage !== null) this.#spending.reported(usage);
    switch (answer.how) {
      case "cut":
        return this.#cutShort(partial(answer.text, usage), true);
      case "failed":
        return this.#afterFailure(answer);
      case "whole":
        this.#setting.health.answered(this.#setting.store.now());
        this.#answered = true;
        this.#retries = 0;
        if (answer.text.trim() !== "" && !this.turn.internal) this.#holdings.spoke();
        if (answer.calls.length > 0) return this.#runCalls(answer);
        this.#asked = [];
        return this.#warnAndFinish(responseOf(answer));
    }
  }

  async #call(): Promise<Answer> {
    const { model, system, tools, counters } = this.#setting;
    this.#spending.called();
    this.#reported = null;
    counters.model_calls += 1;
    if (this.turn.source === "system") this.#system.called();
    crashPoint("turn.requested");
    this.#become("calling");
    const messages = this.#record.messages();
    const report = (said: ModelReport) => this.#hear(said);
    const request = { system, tools: tools.declarations, messages, signal: this.#abort.signal, report };
    try {
      return await callModel(model, request, {
        started: (form) => this.#record.sent(form),
        text: (delta) => {
          const offset = this.said.length;
          this.said += delta;
          this.#show({ type: "text", delta, offset });
        },
        call: ({ id, name, input }) => this.#show({ type: "call", id, name, input }),
      });
    } finally {
      // From here on it is an item, or nothing.
      this.said = "";
      this.#become("between");
    }
  }

  #hear(report: ModelReport): void {
    if (report.type === "usage") {
      this.#reported = usageFrom(report.usage.input, report.usage.output) ?? this.#reported;
      return;
    }
    const { store, model, rateLimits } = this.#setting;
    for (const limit of rateLimits.low(this.turn.thread_id, report.limits, store.now()))
      this.#record.report(rateLimitLow(this.turn, model.provider, limit));
  }

  #become(activity: Activity): void {
    this.activity = activity;
    if (activity === "calling") this.#setting.look(this.turn.user_id);
  }

  async #runCalls(answer: Answer & { how: "whole" }): Promise<RunEnd<Why> | null> {
    const { calls } = answer;
    const pending = calls.filter((call) => !this.#isBuiltIn(call)).map((call) => toolPending(this.turn, call));
    await this.#record.step([responseOf(answer), ...calls.map(requestOf)], null, pending);
    crashPoint("turn.answered");
    if (this.#isCut) return this.#cutShort(calls.map(notRun), false);
    // While the tools run, so that it is collected with their results.
    const warned = Promise.all([this.#spending.warn(), this.#lookForLoops(calls)]);
    this.#become("tools");
    const done = await runBatch({
      setting: this.#setting,
      turn: this.turn,
      holdings: this.#holdings,
      calls,
      cut: this.#abort.signal,
      spokenTo: this.#spokenTo.signal,
      grace_ms: () => (this.#cut?.why === "host_closed" || this.#isLost ? 0 : TOOL_GRACE_MS),
      record: (items) => this.#record.step(items, null),
    });
    this.#become("between");
    await warned;
    const results = done.map(resultOf);
    const { events, observed } = this.#outcomes(done);
    if (this.#isCut) {
      for (const event of events) this.#record.report(event);
      return this.#cutShort(results, false, observed);
    }
    const steers = this.#takeSteers();
    // Whoever only acknowledges is about to end: were it told what came meanwhile, one call would follow another.
    const acknowledges = calls.every(({ name }) => name === ACKNOWLEDGE);
    const point = steers.length > 0 ? "user_message" : acknowledges ? null : "after_tool";
    await this.#record.step([...results, ...steers], point, events, observed);
    return null;
  }

  /** What the agent has seen itself it is not told again: recorded with the results, before anything is collected. */
  #outcomes(done: readonly Done[]): { events: EventInput[]; observed: string[] } {
    const tools = done.filter(({ call }) => !this.#isBuiltIn(call));
    const failed = tools.filter(({ outcome }) => outcome.how !== "success").map(({ call }) => callSubject(call));
    return {
      events: tools.map(({ call, outcome, bound }) => toolDone(this.turn, call, outcome, bound)),
      observed: [...failed, ...done.flatMap(({ outcome }) => outcome.observed ?? [])],
    };
  }

  /** Resolves when what is found can be collected. */
  async #lookForLoops(calls: readonly AskedCall[]): Promise<void> {
    const { loops: options, emit, store } = this.#setting;
    if (options === null) return;
    const found = calls
      .filter((call) => !this.#isBuiltIn(call))
      .flatMap((call) => this.#loops.called(call, store.now(), options) ?? []);
    await Promise.allSettled(found.map(async (loop) => emit(loopDetected(this.turn, loop, options))));
  }

  #isBuiltIn({ name }: AskedCall): boolean {
    return isBuiltIn(name) || this.#setting.tools.isAwait(name);
  }

  /** What outlasts the turn is told in the next one. */
  async #warnAndFinish(response: ChatResponse): Promise<RunEnd<Why> | null> {
    await this.#spending.warn(["thread", "day"]);
    return this.#finish(response);
  }

  /** The model has nothing more to do; whether the turn is over is another thing. */
  async #finish(response: ChatResponse): Promise<RunEnd<Why> | null> {
    const unheard = this.#takeSteers();
    if (unheard.length > 0) {
      await this.#record.step([response, ...unheard], "user_message");
      return null;
    }
    const owed = this.#holdings.unacknowledged();
    // In a storm what is owed goes to the user without a further word.
    if (owed.length > 0 && !this.#reminded && !(this.turn.source === "system" && this.#system.tooMany())) {
      this.#reminded = true;
      await this.#record.step([response, systemRequest(reminderWords(owed))], null);
      return null;
    }
    if (!this.#awaited) {
      this.#awaited = true;
      const stop = AbortSignal.any([this.#abort.signal, this.#spokenTo.signal]);
      const news = await this.#setting.handles.beforeEnd(this.turn.thread_id, stop);
      if (!news || this.#steers.length > 0 || this.#isCut) return this.#finish(response);
      return this.#tellLast(response, BACKGROUND);
    }
    if (this.#setting.turnEnd() === "step" && !this.#stepped) {
      this.#stepped = true;
      const ready = await this.#setting.store.isReady(HOST, this.turn.thread_id, "turn_end");
      return ready ? this.#tellLast(response, TURN_END) : this.#finish(response);
    }
    return this.#end("completed", [response], null);
  }

  /** What waits for the end of the turn. */
  async #tellLast(response: ChatResponse, words: string): Promise<RunEnd<Why> | null> {
    const carrier = await this.#record.step([response, systemRequest(words)], "turn_end");
    if (carrier !== null) return null;
    // It was withdrawn meanwhile; what the user has said meanwhile was not.
    const late = this.#takeSteers();
    if (late.length === 0) return this.#end("completed", [], null);
    await this.#record.step(late, "user_message");
    return null;
  }

  async #afterFailure({ started, text, error }: Answer & { how: "failed" }): Promise<RunEnd<Why> | null> {
    const { limits, counters, health, store } = this.#setting;
    const message = error instanceof Error ? error.message : String(error);
    health.failed(error, store.now());
    if (error instanceof ModelError && error.rate_limited)
      this.#record.report(rateLimitHit(this.turn, this.#setting.model.provider, error));
    if (!started) await this.#record.unsend(message);
    const said = partial(text, this.#reported);
    if (this.#isCut) return this.#cutShort(said, true);
    const again = started ? !this.#resumed : this.#retries < limits.retries && this.#hasMore();
    const transient = error instanceof ModelError && error.kind === "transient";
    if (!transient || !again) return this.#fail(message, said);
    const delay = retryDelay(limits, this.#retries, error.retry_after_ms);
    this.#retries += 1;
    counters.retries += 1;
    if (started) {
      this.#resumed = true;
      if (text.trim() !== "") await this.#record.step([...said, systemRequest(GO_ON)], null);
    }
    await pause(delay, this.#abort.signal);
    if (!started && !this.#isCut) await this.#record.collectAgain();
    return null;
  }

  /** Whether there is anything to say if what was to be told is not: a turn of the system's own has no other reason. */
  #hasMore(): boolean {
    return this.turn.source === "user" || this.#answered || this.#resumed || !this.#holdings.isEmpty;
  }

  #exceed(over: Standing, items: readonly Item[], observed: readonly string[] = []): Promise<RunEnd<Why>> {
    this.#record.report(budgetExceeded(this.turn, over, dayOf(this.#setting.store.now())));
    return this.#fail(usedUpWords(over), items, observed);
  }

  /** Words of the user that it has not taken up stay in the conversation. */
  #fail(note: string, items: readonly Item[], observed: readonly string[] = []): Promise<RunEnd<Why>> {
    return this.#end("failed", [...items, ...this.#takeSteers()], note, observed);
  }

  async #end(
    state: EndTurn["state"],
    items: readonly Item[],
    note: string | null,
    observed: readonly string[] = [],
  ): Promise<RunEnd<Why>> {
    if (state === "completed" && this.#cut !== null) return this.#cutShort(items, false);
    this.#ending = true;
    // That one was not begun for want of a budget, and the next, is nothing that the agent is to hear each time.
    const isNews = this.#spending.hasCalled;
    return { how: "over", turn: await this.#record.end(state, { items, observed }, note, isNews) };
  }

  /** Somebody else says what becomes of it now, unless its time is up or it is lost: then nobody sees its last items. */
  async #cutShort(items: readonly Item[], answering: boolean, observed: readonly string[] = []): Promise<RunEnd<Why>> {
    if (this.#isLost) return { how: "lost" };
    if (this.#cut === null) {
      assert(this.#outOfTime !== null, "a turn is cut short for a reason");
      return this.#exceed(this.#outOfTime, items, observed);
    }
    const steers = this.#steers;
    this.#steers = [];
    this.#left = true;
    this.#asked = [...this.#asked, ...steers.map(({ content }) => content)];
    return { how: "cut", cut: this.#cut, left: { items, observed }, steers, answering, asked: this.#asked };
  }

  #takeSteers(): ChatRequest[] {
    const taken = this.#steers;
    this.#steers = [];
    this.#asked = [...this.#asked, ...taken.map(({ content }) => content)];
    this.#spokenTo = new AbortController();
    return taken.map(steerRequest);
  }

  #show(shown: Shown): void {
    const { thread_id, user_id, internal, id } = this.turn;
    this.#setting.progress({ thread_id, user_id, internal, turn_id: id, ...shown });
  }
}
