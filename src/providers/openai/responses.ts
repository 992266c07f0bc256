/** OpenAI's Responses API, without its memory: every request holds the whole conversation. */
import type OpenAI from "openai";
import { assert } from "../../domain/errors.js";
import { type JsonObject, jsonText } from "../../domain/json.js";
import { type CallPieces, legalName, originalFor, type Parts, wholeCalls } from "../calls.js";
import { capabilitiesOf } from "../capabilities.js";
import { isRateLimitType, kindOfType } from "../errors.js";
import {
  type Block,
  type BlockForm,
  type Message,
  ModelError,
  type ModelEvent,
  type ModelRequest,
  type Original,
  type Usage,
} from "../model.js";
import { effectiveForm, type Protocol } from "../remote.js";
import { usageFrom } from "../usage.js";
import { isBlank, NO_TEXT, orElse } from "../words.js";
import { NAME_CHARS_MAX, shownOutput } from "./chat.js";

type Body = OpenAI.Responses.ResponseCreateParamsStreaming;
type Chunk = OpenAI.Responses.ResponseStreamEvent;
type Item = OpenAI.Responses.ResponseInputItem;

const PROVIDER = "openai";

const PARTS: Parts = {
  callId: (part) => part["call_id"],
  isThought: (part) => part["type"] === "reasoning",
  isLegal: ({ name }) => legalName(name, NAME_CHARS_MAX) === name,
};

export function responsesProtocol(client: OpenAI, model: string, sdk: typeof OpenAI): Protocol<Body, Chunk> {
  return {
    provider: PROVIDER,
    api: "responses",
    endpoint: client.baseURL,
    errors: sdk.APIError,
    render: (request, form) => renderResponses(model, request, form),
    validate: validateResponses,
    send: (body, signal) => client.responses.create(body, { signal }).withResponse(),
    read: (chunks, request) => readResponses(chunks, model, request),
  };
}

/** What stays the same comes first, so that one request is the beginning of the next, byte for byte. */
function renderResponses(model: string, request: ModelRequest, form: BlockForm): Body {
  const { limit, reasoning } = capabilitiesOf("responses", model);
  const tools = request.tools.map(({ name, description, input_schema }) => ({
    type: "function" as const,
    name,
    description,
    parameters: { ...input_schema },
    strict: false,
  }));
  return {
    model,
    stream: true,
    store: false,
    ...(reasoning ? { include: ["reasoning.encrypted_content" as const] } : {}),
    ...(request.max_tokens === undefined ? {} : { [limit]: request.max_tokens }),
    ...(isBlank(request.system) ? {} : { instructions: request.system }),
    ...(tools.length === 0 ? {} : { tools }),
    input: request.messages.flatMap((message) => itemsOf(message, form, model)),
  };
}

function itemsOf(message: Message, form: BlockForm, model: string): Item[] {
  switch (message.role) {
    case "user":
      return userItems(message.text, message.block, form);
    case "assistant": {
      const original = originalFor(message, PROVIDER, model, PARTS);
      if (original !== undefined) return original as unknown as Item[];
      const calls: Item[] = message.calls.map(({ id, name, input }) => ({
        type: "function_call",
        call_id: id,
        name: legalName(name, NAME_CHARS_MAX),
        arguments: jsonText(input),
      }));
      return isBlank(message.text) ? calls : [{ role: "assistant", content: message.text }, ...calls];
    }
    case "tools": {
      const outputs: Item[] = message.results.map(({ id, output, is_error }) => ({
        type: "function_call_output",
        call_id: id,
        output: shownOutput(output, is_error),
      }));
      return message.block === undefined ? outputs : [...outputs, blockItem(message.block, form)];
    }
  }
}

function userItems(text: string, block: Block | undefined, form: BlockForm): Item[] {
  const words = orElse(text, NO_TEXT);
  if (block === undefined) return [{ role: "user", content: words }];
  if (effectiveForm(block.form, form) === "text") return [{ role: "user", content: `${block.text}\n\n${words}` }];
  return [blockItem(block, form), { role: "user", content: words }];
}

function blockItem(block: Block, form: BlockForm): Item {
  const effective = effectiveForm(block.form, form);
  return { role: effective === "text" ? "user" : effective, content: block.text };
}

/** Every run of calls is answered at once, in full and in order; the last word is not the assistant's. */
function validateResponses(body: Body): void {
  assert(Array.isArray(body.input), "the input must be a list");
  const open: string[] = [];
  let answering = false;
  for (const [at, item] of body.input.entries()) {
    if (item.type === "function_call") {
      assert(!answering || open.length === 0, `input[${at}] is a call among the results of others`);
      answering = false;
      open.push(item.call_id);
    } else if (item.type === "function_call_output") {
      answering = true;
      assert(open.shift() === item.call_id, `input[${at}] answers no call, or not in its order`);
    } else {
      assert(open.length === 0, `input[${at}] stands between a call and its result`);
      assert(
        item.type === "reasoning" || item.type === "message" || ("content" in item && saysSomething(item.content)),
        `input[${at}] is empty, or no message`,
      );
    }
  }
  assert(open.length === 0, "the last calls have no results");
  const last = body.input.at(-1);
  assert(
    last !== undefined && !("role" in last && last.role === "assistant"),
    "the conversation must not end with the assistant",
  );
}

function saysSomething(content: unknown): boolean {
  return typeof content === "string" && !isBlank(content);
}

async function* readResponses(
  chunks: AsyncIterable<Chunk>,
  model: string,
  { report }: ModelRequest,
): AsyncGenerator<ModelEvent> {
  const calls: CallPieces[] = [];
  const items: OpenAI.Responses.ResponseOutputItem[] = [];
  let final: OpenAI.Responses.Response | undefined;
  let started = false;
  for await (const chunk of chunks) {
    if (chunk.type === "error") throw failure(chunk.code, chunk.message);
    const used = "response" in chunk ? usageOf(chunk.response) : null;
    if (used !== null) report?.({ type: "usage", usage: used });
    if (chunk.type === "response.failed") throw failure(chunk.response.error?.code, chunk.response.error?.message);
    if (!started) yield { type: "started" };
    started = true;
    switch (chunk.type) {
      case "response.output_text.delta":
      case "response.refusal.delta":
        if (chunk.delta !== "") yield { type: "text", delta: chunk.delta };
        break;
      case "response.output_item.done": {
        const { item } = chunk;
        items.push(item);
        if (item.type === "function_call") calls.push({ id: item.call_id, name: item.name, arguments: item.arguments });
        break;
      }
      case "response.completed":
      case "response.incomplete":
        final = chunk.response;
        break;
    }
  }
  if (final === undefined) throw new ModelError("transient", "the answer broke off before its end");
  const { status } = final;
  const cutOff = status === "incomplete" && final.incomplete_details?.reason !== "content_filter";
  const whole = [...wholeCalls(calls, status === "incomplete")];
  yield* whole;
  const reason = cutOff ? "length" : whole.length > 0 ? "calls" : status === "completed" ? "end" : "other";
  const original = status === "completed" ? originalOf(items, model) : undefined;
  yield {
    type: "end",
    reason,
    usage: usageOf(final),
    ...(original === undefined ? {} : { original }),
  };
}

function usageOf({ usage }: Pick<OpenAI.Responses.Response, "usage">): Usage | null {
  return usage ? usageFrom(usage.input_tokens, usage.output_tokens) : null;
}

/** Worth keeping only with reasoning that can be sent back: the rest is in the text and the calls. */
function originalOf(items: readonly OpenAI.Responses.ResponseOutputItem[], model: string): Original | undefined {
  if (!items.some((item) => item.type === "reasoning" && item.encrypted_content)) return undefined;
  const parts = items.filter((item) => item.type !== "reasoning" || item.encrypted_content);
  return { provider: PROVIDER, model, parts: parts as unknown as readonly JsonObject[] };
}

function failure(code: string | null | undefined, message: string | undefined): ModelError {
  const type = code ?? undefined;
  const rate_limited = isRateLimitType(type);
  return new ModelError(kindOfType(type), `openai: ${message ?? "the answer failed"}`, { rate_limited });
}
