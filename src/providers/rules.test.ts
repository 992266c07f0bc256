/** Over arbitrary conversations: each API's rules hold, and a request is the beginning of every later one. */
import Anthropic from "@anthropic-ai/sdk";
import fc from "fast-check";
import OpenAI from "openai";
import { describe, expect, test } from "vitest";
import { messagesProtocol } from "./anthropic/messages.js";
import type { BlockForm, Message } from "./model.js";
import { chatProtocol } from "./openai/chat.js";
import { responsesProtocol } from "./openai/responses.js";

const openai = new OpenAI({ apiKey: "none", baseURL: "http://127.0.0.1:9" });
const anthropic = new Anthropic({ apiKey: "none", baseURL: "http://127.0.0.1:9" });

const words = fc.oneof(fc.constantFrom("", " \n", "word", "</data>", "é 🎉"), fc.string({ maxLength: 8 }));
const spoken = words.filter((text) => text.trim() !== "");
const block = fc.option(fc.record({ text: spoken, form: fc.constantFrom<BlockForm>("developer", "system", "text") }), {
  nil: undefined,
});
const carried = <Rest extends object>(rest: Rest, carrying: { text: string; form: BlockForm } | undefined) =>
  carrying === undefined ? rest : { ...rest, block: carrying };

/** What a turn adds: the user's words, then batches of calls with their results, then an answer, whole, cut or none. */
const turn = fc
  .record({
    text: words,
    block,
    batches: fc.array(
      fc.record({
        said: words,
        outputs: fc.array(fc.tuple(words, fc.boolean()), { minLength: 1, maxLength: 3 }),
        block,
      }),
      {
        maxLength: 3,
      },
    ),
    answer: fc.option(fc.record({ text: words, truncated: fc.boolean() }), { nil: undefined }),
  })
  .map(({ text, block, batches, answer }) => (id: () => string): Message[] => [
    carried({ role: "user" as const, text }, block),
    ...batches.flatMap(({ said, outputs, block }): Message[] => {
      const calls = outputs.map(() => ({ id: id(), name: "read_file", input: { path: said } }));
      const results = outputs.map(([output, is_error], index) => ({
        id: calls[index]?.id ?? "",
        name: "read_file",
        output,
        is_error,
      }));
      return [{ role: "assistant", text: said, calls }, carried({ role: "tools" as const, results }, block)];
    }),
    ...(answer === undefined ? [] : [{ role: "assistant" as const, calls: [], ...answer }]),
  ]);

const conversation = fc.array(turn, { minLength: 1, maxLength: 6 }).map((turns) => {
  let number = 0;
  return turns.flatMap((add) => add(() => `call.${++number}`));
});

describe.each([
  { name: "Responses", protocol: responsesProtocol(openai, "gpt-5.1", OpenAI), forms: ["developer", "text"] },
  {
    name: "Chat Completions",
    protocol: chatProtocol(openai, "gpt-5.1", OpenAI),
    forms: ["developer", "system", "text"],
  },
  { name: "Messages", protocol: messagesProtocol(anthropic, "claude-opus-5", Anthropic), forms: ["system", "text"] },
] as const)("$name", ({ protocol, forms }) => {
  test("rules and prefix", () => {
    fc.assert(
      fc.property(conversation, fc.constantFrom<BlockForm>(...forms), (messages, form) => {
        const bodies = messages.flatMap((message, at) => {
          if (message.role === "assistant") return [];
          const request = {
            system: "S",
            tools: [],
            messages: messages.slice(0, at + 1),
            signal: new AbortController().signal,
          };
          const body = protocol.render(request, form);
          (protocol.validate as (body: unknown) => void)(body);
          return [JSON.stringify(body)];
        });
        for (const [index, body] of bodies.slice(1).entries())
          expect(body.startsWith(bodies[index]?.slice(0, -"]}".length) ?? "")).toBe(true);
      }),
      { numRuns: 300 },
    );
  });
});
