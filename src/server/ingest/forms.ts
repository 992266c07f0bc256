/** In which form events were sent, and what they are. */
import { InvalidInputError, TidingsError } from "../../domain/errors.js";
import type { EventInput } from "../../domain/event.js";
import { type JsonBounds, parseJson } from "../json.js";
import type { ServerLimits } from "../limits.js";
import {
  type AttributeBounds,
  binaryEvent,
  type Headers,
  isBinary,
  mediaTypeOf,
  structuredEvent,
} from "./cloudevents.js";

/** One of many: an event, or why it is none. */
export type Read = { readonly input: EventInput } | { readonly error: TidingsError };

export type Sent = { readonly one: EventInput } | { readonly many: readonly Read[] };

type EventBounds = JsonBounds & AttributeBounds & Pick<ServerLimits, "eventsPerRequest">;

const STRUCTURED = "application/cloudevents+json";
const BATCH = "application/cloudevents-batch+json";

/** How many there are at most is said before any is looked at. */
export function readEvents(headers: Headers, body: Buffer, limits: EventBounds): Sent {
  const { eventsPerRequest: eventsMax } = limits;
  const type = mediaTypeOf(headers["content-type"]?.[0] ?? "");
  if (type === STRUCTURED) return { one: structuredEvent(parseJson(body, limits), limits) };
  if (type === BATCH) return batchOf(parseJson(body, limits), limits);
  if (type.startsWith("application/cloudevents"))
    throw new InvalidInputError("content-type", `must be ${STRUCTURED} or ${BATCH}: of CloudEvents only JSON is read`);
  if (isBinary(headers)) return { one: binaryEvent(headers, body, limits) };
  const sent = parseJson(body, limits);
  if (!Array.isArray(sent)) return { one: plainEvent(sent) };
  if (sent.length === 0) throw counted(0, eventsMax);
  return { many: each(sent, eventsMax, plainEvent) };
}

/** Of CloudEvents there may be none: the specification says so. */
function batchOf(sent: unknown, limits: EventBounds): Sent {
  if (!Array.isArray(sent)) throw new InvalidInputError("", "must be an array of CloudEvents");
  return { many: each(sent, limits.eventsPerRequest, (one) => structuredEvent(one, limits)) };
}

/** One that is none does not hold up the others. */
function each(sent: readonly unknown[], eventsMax: number, read: (value: unknown) => EventInput): Read[] {
  if (sent.length > eventsMax) throw counted(sent.length, eventsMax);
  return sent.map((value): Read => {
    try {
      return { input: read(value) };
    } catch (error) {
      if (error instanceof TidingsError) return { error };
      throw error;
    }
  });
}

function counted(events: number, eventsMax: number): InvalidInputError {
  return new InvalidInputError("", `holds ${events} events; send 1 to ${eventsMax} at once`);
}

/** The border checks the rest; what is not even an object is told here. */
function plainEvent(body: unknown): EventInput {
  if (typeof body !== "object" || body === null || Array.isArray(body))
    throw new InvalidInputError("", "must be an event: a JSON object with `type` and `source`");
  return body as EventInput;
}
