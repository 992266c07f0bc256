/** A turn's side of the store: what it writes, what it collects with it, and what it holds then. */
import { type Item, isProviderVisible } from "../domain/conversation.js";
import { isMiss } from "../domain/errors.js";
import type { EventInput } from "../domain/event.js";
import type { CarrierId } from "../domain/ids.js";
import type { Point } from "../domain/points.js";
import { HOST } from "../domain/principal.js";
import type { Turn } from "../domain/turn.js";
import { crashPoint } from "../platform/crashpoint.js";
import type { BlockForm, Message } from "../providers/model.js";
import type { BegunTurn, Collected, EndTurn, TurnStep } from "../store/contract.js";
import { report, turnEnded, turnStarted } from "./events.js";
import type { History } from "./history.js";
import { type Holdings, internalOnly } from "./holdings.js";
import { systemRequest } from "./items.js";
import { CANDIDATES, type Setting } from "./setting.js";
import { GO_ON } from "./words.js";

/** The turn is not ours any more. */
export class LostTurn extends Error {}

/** What a turn goes on with. */
export interface Legacy {
  readonly history: History;
  readonly holdings: Holdings;
  /** Carriers of which nobody knows whether they have arrived. */
  readonly unsent: readonly CarrierId[];
  /** Words of the user that were not answered yet. */
  readonly asked: readonly string[];
}

/** What a turn has yet to record when it ends, in one commit. */
export interface Left {
  readonly items: readonly Item[];
  /** What the agent sees by itself with them. */
  readonly observed: readonly string[];
}

/** What was used since it was last asked. */
export type TakeSpent = () => Pick<TurnStep, "spent">;

const NOTE_CHARS_MAX = 500;

export class TurnRecord {
  readonly turn: Turn;
  readonly holdings: Holdings;
  readonly #setting: Setting;
  readonly #spent: TakeSpent;
  readonly #history: History;
  #unsent: CarrierId[];
  #point: Point;
  /** The provider has had the newest message: it stays as it is. */
  #heard = false;
  #announced = false;

  /** `point`: where it began. */
  constructor(setting: Setting, { turn, items, carrier }: BegunTurn, legacy: Legacy, point: Point, spent: TakeSpent) {
    this.#spent = spent;
    this.turn = turn;
    this.holdings = legacy.holdings;
    this.#setting = setting;
    this.#history = legacy.history;
    this.#unsent = [...legacy.unsent];
    this.#point = point;
    this.#take(items, carrier);
  }

  /** What the turn leaves to the one that succeeds it. */
  legacy(asked: readonly string[]): Legacy {
    return { history: this.#history, holdings: this.holdings, unsent: this.#unsent, asked };
  }

  messages(): readonly Message[] {
    return this.#history.messages();
  }

  /** One commit: what was said and done, what is collected with it, and the events of it. */
  async step(
    items: readonly Item[],
    point: Point | null,
    events: readonly EventInput[] = [],
    observed: readonly string[] = [],
  ): Promise<Collected | null> {
    const { store, compose } = this.#setting;
    const told = this.turn.internal ? internalOnly(compose) : compose;
    const collect = point === null ? null : { point, limit: CANDIDATES, compose: told };
    const stepping = store.stepTurn(HOST, { turn_id: this.turn.id, items, collect, observed, ...this.#spent() });
    this.#announce();
    for (const event of events) this.report(event);
    const answer = await stepping;
    if (isMiss(answer)) throw new LostTurn(answer.message);
    if (point !== null) this.#point = point;
    this.#take(items, answer.carrier);
    return answer.carrier;
  }

  #take(items: readonly Item[], carrier: Collected | null): void {
    this.#history.append(items, carrier);
    if (items.some(isProviderVisible)) this.#heard = false;
    if (carrier === null) return;
    this.holdings.add(carrier);
    this.#unsent.push(carrier.id);
  }

  /** The provider has the request, and with it what was collected. `form`: that of the newest block, if another. */
  async sent(form: BlockForm | null): Promise<void> {
    const newest = this.#unsent.at(-1);
    const sending = this.#unsent.map((id) => this.#setting.store.sendCarrier(HOST, id, id === newest ? form : null));
    this.#announce();
    const outcomes = await Promise.all(sending);
    crashPoint("turn.started");
    for (const outcome of outcomes) if (isMiss(outcome)) throw new LostTurn(outcome.message);
    for (const id of this.#unsent) this.holdings.told(id);
    if (newest !== undefined && form !== null) this.#history.reform(newest, form);
    this.#unsent = [];
    this.#heard = true;
  }

  /** The model was not told: what was in it comes again. */
  async unsend(reason: string): Promise<void> {
    const failing = this.#unsent.map((id) => this.#setting.store.failCarrier(HOST, id, noteOf(reason)));
    this.#announce();
    for (const outcome of await Promise.all(failing)) if (isMiss(outcome)) throw new LostTurn(outcome.message);
    for (const id of this.#unsent) {
      this.#history.withdraw(id);
      this.holdings.released(id);
    }
    this.#unsent = [];
  }

  /** What waits now at the delivery point of the newest request; with words of its own if that was heard before. */
  async collectAgain(): Promise<void> {
    if (!this.#heard) await this.step([], this.#point);
    else if (await this.#setting.store.isReady(HOST, this.turn.thread_id, this.#point))
      await this.step([systemRequest(GO_ON)], this.#point);
  }

  /** `isNews`: whether the next turn is to hear of it. */
  async end(state: EndTurn["state"], left: Left, reason: string | null, isNews: boolean): Promise<Turn> {
    const note = reason === null ? null : noteOf(reason);
    crashPoint("turn.ending");
    const ending = this.#setting.store.endTurn(HOST, {
      turn_id: this.turn.id,
      state,
      note,
      ...left,
      ...this.#spent(),
    });
    this.#announce();
    this.report(turnEnded(this.turn, state, note, isNews));
    const answer = await ending;
    if (isMiss(answer)) throw new LostTurn(answer.message);
    this.#history.append(left.items, null);
    for (const id of this.#unsent) this.#history.withdraw(id);
    return answer;
  }

  /** That it began is told with its first write, not by one more. */
  #announce(): void {
    if (this.#announced) return;
    this.#announced = true;
    this.report(turnStarted(this.turn));
  }

  report(event: EventInput): void {
    report(this.#setting.emit, event);
  }
}

function noteOf(reason: string): string {
  return reason.slice(0, NOTE_CHARS_MAX).toWellFormed();
}
