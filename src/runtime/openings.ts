/** How the turns of one thread begin, follow on one another, and are ended from outside. */
import { ConflictError, isMiss } from "../domain/errors.js";
import type { ThreadId, TurnId } from "../domain/ids.js";
import type { Point } from "../domain/points.js";
import { HOST } from "../domain/principal.js";
import type { Turn } from "../domain/turn.js";
import type { BeginTurn, BegunTurn, EndTurn } from "../store/contract.js";
import { report, turnEnded } from "./events.js";
import { History } from "./history.js";
import { Holdings } from "./holdings.js";
import { LoopDetector } from "./loops.js";
import type { Left, Legacy } from "./record.js";
import { CANDIDATES, OWNER, type Setting } from "./setting.js";
import { warnOfDay } from "./spending.js";
import { Storm } from "./storm.js";
import { TurnRun } from "./turn.js";
import { openingWords } from "./words.js";

/** What whoever cuts a turn short gets for it. */
export interface CutAnswer {
  readonly successor: Turn | null;
  readonly unconsumed: string[];
}

export interface Reply {
  /** What is said next. */
  readonly content: string;
  resolve(answer: CutAnswer): void;
  reject(error: unknown): void;
}

export interface Closing {
  readonly why: "closing" | "host_closed";
}

export type ThreadCut =
  | { readonly why: "critical" }
  | Closing
  | ({ readonly why: "preempt" | "reply" | "stop" } & Reply);

export type Run = TurnRun<ThreadCut>;

export type Opening = Pick<BeginTurn, "turn_id" | "content" | "point" | "source">;

export class Openings {
  readonly storm = new Storm();
  readonly #setting: Setting;
  readonly #thread_id: ThreadId;
  /** Null: it is in the store alone. */
  #history: History | null = null;
  readonly #lost = new Set<TurnId>();
  readonly #loops = new LoopDetector();

  constructor(setting: Setting, thread_id: ThreadId) {
    this.#setting = setting;
    this.#thread_id = thread_id;
  }

  /** What is in mind of the conversation may not be what is in the store. */
  forget(): void {
    this.#history = null;
  }

  /** Null: a turn of the system's own accord has nothing to tell. */
  async begin(opening: Opening): Promise<Run | null> {
    this.#history ??= await History.load(this.#setting.store, HOST, this.#thread_id);
    const begun = await this.#ask(opening, null);
    if (begun === null) return null;
    if (opening.source === "user") this.storm.reset();
    return this.#runOf(begun, opening.point, {
      history: this.#history,
      holdings: new Holdings(),
      unsent: [],
      asked: [],
    });
  }

  async wake(forced: boolean): Promise<Run | null> {
    const { counters } = this.#setting;
    const run = await this.begin({
      turn_id: null,
      source: "system",
      content: (told) => openingWords(told, forced),
      point: forced ? "immediate" : "turn_start",
    });
    if (run === null) return null;
    if (forced) this.#forced();
    else counters.wakes += 1;
    return run;
  }

  #forced(): void {
    this.#setting.counters.forced_turns += 1;
    this.storm.forced(this.#setting.store.now());
  }

  /** What the turn holds passes on to another. Null: the thread takes no turn now, and nothing has changed. */
  async succeed(run: Run, left: Left, note: string, opening: Opening): Promise<Run | null> {
    const { emit } = this.#setting;
    let begun: BegunTurn | null;
    try {
      begun = await this.#ask(opening, { turn_id: run.turn.id, note, ...left, ...run.takeSpent() });
    } catch (error) {
      if (error instanceof ConflictError) return null;
      throw error;
    }
    if (begun === null) return null;
    report(emit, turnEnded(run.turn, "interrupted", note));
    if (opening.source === "user") this.storm.reset();
    else this.#forced();
    run.legacy.history.append(left.items, null);
    await this.over(run.turn.id);
    return this.#runOf(begun, opening.point, run.legacy);
  }

  async stop(run: Run, state: EndTurn["state"], left: Left, note: string): Promise<void> {
    const { store, emit } = this.#setting;
    const answer = await store.endTurn(HOST, { turn_id: run.turn.id, state, note, ...left, ...run.takeSpent() });
    if (!isMiss(answer)) report(emit, turnEnded(run.turn, state, note));
    // What became of its last carriers is the journal's to say.
    this.forget();
    await this.over(run.turn.id);
  }

  /** Nobody runs it any more. One that is lost is over when the store has noticed. */
  async over(id: TurnId): Promise<void> {
    const turn = await this.#setting.store.turn(HOST, id);
    if (turn?.state === "active") {
      this.#lost.add(id);
      return;
    }
    this.#lost.delete(id);
    if (turn !== undefined) this.#setting.ended(turn);
  }

  /** Whether there are turns that the store has yet to end. */
  async hasLost(): Promise<boolean> {
    for (const id of this.#lost) await this.over(id);
    return this.#lost.size > 0;
  }

  async #ask(opening: Opening, succeeds: BeginTurn["succeeds"]): Promise<BegunTurn | null> {
    const { store, compose, lease_ms } = this.#setting;
    const thread_id = this.#thread_id;
    await warnOfDay(this.#setting, thread_id);
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

  #runOf(begun: BegunTurn, point: Point, legacy: Legacy): Run {
    const { store } = this.#setting;
    const system = {
      called: () => this.storm.called(store.now()),
      tooMany: () => this.storm.rages(store.now()),
    };
    return new TurnRun<ThreadCut>(this.#setting, begun, legacy, point, system, this.#loops);
  }
}
