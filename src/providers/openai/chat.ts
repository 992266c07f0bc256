/** Chat Completions, the API that other servers copy. */
import type OpenAI from "openai";
import { assert } from "../../domain/errors.js";
import { jsonText } from "../../domain/json.js";
import { type CallPieces, callsSoFar, legalName, wholeCalls } from "../calls.js";
import { capabilitiesOf } from "../capabilities.js";
import { type BlockForm, type Message, ModelError, type ModelEvent, type ModelRequest, type Usage } from "../model.js";
import { effectiveForm, type Protocol } from "../remote.js";
import { usageFrom } from "../usage.js";
import { isBlank, NO_OUTPUT, NO_TEXT, orElse } from "../words.js";

type Body = OpenAI.ChatCompletionCreateParamsStreaming;
type Chunk = OpenAI.ChatCompletionChunk;
type Part = OpenAI.ChatCompletionMessageParam;

/** Of a call. */
export const NAME_CHARS_MAX = 64;

export function chatProtocol(client: OpenAI, model: string, sdk: typeof OpenAI): Protocol<Body, Chunk> {
  return {
    provider: "openai-compatible",
    api: "chat",
    endpoint: client.baseURL,
    errors: sdk.APIError,
    render: (request, form) => renderChat(model, request, form),
    validate: validateChat,
    send: (body, signal) => client.chat.completions.create(body, { signal }).withResponse(),
    read: readChat,
  };
}

/** What stays the same comes first, so that one request is the beginning of the next, byte for byte. */
function renderChat(model: string, request: ModelRequest, form: BlockForm): Body {
  const { limit } = capabilitiesOf("chat", model);
  const bound = request.max_tokens === undefined ? {} : { [limit]: request.max_tokens };
  const tools = request.tools.map(({ name, description, input_schema }) => ({
    type: "function" as const,
    function: { name, description, parameters: { ...input_schema } },
  }));
  const prompt: Part[] = isBlank(request.system) ? [] : [{ role: "system", content: request.system }];
  return {
    model,
    stream: true,
    stream_options: { include_usage: true },
    ...bound,
    ...(tools.length === 0 ? {} : { tools }),
    messages: [...prompt, ...request.messages.flatMap((message) => partsOf(message, form))],
  };
}

function partsOf(message: Message, form: BlockForm): Part[] {
  switch (message.role) {
    case "user":
      return userParts(message.text, message.block, form);
    case "assistant": {
      const { text, calls } = message;
      if (calls.length === 0) return isBlank(text) ? [] : [{ role: "assistant", content: text }];
      const tool_calls = calls.map(({ id, name, input }) => ({
        id,
        type: "function" as const,
        function: { name: legalName(name, NAME_CHARS_MAX), arguments: jsonText(input) },
      }));
      return [{ role: "assistant", content: isBlank(text) ? null : text, tool_calls }];
    }
    case "tools": {
      const results: Part[] = message.results.map(({ id, output, is_error }) => ({
        role: "tool",
        tool_call_id: id,
        content: shownOutput(output, is_error),
      }));
      return message.block === undefined ? results : [...results, blockPart(message.block, form)];
    }
  }
}

function userParts(text: string, block: { text: string; form: BlockForm } | undefined, form: BlockForm): Part[] {
  const words = orElse(text, NO_TEXT);
  if (block === undefined) return [{ role: "user", content: words }];
  if (effectiveForm(block.form, form) === "text") return [{ role: "user", content: `${block.text}\n\n${words}` }];
  return [blockPart(block, form), { role: "user", content: words }];
}

function blockPart(block: { text: string; form: BlockForm }, form: BlockForm): Part {
  const effective = effectiveForm(block.form, form);
  return { role: effective === "text" ? "user" : effective, content: block.text };
}

/** These APIs have no field for a failure: the output says it. */
export function shownOutput(output: string, isError: boolean): string {
  const words = orElse(output, NO_OUTPUT);
  return isError ? `Error: ${words}` : words;
}

/** Every run of calls is answered at once, in full and in order; the last word is not the assistant's. */
function validateChat(body: Body): void {
  let open: string[] = [];
  for (const [at, message] of body.messages.entries()) {
    if (message.role === "tool") {
      assert(open.shift() === message.tool_call_id, `messages[${at}] answers no call, or not in its order`);
    } else {
      assert(open.length === 0, `messages[${at}] stands between a call and its result`);
      if (message.role === "assistant") open = (message.tool_calls ?? []).map(({ id }) => id);
    }
    assert(
      message.role === "assistant" || (typeof message.content === "string" && !isBlank(message.content)),
      `messages[${at}] is empty`,
    );
  }
  assert(open.length === 0, "the last calls have no results");
  assert(
    body.messages.some(({ role }) => role === "user"),
    "the conversation must have a message of the user",
  );
  assert(body.messages.at(-1)?.role !== "assistant", "the conversation must not end with the assistant");
}

async function* readChat(chunks: AsyncIterable<Chunk>, request: ModelRequest): AsyncGenerator<ModelEvent> {
  const calls: CallPieces[] = [];
  let finish: string | null = null;
  let usage: Usage | null = null;
  let started = false;
  for await (const chunk of chunks) {
    if (!started) yield { type: "started" };
    started = true;
    if (chunk.usage) {
      usage = usageFrom(chunk.usage.prompt_tokens, chunk.usage.completion_tokens) ?? usage;
      if (usage !== null) request.report?.({ type: "usage", usage });
    }
    const choice = chunk.choices?.[0];
    if (choice === undefined) continue;
    const delta = choice.delta?.content || choice.delta?.refusal;
    if (delta) yield { type: "text", delta };
    for (const piece of choice.delta?.tool_calls ?? []) addPiece(calls, piece);
    finish = choice.finish_reason ?? finish;
  }
  if (finish === null) throw new ModelError("transient", "the answer broke off before its end");
  // Some servers give their calls no id.
  const before = callsSoFar(request.messages);
  const named = calls.map((call, index) => ({ ...call, id: call.id || `call_${before + index + 1}` }));
  const whole = [...wholeCalls(named, finish === "length")];
  yield* whole;
  yield { type: "end", reason: reasonOf(finish, whole.length), usage };
}

function reasonOf(finish: string, calls: number): "end" | "calls" | "length" | "other" {
  if (finish === "length") return "length";
  if (calls > 0) return "calls";
  return finish === "stop" ? "end" : "other";
}

type Piece = NonNullable<OpenAI.ChatCompletionChunk.Choice.Delta["tool_calls"]>[number];

/** By its index; some servers count wrongly, and then a new id begins a new call. */
function addPiece(calls: CallPieces[], piece: Piece): void {
  const counted = calls[piece.index ?? -1];
  const last = calls.at(-1);
  const same = (call: CallPieces | undefined) => call !== undefined && (!piece.id || call.id === piece.id);
  let call = same(counted) ? counted : same(last) && piece.index === undefined ? last : undefined;
  if (call === undefined) {
    call = { id: piece.id ?? "", name: "", arguments: "" };
    calls.push(call);
  }
  call.name += piece.function?.name ?? "";
  call.arguments += piece.function?.arguments ?? "";
}
