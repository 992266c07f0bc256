/** The official SDKs, a server that speaks their protocols, and between them what records, and what can hold an answer. */
import { createServer, request as forward, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { FixtureResponse } from "@copilotkit/aimock";
import { onTestFinished } from "vitest";
import { type Latch, latch } from "./agent.js";
import { type ModelServer, modelServer } from "./recorder.js";

const KEY = "TIDINGS_TEST_MODEL_KEY";
process.env[KEY] = "a key";

type Json = Record<string, unknown>;

export interface WireKind {
  readonly name: string;
  readonly provider: string;
  readonly model: string;
  readonly field: "messages" | "input";
  /** In which role what the agent is told comes; `text`: in a message of the user's. */
  readonly form: "developer" | "system" | "text";
  /** Throws if a rule of the API is broken. */
  check(messages: readonly Json[]): void;
}

/** Chat Completions and Responses, said in one way: calls, results, and everything else. */
type Step = { readonly call: string } | { readonly result: string } | { readonly role: string; readonly text: string };

/** Every run of calls is answered at once, in full, in order; nothing stands between; the assistant has not the last word. */
function checkSteps(steps: readonly Step[]): void {
  let open: string[] = [];
  for (const step of steps) {
    if ("call" in step) open.push(step.call);
    else if ("result" in step) {
      if (open[0] !== step.result) throw new Error(`the result ${step.result} answers no call, or not in its order`);
      open = open.slice(1);
    } else {
      if (open.length > 0) throw new Error(`${step.role} stands between a call and its result`);
      if (step.text.trim() === "") throw new Error(`${step.role} says nothing`);
    }
  }
  if (open.length > 0) throw new Error("a call has no result");
  const last = steps.at(-1);
  if (last === undefined || ("role" in last && last.role === "assistant"))
    throw new Error("the assistant has the last word");
}

function checkResponses(input: readonly Json[]): void {
  checkSteps(
    input.flatMap((item, at): Step[] => {
      if (item["type"] === "function_call") return [{ call: String(item["call_id"]) }];
      if (item["type"] === "function_call_output") return [{ result: String(item["call_id"]) }];
      if (item["type"] !== "reasoning") return [{ role: String(item["role"]), text: JSON.stringify(item["content"]) }];
      const next = input[at + 1];
      if (next?.["type"] !== "function_call" && next?.["role"] !== "assistant")
        throw new Error("reasoning without the answer that it led to");
      return [];
    }),
  );
}

function checkChat(messages: readonly Json[]): void {
  checkSteps(
    messages.flatMap((message): Step[] => {
      if (message["role"] === "tool") return [{ result: String(message["tool_call_id"]) }];
      const calls = ((message["tool_calls"] as { id: string }[] | undefined) ?? []).map(({ id }) => ({ call: id }));
      const words =
        message["content"] === null ? [] : [{ role: String(message["role"]), text: String(message["content"]) }];
      return [...words, ...calls];
    }),
  );
}

/**
 * Anthropic: the user begins; results stand first in the message that follows their calls, all of them and in their order;
 * `system` comes after a user's message and is followed by the assistant's, or is the last.
 */
function checkMessages(withSystem: boolean): WireKind["check"] {
  return (messages) => {
    let calls: string[] = [];
    for (const [at, message] of messages.entries()) {
      const role = message["role"];
      const before = messages[at - 1]?.["role"];
      const content = message["content"] as Json[];
      if (content.length === 0) throw new Error("an empty message");
      if (content.some((part) => part["type"] === "text" && String(part["text"]).trim() === ""))
        throw new Error("an empty text");
      if (at === 0 && role !== "user") throw new Error("the user does not begin");
      if (role === "system" && (!withSystem || before !== "user")) throw new Error("system at a wrong place");
      if (before === "system" && role !== "assistant") throw new Error("system is not followed by the assistant");
      const results = content.flatMap((part) => (part["type"] === "tool_result" ? [String(part["tool_use_id"])] : []));
      const first = content.slice(0, calls.length).map((part) => part["tool_use_id"]);
      if (role === "user" && (JSON.stringify(first) !== JSON.stringify(calls) || results.length !== calls.length))
        throw new Error("the results are not first, or not all, or not in their order");
      if (role !== "user" && calls.length > 0) throw new Error("something stands between a call and its result");
      calls =
        role === "assistant"
          ? content.flatMap((part) => (part["type"] === "tool_use" ? [String(part["id"])] : []))
          : [];
    }
    if (messages.at(-1)?.["role"] === "assistant") throw new Error("the assistant has the last word");
  };
}

export const WIRES: readonly WireKind[] = [
  {
    name: "OpenAI, Responses",
    provider: "openai",
    model: "gpt-5.1",
    field: "input",
    form: "developer",
    check: checkResponses,
  },
  {
    name: "openai-compatible, Chat Completions",
    provider: "openai-compatible",
    model: "qwen3.5:32b",
    field: "messages",
    form: "text",
    check: checkChat,
  },
  {
    name: "openai-compatible, an OpenAI model behind a gateway",
    provider: "openai-compatible",
    model: "gpt-5.1",
    field: "messages",
    form: "developer",
    check: checkChat,
  },
  {
    name: "Anthropic, a model with system in the middle",
    provider: "anthropic",
    model: "claude-opus-4-8",
    field: "messages",
    form: "system",
    check: checkMessages(true),
  },
  {
    name: "Anthropic, an older model",
    provider: "anthropic",
    model: "claude-sonnet-4-6",
    field: "messages",
    form: "text",
    check: checkMessages(false),
  },
];

export interface Wire {
  readonly agent: { provider: string; model: string; base_url: string; api_key_env?: string };
  readonly server: ModelServer;
  /** The messages of each request so far; each was checked. */
  requests(): Json[][];
  /** The messages of the newest, each in one line: who it is from, and what it says or does. */
  newest(): string[];
  /** Holds back the rest of the answer in which this text comes, from there on, until the latch is opened. */
  hold(text: string): Latch;
}

export async function openWire(kind: WireKind): Promise<Wire> {
  const server = await modelServer();
  const gate = await openGate(server.url);
  const base_url = kind.provider === "anthropic" ? gate.url : `${gate.url}/v1`;
  const key = kind.provider === "openai-compatible" ? {} : { api_key_env: KEY };
  const requests = () =>
    server.recorder.requests.map(({ body }) => {
      const messages = (JSON.parse(body) as Record<string, Json[]>)[kind.field] ?? [];
      kind.check(messages);
      return messages;
    });
  return {
    agent: { provider: kind.provider, model: kind.model, base_url, ...key },
    server,
    requests,
    newest: () => (requests().at(-1) ?? []).flatMap(lines),
    hold: gate.hold,
  };
}

/** The array of messages as it stands in the body, byte for byte. */
export function messagesText(body: string, field: WireKind["field"]): string {
  const start = body.indexOf(`"${field}":[`);
  if (start < 0) throw new Error(`no ${field} in ${body.slice(0, 200)}`);
  const text = body.slice(start + `"${field}":`.length, -1);
  const again = JSON.stringify((JSON.parse(body) as Json)[field]);
  if (text !== again) throw new Error("the messages are not the last field of the body");
  return text;
}

/** One for each thing that it says, in words that all APIs share. */
function lines(message: Json): string[] {
  const role = String(message["role"]);
  if (message["type"] === "reasoning") return [];
  if (message["type"] === "function_call") return [`call ${message["name"]}`];
  if (message["type"] === "function_call_output") return [`result ${message["output"]}`];
  if (role === "tool") return [`result ${message["content"]}`];
  const { content } = message;
  const parts = Array.isArray(content)
    ? (content as Json[])
    : content === null
      ? []
      : [{ type: "text", text: content }];
  const said = parts.map((part) => {
    if (part["type"] === "tool_use") return `call ${part["name"]}`;
    if (part["type"] === "tool_result") return `result ${part["content"]}`;
    return `${role} ${part["text"]}`;
  });
  const calls = (message["tool_calls"] as { function: { name: string } }[] | undefined) ?? [];
  return [...said, ...calls.map((call) => `call ${call.function.name}`)];
}

/** Calls of tools without input, as an answer of the server. */
export function calling(...names: string[]): FixtureResponse {
  return { toolCalls: names.map((name) => ({ name, arguments: "{}" })) };
}

interface Gate {
  readonly url: string;
  hold(text: string): Latch;
}

/** Passes answers on event by event. */
async function openGate(target: string): Promise<Gate> {
  let held: { text: string; latch: Latch } | null = null;
  const gate = createServer((incoming, answer) => {
    const headers = { ...incoming.headers, host: new URL(target).host };
    const onward = forward(new URL(incoming.url ?? "/", target), { method: incoming.method, headers }, (response) => {
      answer.writeHead(response.statusCode ?? 502, response.headers);
      void pass(response, answer).catch(() => answer.destroy());
    });
    onward.on("error", () => answer.destroy());
    answer.on("close", () => onward.destroy());
    incoming.pipe(onward);
  });
  async function pass(response: IncomingMessage, answer: ServerResponse): Promise<void> {
    let rest = "";
    for await (const piece of response.setEncoding("utf8")) {
      const events = (rest + String(piece)).split("\n\n");
      rest = events.pop() ?? "";
      for (const event of events) {
        answer.write(`${event}\n\n`);
        if (held === null || !event.includes(held.text)) continue;
        const { opened } = held.latch;
        held = null;
        await opened;
      }
    }
    answer.end(rest);
  }
  await new Promise<void>((resolve) => gate.listen(0, "127.0.0.1", resolve));
  onTestFinished(
    () =>
      new Promise<void>((resolve) => {
        gate.close(() => resolve());
        gate.closeAllConnections();
      }),
  );
  return {
    url: `http://127.0.0.1:${(gate.address() as AddressInfo).port}`,
    hold: (text) => {
      const made = latch();
      held = { text, latch: made };
      return made;
    },
  };
}
