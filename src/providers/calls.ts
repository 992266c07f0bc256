/** Calls as they come in, piece by piece. */
import { InvalidInputError } from "../domain/errors.js";
import { takeJson } from "../domain/json.js";
import type { AssistantMessage, Message, ModelEvent, Original, ToolCall } from "./model.js";
import { orElse } from "./words.js";

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

type Part = Original["parts"][number];

/** How an API has the parts of its answers. */
export interface Parts {
  /** Of a call; undefined: it is none. */
  callId(part: Part): unknown;
  /** A thought is taken back only with what it led to. */
  isThought(part: Part): boolean;
  /** Whether the API takes the call back as it is. */
  isLegal(call: ToolCall): boolean;
}

/** The original of an answer, if this model gave it, its calls are all still there, and it can be sent back. */
export function originalFor(
  message: AssistantMessage,
  provider: string,
  model: string,
  { callId, isThought, isLegal }: Parts,
): Original["parts"] | undefined {
  const { original, calls } = message;
  if (original === undefined || original.provider !== provider || original.model !== model) return undefined;
  const ids = original.parts.map(callId).filter((id) => id !== undefined);
  const same = ids.length === calls.length && calls.every(({ id }, index) => id === ids[index]);
  const last = original.parts.at(-1);
  const usable = last !== undefined && !isThought(last) && calls.every(isLegal);
  return same && usable ? original.parts : undefined;
}

/** The name of a call as an API takes it back: a model may call what nobody has declared. */
export function legalName(name: string, charsMax: number): string {
  return orElse(name.replace(/[^a-zA-Z0-9_-]/g, "_").slice(0, charsMax), "unnamed");
}
