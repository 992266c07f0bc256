/** A model that answers as the test says, call by call, and remembers what it was asked. */
import type { JsonObject } from "../../src/domain/json.js";
import type { Message, Model, ModelEvent, ModelRequest } from "../../src/providers/model.js";

/** The answer to the call with this number, the first being 0. */
export type Script = (number: number, request: ModelRequest) => AsyncIterable<ModelEvent>;

export class ScriptedModel implements Model {
  readonly provider = "test";
  readonly model = "scripted";
  readonly requests: (readonly Message[])[] = [];
  readonly #script: Script;
  readonly #asked: () => void;

  /** `asked`: each time when it is asked for the form of a block. */
  constructor(script: Script, asked: () => void = () => {}) {
    this.#script = script;
    this.#asked = asked;
  }

  form() {
    this.#asked();
    return "system" as const;
  }

  stream(request: ModelRequest): AsyncIterable<ModelEvent> {
    this.requests.push(structuredClone(request.messages));
    return this.#script(this.requests.length - 1, request);
  }
}

export const STARTED: ModelEvent = { type: "started" };
export const END: ModelEvent = { type: "end", reason: "end", usage: { input: 1, output: 1 } };

export function words(delta: string): ModelEvent {
  return { type: "text", delta };
}

export function calls(id: string, name: string, input: JsonObject = {}): ModelEvent {
  return { type: "call", call: { id, name, input } };
}

export async function* answers(...events: readonly ModelEvent[]): AsyncGenerator<ModelEvent> {
  yield STARTED;
  yield* events;
  yield END;
}

export function aborted({ signal }: ModelRequest): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    signal.addEventListener("abort", () => resolve(), { once: true });
  });
}

/** Something that a test waits for, or lets happen. */
export function signal(): { readonly promise: Promise<void>; readonly give: () => void } {
  let give: () => void = () => {};
  const promise = new Promise<void>((resolve) => {
    give = resolve;
  });
  return { promise, give };
}
