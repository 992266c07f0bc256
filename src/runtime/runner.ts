/** One thread's agent: its turns, one at a time, and how one gives way to another. */
import { ConflictError, TidingsError } from "../domain/errors.js";
import type { ThreadId, TurnId, UserId } from "../domain/ids.js";
import { LIMITS } from "../domain/limits.js";
import { HOST, type Principal } from "../domain/principal.js";
import type { Turn } from "../domain/turn.js";
import { later } from "../platform/timers.js";
import { deferred } from "./deferred.js";
import { steerRequest } from "./items.js";
import { type Closing, type CutAnswer, Openings, type Reply, type Run, type ThreadCut } from "./openings.js";
import { isClosed, retryRest } from "./rests.js";
import { refuseMore } from "./room.js";
import type { Setting } from "./setting.js";
import type { Storm } from "./storm.js";
import type { Activity, RunEnd } from "./turn.js";
import { forcingWords } from "./words.js";

/** What a wake has come to. `refused`: not now; somebody else holds the thread, or there was nothing to tell. */
export type Woken = "begun" | "busy" | "refused";

const HELD_RETRY_MS = 1_000;
const CLOSED = "the host was closed";

type CutEnd = RunEnd<ThreadCut> & { how: "cut" };

export class ThreadRunner {
  readonly thread_id: ThreadId;
  readonly user_id: UserId;
  readonly #setting: Setting;
  readonly #openings: Openings;
  #run: Run | null = null;
  #last: Promise<unknown> = Promise.resolve();
  #following: Promise<void> = Promise.resolve();
  #deciding = 0;
  /** Nothing is begun here any more. */
  #closed: Closing | null = null;
  #retries = false;
  /** In a row. */
  #errors = 0;
  #stopRetry: () => void = () => undefined;

  constructor(setting: Setting, thread_id: ThreadId, user_id: UserId) {
    this.#setting = setting;
    this.thread_id = thread_id;
    this.user_id = user_id;
    this.#openings = new Openings(setting, thread_id);
  }

  get activity(): Activity | "idle" {
    return this.#run?.activity ?? "idle";
  }

  /** What the user is being told, as far as it is said. */
  get saying(): { readonly turn_id: TurnId; readonly text: string } | null {
    const run = this.#run;
    if (run === null || run.turn.internal || run.said === "") return null;
    return { turn_id: run.turn.id, text: run.said };
  }

  get storm(): Storm {
    return this.#openings.storm;
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
  interrupt(turn_id: TurnId, content: string | null): Promise<{ readonly answer: Promise<CutAnswer> } | null> {
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
      const run = this.#run;
      if (run === null) return this.#wake(true);
      return run.activity === "calling" && run.cut({ why: "critical" }) ? "begun" : "busy";
    });
  }

  /** Something waits for an idle agent. */
  wake(): Promise<Woken> {
    return this.#alone(async () => (this.#run === null ? this.#wake(false) : "busy"));
  }

  /** Begins what is queued, if it can. */
  next(): Promise<void> {
    return this.#alone(async () => {
      if (this.#run === null) this.#drive(await this.#beginQueued());
    }).catch((error: unknown) => this.#failed(error));
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
    if (this.#closed !== null) throw this.#over(this.#closed);
    const run = this.#run;
    if (run === null) {
      const thread = await store.thread(principal, this.thread_id);
      const live = await store.liveTurns(principal, this.thread_id);
      if (thread.paused_at !== null || live.length > 0 || this.#setting.rests())
        return { turn: await this.#queueIfRoom(principal, content) };
      const begun = await this.#openings.begin({ turn_id: null, source: "user", content, point: "turn_start" });
      this.#drive(begun);
      return { turn: begun?.turn ?? (await this.#queueIfRoom(principal, content)) };
    }
    if (run.turn.internal) {
      const { promise, ...settle } = deferred<CutAnswer>();
      if (run.cut({ why: "preempt", content, ...settle })) return { turn: promise.then(begunBy) };
    }
    return { turn: await this.#queueIfRoom(principal, content) };
  }

  #over({ why }: Closing): TidingsError {
    return why === "closing"
      ? new ConflictError("thread_closed", `thread ${JSON.stringify(this.thread_id)} is being closed; start another`)
      : new TidingsError("closed", CLOSED);
  }

  async #queueIfRoom(principal: Principal, content: string): Promise<Turn> {
    const live = await this.#setting.store.liveTurns(principal, this.thread_id);
    refuseMore(live.filter(({ state }) => state === "queued").length, this.thread_id);
    return this.#queue(principal, content);
  }

  async #queue(principal: Principal, content: string): Promise<Turn> {
    const turn = await this.#setting.store.queueTurn(principal, this.thread_id, content);
    // The turn that was in the way may be over by now.
    void this.next();
    return turn;
  }

  async #steered(content: string, expected: TurnId | null): Promise<Turn | null> {
    const run = this.#run;
    // What the user does not see is not the user's to steer.
    if (run === null || run.turn.internal || (expected !== null && run.turn.id !== expected)) return null;
    return (await run.steer(content)) ? run.turn : null;
  }

  async #wake(forced: boolean): Promise<Woken> {
    if (this.#closed !== null || this.#setting.rests()) return "refused";
    try {
      const run = await this.#openings.wake(forced);
      this.#drive(run);
      return run === null ? "refused" : "begun";
    } catch (error) {
      if (error instanceof ConflictError) return "refused";
      throw error;
    }
  }

  /** Goes on with a turn and all that come of it, until there is none. */
  #drive(first: Run | null): void {
    this.#run = first;
    if (first !== null) this.#following = this.#follow(first);
  }

  async #follow(first: Run): Promise<void> {
    let current = first;
    try {
      for (;;) {
        if (this.#closed !== null) current.cut(this.#closed);
        const end = await current.run();
        const next = await this.#alone(async () => {
          this.#run = await this.#after(current, end);
          return this.#run;
        });
        if (next === null) break;
        current = next;
      }
    } catch (error) {
      // The store is over, or a promise of ours is broken: the turn cannot go on. If it cannot be ended either, its lease runs out.
      await this.#openings
        .stop(current, "failed", { items: [], observed: [] }, "an error of the host")
        .catch(() => undefined);
      this.#run = null;
      this.#openings.forget();
      const { pendingCut } = current;
      if (pendingCut !== null && "reject" in pendingCut) pendingCut.reject(error);
      this.#setting.broke(error);
      void this.next();
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
        // Somebody else has ended it, and what is written of it is theirs.
        this.#openings.forget();
        await this.#openings.over(run.turn.id);
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

  async #afterCut(run: Run, end: CutEnd): Promise<Run | null> {
    const { cut, steers, left } = end;
    const kept = { ...left, items: [...left.items, ...steers.map(steerRequest)] };
    switch (cut.why) {
      case "critical": {
        const forced = await this.#openings.succeed(run, kept, "something critical came", {
          turn_id: null,
          source: "system",
          content: forcingWords(leftOpen(run, end)),
          point: "immediate",
        });
        if (forced !== null) return forced;
        await this.#openings.stop(run, "failed", kept, "cut off by something critical, and nothing could follow");
        await this.#askAgain(end.asked);
        return this.#beginQueued();
      }
      case "closing":
        await this.#openings.stop(run, "stopped", kept, "its thread was closed");
        return null;
      case "host_closed":
        await this.#openings.stop(run, "failed", kept, CLOSED);
        return null;
      case "stop":
        await this.#openings.stop(run, "stopped", left, "stopped by the user");
        cut.resolve({ successor: null, unconsumed: steers.map(({ content }) => content) });
        return this.#beginQueued();
      case "reply":
      case "preempt":
        return this.#answer(run, end, cut);
    }
  }

  /** The user has asked, and nobody goes on with it: it waits for a turn of its own. */
  async #askAgain(asked: readonly string[]): Promise<void> {
    if (asked.length === 0) return;
    try {
      const content = asked.join("\n\n").slice(0, LIMITS.contentChars).toWellFormed();
      await this.#setting.store.queueTurn(HOST, this.thread_id, content);
    } catch (error) {
      // In a thread that is closed nothing is answered.
      if (!(error instanceof ConflictError)) throw error;
    }
  }

  /** The user's words go on where the turn was cut off; where they cannot now, they wait. */
  async #answer(run: Run, end: CutEnd, cut: ThreadCut & Reply): Promise<Run | null> {
    const unconsumed = end.steers.map(({ content }) => content);
    const point = cut.why === "reply" ? "user_message" : "turn_start";
    const opening = { turn_id: null, source: "user", content: cut.content, point } as const;
    const successor = await this.#openings.succeed(run, end.left, "the user spoke", opening);
    if (successor === null) await this.#openings.stop(run, "stopped", end.left, "stopped by the user");
    cut.resolve({ successor: successor?.turn ?? (await this.#queue(HOST, cut.content)), unconsumed });
    return successor ?? this.#beginQueued();
  }

  /** The oldest that waits for its thread. */
  async #beginQueued(): Promise<Run | null> {
    if (this.#closed !== null || this.#setting.rests()) return null;
    if (await this.#openings.hasLost()) this.#tryAgain();
    const live = await this.#setting.store.liveTurns(HOST, this.thread_id);
    const turn = live.find(({ state }) => state === "queued");
    if (turn === undefined) return null;
    const { id, content } = turn;
    try {
      const run = await this.#openings.begin({ turn_id: id, source: "user", content, point: "turn_start" });
      this.#errors = 0;
      return run;
    } catch (error) {
      if (!(error instanceof ConflictError)) throw error;
      // Somebody else's agent is at work here, or a turn that is lost is not ended yet. What is paused waits to be resumed.
      if (error.reason === "thread_held" || error.reason === "turn_active") this.#tryAgain();
      return null;
    }
  }

  /** What is queued could not be begun: it is later. */
  #failed(error: unknown): void {
    if (isClosed(error) || this.#closed !== null) return;
    this.#errors += 1;
    this.#setting.broke(error);
    this.#tryAgain(retryRest(this.#errors));
  }

  #tryAgain(delay_ms = HELD_RETRY_MS): void {
    this.#stopRetry();
    this.#retries = true;
    this.#stopRetry = later(delay_ms, () => {
      this.#retries = false;
      void this.next();
    });
  }
}

/** What the turn that was cut off leaves to be said to the user. */
function leftOpen({ turn }: Run, { asked, answering }: CutEnd): "question" | "words" | null {
  if (asked.length > 0) return "question";
  return answering && !turn.internal ? "words" : null;
}

function begunBy({ successor }: CutAnswer): Turn {
  if (successor === null) throw new ConflictError("turn_not_active", "the turn was over before it began");
  return successor;
}
