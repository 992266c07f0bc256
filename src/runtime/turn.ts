/** One turn: calls of the model and of its tools, until it has had its say or is cut short. */
import type { ChatRequest, ChatResponse, Item, Steer } from "../domain/conversation.js";
import { isMiss } from "../domain/errors.js";
import type { EventInput } from "../domain/event.js";
import type { CarrierId } from "../domain/ids.js";
import type { Point } from "../domain/points.js";
import { HOST } from "../domain/principal.js";
import type { Turn } from "../domain/turn.js";
import { crashPoint } from "../platform/crashpoint.js";
import { every, later, pause } from "../platform/timers.js";
import { type BlockForm, ModelError } from "../providers/model.js";
import type { BegunTurn, Collected, EndTurn } from "../store/contract.js";
import { type Done, resultOf, runBatch } from "./batch.js";
import { ACKNOWLEDGE, isBuiltIn } from "./builtin_tools.js";
import { type Answer, type AskedCall, callModel } from "./call.js";
import { budgetExceeded, callSubject, toolDone, toolPending, turnEnded, turnStarted } from "./events.js";
import type { History } from "./history.js";
import { type Holdings, internalOnly } from "./holdings.js";
import { type Exceeded, exceeded, retryDelay } from "./limits.js";
import { CANDIDATES, type Setting } from "./setting.js";
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
    }
  /** It is not ours any more. */
  | { readonly how: "lost"; readonly note: string };

/** How long tools may take to come to their end when their turn is cut short. */
const TOOL_GRACE_MS = 6_000;

class LostTurn extends Error {}

export class TurnRun<Why extends Cut> {
  readonly turn: Turn;
  readonly holdings: Holdings;
  activity: Activity = "between";
  readonly #setting: Setting;
  readonly #history: History;
  readonly #called: () => void;
  readonly #abort = new AbortController();
  /** Collected and not yet known to have arrived. */
  #unsent: CarrierId[];
  #steers: Steer[] = [];
  #steersSoFar = 0;
  #cut: Why | null = null;
  #lost: string | null = null;
  #outOfTime = false;
  #ending = false;
  /** It was cut short, and somebody else goes on with it. */
  #left = false;
  #announced = false;
  #point: Point;
  #calls = 0;
  #tokens = 0;
  #answered = false;
  #retries = 0;
  #resumed = false;
  #reminded = false;
  #stepped = false;

  /** `unsent`: carriers of the turn before, which nobody knows to have arrived. */
  constructor(
    setting: Setting,
    { turn, items, carrier }: BegunTurn,
    given: {
      readonly history: History;
      readonly holdings: Holdings;
      readonly unsent: readonly CarrierId[];
      readonly point: Point;
      /** The model is called. */
      readonly called: () => void;
    },
  ) {
    this.turn = turn;
    this.holdings = given.holdings;
    this.#setting = setting;
    this.#history = given.history;
    this.#unsent = [...given.unsent];
    this.#point = given.point;
    this.#called = given.called;
    this.#take(items, carrier);
  }

  /** Why it is to be cut short, if it is. */
  get pendingCut(): Why | null {
    return this.#cut;
  }

  get unsent(): readonly CarrierId[] {
    return this.#unsent;
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
    if (this.#ending || this.#lost !== null || !first) return false;
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
      if (error instanceof LostTurn) return { how: "lost", note: error.message };
      throw error;
    } finally {
      stopRenewing();
      stopTime();
    }
  }

  async #renew(): Promise<void> {
    try {
      const answer = await this.#setting.store.renewTurn(HOST, this.turn.id, this.#setting.lease_ms);
      if (isMiss(answer) && !this.#ending) this.#lose(answer.message);
    } catch {
      // The store is over, and every other write says so too.
    }
  }

  #lose(note: string): void {
    this.#lost ??= note;
    this.#abort.abort();
  }

  get #isCut(): boolean {
    return this.#cut !== null || this.#lost !== null || this.#outOfTime;
  }

  async #loop(): Promise<RunEnd<Why>> {
    for (;;) {
      if (this.#isCut) return await this.#cutShort([], false);
      const over = exceeded(this.#setting.limits, { iterations: this.#calls, tokens: this.#tokens });
      if (over !== null) return await this.#exceed(over, []);
      const answer = await this.#call();
      const end = await this.#after(answer);
      if (end !== null) return end;
    }
  }

  /** Null: it goes on with another call. */
  async #after(answer: Answer): Promise<RunEnd<Why> | null> {
    switch (answer.how) {
      case "cut":
        return this.#cutShort(partial(answer.text), true);
      case "failed":
        return this.#afterFailure(answer);
      case "whole":
        this.#answered = true;
        this.#retries = 0;
        this.#tokens += answer.usage === null ? 0 : answer.usage.input + answer.usage.output;
        if (answer.text.trim() !== "" && !this.turn.internal) this.holdings.spoke();
        return answer.calls.length === 0 ? this.#finish(responseOf(answer)) : this.#runCalls(answer);
    }
  }

  async #call(): Promise<Answer> {
    const { model, system, tools, counters } = this.#setting;
    this.#calls += 1;
    counters.model_calls += 1;
    this.#called();
    crashPoint("turn.requested");
    this.#become("calling");
    const request = {
      system,
      tools: tools.declarations,
      messages: this.#history.messages(),
      signal: this.#abort.signal,
    };
    try {
      return await callModel(model, request, {
        started: (form) => this.#sent(form),
        text: (delta) => this.#progress({ type: "text", delta }),
        call: ({ id, name, input }) => this.#progress({ type: "call", id, name, input }),
      });
    } finally {
      this.#become("between");
    }
  }

  #become(activity: Activity): void {
    this.activity = activity;
    if (activity === "calling") this.#setting.look(this.turn.user_id);
  }

  /** The provider has the request, and with it what was collected. */
  async #sent(form: BlockForm | null): Promise<void> {
    const newest = this.#unsent.at(-1);
    const sending = this.#unsent.map((id) => this.#setting.store.sendCarrier(HOST, id, id === newest ? form : null));
    this.#announce();
    const outcomes = await Promise.all(sending);
    crashPoint("turn.started");
    for (const outcome of outcomes) if (isMiss(outcome)) throw this.#lostBy(outcome.message);
    for (const id of this.#unsent) this.holdings.told(id);
    if (newest !== undefined && form !== null) this.#history.reform(newest, form);
    this.#unsent = [];
  }

  #lostBy(message: string): LostTurn {
    this.#lose(message);
    return new LostTurn(message);
  }

  async #runCalls(answer: Answer & { how: "whole" }): Promise<RunEnd<Why> | null> {
    const { calls } = answer;
    const tools = calls.filter(({ name }) => !isBuiltIn(name));
    await this.#step(
      [responseOf(answer), ...calls.map(requestOf)],
      null,
      tools.map((call) => toolPending(this.turn, call)),
    );
    crashPoint("turn.answered");
    if (this.#isCut) return this.#cutShort(calls.map(notRun), false);
    this.#become("tools");
    const done = await runBatch({
      setting: this.#setting,
      turn: this.turn,
      holdings: this.holdings,
      calls,
      cut: this.#abort.signal,
      grace_ms: () => (this.#cut?.why === "host_closed" || this.#lost !== null ? 0 : TOOL_GRACE_MS),
      record: (items) => this.#step(items, null),
    });
    this.#become("between");
    const results = done.map(resultOf);
    const events = this.#outcomes(done);
    if (this.#isCut) {
      for (const event of events) this.#report(event);
      return this.#cutShort(results, false);
    }
    const steers = this.#takeSteers();
    // Whoever only acknowledges is about to end: what comes meanwhile is not put off, nor does it make one call after another.
    const acknowledges = calls.every(({ name }) => name === ACKNOWLEDGE);
    const point = steers.length > 0 ? "user_message" : acknowledges ? null : "after_tool";
    await this.#step([...results, ...steers], point, events);
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
    const { store } = this.#setting;
    const unheard = this.#takeSteers();
    if (unheard.length > 0) {
      await this.#step([response, ...unheard], "user_message");
      return null;
    }
    const owed = this.holdings.unacknowledged();
    if (owed.length > 0 && !this.#reminded) {
      this.#reminded = true;
      await this.#step([response, systemRequest(reminderWords(owed))], null);
      return null;
    }
    if (this.#setting.turnEnd() === "step" && !this.#stepped) {
      this.#stepped = true;
      if (await store.isReady(HOST, this.turn.thread_id, "turn_end")) {
        const carrier = await this.#step([response, systemRequest(TURN_END)], "turn_end");
        return carrier === null ? this.#end("completed", [], null) : null;
      }
      if (this.#steers.length > 0 || this.#isCut) return this.#finish(response);
    }
    return this.#end("completed", [response], null);
  }

  async #afterFailure({ started, text, error }: Answer & { how: "failed" }): Promise<RunEnd<Why> | null> {
    const { limits, counters } = this.#setting;
    const message = error instanceof Error ? error.message : String(error);
    const transient = error instanceof ModelError && error.kind === "transient";
    if (!started) await this.#unsendAll(message);
    if (this.#isCut) return this.#cutShort(partial(text), true);
    const again = started ? !this.#resumed : this.#retries < limits.retries && this.#hasMore();
    if (!transient || !again) return this.#fail(message, partial(text));
    const delay = retryDelay(limits, this.#retries, error.retry_after_ms);
    this.#retries += 1;
    counters.retries += 1;
    if (started) {
      this.#resumed = true;
      if (text.trim() !== "") await this.#step([...partial(text), systemRequest(GO_ON)], null);
    }
    await pause(delay, this.#abort.signal);
    if (this.#isCut) return this.#cutShort([], false);
    if (!started) await this.#step([], this.#point);
    return null;
  }

  /** The model was not told: what was in it comes again. */
  async #unsendAll(reason: string): Promise<void> {
    const note = reason.slice(0, 500).toWellFormed();
    const failing = this.#unsent.map((id) => this.#setting.store.failCarrier(HOST, id, note));
    this.#announce();
    for (const outcome of await Promise.all(failing)) if (isMiss(outcome)) throw this.#lostBy(outcome.message);
    for (const id of this.#unsent) {
      this.#history.withdraw(id);
      this.holdings.released(id);
    }
    this.#unsent = [];
  }

  /** Whether there is anything to say if what was to be told is not: a turn of the system's own has no other reason. */
  #hasMore(): boolean {
    return this.turn.source === "user" || this.#answered || !this.holdings.isEmpty;
  }

  async #exceed(over: Exceeded, items: readonly Item[]): Promise<RunEnd<Why>> {
    this.#report(budgetExceeded(this.turn, over));
    const what = { iteration: "model calls", token: "tokens", timeout: "milliseconds" }[over.budget_type];
    return this.#fail(`the turn had its ${over.limit} ${what}`, items);
  }

  /** Words of the user that it has not taken up stay in the conversation. */
  #fail(note: string, items: readonly Item[]): Promise<RunEnd<Why>> {
    return this.#end("failed", [...items, ...this.#takeSteers()], note.slice(0, 500).toWellFormed());
  }

  async #end(state: EndTurn["state"], items: readonly Item[], note: string | null): Promise<RunEnd<Why>> {
    if (this.#isCut && state === "completed" && !this.#outOfTime) return this.#cutShort(items, false);
    this.#ending = true;
    crashPoint("turn.ending");
    const ending = this.#setting.store.endTurn(HOST, { turn_id: this.turn.id, state, items, note });
    this.#announce();
    this.#report(turnEnded(this.turn, state, note));
    const answer = await ending;
    if (isMiss(answer)) throw this.#lostBy(answer.message);
    this.#history.append(items, null);
    for (const id of this.#unsent) this.#history.withdraw(id);
    return { how: "over", turn: answer };
  }

  /** Somebody else says what becomes of it now, unless its time is up or it is lost. */
  async #cutShort(items: readonly Item[], answering: boolean): Promise<RunEnd<Why>> {
    if (this.#lost !== null) throw new LostTurn(this.#lost);
    if (this.#cut === null) {
      const { time_ms } = this.#setting.limits;
      return this.#exceed({ budget_type: "timeout", current: time_ms, limit: time_ms }, items);
    }
    const steers = this.#steers;
    this.#steers = [];
    this.#left = true;
    return { how: "cut", cut: this.#cut, items, steers, answering };
  }

  /** One commit: what was said and done, what is collected with it, and the events of it. */
  async #step(
    items: readonly Item[],
    point: Point | null,
    events: readonly EventInput[] = [],
  ): Promise<Collected | null> {
    const { store, compose } = this.#setting;
    const told = this.turn.internal ? internalOnly(compose) : compose;
    const collect = point === null ? null : { point, limit: CANDIDATES, compose: told };
    const stepping = store.stepTurn(HOST, { turn_id: this.turn.id, items, collect });
    this.#announce();
    for (const event of events) this.#report(event);
    const answer = await stepping;
    if (isMiss(answer)) throw this.#lostBy(answer.message);
    if (point !== null) this.#point = point;
    this.#take(items, answer.carrier);
    return answer.carrier;
  }

  #take(items: readonly Item[], carrier: Collected | null): void {
    this.#history.append(items, carrier);
    if (carrier === null) return;
    this.holdings.add(carrier);
    this.#unsent.push(carrier.id);
  }

  #takeSteers(): ChatRequest[] {
    const taken = this.#steers;
    this.#steers = [];
    return taken.map(steerRequest);
  }

  /** That it began is told with its first write, not by one more. */
  #announce(): void {
    if (this.#announced) return;
    this.#announced = true;
    this.#report(turnStarted(this.turn));
  }

  #report(event: EventInput): void {
    // An event that is refused, or comes too late, is no reason to end a turn.
    void this.#setting.emit(event).catch(() => undefined);
  }

  #progress(
    what:
      | { readonly type: "text"; readonly delta: string }
      | ({ readonly type: "call" } & Pick<AskedCall, "id" | "name" | "input">),
  ): void {
    const { thread_id, user_id, internal, id } = this.turn;
    this.#setting.progress({ thread_id, user_id, internal, turn_id: id, ...what });
  }
}

/** Words that were for a turn which has not taken them up. */
export function steerRequest({ content, steer }: Steer): ChatRequest {
  return { type: "chat_request", content, source: "user", steer };
}

function systemRequest(content: string): ChatRequest {
  return { type: "chat_request", content, source: "system" };
}

function responseOf({ text, original, usage }: Answer & { how: "whole" }): ChatResponse {
  return {
    type: "chat_response",
    content: text,
    ...(original === null ? {} : { original }),
    ...(usage === null ? {} : { usage }),
  };
}

/** What was said before it was cut off; nothing if nothing was. */
function partial(text: string): ChatResponse[] {
  return text.trim() === "" ? [] : [{ type: "chat_response", content: text, truncated: true }];
}

function requestOf({ id, name, input, malformed }: AskedCall): Item {
  return { type: "tool_call_request", id, name, input, ...(malformed === undefined ? {} : { malformed }) };
}

function notRun({ id, name }: AskedCall): Item {
  return { type: "tool_call_response", id, name, output: "interrupted before it was begun", is_error: true };
}
