/** One turn: calls of the model and of its tools, until it has had its say or is cut short. */
import type { ChatRequest, ChatResponse, Item, Steer } from "../domain/conversation.js";
import { isMiss } from "../domain/errors.js";
import type { EventInput } from "../domain/event.js";
import type { Point } from "../domain/points.js";
import { HOST } from "../domain/principal.js";
import type { Turn } from "../domain/turn.js";
import { crashPoint } from "../platform/crashpoint.js";
import { every, later, pause } from "../platform/timers.js";
import { ModelError } from "../providers/model.js";
import type { BegunTurn, EndTurn } from "../store/contract.js";
import { type Done, resultOf, runBatch } from "./batch.js";
import { ACKNOWLEDGE, isBuiltIn } from "./builtin_tools.js";
import { type Answer, callModel } from "./call.js";
import { budgetExceeded, callSubject, toolDone, toolPending } from "./events.js";
import type { Holdings } from "./holdings.js";
import { notRun, partial, requestOf, responseOf, steerRequest, systemRequest } from "./items.js";
import { type Exceeded, exceeded, retryDelay } from "./limits.js";
import { type Legacy, LostTurn, TurnRecord } from "./record.js";
import type { Setting, Shown } from "./setting.js";
import { GO_ON, reminderWords, TURN_END } from "./words.js";

/** `calling`: the model answers. `tools`: its tools run. `between`: neither; it goes on at once. */
export type Activity = "calling" | "tools" | "between";

/** Why a turn is cut short. What becomes of it then is its thread's to say. */
export interface Cut {
  readonly why: "critical" | "preempt" | "reply" | "stop" | "closing" | "host_closed";
}

export type RunEnd<Why extends Cut> =
  | { readonly how: "over"; readonly turn: Turn }
  /** It is still active; `items` are what it has yet to record. */
  | {
      readonly how: "cut";
      readonly cut: Why;
      readonly items: readonly Item[];
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
  readonly #setting: Setting;
  readonly #record: TurnRecord;
  readonly #holdings: Holdings;
  readonly #system: SystemCalls;
  readonly #abort = new AbortController();
  #steers: Steer[] = [];
  /** Words of the user that it has yet to answer. */
  #asked: readonly string[];
  #steersSoFar = 0;
  #cut: Why | null = null;
  #isLost = false;
  #outOfTime = false;
  #ending = false;
  /** It was cut short, and somebody else goes on with it. */
  #left = false;
  #calls = 0;
  #tokens = 0;
  #answered = false;
  #retries = 0;
  #resumed = false;
  #reminded = false;
  #stepped = false;

  constructor(setting: Setting, begun: BegunTurn, legacy: Legacy, point: Point, system: SystemCalls) {
    this.#record = new TurnRecord(setting, begun, legacy, point);
    this.turn = begun.turn;
    this.#holdings = legacy.holdings;
    this.#setting = setting;
    this.#system = system;
    this.#asked = begun.turn.source === "user" ? [begun.turn.content] : legacy.asked;
  }

  /** Why it is to be cut short, if it is. */
  get pendingCut(): Why | null {
    return this.#cut;
  }

  /** What it leaves to the turn that succeeds it. */
  get legacy(): Legacy {
    return this.#record.legacy(this.#asked);
  }

  /** Words of the user for it to take up; false if it is too late for that. */
  async steer(content: string): Promise<boolean> {
    if (this.#ending || this.#isCut) return false;
    this.#steersSoFar += 1;
    const steer: Steer = { type: "steer", steer: this.#steersSoFar, content };
    this.#steers.push(steer);
    const answer = await this.#setting.store.stepTurn(HOST, { turn_id: this.turn.id, items: [steer], collect: null });
    if (!isMiss(answer)) return true;
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
    const { limits, lease_ms } = this.#setting;
    crashPoint("turn.begun");
    const stopRenewing = every(Math.max(1, Math.floor(lease_ms / 3)), () => this.#renew());
    const stopTime = later(limits.time_ms, () => {
      this.#outOfTime = true;
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
      stopTime();
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
    return this.#cut !== null || this.#isLost || this.#outOfTime;
  }

  async #loop(): Promise<RunEnd<Why>> {
    for (;;) {
      if (this.#isCut) return await this.#cutShort([], false);
      const over = exceeded(this.#setting.limits, { iterations: this.#calls, tokens: this.#tokens });
      if (over !== null) return await this.#exceed(over, []);
      const end = await this.#after(await this.#call());
      if (end !== null) return end;
    }
  }

  /** Null: it goes on with another call. */
  #after(answer: Answer): Promise<RunEnd<Why> | null> {
    switch (answer.how) {
      case "cut":
        return this.#cutShort(partial(answer.text), true);
      case "failed":
        return this.#afterFailure(answer);
      case "whole":
        this.#answered = true;
        this.#retries = 0;
        this.#tokens += answer.usage === null ? 0 : answer.usage.input + answer.usage.output;
        if (answer.text.trim() !== "" && !this.turn.internal) this.#holdings.spoke();
        if (answer.calls.length > 0) return this.#runCalls(answer);
        this.#asked = [];
        return this.#finish(responseOf(answer));
    }
  }

  async #call(): Promise<Answer> {
    const { model, system, tools, counters } = this.#setting;
    this.#calls += 1;
    counters.model_calls += 1;
    if (this.turn.source === "system") this.#system.called();
    crashPoint("turn.requested");
    this.#become("calling");
    const messages = this.#record.messages();
    const request = { system, tools: tools.declarations, messages, signal: this.#abort.signal };
    try {
      return await callModel(model, request, {
        started: (form) => this.#record.sent(form),
        text: (delta) => this.#show({ type: "text", delta }),
        call: ({ id, name, input }) => this.#show({ type: "call", id, name, input }),
      });
    } finally {
      this.#become("between");
    }
  }

  #become(activity: Activity): void {
    this.activity = activity;
    if (activity === "calling") this.#setting.look(this.turn.user_id);
  }

  async #runCalls(answer: Answer & { how: "whole" }): Promise<RunEnd<Why> | null> {
    const { calls } = answer;
    const pending = calls.filter(({ name }) => !isBuiltIn(name)).map((call) => toolPending(this.turn, call));
    await this.#record.step([responseOf(answer), ...calls.map(requestOf)], null, pending);
    crashPoint("turn.answered");
    if (this.#isCut) return this.#cutShort(calls.map(notRun), false);
    this.#become("tools");
    const done = await runBatch({
      setting: this.#setting,
      turn: this.turn,
      holdings: this.#holdings,
      calls,
      cut: this.#abort.signal,
      grace_ms: () => (this.#cut?.why === "host_closed" || this.#isLost ? 0 : TOOL_GRACE_MS),
      record: (items) => this.#record.step(items, null),
    });
    this.#become("between");
    const results = done.map(resultOf);
    const events = this.#outcomes(done);
    if (this.#isCut) {
      for (const event of events) this.#record.report(event);
      return this.#cutShort(results, false);
    }
    const steers = this.#takeSteers();
    // Whoever only acknowledges is about to end: were it told what came meanwhile, one call would follow another.
    const acknowledges = calls.every(({ name }) => name === ACKNOWLEDGE);
    const point = steers.length > 0 ? "user_message" : acknowledges ? null : "after_tool";
    await this.#record.step([...results, ...steers], point, events);
    return null;
  }

  /** What the agent has seen itself it is not told again: recorded before anything is collected. */
  #outcomes(done: readonly Done[]): EventInput[] {
    const tools = done.filter(({ call }) => !isBuiltIn(call.name));
    for (const { call, outcome } of tools)
      if (outcome.how !== "success")
        void this.#setting.store.observe(HOST, this.turn.thread_id, callSubject(call)).catch(() => undefined);
    return tools.map(({ call, outcome, bound }) => toolDone(this.turn, call, outcome, bound));
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
    if (this.#setting.turnEnd() === "step" && !this.#stepped) {
      this.#stepped = true;
      if (await this.#setting.store.isReady(HOST, this.turn.thread_id, "turn_end")) {
        const carrier = await this.#record.step([response, systemRequest(TURN_END)], "turn_end");
        if (carrier !== null) return null;
        const late = this.#takeSteers();
        if (late.length === 0) return this.#end("completed", [], null);
        await this.#record.step(late, "user_message");
        return null;
      }
      return this.#finish(response);
    }
    return this.#end("completed", [response], null);
  }

  async #afterFailure({ started, text, error }: Answer & { how: "failed" }): Promise<RunEnd<Why> | null> {
    const { limits, counters } = this.#setting;
    const message = error instanceof Error ? error.message : String(error);
    if (!started) await this.#record.unsend(message);
    if (this.#isCut) return this.#cutShort(partial(text), true);
    const again = started ? !this.#resumed : this.#retries < limits.retries && this.#hasMore();
    const transient = error instanceof ModelError && error.kind === "transient";
    if (!transient || !again) return this.#fail(message, partial(text));
    const delay = retryDelay(limits, this.#retries, error.retry_after_ms);
    this.#retries += 1;
    counters.retries += 1;
    if (started) {
      this.#resumed = true;
      if (text.trim() !== "") await this.#record.step([...partial(text), systemRequest(GO_ON)], null);
    }
    await pause(delay, this.#abort.signal);
    if (!started && !this.#isCut) await this.#record.collectAgain();
    return null;
  }

  /** Whether there is anything to say if what was to be told is not: a turn of the system's own has no other reason. */
  #hasMore(): boolean {
    return this.turn.source === "user" || this.#answered || this.#resumed || !this.#holdings.isEmpty;
  }

  #exceed(over: Exceeded, items: readonly Item[]): Promise<RunEnd<Why>> {
    this.#record.report(budgetExceeded(this.turn, over));
    const what = { iteration: "model calls", token: "tokens", timeout: "milliseconds" }[over.budget_type];
    return this.#fail(`the turn had its ${over.limit} ${what}`, items);
  }

  /** Words of the user that it has not taken up stay in the conversation. */
  #fail(note: string, items: readonly Item[]): Promise<RunEnd<Why>> {
    return this.#end("failed", [...items, ...this.#takeSteers()], note);
  }

  async #end(state: EndTurn["state"], items: readonly Item[], note: string | null): Promise<RunEnd<Why>> {
    if (state === "completed" && this.#cut !== null) return this.#cutShort(items, false);
    this.#ending = true;
    return { how: "over", turn: await this.#record.end(state, items, note) };
  }

  /** Somebody else says what becomes of it now, unless its time is up or it is lost. */
  async #cutShort(items: readonly Item[], answering: boolean): Promise<RunEnd<Why>> {
    if (this.#isLost) return { how: "lost" };
    if (this.#cut === null) {
      const { time_ms } = this.#setting.limits;
      return this.#exceed({ budget_type: "timeout", current: time_ms, limit: time_ms }, items);
    }
    const steers = this.#steers;
    this.#steers = [];
    this.#left = true;
    this.#asked = [...this.#asked, ...steers.map(({ content }) => content)];
    return { how: "cut", cut: this.#cut, items, steers, answering, asked: this.#asked };
  }

  #takeSteers(): ChatRequest[] {
    const taken = this.#steers;
    this.#steers = [];
    this.#asked = [...this.#asked, ...taken.map(({ content }) => content)];
    return taken.map(steerRequest);
  }

  #show(shown: Shown): void {
    const { thread_id, user_id, internal, id } = this.turn;
    this.#setting.progress({ thread_id, user_id, internal, turn_id: id, ...shown });
  }
}
