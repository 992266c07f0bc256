/** The bytes of the requests that the official SDKs send, as a server receives them. */
import { describe, expect, test } from "vitest";
import { type ModelServer, modelServer } from "../../test/support/recorder.js";
import { Downgrades } from "./downgrades.js";
import type { Block, BlockForm, Message, Model, ModelEvent, Original, ToolCall, ToolDeclaration } from "./model.js";
import { openModel } from "./open.js";

const SYSTEM = "You are helpful.";
const TOOL: ToolDeclaration = {
  name: "read_file",
  description: "Reads a file.",
  input_schema: { type: "object", properties: { path: { type: "string" } }, required: ["path"] },
};

interface Case {
  readonly name: string;
  readonly provider: string;
  readonly model: string;
  readonly path: string;
  readonly form: BlockForm;
  /** What stands before the messages in every request. */
  readonly head: object;
  readonly field: "messages" | "input";
}

const CASES: readonly Case[] = [
  {
    name: "OpenAI Responses",
    provider: "openai",
    model: "gpt-5.1",
    path: "/v1/responses",
    form: "developer",
    head: {
      model: "gpt-5.1",
      stream: true,
      store: false,
      include: ["reasoning.encrypted_content"],
      max_output_tokens: 900,
      instructions: SYSTEM,
      tools: [
        {
          type: "function",
          name: TOOL.name,
          description: TOOL.description,
          parameters: TOOL.input_schema,
          strict: false,
        },
      ],
    },
    field: "input",
  },
  {
    name: "Chat Completions, a model that knows developer",
    provider: "openai-compatible",
    model: "gpt-5.1",
    path: "/v1/chat/completions",
    form: "developer",
    head: {
      model: "gpt-5.1",
      stream: true,
      stream_options: { include_usage: true },
      max_completion_tokens: 900,
      tools: [
        {
          type: "function",
          function: { name: TOOL.name, description: TOOL.description, parameters: TOOL.input_schema },
        },
      ],
    },
    field: "messages",
  },
  {
    name: "Chat Completions, open weights",
    provider: "openai-compatible",
    model: "qwen3.5:32b",
    path: "/v1/chat/completions",
    form: "text",
    head: {
      model: "qwen3.5:32b",
      stream: true,
      stream_options: { include_usage: true },
      max_tokens: 900,
      tools: [
        {
          type: "function",
          function: { name: TOOL.name, description: TOOL.description, parameters: TOOL.input_schema },
        },
      ],
    },
    field: "messages",
  },
  {
    name: "Anthropic, a model with system in the middle",
    provider: "anthropic",
    model: "claude-opus-4-8",
    path: "/v1/messages",
    form: "system",
    head: {
      model: "claude-opus-4-8",
      stream: true,
      max_tokens: 900,
      cache_control: { type: "ephemeral" },
      system: SYSTEM,
      tools: [{ name: TOOL.name, description: TOOL.description, input_schema: TOOL.input_schema }],
    },
    field: "messages",
  },
  {
    name: "Anthropic, an older model",
    provider: "anthropic",
    model: "claude-sonnet-4-6",
    path: "/v1/messages",
    form: "text",
    head: {
      model: "claude-sonnet-4-6",
      stream: true,
      max_tokens: 900,
      cache_control: { type: "ephemeral" },
      system: SYSTEM,
      tools: [{ name: TOOL.name, description: TOOL.description, input_schema: TOOL.input_schema }],
    },
    field: "messages",
  },
];

async function opened(kind: Case, server: ModelServer): Promise<Model> {
  const base_url = kind.provider === "anthropic" ? server.url : `${server.url}/v1`;
  return openModel(
    { provider: kind.provider, model: kind.model, base_url, api_key_env: "A_KEY" },
    { A_KEY: "a key" },
    new Downgrades(),
  );
}

async function ask(model: Model, messages: readonly Message[], tools = [TOOL]): Promise<ModelEvent[]> {
  const events: ModelEvent[] = [];
  const signal = new AbortController().signal;
  for await (const event of model.stream({ system: SYSTEM, tools, messages, max_tokens: 900, signal }))
    events.push(event);
  return events;
}

function originalIn(events: readonly ModelEvent[]): { original?: Original } {
  const end = events.at(-1);
  return end?.type === "end" && end.original !== undefined ? { original: end.original } : {};
}

const call = (id: string, path: string): ToolCall => ({ id, name: "read_file", input: { path } });
const result = (id: string, output: string, is_error = false) => ({ id, name: "read_file", output, is_error });

/** Each conversation, and the messages that each kind of server must receive for it, in the order of CASES. */
type Expected = readonly [responses: object[], chat: object[], weights: object[], system: object[], text: object[]];

const text = (words: string) => ({ type: "text", text: words });
const PROMPT = { role: "system", content: SYSTEM };
const chatCall = (id: string, path: string) => ({
  id,
  type: "function",
  function: { name: "read_file", arguments: `{"path":"${path}"}` },
});
const item = (id: string, path: string) => ({
  type: "function_call",
  call_id: id,
  name: "read_file",
  arguments: `{"path":"${path}"}`,
});
const use = (id: string, path: string) => ({ type: "tool_use", id, name: "read_file", input: { path } });
const used = (id: string, content: string) => ({ type: "tool_result", tool_use_id: id, content });

const CONVERSATIONS: Readonly<
  Record<string, (block: (words: string) => Block) => readonly [readonly Message[], Expected]>
> = {
  "a block after a user message": (block) => [
    [{ role: "user", text: "Hello", block: block("NEWS") }],
    [
      [
        { role: "developer", content: "NEWS" },
        { role: "user", content: "Hello" },
      ],
      [PROMPT, { role: "developer", content: "NEWS" }, { role: "user", content: "Hello" }],
      [PROMPT, { role: "user", content: "NEWS\n\nHello" }],
      [
        { role: "user", content: [text("Hello")] },
        { role: "system", content: [text("NEWS")] },
      ],
      [{ role: "user", content: [text("NEWS"), text("Hello")] }],
    ],
  ],
  "a block after one tool result": (block) => [
    [
      { role: "user", text: "Read it" },
      { role: "assistant", text: "I look.", calls: [call("c1", "a")] },
      { role: "tools", results: [result("c1", "A")], block: block("NEWS") },
    ],
    [
      [
        { role: "user", content: "Read it" },
        { role: "assistant", content: "I look." },
        item("c1", "a"),
        { type: "function_call_output", call_id: "c1", output: "A" },
        { role: "developer", content: "NEWS" },
      ],
      [
        PROMPT,
        { role: "user", content: "Read it" },
        { role: "assistant", content: "I look.", tool_calls: [chatCall("c1", "a")] },
        { role: "tool", tool_call_id: "c1", content: "A" },
        { role: "developer", content: "NEWS" },
      ],
      [
        PROMPT,
        { role: "user", content: "Read it" },
        { role: "assistant", content: "I look.", tool_calls: [chatCall("c1", "a")] },
        { role: "tool", tool_call_id: "c1", content: "A" },
        { role: "user", content: "NEWS" },
      ],
      [
        { role: "user", content: [text("Read it")] },
        { role: "assistant", content: [text("I look."), use("c1", "a")] },
        { role: "user", content: [used("c1", "A")] },
        { role: "system", content: [text("NEWS")] },
      ],
      [
        { role: "user", content: [text("Read it")] },
        { role: "assistant", content: [text("I look."), use("c1", "a")] },
        { role: "user", content: [used("c1", "A"), text("NEWS")] },
      ],
    ],
  ],
  "a block after three parallel results, one of them an error and one empty": (block) => [
    [
      { role: "user", text: "Read all" },
      { role: "assistant", text: "", calls: [call("c1", "a"), call("c2", "b"), call("c3", "c")] },
      {
        role: "tools",
        results: [result("c1", "A"), result("c2", "gone", true), result("c3", "")],
        block: block("NEWS"),
      },
    ],
    [
      [
        { role: "user", content: "Read all" },
        item("c1", "a"),
        item("c2", "b"),
        item("c3", "c"),
        { type: "function_call_output", call_id: "c1", output: "A" },
        { type: "function_call_output", call_id: "c2", output: "Error: gone" },
        { type: "function_call_output", call_id: "c3", output: "(no output)" },
        { role: "developer", content: "NEWS" },
      ],
      ...(["developer", "user"] as const).map((role) => [
        PROMPT,
        { role: "user", content: "Read all" },
        {
          role: "assistant",
          content: null,
          tool_calls: [chatCall("c1", "a"), chatCall("c2", "b"), chatCall("c3", "c")],
        },
        { role: "tool", tool_call_id: "c1", content: "A" },
        { role: "tool", tool_call_id: "c2", content: "Error: gone" },
        { role: "tool", tool_call_id: "c3", content: "(no output)" },
        { role, content: "NEWS" },
      ]),
      [
        { role: "user", content: [text("Read all")] },
        { role: "assistant", content: [use("c1", "a"), use("c2", "b"), use("c3", "c")] },
        {
          role: "user",
          content: [used("c1", "A"), { ...used("c2", "gone"), is_error: true }, used("c3", "(no output)")],
        },
        { role: "system", content: [text("NEWS")] },
      ],
      [
        { role: "user", content: [text("Read all")] },
        { role: "assistant", content: [use("c1", "a"), use("c2", "b"), use("c3", "c")] },
        {
          role: "user",
          content: [
            used("c1", "A"),
            { ...used("c2", "gone"), is_error: true },
            used("c3", "(no output)"),
            text("NEWS"),
          ],
        },
      ],
    ] as unknown as Expected,
  ],
  "two adjacent blocks: an answer that was cut off before its first word": (block) => [
    [
      { role: "user", text: "Hello", block: block("FIRST") },
      { role: "assistant", text: "", calls: [], truncated: true },
      { role: "user", text: "Something urgent came.", block: block("SECOND") },
    ],
    [
      [
        { role: "developer", content: "FIRST" },
        { role: "user", content: "Hello" },
        { role: "developer", content: "SECOND" },
        { role: "user", content: "Something urgent came." },
      ],
      [
        PROMPT,
        { role: "developer", content: "FIRST" },
        { role: "user", content: "Hello" },
        { role: "developer", content: "SECOND" },
        { role: "user", content: "Something urgent came." },
      ],
      [
        PROMPT,
        { role: "user", content: "FIRST\n\nHello" },
        { role: "user", content: "SECOND\n\nSomething urgent came." },
      ],
      [
        { role: "user", content: [text("Hello")] },
        { role: "system", content: [text("FIRST")] },
        { role: "assistant", content: [text("(no answer was given)")] },
        { role: "user", content: [text("Something urgent came.")] },
        { role: "system", content: [text("SECOND")] },
      ],
      [
        { role: "user", content: [text("FIRST"), text("Hello")] },
        { role: "user", content: [text("SECOND"), text("Something urgent came.")] },
      ],
    ],
  ],
  "a block on tool results, and the user's next words right after it": (block) => [
    [
      { role: "user", text: "Read it" },
      { role: "assistant", text: "", calls: [call("c1", "a")] },
      { role: "tools", results: [result("c1", "A")], block: block("FIRST") },
      { role: "user", text: "Stop that", block: block("SECOND") },
    ],
    [
      [
        { role: "user", content: "Read it" },
        item("c1", "a"),
        { type: "function_call_output", call_id: "c1", output: "A" },
        { role: "developer", content: "FIRST" },
        { role: "developer", content: "SECOND" },
        { role: "user", content: "Stop that" },
      ],
      [
        PROMPT,
        { role: "user", content: "Read it" },
        { role: "assistant", content: null, tool_calls: [chatCall("c1", "a")] },
        { role: "tool", tool_call_id: "c1", content: "A" },
        { role: "developer", content: "FIRST" },
        { role: "developer", content: "SECOND" },
        { role: "user", content: "Stop that" },
      ],
      [
        PROMPT,
        { role: "user", content: "Read it" },
        { role: "assistant", content: null, tool_calls: [chatCall("c1", "a")] },
        { role: "tool", tool_call_id: "c1", content: "A" },
        { role: "user", content: "FIRST" },
        { role: "user", content: "SECOND\n\nStop that" },
      ],
      [
        { role: "user", content: [text("Read it")] },
        { role: "assistant", content: [use("c1", "a")] },
        { role: "user", content: [used("c1", "A")] },
        { role: "system", content: [text("FIRST")] },
        { role: "assistant", content: [text("(no answer was given)")] },
        { role: "user", content: [text("Stop that")] },
        { role: "system", content: [text("SECOND")] },
      ],
      [
        { role: "user", content: [text("Read it")] },
        { role: "assistant", content: [use("c1", "a")] },
        { role: "user", content: [used("c1", "A"), text("FIRST")] },
        { role: "user", content: [text("SECOND"), text("Stop that")] },
      ],
    ],
  ],
  "a truncated answer keeps its words": (block) => [
    [
      { role: "user", text: "Tell me all" },
      { role: "assistant", text: "It began when", calls: [], truncated: true },
      { role: "user", text: "Something urgent came.", block: block("NEWS") },
    ],
    [
      [
        { role: "user", content: "Tell me all" },
        { role: "assistant", content: "It began when" },
        { role: "developer", content: "NEWS" },
        { role: "user", content: "Something urgent came." },
      ],
      [
        PROMPT,
        { role: "user", content: "Tell me all" },
        { role: "assistant", content: "It began when" },
        { role: "developer", content: "NEWS" },
        { role: "user", content: "Something urgent came." },
      ],
      [
        PROMPT,
        { role: "user", content: "Tell me all" },
        { role: "assistant", content: "It began when" },
        { role: "user", content: "NEWS\n\nSomething urgent came." },
      ],
      [
        { role: "user", content: [text("Tell me all")] },
        { role: "assistant", content: [text("It began when")] },
        { role: "user", content: [text("Something urgent came.")] },
        { role: "system", content: [text("NEWS")] },
      ],
      [
        { role: "user", content: [text("Tell me all")] },
        { role: "assistant", content: [text("It began when")] },
        { role: "user", content: [text("NEWS"), text("Something urgent came.")] },
      ],
    ],
  ],
};

describe.each(CASES.map((kind, index) => ({ ...kind, index })))("$name", (kind) => {
  test.each(Object.keys(CONVERSATIONS))("%s", async (name) => {
    const server = await modelServer();
    const model = await opened(kind, server);
    expect(model.form()).toBe(kind.form);
    const [messages, expected] = CONVERSATIONS[name]?.((words) => ({ text: words, form: kind.form })) ?? [[], []];

    const events = await ask(model, messages);

    expect(server.recorder.requests.map(({ path }) => path)).toEqual([kind.path]);
    const body = server.recorder.requests[0]?.body;
    expect(body).toBe(JSON.stringify({ ...kind.head, [kind.field]: expected[kind.index] }));
    expect(events.map(({ type }) => type)).toEqual(["started", "text", "end"]);
  });

  test("the same conversation gives the same bytes", async () => {
    const server = await modelServer();
    const messages: Message[] = [{ role: "user", text: "Hello", block: { text: "NEWS", form: kind.form } }];
    await ask(await opened(kind, server), messages);
    await ask(await opened(kind, server), structuredClone(messages));
    const [first, second] = server.recorder.requests;
    expect(second?.body).toBe(first?.body);
  });

  test("over ten turns with blocks, calls and a cut, every request is the beginning of the next", async () => {
    const server = await modelServer();
    const model = await opened(kind, server);
    const messages: Message[] = [];
    const block = (turn: number): Block => ({ text: `NEWS ${turn} «${"é".repeat(turn)}»`, form: model.form() });
    for (let turn = 1; turn <= 10; turn += 1) {
      messages.push({ role: "user", text: `Question ${turn}`, ...(turn % 3 === 0 ? {} : { block: block(turn) }) });
      if (turn === 5) {
        // Cut off before the first word.
        await ask(model, messages);
        messages.push({ role: "user", text: "Something urgent came.", block: block(55) });
      }
      const paths = turn % 4 === 0 ? ["a", "b", "c"] : turn % 2 === 0 ? ["a"] : [];
      if (paths.length > 0) {
        server.answers.push({
          reasoning: "Hm.",
          toolCalls: paths.map((path) => ({ name: "read_file", arguments: JSON.stringify({ path }) })),
        });
        const events = await ask(model, messages);
        const calls = events.flatMap((event) => (event.type === "call" ? [event.call] : []));
        expect(calls.map(({ input }) => input["path"])).toEqual(paths);
        messages.push({ role: "assistant", text: "", calls, ...originalIn(events) });
        messages.push({
          role: "tools",
          results: calls.map(({ id }) => result(id, `of ${turn}`)),
          block: block(turn * 100),
        });
      }
      server.answers.push({ content: `Answer ${turn}` });
      const events = await ask(model, messages);
      const said = events.map((event) => (event.type === "text" ? event.delta : "")).join("");
      expect(said).toBe(`Answer ${turn}`);
      messages.push({ role: "assistant", text: said, calls: [], ...originalIn(events) });
    }
    const bodies = server.recorder.requests.map(({ body }) => body);
    expect(bodies).toHaveLength(16);
    for (const [index, body] of bodies.slice(1).entries()) {
      const before = bodies[index]?.slice(0, -"]}".length) ?? "";
      expect(body.startsWith(before), `request ${index + 2} does not continue request ${index + 1}`).toBe(true);
    }
  });
});

test("a block that once went out as text stays text, whatever the model takes by now", async () => {
  const server = await modelServer();
  const messages: Message[] = [
    { role: "user", text: "Hello", block: { text: "OLD", form: "text" } },
    { role: "assistant", text: "Hi", calls: [] },
    { role: "user", text: "And?", block: { text: "NEW", form: "system" } },
  ];
  const events = await ask(await opened(CASES[3] as Case, server), messages);
  expect(events[0]).toEqual({ type: "started" });
  expect(JSON.parse(server.recorder.requests[0]?.body ?? "").messages).toEqual([
    { role: "user", content: [text("OLD"), text("Hello")] },
    { role: "assistant", content: [text("Hi")] },
    { role: "user", content: [text("And?")] },
    { role: "system", content: [text("NEW")] },
  ]);
});

test("a block that another provider recorded as a message of the operator takes this one's form", async () => {
  const server = await modelServer();
  const messages: Message[] = [{ role: "user", text: "Hello", block: { text: "NEWS", form: "developer" } }];
  const [responses, , weights, system] = CASES as [Case, Case, Case, Case];
  for (const kind of [responses, weights, system]) {
    const events = await ask(await opened(kind, server), messages);
    const told = events.filter(({ type }) => type === "downgraded");
    expect(told).toEqual(kind.form === "developer" ? [] : [{ type: "downgraded", form: kind.form }]);
  }
  expect(server.recorder.requests.map(({ body }) => body.slice(body.indexOf('"NEWS') - 80))).toEqual([
    expect.stringContaining('{"role":"developer","content":"NEWS"}'),
    expect.stringContaining('{"role":"user","content":"NEWS\\n\\nHello"}'),
    expect.stringContaining('{"role":"system","content":[{"type":"text","text":"NEWS"}]}'),
  ]);
});

test("ids and names that other servers gave are made legal for Anthropic, alike in the call and its result", async () => {
  const server = await modelServer();
  const model = await opened(CASES[4] as Case, server);
  await ask(model, [
    { role: "user", text: "Go" },
    { role: "assistant", text: "", calls: [{ id: "functions.go:0", name: "my.tool", input: {} }] },
    { role: "tools", results: [{ id: "functions.go:0", name: "my.tool", output: "done", is_error: false }] },
  ]);
  expect(JSON.parse(server.recorder.requests[0]?.body ?? "").messages.slice(1)).toEqual([
    { role: "assistant", content: [{ type: "tool_use", id: "functions_go_0", name: "my_tool", input: {} }] },
    { role: "user", content: [{ type: "tool_result", tool_use_id: "functions_go_0", content: "done" }] },
  ]);
});

test("ids that are alike when made legal stay each its own, and as they were once sent", async () => {
  const server = await modelServer();
  const model = await opened(CASES[4] as Case, server);
  const turn = (...ids: string[]): Message[] => [
    { role: "user", text: "Go" },
    { role: "assistant", text: "", calls: ids.map((id) => call(id, "a")) },
    { role: "tools", results: ids.map((id) => result(id, id)) },
  ];
  const first = turn("a.1", "a_1", "a:1");
  await ask(model, first);
  await ask(model, [...first, ...turn("a.1", "a-1", "a/1")]);
  const [before, after] = server.recorder.requests.map(({ body }) => JSON.parse(body).messages);
  expect(after.slice(0, before.length)).toEqual(before);
  const sent: [string, string][] = after.flatMap(({ content }: { content: Record<string, string>[] }) =>
    content.flatMap(({ type, content: output, tool_use_id }) =>
      type === "tool_result" ? [[output, tool_use_id]] : [],
    ),
  );
  expect(sent.map(([id]) => id)).toEqual(["a.1", "a_1", "a:1", "a.1", "a-1", "a/1"]);
  for (const [id, legal] of sent) {
    expect(legal).toMatch(/^[a-zA-Z0-9_-]+$/);
    expect(sent.filter((one) => one[1] === legal).map((one) => one[0])).toEqual(
      sent.map((one) => one[0]).filter((one) => one === id),
    );
  }
});

test.each(CASES)("a name that no tool has is made legal: $name", async (kind) => {
  const server = await modelServer();
  const names = ["functions.go now", "", "n".repeat(200)];
  await ask(await opened(kind, server), [
    { role: "user", text: "Go" },
    { role: "assistant", text: "", calls: names.map((name, index) => ({ id: `c${index}`, name, input: {} })) },
    {
      role: "tools",
      results: names.map((name, index) => ({ id: `c${index}`, name, output: "no such", is_error: true })),
    },
  ]);
  const body = server.recorder.requests[0]?.body ?? "";
  const sent = [...body.slice(body.indexOf('"Go"')).matchAll(/"name":"([^"]*)"/g)].map(([, name = ""]) => name);
  const bound = kind.provider === "anthropic" ? 128 : 64;
  expect(sent).toEqual(["functions_go_now", "unnamed", "n".repeat(bound)]);
});

describe("an answer that is thought and no more", () => {
  const thought = { type: "thinking", thinking: "Hm.", signature: "s" };
  const redacted = { type: "redacted_thinking", data: "d" };
  const reasoning = { type: "reasoning", id: "rs_1", summary: [], encrypted_content: "e" };
  const said = { type: "message", role: "assistant", content: [{ type: "output_text", text: "Well." }] };
  const [responses, , , system] = CASES as [Case, Case, Case, Case];

  test.each([
    ["OpenAI, thought alone", responses, "", [reasoning], []],
    ["OpenAI, thought at the end", responses, "Well.", [said, reasoning], [{ role: "assistant", content: "Well." }]],
    ["OpenAI, thought before the words", responses, "Well.", [reasoning, said], [reasoning, said]],
    ["Anthropic, thought alone", system, "", [thought], []],
    ["Anthropic, hidden thought alone", system, "", [redacted], []],
    [
      "Anthropic, thought at the end",
      system,
      "Well.",
      [text("Well."), thought],
      [{ role: "assistant", content: [text("Well.")] }],
    ],
    [
      "Anthropic, thought before the words",
      system,
      "Well.",
      [thought, text("Well.")],
      [{ role: "assistant", content: [thought, text("Well.")] }],
    ],
  ] as const)("%s", async (_name, kind, words, parts, expected) => {
    const server = await modelServer();
    const original: Original = { provider: kind.provider, model: kind.model, parts };
    await ask(await opened(kind, server), [
      { role: "user", text: "Hello" },
      { role: "assistant", text: words, calls: [], original },
      { role: "user", text: "And?" },
    ]);
    const sent = JSON.parse(server.recorder.requests[0]?.body ?? "")[kind.field];
    expect(sent.slice(1, -1)).toEqual(expected);
  });
});
