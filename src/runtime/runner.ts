/** One thread's agent: its turns, one at a time, and how one gives way to another. */
import type { Item } from "../domain/conversation.js";
import { ConflictError, isMiss, TidingsError } from "../domain/errors.js";
import type { CarrierId, ThreadId, TurnId, UserId } from "../domain/ids.js";
import type { Point } from "../domain/points.js";
import { HOST, type Principal } from "../domain/principal.js";
import type { ChatSource, Turn } from "../domain/turn.js";
import { later } from "../platform/timers.js";
import type { BeginTurn, BegunTurn, EndTurn } from "../store/contract.js";
import { deferred } from "./deferred.js";
import { turnEnded } from "./events.js";
import { History } from "./history.js";
import { Holdings } from "./holdings.js";
import { CANDIDATES, OWNER, type Setting } from "./setting.js";
import { Storm } from "./storm.js";
import { type Activity, type RunEnd, steerRequest, TurnRun } from "./turn.js";
import { forcingWords, openingWords } from "./words.js";

/** What the user gets for cutting a turn short. */
interface CutAnswer {
  readonly successor: Turn | null;
  readonly unconsumed: string[];
}

interface Reply {
  /** What is said next; the system words its own. */
  readonly content: string;
  resolve(answer: CutAnswer): void;
  reject(error: unknown): void;
}

interface Closing {
  readonly why: "closing" | "host_closed";
}

type ThreadCut =
  | { readonly why: "critical" }
  | Closing
  | ({ readonly why: "preempt" | "reply" | "stop" } & Reply);

type Run = TurnRun<ThreadCut>;

/** How a turn begins that is not the system's own. */
type Opening = Pick<BeginTurn, "turn_id" | "content" | "point"> & { readonly source: ChatSource };

/** What a wake has come to. `refused`: not now; somebody else holds the thread, or there was nothing to tell. */
export type Woken = "begun" | "busy" | "refused";

const HELD_RETRY_MS = 1_000;
const CLOSED = "the host was closed";

export class ThreadRunner {
  readonly thread_id: ThreadId;
  readonly user_id: UserId;
  readonly storm = new Storm();
  readonly #setting: Setting;
  #run: Run | null = null;
  #history: History | null = null;
  #last: Promise<unknown> = Promise.resolve();
  #following: Promise<void> = Promise.resolve();
  #deciding = 0;
  /** Nothing is begun here any more. */
  #closed: Closing | null = null;
  #retries = false;
  #stopRetry: () => void = () => undefined;

  constructor(setting: Setting, thread_id: ThreadId, user_id: UserId) {
    this.#setting = setting;
    this.thread_id = thread_id;
    this.user_id = user_id;
  }

  get activity(): Activity | "idle" {
    return this.#run?.activity ?? "idle";
  }

  /** Nothing runs, and nothing is being decided. */
  get isIdle(): boolean {
    return this.#run === null && this.#deciding === 0 && !this.#retries;
  }

  /** A user's message: a turn, or the wish for one. What the user does not see gives way to it. */
  async start(principal: Principal, content: string): Promise<Turn> {
    const { turn } = await this.#alone(() => this.#startOrQueue(principal, content));
    return turn;
  }

  /** Words for the running turn. */
  async steer(content: string, expected: TurnId | null): Promise<Turn> {
    const steered = await this.#alone(() => this.#steered(content, expected));
    if (steered !== null) return steered;
    throw new ConflictError("turn_not_active", "no turn is active that could take this up; start one");
  }

  /** To the running turn if there is one, else a turn of its own. */
  async deliver(principal: Principal, content: string): Promise<{ turn: Turn; how: "started" | "queued" | "steered" }> {
    const delivered = await this.#alone(async () => {
      const steered = await this.#steered(content, null);
      return steered === null ? this.#startOrQueue(principal, content) : { turn: steered, steered: true };
    });
    const turn = await delivered.turn;
    if ("steered" in delivered) return { turn, how: "steered" };
    return { turn, how: turn.state === "queued" ? "queued" : "started" };
  }

  /** Null: it is not what runs here, or it is ending by itself. */
  async interrupt(turn_id: TurnId, content: string | null): Promise<{ readonly answer: Promise<CutAnswer> } | null> {
    return this.#alone(async () => {
      const run = this.#run;
      if (run?.turn.id !== turn_id) return null;
      const { promise, ...settle } = deferred<CutAnswer>();
      const why = content === null ? "stop" : "reply";
      return run.cut({ why, content: content ?? "", ...settle }) ? { answer: promise } : null;
    });
  }

  /** Something critical is there. */
  force(): Promise<Woken> {
    return this.#alone(async () => {
      if (this.#closed !== null) return "refused";
      const run = this.#run;
      if (run === null) return this.#wake(true);
      return run.activity === "calling" && run.cut({ why: "critical" }) ? "begun" : "busy";
    });
  }

  /** Something waits for an idle agent. */
  wake(): Promise<Woken> {
    return this.#alone(async () => {
      if (this.#closed !== null) return "refused";
      return this.#run === null ? this.#wake(false) : "busy";
    });
  }

  /** Begins what is queued, if it can. */
  next(): Promise<void> {
    return this.#alone(async () => {
      if (this.#run === null && this.#closed === null) this.#drive(await this.#beginQueued());
    });
  }

  /** The thread is being closed: what runs in it is stopped. */
  closing(): Promise<void> {
    return this.#close({ why: "closing" });
  }

  close(): Promise<void> {
    return this.#close({ why: "host_closed" });
  }

  async #close(cut: Closing): Promise<void> {
    this.#closed = cut;
    this.#stopRetry();
    // One that begins meanwhile is cut short too.
    await this.#alone(async () => this.#run?.cut(cut));
    await this.#following;
  }

  /** One thing at a time is decided here. */
  #alone<Value>(task: () => Promise<Value>): Promise<Value> {
    this.#deciding += 1;
    const result = this.#last.then(task).finally(() => {
      this.#deciding -= 1;
    });
    this.#last = result.catch(() => undefined);
    return result;
  }

  /** Wrapped: whoever waits for it must not keep others waiting. */
  async #startOrQueue(principal: Principal, content: string): Promise<{ readonly turn: Promise<Turn> | Turn }> {
    const { store } = this.#setting;
    if (this.#closed !== null) throw new TidingsError("closed", CLOSED);
    const run = this.#run;
    if (run === null) {
      const thread = await store.thread(principal, this.thread_id);
      const live = await store.liveTurns(principal, this.thread_id);
      if (thread.paused_at !== null || live.length > 0) return { turn: await this.#queue(principal, content) };
      const begun = await this.#begin({ turn_id: null, source: "user", content, point: "turn_start" });
      this.#drive(begun);
      return { turn: begun.turn };
    }
    if (run.turn.internal) {
      const { promise, ...settle } = deferred<CutAnswer>();
      if (run.cut({ why: "preempt", content, ...settle })) return { turn: promise.then(begunBy) };
    }
    return { turn: await this.#queue(principal, content) };
  }

  async #queue(principal: Principal, content: string): Promise<Turn> {
    const turn = await this.#setting.store.queueTurn(principal, this.thread_id, content);
    // The turn that was in the way may be over by now.
    void this.next().catch(() => undefined);
    return turn;
  }

  async #steered(content: string, expected: TurnId | null): Promise<Turn | null> {
    const run = this.#run;
    // What the user does not see is not the user's to steer.
    if (run === null || run.turn.internal || (expected !== null && run.turn.id !== expected)) return null;
    return (await run.steer(content)) ? run.turn : null;
  }

  async #wake(forced: boolean): Promise<Woken> {
    const { counters, store } = this.#setting;
    const request: Opening = {
      turn_id: null,
      source: "system",
      content: (told) => openingWords(told, forced),
      point: forced ? "immediate" : "turn_start",
    };
    try {
      this.#history ??= await History.load(store, HOST, this.thread_id);
      const begun = await this.#ask(request, null);
      if (begun === null) return "refused";
      if (forced) {
        counters.forced_turns += 1;
        this.storm.forced(store.now());
      } else counters.wakes += 1;
      this.#drive(this.#runOf(begun, request.point, new Holdings(), []));
      return "begun";
    } catch (error) {
      if (error instanceof ConflictError) return "refused";
      throw error;
    }
  }

  async #begin(opening: Opening): Promise<Run> {
    this.#history ??= await History.load(this.#setting.store, HOST, this.thread_id);
    const begun = await this.#ask(opening, null);
    if (begun === null) throw new ConflictError("turn_not_active", "there was nothing to begin a turn with");
    this.storm.reset();
    return this.#runOf(begun, opening.point, new Holdings(), []);
  }

  #ask(opening: Opening, succeeds: BeginTurn["succeeds"]): Promise<BegunTurn | null> {
    const { store, compose, lease_ms } = this.#setting;
    const { thread_id } = this;
    return store.beginTurn(HOST, {
      ...opening,
      thread_id,
      limit: CANDIDATES,
      compose,
      owner: OWNER,
      lease_ms,
      succeeds,
    });
  }

  #runOf(begun: BegunTurn, point: Point, holdings: Holdings, unsent: readonly CarrierId[]): Run {
    const history = this.#history ?? new History();
    const { storm } = this;
    const { store } = this.#setting;
    const called = () => (begun.turn.source === "system" ? storm.called(store.now()) : undefined);
    return new TurnRun<ThreadCut>(this.#setting, begun, { history, holdings, unsent, point, called });
  }

  /** Goes on with a turn and all that come of it, until there is none. */
  #drive(first: Run | null): void {
    this.#run = first;
    if (first === null) return;
    this.#following = this.#follow(first);
  }

  async #follow(first: Run): Promise<void> {
    let run: Run | null = first;
    let current = first;
    try {
      while (run !== null) {
        current = run;
        if (this.#closed !== null) current.cut(this.#closed);
        const end = await current.run();
        run = await this.#alone(async () => {
          this.#run = await this.#after(current, end);
          return this.#run;
        });
      }
    } catch (error) {
      // The store is over, or we have broken a promise: the journal says what was done, and whoever opens it next goes on.
      this.#run = null;
      this.#history = null;
      const { pendingCut } = current;
      if (pendingCut !== null && "reject" in pendingCut) pendingCut.reject(error);
      this.#setting.broke(error);
    }
    this.#setting.look(this.user_id);
  }

  /** What follows on a turn's end. */
  async #after(run: Run, end: RunEnd<ThreadCut>): Promise<Run | null> {
    switch (end.how) {
      case "over":
        this.#setting.ended(end.turn);
        return this.#beginQueued();
      case "lost": {
        // Somebody else has ended it; what was said in it then is in the journal.
        this.#history = null;
        const turn = await this.#setting.store.turn(HOST, run.turn.id);
        if (turn !== undefined) this.#setting.ended(turn);
        await this.#answerLost(run.pendingCut);
        return this.#beginQueued();
      }
      case "cut":
        return this.#afterCut(run, end);
    }
  }

  /** Whoever wanted to cut it short meanwhile. */
  async #answerLost(cut: ThreadCut | null): Promise<void> {
    if (cut === null || !("resolve" in cut)) return;
    const successor = cut.why === "stop" ? null : await this.#queue(HOST, cut.content);
    cut.resolve({ successor, unconsumed: [] });
  }

  async #afterCut(run: Run, end: RunEnd<ThreadCut> & { how: "cut" }): Promise<Run | null> {
    const { cut, steers } = end;
    const kept: readonly Item[] = [...end.items, ...steers.map(steerRequest)];
    const unconsumed = steers.map(({ content }) => content);
    switch (cut.why) {
      case "critical": {
        const forced = this.#succeed(run, kept, `something critical came`, {
          turn_id: null,
          source: "system",
          content: forcingWords(end.answering && run.turn.source === "user"),
          point: "immediate",
        });
        return (
          (await forced) ?? this.#stop(run, "failed", kept, "it was cut off by something critical, and could not go on")
        );
      }
      case "closing":
        return this.#stop(run, "stopped", kept, "its thread was closed");
      case "host_closed":
        return this.#stop(run, "failed", kept, CLOSED);
      case "stop": {
        const next = await this.#stop(run, "stopped", end.items, "stopped by the user");
        cut.resolve({ successor: null, unconsumed });
        return next;
      }
      case "reply":
      case "preempt":
        return this.#answer(run, end, cut, unconsumed);
    }
  }

  /** The user's words go on where the turn was cut off. */
  async #answer(run: Run, end: RunEnd<ThreadCut> & { how: "cut" }, cut: ThreadCut & Reply, unconsumed: string[]) {
    const point = cut.why === "reply" ? "user_message" : "turn_start";
    const opening: Opening = { turn_id: null, source: "user", content: cut.content, point };
    try {
      const successor = await this.#succeed(run, end.items, "the user spoke", opening);
      if (successor !== null) {
        cut.resolve({ successor: successor.turn, unconsumed });
        return successor;
      }
      // It cannot go on now: the words wait.
      const next = await this.#stop(run, "stopped", end.items, "stopped by the user");
      cut.resolve({ successor: await this.#queue(HOST, cut.content), unconsumed });
      return next;
    } catch (error) {
      cut.reject(error);
      throw error;
    }
  }

  /** Null: the thread takes no turn now. */
  async #succeed(run: Run, items: readonly Item[], note: string, opening: Opening): Promise<Run | null> {
    const { counters, store, emit } = this.#setting;
    let begun: BegunTurn | null;
    try {
      const asking = this.#ask(opening, { turn_id: run.turn.id, items, note });
      void emit(turnEnded(run.turn, "interrupted", note)).catch(() => undefined);
      begun = await asking;
    } catch (error) {
      if (error instanceof ConflictError) return null;
      throw error;
    }
    if (begun === null) return null;
    if (opening.source === "user") this.storm.reset();
    else {
      counters.forced_turns += 1;
      this.storm.forced(store.now());
    }
    this.#history?.append(items, null);
    const before = await store.turn(HOST, run.turn.id);
    if (before !== undefined) this.#setting.ended(before);
    return this.#runOf(begun, opening.point, run.holdings, run.unsent);
  }

  async #stop(run: Run, state: EndTurn["state"], items: readonly Item[], note: string): Promise<Run | null> {
    const { store, emit } = this.#setting;
    const ending = store.endTurn(HOST, { turn_id: run.turn.id, state, items, note });
    void emit(turnEnded(run.turn, state, note)).catch(() => undefined);
    const answer = await ending;
    // In what state its last carriers are is the journal's to say.
    this.#history = null;
    const turn = isMiss(answer) ? await store.turn(HOST, run.turn.id) : answer;
    if (turn !== undefined) this.#setting.ended(turn);
    return this.#beginQueued();
  }

  #tryAgain(): void {
    this.#retries = true;
    this.#stopRetry = later(HELD_RETRY_MS, () => {
      this.#retries = false;
      void this.next().catch(() => undefined);
    });
  }

  /** The oldest that waits for its thread. */
  async #beginQueued(): Promise<Run | null> {
    if (this.#closed !== null) return null;
    const [turn] = (await this.#setting.store.liveTurns(HOST, this.thread_id)).filter(
      ({ state }) => state === "queued",
    );
    if (turn === undefined) return null;
    const { id, content } = turn;
    try {
      return await this.#begin({ turn_id: id, source: "user", content, point: "turn_start" });
    } catch (error) {
      if (!(error instanceof ConflictError)) throw error;
      // Somebody else's agent is at work; what is paused is begun when it is resumed.
      if (error.reason === "thread_held") this.#tryAgain();
      return null;
    }
  }
}

function begunBy({ successor }: CutAnswer): Turn {
  if (successor === null) throw new ConflictError("turn_not_active", "the turn was over before it began");
  return successor;
}
