/** Events over HTTP: one, or many with an outcome each. */
import { InvalidInputError, OverloadedError, TidingsError } from "../domain/errors.js";
import type { EventInput } from "../domain/event.js";
import type { EmitAnswer } from "../tidings.js";
import type { Caller } from "./access.js";
import type { ServerLimits } from "./limits.js";
import type { RateLimit } from "./rate.js";
import { publicReport } from "./wire.js";

/** How long somebody waits who came when too much was waiting already. */
const QUEUE_RETRY_MS = 1_000;

export class Ingest {
  readonly #limits: ServerLimits;
  readonly #rate: RateLimit;
  #waiting = 0;

  constructor(limits: ServerLimits, rate: RateLimit) {
    this.#limits = limits;
    this.#rate = rate;
  }

  /** What `POST /v1/events` answers, after the commit. */
  async take(caller: Caller, body: unknown): Promise<unknown> {
    caller.mustHave("ingest");
    const events = Array.isArray(body) ? body.length : 1;
    const { eventsPerRequest } = this.#limits;
    if (events === 0 || events > eventsPerRequest)
      throw new InvalidInputError("", `holds ${events} events; send 1 to ${eventsPerRequest} at once`);
    this.#admit(caller, events);
    this.#waiting += events;
    try {
      return Array.isArray(body) ? await many(caller, body) : await one(caller, body);
    } finally {
      this.#waiting -= events;
    }
  }

  #admit(caller: Caller, events: number): void {
    if (this.#waiting + events > this.#limits.eventsWaiting)
      throw new OverloadedError(`${this.#waiting} events wait for their commit; try again`, QUEUE_RETRY_MS);
    const waitMs = this.#rate.take(caller.token_id ?? "", events);
    if (waitMs > 0)
      throw new OverloadedError(`more than ${this.#limits.ratePerSecond} events a second of one token`, waitMs);
  }
}

function one(caller: Caller, body: unknown): Promise<EmitAnswer> {
  const { to, input } = caller.sending(eventOf(body));
  return to.emit(input);
}

type Outcome = EmitAnswer | { error: unknown };

/** The order of the answers is that of the events; one that is refused does not hold up the others. */
async function many(caller: Caller, bodies: readonly unknown[]): Promise<Outcome[]> {
  const read = bodies.map((body): { input: EventInput } | { error: unknown } => {
    try {
      return { input: caller.sending(eventOf(body)).input };
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
    return "error" in outcome ? { error: publicReport(outcome.error) } : outcome;
  });
}

/** The border checks the rest; what is not even an object is told here. */
function eventOf(body: unknown): EventInput {
  if (typeof body !== "object" || body === null || Array.isArray(body))
    throw new InvalidInputError("", "must be an event: a JSON object with `type` and `source`");
  return body as EventInput;
}
