/** Events over HTTP: one, or many with an outcome each. */
import { OverloadedError, TidingsError } from "../../domain/errors.js";
import type { EventInput } from "../../domain/event.js";
import type { EmitAnswer, TidingsView } from "../../tidings.js";
import type { Caller } from "../access.js";
import type { EventCounts } from "../event_counts.js";
import type { ServerLimits } from "../limits.js";
import type { RateLimit } from "../rate.js";
import { publicReport } from "../wire.js";
import type { Read, Sent } from "./forms.js";

/** How long somebody waits who came when too much was waiting already. */
const QUEUE_RETRY_MS = 1_000;

export class Ingest {
  readonly #limits: ServerLimits;
  readonly #rate: RateLimit;
  readonly #events: EventCounts;
  #waiting = 0;

  constructor(limits: ServerLimits, rate: RateLimit, events: EventCounts) {
    this.#limits = limits;
    this.#rate = rate;
    this.#events = events;
  }

  /** Events that wait for their commit. */
  get waiting(): number {
    return this.#waiting;
  }

  /** What `POST /v1/events` answers, after the commit. */
  take(caller: Caller, sent: Sent): Promise<unknown> {
    const key = caller.token_id ?? "";
    const taken: Taken = (user_id) => this.#events.add(user_id ?? caller.user_id);
    if ("one" in sent) {
      return this.#within(key, "token", 1, async () => {
        const { to, input } = caller.sending(sent.one);
        const answer = await to.emit(input);
        taken(input.user_id);
        return answer;
      });
    }
    return this.#within(key, "token", sent.many.length, () => many(caller, sent.many, taken));
  }

  /** One event of a hook, within the rate of that hook. */
  takeOf(hook: string, user_id: string, to: TidingsView, input: EventInput): Promise<EmitAnswer> {
    return this.#within(`hook ${hook}`, "hook", 1, async () => {
      const answer = await to.emit(input);
      this.#events.add(user_id);
      return answer;
    });
  }

  /** What a hook's sender has signed, and is no event, costs of the rate of that hook. */
  unreadOf(hook: string): void {
    this.#charge(`hook ${hook}`, "hook", 1);
  }

  #charge(key: string, whose: string, cost: number): void {
    const waitMs = this.#rate.take(key, cost);
    if (waitMs > 0)
      throw new OverloadedError(`more than ${this.#limits.ratePerSecond} events a second of one ${whose}`, waitMs);
  }

  async #within<Answer>(key: string, whose: string, events: number, run: () => Promise<Answer>): Promise<Answer> {
    if (this.#waiting + events > this.#limits.eventsWaiting)
      throw new OverloadedError(`${this.#waiting} events wait for their commit; try again`, QUEUE_RETRY_MS);
    this.#charge(key, whose, Math.max(1, events));
    this.#waiting += events;
    try {
      return await run();
    } finally {
      this.#waiting -= events;
    }
  }
}

/** Is told of each event that was taken in. */
type Taken = (user_id: string | undefined) => void;

type Outcome = EmitAnswer | { error: unknown };

/** The order of the answers is that of the events; one that is refused does not hold up the others. */
async function many(caller: Caller, sent: readonly Read[], taken: Taken): Promise<Outcome[]> {
  const read = sent.map((one): Read => {
    if ("error" in one) return one;
    try {
      return { input: caller.sending(one.input).input };
    } catch (error) {
      if (error instanceof TidingsError) return { error };
      throw error;
    }
  });
  const good = read.flatMap((item) => ("input" in item ? [item.input] : []));
  const outcomes = (await caller.as(undefined).emitMany(good)).values();
  return read.map((item): Outcome => {
    const outcome = "input" in item ? outcomes.next().value : item;
    if (outcome === undefined) throw new TypeError("an event has no outcome");
    if ("error" in outcome) return { error: publicReport(outcome.error) };
    if ("input" in item) taken(item.input.user_id);
    return outcome;
  });
}
