/** Parts that need no store: what providers are sent, what is declared, what is bounded. */
import { describe, expect, test } from "vitest";
import { z } from "zod";
import type { Item } from "../domain/conversation.js";
import { carrierId, threadId, turnId, userId } from "../domain/ids.js";
import { BUILTIN_TOOLS } from "./builtin_tools.js";
import { closing } from "./closing.js";
import { History } from "./history.js";
import { DEFAULT_LIMITS, retryDelay } from "./limits.js";
import { ToolSet } from "./tool_set.js";
import { INTERRUPTED, parsedInput, runTool, type Tool } from "./tools.js";
import { NO_FILES } from "./workspace/thread_files.js";

const call = (id: string): Item => ({ type: "tool_call_request", id, name: "look", input: {} });
const result = (id: string): Item => ({
  type: "tool_call_response",
  id,
  name: "look",
  output: "seen",
  is_error: false,
});
const said = (content: string): Item => ({ type: "chat_response", content });
const asked = (content: string): Item => ({ type: "chat_request", content, source: "user" });
const block = (text: string) => ({ text, form: "system" as const });

describe("history", () => {
  test("a batch of results is one message, with its block", () => {
    const history = new History();
    history.append([asked("go")], { id: carrierId("k1"), block: block("one") });
    history.append([said("I look."), call("a"), call("b")], null);
    history.append([result("a"), result("b")], { id: carrierId("k2"), block: block("two") });
    expect(history.messages()).toEqual([
      { role: "user", text: "go", block: block("one") },
      {
        role: "assistant",
        text: "I look.",
        calls: [
          { id: "a", name: "look", input: {} },
          { id: "b", name: "look", input: {} },
        ],
      },
      {
        role: "tools",
        results: [
          { id: "a", name: "look", output: "seen", is_error: false },
          { id: "b", name: "look", output: "seen", is_error: false },
        ],
        block: block("two"),
      },
    ]);
  });

  test("a block that did not arrive is gone, and another takes its place with the same message", () => {
    const history = new History();
    history.append([asked("go")], { id: carrierId("k1"), block: block("one") });
    history.withdraw(carrierId("k1"));
    expect(history.messages()).toEqual([{ role: "user", text: "go" }]);
    history.append([], { id: carrierId("k2"), block: block("two") });
    history.reform(carrierId("k2"), "text");
    expect(history.messages()).toEqual([{ role: "user", text: "go", block: { text: "two", form: "text" } }]);
  });

  test("what was cut off before its first word is left out, steers and words to the user are no messages", () => {
    const history = new History();
    history.append(
      [
        asked("go"),
        { type: "steer", steer: 1, content: "unheard" },
        { type: "told_user", content: "told" },
        { type: "chat_response", content: " ", truncated: true },
        asked("again"),
        { type: "chat_response", content: "well", truncated: true },
      ],
      null,
    );
    expect(history.messages()).toEqual([
      { role: "user", text: "go" },
      { role: "user", text: "again" },
      { role: "assistant", text: "well", calls: [], truncated: true },
    ]);
  });

  test("no call reaches a provider without a result", () => {
    const history = new History();
    history.append([asked("go"), said(""), call("a"), asked("next")], null);
    expect(history.messages()[2]).toEqual({
      role: "tools",
      results: [{ id: "a", name: "look", output: INTERRUPTED, is_error: true }],
    });
    expect(history.messages()[3]).toEqual({ role: "user", text: "next" });
  });
});

test("after a crash: open calls have results, and words that were not taken up are kept", () => {
  expect(
    closing([
      asked("go"),
      said(""),
      call("a"),
      call("b"),
      { type: "steer", steer: 1, content: "heard" },
      { type: "steer", steer: 2, content: "unheard" },
      result("a"),
      { type: "chat_request", content: "heard", source: "user", steer: 1 },
    ]),
  ).toEqual([
    { type: "tool_call_response", id: "b", name: "look", output: INTERRUPTED, is_error: true },
    { type: "chat_request", content: "unheard", source: "user", steer: 2 },
  ]);
  expect(closing([asked("go"), said("done")])).toEqual([]);
});

describe("tools", () => {
  const owner = { thread_id: threadId("t"), user_id: userId("u") };
  const context = { ...owner, turn_id: turnId("x"), call_id: "c", files: NO_FILES.ofCall(owner) };
  const bounds = { timeout_ms: 60_000, cut: new AbortController().signal, grace_ms: () => 0 };
  const tool = (run: Tool["run"]): Tool => ({ name: "look", description: "Looks.", input: z.object({}), run });

  test("the built-in ones are declared first, in these words for ever", () => {
    const tools = new ToolSet(BUILTIN_TOOLS, [
      { name: "read_file", description: "Reads.", input: z.object({ path: z.string() }), run: () => "" } as Tool,
    ]);
    expect(tools.declarations.map(({ name }) => name)).toEqual([
      "acknowledge_notifications",
      "read_notifications",
      "tell_user",
      "read_file",
    ]);
    expect(tools.declarations[3]).toEqual({
      name: "read_file",
      description: "Reads.",
      input_schema: { type: "object", properties: { path: { type: "string" } }, required: ["path"] },
    });
    expect(JSON.stringify(BUILTIN_TOOLS)).toBe(PINNED);
  });

  test("input is checked by the schema", () => {
    const typed: Tool = { ...tool(() => ""), input: z.object({ count: z.int() }) };
    expect(parsedInput(typed, { count: 2 })).toEqual({ value: { count: 2 } });
    expect(parsedInput(typed, { count: "2" })).toEqual({ wrong: expect.stringMatching(/^count: /) });
  });

  test("an output is text, whatever comes out, and not endless", async () => {
    const run = async (output: unknown) =>
      (
        await runTool(
          tool(() => output as string),
          {},
          context,
          bounds,
        )
      ).output;
    expect(await run(7)).toBe("7");
    expect(await run("lone \ud800")).toBe("lone \ufffd");
    expect(await run("x".repeat(300_000))).toHaveLength(200_000 + "\n(cut off here: it had 300000 characters)".length);
  });

  test("one that is cut short may come to its end, or is left alone", async () => {
    const cut = new AbortController();
    const late = tool(
      (_input, { signal }) => new Promise((resolve) => signal.addEventListener("abort", () => resolve("half done"))),
    );
    const deaf = tool(() => new Promise(() => {}));
    const gracious = runTool(late, {}, context, { ...bounds, cut: cut.signal, grace_ms: () => 60_000 });
    const left = runTool(deaf, {}, context, { ...bounds, cut: cut.signal });
    cut.abort();
    expect(await gracious).toEqual({ how: "success", output: "half done" });
    expect(await left).toEqual({ how: "interrupted", output: INTERRUPTED });
    let ran = false;
    const never = tool(() => {
      ran = true;
      return "";
    });
    expect((await runTool(never, {}, context, { ...bounds, cut: cut.signal })).how).toBe("interrupted");
    expect(ran).toBe(false);
  });
});

test("a retry rests twice as long as the one before, and as long as the provider asks for", () => {
  const limits = DEFAULT_LIMITS;
  expect([0, 1, 2].map((number) => retryDelay(limits, number))).toEqual([500, 1_000, 2_000]);
  expect(retryDelay(limits, 0, 3_000)).toBe(3_000);
  expect(retryDelay(limits, 30)).toBe(60_000);
});

const PINNED =
  '[{"name":"acknowledge_notifications","description":"Acknowledges notifications by their ids. What is listed under **Tell the user** is acknowledged after you have told the user of it.","input_schema":{"type":"object","properties":{"acknowledged_ids":{"type":"array","items":{"type":"string"},"description":"Ids as they stand in the block of notifications."}},"required":["acknowledged_ids"],"additionalProperties":false}},{"name":"read_notifications","description":"Reads notifications: one by its id, or what waits for you (pending), what is in the user\'s inbox (inbox), what the system has shown in this conversation (floor). Newest first; a page ends with how to get the next one.","input_schema":{"type":"object","properties":{"pending":{"type":"boolean","description":"What waits for you. The default."},"inbox":{"type":"boolean","description":"The user\'s inbox, read only."},"floor":{"type":"boolean","description":"What the user was shown in this conversation, read only."},"id":{"type":"string","description":"One notification, whole."},"after":{"type":"string","description":"Where the page before ended."}},"additionalProperties":false}},{"name":"tell_user","description":"Says something to the user. In a turn that the system opened for you alone, this is the only way: there, what you write is not shown.","input_schema":{"type":"object","properties":{"text":{"type":"string","description":"What the user is to read."}},"required":["text"],"additionalProperties":false}}]';
