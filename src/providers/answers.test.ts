/** What comes back: answers whole and broken, refusals, and what is learned from them. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { FixtureResponse } from "@copilotkit/aimock";
import { describe, expect, onTestFinished, test } from "vitest";
import { eventually } from "../../test/support/folder.js";
import { type ModelServer, modelServer } from "../../test/support/recorder.js";
import { Downgrades } from "./downgrades.js";
import { type BlockForm, type Message, type Model, ModelError, type ModelEvent } from "./model.js";
import { openModel } from "./open.js";

const KEY = { A_KEY: "right" };
const HELLO: readonly Message[] = [{ role: "user", text: "Hello" }];

const PROVIDERS = [
  { provider: "openai", model: "gpt-5.1", form: "developer" },
  { provider: "openai-compatible", model: "gpt-5.1", form: "developer" },
  { provider: "anthropic", model: "claude-opus-5", form: "system" },
] as const;
type Kind = (typeof PROVIDERS)[number];

function opened({ provider, model }: Omit<Kind, "form">, url: string, downgrades = new Downgrades()): Promise<Model> {
  const base_url = provider === "anthropic" ? url : `${url}/v1`;
  return openModel({ provider, model, base_url, api_key_env: "A_KEY" }, KEY, downgrades);
}

function stream(model: Model, messages = HELLO, signal = new AbortController().signal): AsyncIterable<ModelEvent> {
  return model.stream({ system: "Be brief.", tools: [], messages, signal });
}

/** All events, and the error that ended them. */
async function outcome(events: AsyncIterable<ModelEvent>): Promise<{ events: ModelEvent[]; error: unknown }> {
  const seen: ModelEvent[] = [];
  try {
    for await (const event of events) seen.push(event);
  } catch (error) {
    return { events: seen, error };
  }
  return { events: seen, error: undefined };
}

function failing(
  status: number,
  message: string,
  more: { type?: string; code?: string; retryAfter?: number } = {},
): FixtureResponse {
  const { retryAfter, ...error } = more;
  return { error: { message, ...error }, status, ...(retryAfter === undefined ? {} : { retryAfter }) };
}

const withBlock = (form: BlockForm): readonly Message[] => [
  { role: "user", text: "Hello", block: { text: "NEWS", form } },
];
const bodies = (server: ModelServer) => server.recorder.requests.map(({ body }) => body);

describe.each(PROVIDERS)("$provider", (kind) => {
  test("an answer: started, text in pieces, end with its usage", async () => {
    const server = await modelServer({}, { chunkSize: 4 });
    server.answers.push({
      content: "Nothing happened today.",
      usage:
        kind.provider === "openai-compatible"
          ? { prompt_tokens: 7, completion_tokens: 5 }
          : { input_tokens: 7, output_tokens: 5 },
    });
    const { events, error } = await outcome(stream(await opened(kind, server.url)));
    expect(error).toBeUndefined();
    expect(events[0]).toEqual({ type: "started" });
    const texts = events.flatMap((event) => (event.type === "text" ? [event.delta] : []));
    expect(texts.length).toBeGreaterThan(3);
    expect(texts.join("")).toBe("Nothing happened today.");
    expect(events.at(-1)).toMatchObject({ type: "end", reason: "end", usage: { input: 7, output: 5 } });
  });

  test("text and three calls, in order, whole", async () => {
    const server = await modelServer({}, { chunkSize: 3 });
    server.answers.push({
      content: "I look.",
      toolCalls: ["a", "b", "c"].map((path) => ({
        id: `id_${path}`,
        name: "read_file",
        arguments: `{"path":"${path}"}`,
      })),
    });
    const { events } = await outcome(stream(await opened(kind, server.url)));
    expect(events.filter(({ type }) => type === "call")).toEqual(
      ["a", "b", "c"].map((path) => ({ type: "call", call: { id: `id_${path}`, name: "read_file", input: { path } } })),
    );
    expect(events.at(-1)).toMatchObject({ type: "end", reason: "calls" });
    expect(events.findIndex(({ type }) => type === "call")).toBeGreaterThan(
      events.findIndex(({ type }) => type === "text"),
    );
  });

  test("arguments that are no JSON object are told as such; a call without arguments has an empty input", async () => {
    const server = await modelServer();
    server.answers.push({
      toolCalls: [
        { id: "one", name: "read_file", arguments: '["path"]' },
        { id: "two", name: "list", arguments: "" },
      ],
    });
    const { events } = await outcome(stream(await opened(kind, server.url)));
    expect(events.filter(({ type }) => type === "call")).toEqual([
      {
        type: "call",
        call: { id: "one", name: "read_file", input: {} },
        malformed: "arguments: must be a JSON object",
      },
      { type: "call", call: { id: "two", name: "list", input: {} } },
    ]);
  });

  test("an answer that hits the limit says so", async () => {
    const server = await modelServer();
    server.answers.push({ content: "It began", finishReason: "length" });
    const { events } = await outcome(stream(await opened(kind, server.url)));
    expect(events.at(-1)).toMatchObject({ type: "end", reason: "length" });
  });

  test("our own abort in the middle of the stream: aborted, hung up, and not asked again", async () => {
    const server = await modelServer({}, { latency: 20, chunkSize: 2 });
    server.answers.push({ content: "A very long story. ".repeat(50) });
    const model = await opened(kind, server.url);
    const abort = new AbortController();
    let words = 0;
    const events = stream(model, HELLO, abort.signal);
    await expect(async () => {
      for await (const event of events) {
        if (event.type === "end") throw new Error("the whole answer came");
        if (event.type === "text") words += 1;
        if (words === 3) abort.abort();
      }
    }).rejects.toMatchObject({ name: "ModelError", kind: "aborted" });
    expect(words).toBe(3);
    await eventually(
      async () => server.recorder.abandoned(),
      (count) => count === 1,
    );
    expect(server.recorder.requests).toHaveLength(1);
  });

  test("after our own abort nothing more is given on, even if it had arrived", async () => {
    const server = await modelServer({}, { chunkSize: 1 });
    server.answers.push({ content: "abcdefghijklmnopqrstuvwxyz" });
    const model = await opened(kind, server.url);
    const abort = new AbortController();
    const heard: string[] = [];
    await expect(async () => {
      for await (const event of stream(model, HELLO, abort.signal)) {
        heard.push(event.type);
        if (event.type === "started") abort.abort();
      }
    }).rejects.toMatchObject({ kind: "aborted" });
    expect(heard).toEqual(["started"]);
  });

  test("aborted before: nothing is sent. Left in the middle: hung up", async () => {
    const server = await modelServer({}, { latency: 20, chunkSize: 2 });
    const model = await opened(kind, server.url);
    const { error } = await outcome(stream(model, HELLO, AbortSignal.abort()));
    expect(error).toMatchObject({ kind: "aborted" });
    expect(server.recorder.requests).toHaveLength(0);
    server.answers.push({ content: "A very long story. ".repeat(50) });
    for await (const event of stream(model)) if (event.type === "text") break;
    await eventually(
      async () => server.recorder.abandoned(),
      (count) => count === 1,
    );
  });

  test("a connection that breaks in the middle is transient, and is no answer", async () => {
    const server = await modelServer({}, { latency: 5, chunkSize: 2, truncateAfterChunks: 6 });
    server.answers.push({ content: "A very long story. ".repeat(20) });
    const { events, error } = await outcome(stream(await opened(kind, server.url)));
    expect(events[0]).toEqual({ type: "started" });
    expect(events.some(({ type }) => type === "end")).toBe(false);
    expect(error).toMatchObject({ name: "ModelError", kind: "transient" });
    expect(server.recorder.requests).toHaveLength(1);
  });

  test.each([
    { name: "429", answer: failing(429, "slow down", { retryAfter: 7 }), kind: "transient", retry_after_ms: 7_000 },
    { name: "500", answer: failing(500, "we broke"), kind: "transient", retry_after_ms: undefined },
    { name: "529", answer: failing(529, "overloaded"), kind: "transient", retry_after_ms: undefined },
    {
      name: "no money",
      answer: failing(429, "You exceeded your quota", { code: "insufficient_quota", type: "billing_error" }),
      kind: "refused",
      retry_after_ms: undefined,
    },
    { name: "403", answer: failing(403, "not yours"), kind: "auth", retry_after_ms: undefined },
    { name: "404", answer: failing(404, "no such model"), kind: "bad_request", retry_after_ms: undefined },
    { name: "400", answer: failing(400, "too long"), kind: "bad_request", retry_after_ms: undefined },
  ])("$name is $kind, asked once", async ({ name, answer, kind: wanted, retry_after_ms }) => {
    const server = await modelServer();
    server.answers.push(answer);
    const { events, error } = await outcome(stream(await opened(kind, server.url), withBlock(kind.form)));
    expect(events).toEqual([]);
    expect(error).toBeInstanceOf(ModelError);
    expect(error).toMatchObject({ kind: wanted });
    expect((error as ModelError).retry_after_ms).toBe(retry_after_ms);
    expect((error as ModelError).rate_limited).toBe(["429", "529"].includes(name));
    expect((error as ModelError).message).toContain(kind.model);
    expect(server.recorder.requests).toHaveLength(1);
  });

  test("nobody listens: transient", async () => {
    const { error } = await outcome(stream(await opened(kind, "http://127.0.0.1:9")));
    expect(error).toMatchObject({ name: "ModelError", kind: "transient" });
  });

  test("a key that is not accepted", async () => {
    const server = await modelServer({ auth: { apiKeys: ["another"] } });
    const { error } = await outcome(stream(await opened(kind, server.url)));
    expect(error).toMatchObject({ name: "ModelError", kind: "auth" });
  });

  const refusal =
    kind.form === "system"
      ? failing(400, "role 'system' is not supported on this model", { type: "invalid_request_error" })
      : failing(400, "Unsupported value: 'messages[1].role' does not support 'developer' with this model.", {
          type: "invalid_request_error",
          code: "unsupported_value",
        });

  test("a role that is refused: asked once more with the block as text, told, and remembered for that address", async () => {
    const server = await modelServer();
    const downgrades = new Downgrades();
    const model = await opened(kind, server.url, downgrades);
    server.answers.push(refusal);

    const { events, error } = await outcome(stream(model, withBlock(model.form())));

    expect(error).toBeUndefined();
    expect(events.map(({ type }) => type)).toEqual(["downgraded", "started", "text", "end"]);
    expect(events[0]).toEqual({ type: "downgraded", form: "text" });
    const [refused, taken] = bodies(server);
    expect(refused).toContain(`"role":"${kind.form}"`);
    expect(taken).not.toContain(`{"role":"${kind.form}","content":"NEWS`);
    expect(taken).not.toContain(`{"role":"${kind.form}","content":[`);
    expect(taken).toContain("NEWS");

    expect(model.form()).toBe("text");
    expect(downgrades.list()).toEqual([
      { endpoint: expect.stringContaining(server.url), model: kind.model, form: "text" },
    ]);
    // What was recorded as it went out is replayed as it went out, without a word about it.
    const again = await outcome(stream(await opened(kind, server.url, downgrades), withBlock("text")));
    expect(again.events.map(({ type }) => type)).toEqual(["started", "text", "end"]);
    expect(bodies(server)[2]).toBe(taken);
    // Another address is another server.
    const elsewhere = await modelServer();
    expect((await opened(kind, elsewhere.url, downgrades)).form()).toBe(kind.form);
  });

  test("refused in every form: role_unsupported, after two requests, and nothing is learned", async () => {
    const server = await modelServer();
    const downgrades = new Downgrades();
    const model = await opened(kind, server.url, downgrades);
    server.answers.push(refusal, refusal);
    const { events, error } = await outcome(stream(model, withBlock(model.form())));
    expect(events).toEqual([]);
    expect(error).toMatchObject({ kind: "role_unsupported" });
    expect(server.recorder.requests).toHaveLength(2);
    expect(downgrades.list()).toEqual([]);
  });

  test("refused without a block in the request: there is nothing to put otherwise", async () => {
    const server = await modelServer();
    server.answers.push(refusal);
    const { error } = await outcome(stream(await opened(kind, server.url)));
    expect(error).toMatchObject({ kind: "role_unsupported" });
    expect(server.recorder.requests).toHaveLength(1);
  });

  test.each<{ name: string; messages: readonly Message[] }>([
    { name: "ends with the assistant", messages: [...HELLO, { role: "assistant", text: "Hi", calls: [] }] },
    { name: "is empty", messages: [] },
    {
      name: "has a call without its result",
      messages: [...HELLO, { role: "assistant", text: "", calls: [{ id: "a", name: "f", input: {} }] }, ...HELLO],
    },
    {
      name: "has a result without its call",
      messages: [...HELLO, { role: "tools", results: [{ id: "a", name: "f", output: "", is_error: false }] }],
    },
    {
      name: "has results in another order than the calls",
      messages: [
        ...HELLO,
        { role: "assistant", text: "", calls: ["a", "b"].map((id) => ({ id, name: "f", input: {} })) },
        { role: "tools", results: ["b", "a"].map((id) => ({ id, name: "f", output: "x", is_error: false })) },
      ],
    },
    { name: "has an empty block", messages: [{ role: "user", text: "Hello", block: { text: " ", form: kind.form } }] },
  ])("a conversation that $name is our own mistake, and is not sent", async ({ messages }) => {
    const server = await modelServer();
    const { error } = await outcome(stream(await opened(kind, server.url), messages));
    expect(error).toMatchObject({ name: "AssertionError" });
    expect(server.recorder.requests).toHaveLength(0);
  });
});

/** Says exactly this to whoever asks, and ends in order. */
async function saying(...events: readonly (object | string)[]): Promise<string> {
  const server = createServer((incoming, answer) => {
    incoming.resume();
    incoming.on("end", () => {
      answer.writeHead(200, { "content-type": "text/event-stream" });
      for (const event of events) {
        const type = typeof event === "object" && "type" in event ? `event: ${event.type}\n` : "";
        answer.write(`${type}data: ${typeof event === "string" ? event : JSON.stringify(event)}\n\n`);
      }
      answer.end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => new Promise<void>((resolve) => server.close(() => resolve())));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const [RESPONSES, CHAT, MESSAGES] = PROVIDERS;
const chunk = (delta: object, finish_reason: string | null = null) => ({
  choices: [{ index: 0, delta, finish_reason }],
});
const MESSAGE_START = { type: "message_start", message: { usage: { input_tokens: 3, output_tokens: 0 } } };

describe("a stream that ends in order, but not with the end of an answer", () => {
  test.each([
    { name: "Responses", kind: RESPONSES, said: [{ type: "response.output_text.delta", delta: "It" }] },
    { name: "Chat Completions", kind: CHAT, said: [chunk({ content: "It" })] },
    { name: "Chat Completions, with its last line", kind: CHAT, said: [chunk({ content: "It" }), "[DONE]"] },
    {
      name: "Messages",
      kind: MESSAGES,
      said: [
        MESSAGE_START,
        { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
        { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "It" } },
      ],
    },
  ])("$name: transient", async ({ kind, said }) => {
    const { events, error } = await outcome(stream(await opened(kind, await saying(...said))));
    expect(events).toEqual([{ type: "started" }, { type: "text", delta: "It" }]);
    expect(error).toMatchObject({ name: "ModelError", kind: "transient" });
  });

  test.each(PROVIDERS)("$provider: nothing at all is transient, and has not started", async (kind) => {
    const { events, error } = await outcome(stream(await opened(kind, await saying())));
    expect(events).toEqual([]);
    expect(error).toMatchObject({ name: "ModelError", kind: "transient" });
  });
});

test.each([
  { kind: RESPONSES, said: { type: "error", code: "server_error", message: "we broke" }, wanted: "transient" },
  {
    kind: RESPONSES,
    said: { type: "response.failed", response: { error: { code: "rate_limit_exceeded", message: "slow" } } },
    wanted: "transient",
  },
  {
    kind: RESPONSES,
    said: { type: "response.failed", response: { error: { code: "invalid_prompt", message: "no" } } },
    wanted: "bad_request",
  },
  { kind: CHAT, said: { error: { type: "server_error", message: "we broke" } }, wanted: "transient" },
  { kind: CHAT, said: { error: { type: "insufficient_quota", message: "pay" } }, wanted: "refused" },
  {
    kind: MESSAGES,
    said: { type: "error", error: { type: "overloaded_error", message: "Overloaded" } },
    wanted: "transient",
  },
  {
    kind: MESSAGES,
    said: { type: "error", error: { type: "invalid_request_error", message: "no" } },
    wanted: "bad_request",
  },
])("an error inside the stream of $kind.provider: $wanted", async ({ kind, said, wanted }) => {
  const { events, error } = await outcome(stream(await opened(kind, await saying(said))));
  expect(events).toEqual([]);
  expect(error).toMatchObject({ name: "ModelError", kind: wanted });
  expect((error as ModelError).rate_limited).toBe(/overloaded|rate_limit/.test(JSON.stringify(said)));
});

test("servers that give their calls no ids, or count them wrongly", async () => {
  const piece = (more: object, name: string | undefined, text: string) => ({
    ...more,
    function: { name, arguments: text },
  });
  const url = await saying(
    chunk({ tool_calls: [piece({ index: 0 }, "one", "{}")] }),
    chunk({ tool_calls: [piece({ index: 1 }, "two", '{"a"')] }),
    chunk({ tool_calls: [piece({ index: 1 }, undefined, ":1}")] }),
    chunk({ tool_calls: [piece({ index: 1, id: "x" }, "three", "{}")] }),
    chunk({}, "stop"),
    "[DONE]",
  );
  const before: readonly Message[] = [
    ...HELLO,
    { role: "assistant", text: "", calls: [{ id: "call_1", name: "f", input: {} }] },
    { role: "tools", results: [{ id: "call_1", name: "f", output: "x", is_error: false }] },
  ];
  const { events } = await outcome(stream(await opened(CHAT, url), before));
  expect(events.slice(1)).toEqual([
    { type: "call", call: { id: "call_2", name: "one", input: {} } },
    { type: "call", call: { id: "call_3", name: "two", input: { a: 1 } } },
    { type: "call", call: { id: "x", name: "three", input: {} } },
    { type: "end", reason: "calls", usage: null },
  ]);
});

test("a call that a limit cut in half is left out", async () => {
  const url = await saying(
    chunk({ tool_calls: [{ index: 0, id: "a", function: { name: "f", arguments: '{"path":"/et' } }] }),
    chunk({}, "length"),
  );
  const { events } = await outcome(stream(await opened(CHAT, url)));
  expect(events).toEqual([{ type: "started" }, { type: "end", reason: "length", usage: null }]);
});

describe("an answer with reasoning in it", () => {
  test.each([
    { kind: RESPONSES, field: "input", reasoning: "reasoning" },
    { kind: MESSAGES, field: "messages", reasoning: "thinking" },
  ])(
    "$kind.provider: comes with its original, which goes back as it was to the same model only",
    async ({ kind, field, reasoning }) => {
      const server = await modelServer();
      server.answers.push({ reasoning: "Hm.", toolCalls: [{ id: "a", name: "f", arguments: '{"x":1}' }] });
      const model = await opened(kind, server.url);
      const { events } = await outcome(stream(model));
      const end = events.at(-1);
      const original = end?.type === "end" ? end.original : undefined;
      expect(original).toMatchObject({ provider: kind.provider, model: kind.model });
      expect(original?.parts.map((part) => part["type"])).toEqual([
        reasoning,
        kind === MESSAGES ? "tool_use" : "function_call",
      ]);
      const calls = events.flatMap((event) => (event.type === "call" ? [event.call] : []));
      const answer = { role: "assistant" as const, text: "", calls, ...(original === undefined ? {} : { original }) };
      const after: readonly Message[] = [
        ...HELLO,
        answer,
        { role: "tools", results: [{ id: "a", name: "f", output: "x", is_error: false }] },
      ];

      await outcome(stream(model, after));
      expect(bodies(server)[1]).toContain(JSON.stringify(original?.parts).slice(1, -1));
      expect(JSON.parse(bodies(server)[1] ?? "{}")[field].length).toBeGreaterThan(2);
      // Another model, and an answer of which a call was dropped, get the plain words.
      await outcome(
        stream(await opened({ ...kind, model: `${kind.model}-next` } as unknown as Kind, server.url), after),
      );
      const dropped = [...HELLO, { ...answer, text: "I said", calls: [] }, ...HELLO];
      await outcome(stream(model, dropped));
      for (const body of bodies(server).slice(2)) expect(body).not.toContain(`"type":"${reasoning}"`);
      expect(bodies(server)).toHaveLength(4);
    },
  );

  test("thinking is put together from its pieces, with its signature", async () => {
    const start = (index: number, content_block: object) => ({ type: "content_block_start", index, content_block });
    const piece = (index: number, delta: object) => ({ type: "content_block_delta", index, delta });
    const url = await saying(
      MESSAGE_START,
      start(0, { type: "thinking", thinking: "", signature: "" }),
      piece(0, { type: "thinking_delta", thinking: "H" }),
      piece(0, { type: "thinking_delta", thinking: "m" }),
      piece(0, { type: "signature_delta", signature: "c2ln" }),
      start(1, { type: "redacted_thinking", data: "b3BhcXVl" }),
      start(2, { type: "text", text: "" }),
      piece(2, { type: "text_delta", text: "I look." }),
      start(3, { type: "tool_use", id: "a", name: "f", input: {} }),
      piece(3, { type: "input_json_delta", partial_json: '{"x"' }),
      piece(3, { type: "input_json_delta", partial_json: ":1}" }),
      { type: "message_delta", delta: { stop_reason: "tool_use" }, usage: { output_tokens: 9 } },
      { type: "message_stop" },
    );
    const { events } = await outcome(stream(await opened(MESSAGES, url)));
    expect(events).toEqual([
      { type: "started" },
      { type: "text", delta: "I look." },
      { type: "call", call: { id: "a", name: "f", input: { x: 1 } } },
      {
        type: "end",
        reason: "calls",
        usage: { input: 3, output: 9 },
        original: {
          provider: "anthropic",
          model: MESSAGES.model,
          parts: [
            { type: "thinking", thinking: "Hm", signature: "c2ln" },
            { type: "redacted_thinking", data: "b3BhcXVl" },
            { type: "text", text: "I look." },
            { type: "tool_use", id: "a", name: "f", input: { x: 1 } },
          ],
        },
      },
    ]);
  });
});
