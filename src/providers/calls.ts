/** Calls as they come in, piece by piece. */
import { InvalidInputError } from "../domain/errors.js";
import { takeJson } from "../domain/json.js";
import type { AssistantMessage, Message, ModelEvent, Original } from "./model.js";

export interface CallPieces {
  id: string;
  name: string;
  /** JSON, once all of it is here. */
  arguments: string;
}

/** How many calls the conversation holds; for servers that give their calls no id. */
export function callsSoFar(messages: readonly Message[]): number {
  return messages.reduce((sum, message) => sum + (message.role === "assistant" ? message.calls.length : 0), 0);
}

/** The whole calls. Where the answer was cut off by a limit, what cannot be read was half made and is left out. */
export function* wholeCalls(calls: Iterable<CallPieces>, cutOff: boolean): Generator<ModelEvent & { type: "call" }> {
  for (const { id, name, arguments: text } of calls) {
    const { input, malformed } = inputOf(text);
    if (malformed === undefined) yield { type: "call", call: { id, name, input } };
    else if (!cutOff) yield { type: "call", call: { id, name, input }, malformed };
  }
}

function inputOf(text: string) {
  if (text.trim() === "") return { input: {} };
  try {
    return { input: takeJson(JSON.parse(text), "arguments") };
  } catch (error) {
    if (error instanceof InvalidInputError) return { input: {}, malformed: error.message };
    if (error instanceof SyntaxError) return { input: {}, malformed: `arguments: are not JSON (${error.message})` };
    throw error;
  }
}

/** The original of an answer, if this model gave it and its calls are all still there. */
export function originalFor(
  message: AssistantMessage,
  provider: string,
  model: string,
  idOf: (part: Original["parts"][number]) => unknown,
): Original["parts"] | undefined {
  const { original, calls } = message;
  if (original === undefined || original.provider !== provider || original.model !== model) return undefined;
  const ids = original.parts.map(idOf).filter((id) => id !== undefined);
  const same = ids.length === calls.length && calls.every(({ id }, index) => id === ids[index]);
  return same && original.parts.length > 0 ? original.parts : undefined;
}
