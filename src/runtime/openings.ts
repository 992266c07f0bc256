/** How the turns of one thread begin, follow on one another, and are ended from outside. */
import type { Item } from "../domain/conversation.js";
import { ConflictError, isMiss } from "../domain/errors.js";
import type { ThreadId } from "../domain/ids.js";
import type { Point } from "../domain/points.js";
import { HOST } from "../domain/principal.js";
import type { Turn } from "../domain/turn.js";
import type { BeginTurn, BegunTurn, EndTurn } from "../store/contract.js";
import { report, turnEnded } from "./events.js";
import { History } from "./history.js";
import { Holdings } from "./holdings.js";
import type { Legacy } from "./record.js";
import { CANDIDATES, OWNER, type Setting } from "./setting.js";
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
    return this.#runOf(begun, opening.point, { history: this.#history, holdings: new Holdings(), unsent: [] });
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
  async succeed(run: Run, items: readonly Item[], note: string, opening: Opening): Promise<Run | null> {
    const { store, emit, ended } = this.#setting;
    let begun: BegunTurn | null;
    try {
      const asking = this.#ask(opening, { turn_id: run.turn.id, items, note });
      report(emit, turnEnded(run.turn, "interrupted", note));
      begun = await asking;
    } catch (error) {
      if (error instanceof ConflictError) return null;
      throw error;
    }
    if (begun === null) return null;
    if (opening.source === "user") this.storm.reset();
    else this.#forced();
    run.legacy.history.append(items, null);
    const before = await store.turn(HOST, run.turn.id);
    if (before !== undefined) ended(before);
    return this.#runOf(begun, opening.point, run.legacy);
  }

  async stop(run: Run, state: EndTurn["state"], items: readonly Item[], note: string): Promise<void> {
    const { store, emit, ended } = this.#setting;
    const ending = store.endTurn(HOST, { turn_id: run.turn.id, state, items, note });
    report(emit, turnEnded(run.turn, state, note));
    const answer = await ending;
    // What became of its last carriers is the journal's to say.
    this.forget();
    const turn = isMiss(answer) ? await store.turn(HOST, run.turn.id) : answer;
    if (turn !== undefined) ended(turn);
  }

  #ask(opening: Opening, succeeds: BeginTurn["succeeds"]): Promise<BegunTurn | null> {
    const { store, compose, lease_ms } = this.#setting;
    const thread_id = this.#thread_id;
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
    const called = () => {
      if (begun.turn.source === "system") this.storm.called(store.now());
    };
    return new TurnRun<ThreadCut>(this.#setting, begun, legacy, point, called);
  }
}
