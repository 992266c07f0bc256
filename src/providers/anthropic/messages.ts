/** Anthropic's Messages API. */
import type Anthropic from "@anthropic-ai/sdk";
import { assert } from "../../domain/errors.js";
import type { JsonObject } from "../../domain/json.js";
import { sha256 } from "../../platform/secret.js";
import { type CallPieces, legalName, originalFor, wholeCalls } from "../calls.js";
import { capabilitiesOf } from "../capabilities.js";
import {
  type AssistantMessage,
  type Block,
  type BlockForm,
  type Message,
  ModelError,
  type ModelEvent,
  type ModelRequest,
  type Original,
} from "../model.js";
import { effectiveForm, type Protocol } from "../remote.js";
import { countFrom } from "../usage.js";
import { isBlank, NO_ANSWER, NO_OUTPUT, NO_TEXT, orElse } from "../words.js";

type Body = Anthropic.MessageCreateParamsStreaming;
type Chunk = Anthropic.RawMessageStreamEvent;
type Turn = Anthropic.MessageParam;
type Content = Anthropic.ContentBlockParam;

const PROVIDER = "anthropic";
/** Of a call. */
const NAME_CHARS_MAX = 128;

export function messagesProtocol(client: Anthropic, model: string, sdk: typeof Anthropic): Protocol<Body, Chunk> {
  return {
    provider: PROVIDER,
    api: "messages",
    endpoint: client.baseURL,
    errors: sdk.APIError,
    render: (request, form) => renderMessages(model, request, form),
    validate: validateMessages,
    send: (body, signal) => client.messages.create(body, { signal }).withResponse(),
    read: (chunks, request) => readMessages(chunks, model, request),
  };
}

/**
 * What stays the same comes first, so that one request is the beginning of the next, byte for byte. The mark for the
 * provider's cache is on the request, not on a block: on a block it would have to move with every request.
 */
function renderMessages(model: string, request: ModelRequest, form: BlockForm): Body {
  const { max_tokens } = capabilitiesOf("messages", model);
  const bound = request.max_tokens ?? max_tokens;
  const ids = new LegalIds();
  assert(bound !== null, "the Messages API wants max_tokens");
  const tools = request.tools.map(({ name, description, input_schema }) => ({
    name,
    description,
    input_schema: { ...input_schema, type: "object" as const },
  }));
  return {
    model,
    stream: true,
    max_tokens: bound,
    cache_control: { type: "ephemeral" },
    ...(isBlank(request.system) ? {} : { system: request.system }),
    ...(tools.length === 0 ? {} : { tools }),
    messages: withAnswers(request.messages.flatMap((message) => turnsOf(message, form, model, ids))),
  };
}

function turnsOf(message: Message, form: BlockForm, model: string, ids: LegalIds): Turn[] {
  switch (message.role) {
    case "user": {
      const words = text(orElse(message.text, NO_TEXT));
      const { block } = message;
      if (block === undefined) return [{ role: "user", content: [words] }];
      if (isSystem(block, form)) return [{ role: "user", content: [words] }, systemTurn(block)];
      return [{ role: "user", content: [text(block.text), words] }];
    }
    case "assistant":
      return assistantTurns(message, model, ids);
    case "tools": {
      const results: Content[] = message.results.map(({ id, output, is_error }) => ({
        type: "tool_result",
        tool_use_id: ids.of(id),
        content: orElse(output, NO_OUTPUT),
        ...(is_error ? { is_error } : {}),
      }));
      const { block } = message;
      if (block === undefined) return [{ role: "user", content: results }];
      if (isSystem(block, form)) return [{ role: "user", content: results }, systemTurn(block)];
      return [{ role: "user", content: [...results, text(block.text)] }];
    }
  }
}

function assistantTurns(message: AssistantMessage, model: string, ids: LegalIds): Turn[] {
  const original = originalFor(message, PROVIDER, model, {
    callId: (part) => (part["type"] === "tool_use" ? part["id"] : undefined),
    isThought: ({ type }) => type === "thinking" || type === "redacted_thinking",
    isLegal: ({ id, name }) => ids.of(id) === id && legalName(name, NAME_CHARS_MAX) === name,
  });
  if (original !== undefined) return [{ role: "assistant", content: original as unknown as Content[] }];
  const content: Content[] = isBlank(message.text) ? [] : [text(message.text)];
  for (const { id, name, input } of message.calls)
    content.push({ type: "tool_use", id: ids.of(id), name: legalName(name, NAME_CHARS_MAX), input });
  return content.length === 0 ? [] : [{ role: "assistant", content }];
}

/** A `system` message must be followed by the assistant's; an answer that was cut off before its first word is none. */
function withAnswers(turns: readonly Turn[]): Turn[] {
  return turns.flatMap((turn, at) => {
    const next = turns[at + 1];
    const missing = turn.role === "system" && next !== undefined && next.role !== "assistant";
    return missing ? [turn, { role: "assistant" as const, content: [text(NO_ANSWER)] }] : [turn];
  });
}

function isSystem(block: Block, form: BlockForm): boolean {
  return effectiveForm(block.form, form) !== "text";
}

function systemTurn(block: Block): Turn {
  return { role: "system", content: [text(block.text)] };
}

function text(words: string): Anthropic.TextBlockParam {
  return { type: "text", text: words };
}

/**
 * Other servers' ids have characters that this API refuses in a history. Each is its own, whatever it looks like then; asked
 * for in the order of the conversation, it is the same in every request.
 */
class LegalIds {
  readonly #given = new Map<string, string>();
  readonly #taken = new Set<string>();

  of(id: string): string {
    const given = this.#given.get(id);
    if (given !== undefined) return given;
    const alike = orElse(id.replace(/[^a-zA-Z0-9_-]/g, "_"), "unnamed");
    const legal = this.#taken.has(alike) ? `${alike}_${sha256(id)}` : alike;
    this.#given.set(id, legal);
    this.#taken.add(legal);
    return legal;
  }
}

function validateMessages(body: Body): void {
  let calls: string[] = [];
  let before: Turn["role"] | undefined;
  for (const [at, turn] of body.messages.entries()) {
    const where = `messages[${at}]`;
    const { role, content } = turn;
    assert(Array.isArray(content) && content.length > 0, `${where} is empty`);
    assert(
      content.every((block) => block.type !== "text" || !isBlank(block.text)),
      `${where} has an empty text`,
    );
    assert(at > 0 || role === "user", "the conversation must begin with the user");
    if (role === "system") {
      assert(before === "user", `${where}: a system message must follow a user message`);
      assert(
        content.every((block) => block.type === "text"),
        `${where}: a system message is text only`,
      );
    } else
      assert(before !== "system" || role === "assistant", `${where}: only the assistant may follow a system message`);
    if (role === "user") {
      const answers = content.flatMap((block) => (block.type === "tool_result" ? [block.tool_use_id] : []));
      const first = content.slice(0, calls.length);
      assert(answers.length === calls.length, `${where}: each call needs its result, and each result its call`);
      assert(
        first.every((block, index) => block.type === "tool_result" && block.tool_use_id === calls[index]),
        `${where} must begin with the results of the calls, in their order`,
      );
      calls = [];
    } else {
      assert(calls.length === 0, `${where} stands between a call and its result`);
      if (role === "assistant") calls = content.flatMap((block) => (block.type === "tool_use" ? [block.id] : []));
    }
    before = role;
  }
  assert(before === "user" || before === "system", "the conversation must not end with the assistant");
}

async function* readMessages(
  chunks: AsyncIterable<Chunk>,
  model: string,
  { report }: ModelRequest,
): AsyncGenerator<ModelEvent> {
  const calls = new Map<number, CallPieces>();
  const parts = new Map<number, Part>();
  let stop: Anthropic.StopReason | null = null;
  let ended = false;
  let input = 0;
  let output = 0;
  let started = false;
  for await (const chunk of chunks) {
    if (!started) yield { type: "started" };
    started = true;
    switch (chunk.type) {
      case "message_start": {
        const { input_tokens, cache_read_input_tokens, cache_creation_input_tokens, output_tokens } =
          chunk.message.usage ?? {};
        const read = [input_tokens, cache_read_input_tokens, cache_creation_input_tokens];
        input = read.reduce<number>((total, count) => total + (countFrom(count) ?? 0), 0);
        output = countFrom(output_tokens) ?? 0;
        report?.({ type: "usage", usage: { input, output } });
        break;
      }
      case "content_block_start": {
        const { content_block: block, index } = chunk;
        const part = partOf(block);
        if (part !== undefined) parts.set(index, part);
        if (block.type === "tool_use") calls.set(index, { id: block.id, name: block.name, arguments: "" });
        else if (block.type === "text" && block.text !== "") yield { type: "text", delta: block.text };
        break;
      }
      case "content_block_delta": {
        const { delta, index } = chunk;
        const part = parts.get(index);
        if (part !== undefined) extend(part, delta);
        if (delta.type === "text_delta" && delta.text !== "") yield { type: "text", delta: delta.text };
        const call = calls.get(index);
        if (delta.type === "input_json_delta" && call !== undefined) call.arguments += delta.partial_json;
        break;
      }
      case "message_delta":
        stop = chunk.delta.stop_reason ?? stop;
        output = countFrom(chunk.usage?.output_tokens) ?? output;
        report?.({ type: "usage", usage: { input, output } });
        break;
      case "message_stop":
        ended = true;
        break;
    }
  }
  if (!ended || stop === null) throw new ModelError("transient", "the answer broke off before its end");
  const cutOff = stop === "max_tokens" || stop === "model_context_window_exceeded";
  const whole = [...wholeCalls(calls.values(), cutOff)];
  yield* whole;
  const original = cutOff ? undefined : originalOf([...parts.values()], whole, model);
  yield {
    type: "end",
    reason: cutOff ? "length" : reasonOf(stop, whole.length),
    usage: { input, output },
    ...(original === undefined ? {} : { original }),
  };
}

type Part =
  | { type: "thinking"; thinking: string; signature: string }
  | { type: "redacted_thinking"; data: string }
  | { type: "text"; text: string }
  | { type: "tool_use"; id: string; name: string; input: JsonObject };

function partOf(block: Anthropic.RawContentBlockStartEvent["content_block"]): Part | undefined {
  switch (block.type) {
    case "thinking":
      return { type: block.type, thinking: block.thinking, signature: block.signature };
    case "redacted_thinking":
      return { type: block.type, data: block.data };
    case "text":
      return { type: block.type, text: block.text };
    case "tool_use":
      return { type: block.type, id: block.id, name: block.name, input: {} };
    default:
      return undefined;
  }
}

function extend(part: Part, delta: Anthropic.RawContentBlockDelta): void {
  if (part.type === "text" && delta.type === "text_delta") part.text += delta.text;
  if (part.type === "thinking" && delta.type === "thinking_delta") part.thinking += delta.thinking;
  if (part.type === "thinking" && delta.type === "signature_delta") part.signature += delta.signature;
}

/** Worth keeping only with thinking in it: the rest is in the text and the calls. */
function originalOf(
  parts: readonly Part[],
  whole: readonly (ModelEvent & { type: "call" })[],
  model: string,
): Original | undefined {
  if (!parts.some(({ type }) => type === "thinking" || type === "redacted_thinking")) return undefined;
  const inputs = new Map(whole.map(({ call }) => [call.id, call.input]));
  return {
    provider: PROVIDER,
    model,
    parts: parts.flatMap((part): JsonObject[] => {
      if (part.type === "text" && isBlank(part.text)) return [];
      return [part.type === "tool_use" ? { ...part, input: inputs.get(part.id) ?? {} } : { ...part }];
    }),
  };
}

function reasonOf(stop: Anthropic.StopReason, calls: number): "end" | "calls" | "other" {
  if (calls > 0) return "calls";
  return stop === "end_turn" || stop === "stop_sequence" ? "end" : "other";
}
