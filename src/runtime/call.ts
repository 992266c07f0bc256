/** One call of the model. */
import type { BlockForm, OriginalAnswer } from "../domain/conversation.js";
import type { JsonObject } from "../domain/json.js";
import { pause } from "../platform/timers.js";
import { type Model, ModelError, type ModelRequest, type Usage } from "../providers/model.js";
import { usageFrom } from "../providers/usage.js";

/** How long a stream may take to end after our abort, or after its own last word; then it is left alone. */
const LEAVE_MS = 1_000;

/** A call that the model wants to be made. */
export interface AskedCall {
  readonly id: string;
  readonly name: string;
  readonly input: JsonObject;
  /** Why its arguments cannot be used. */
  readonly malformed?: string;
}

export type Answer =
  | {
      readonly how: "whole";
      readonly text: string;
      readonly calls: readonly AskedCall[];
      readonly original: OriginalAnswer | null;
      readonly usage: Usage | null;
    }
  /** By our own signal. */
  | { readonly how: "cut"; readonly text: string }
  | { readonly how: "failed"; readonly started: boolean; readonly text: string; readonly error: unknown };

export interface Listening {
  /** The provider has the request; `form`: in which the newest block went out, if in another than it asks for. */
  started(form: BlockForm | null): Promise<void>;
  text(delta: string): void;
  call(call: AskedCall): void;
}

/** Streams one answer to its end, whichever that is. What `listening` throws is thrown. */
export async function callModel(model: Model, request: ModelRequest, listening: Listening): Promise<Answer> {
  const over = new AbortController();
  try {
    return await listened(model, request, listening, deaf(request.signal, over.signal));
  } finally {
    over.abort();
  }
}

/** Resolves if the stream takes no notice of our abort. */
async function deaf(aborted: AbortSignal, over: AbortSignal): Promise<"deaf"> {
  await new Promise<void>((resolve) => {
    if (aborted.aborted) return resolve();
    const either = AbortSignal.any([aborted, over]);
    either.addEventListener("abort", () => resolve(), { once: true });
  });
  await pause(LEAVE_MS, over);
  return "deaf";
}

async function listened(
  model: Model,
  request: ModelRequest,
  listening: Listening,
  deafness: Promise<"deaf">,
): Promise<Answer> {
  const calls: AskedCall[] = [];
  let text = "";
  let started = false;
  let form: BlockForm | null = null;
  const events = model.stream(request)[Symbol.asyncIterator]();
  for (;;) {
    let next: Awaited<ReturnType<typeof events.next>> | "deaf";
    try {
      next = await Promise.race([events.next(), deafness]);
    } catch (error) {
      return request.signal.aborted ? { how: "cut", text } : { how: "failed", started, text, error };
    }
    // What comes after our abort is not listened to.
    if (next === "deaf") return { how: "cut", text };
    if (request.signal.aborted) return await left(events, { how: "cut", text });
    if (next.done) return { how: "failed", started, text, error: brokenOff() };
    const event = next.value;
    switch (event.type) {
      case "downgraded":
        form = event.form;
        break;
      case "started":
        started = true;
        await listening.started(form);
        break;
      case "text":
        text += event.delta;
        listening.text(event.delta);
        break;
      case "call": {
        const call = event.malformed === undefined ? event.call : { ...event.call, malformed: event.malformed };
        // One id is one call: a second could not be answered by itself.
        if (calls.some(({ id }) => id === call.id)) break;
        calls.push(call);
        listening.call(call);
        break;
      }
      case "end": {
        const answer: Answer = {
          how: "whole",
          text,
          calls,
          original: event.original ?? null,
          usage: usageFrom(event.usage?.input, event.usage?.output),
        };
        return await left(events, answer);
      }
    }
  }
}

function brokenOff(): ModelError {
  return new ModelError("transient", "the answer broke off before its end");
}

/** Nobody listens any more; the connection is let go, and not waited for for ever. */
async function left(events: AsyncIterator<unknown>, answer: Answer): Promise<Answer> {
  const gone = new AbortController();
  const letGo = Promise.resolve(events.return?.()).catch(() => undefined);
  await Promise.race([letGo, pause(LEAVE_MS, gone.signal)]).finally(() => gone.abort());
  return answer;
}
