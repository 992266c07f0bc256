/** What goes wrong: providers, limits, tools, crashes. Everything is bounded, and ends where it should. */
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { threadId } from "../../../src/domain/ids.js";
import { HOST } from "../../../src/domain/principal.js";
import type { Tool } from "../../../src/runtime/tools.js";
import { eventually } from "../../support/folder.js";
import { hosted, servedModel, THREAD } from "../../support/hosted.js";

const broken = { error: { message: "try later", type: "server_error" }, status: 500 };
const QUICK = { retry_base_ms: 10 };

describe("a provider that fails", () => {
  test("for a while is asked again, and what was not told comes again", async () => {
    const { model, server } = await servedModel();
    const plane = await hosted({ model, limits: QUICK, policy: { backoffMs: 1 } });
    const id = await plane.notify({ content: "the build ended" });
    server.answers.push(broken, broken, { content: "At last." });
    expect((await plane.converse("hello")).state).toBe("completed");
    expect(plane.agent.counters).toMatchObject({ model_calls: 3, retries: 2 });
    expect(await plane.state(id)).toBe("DELIVERED");
    expect(await plane.texts()).toEqual(["At last."]);
    const { messages } = JSON.parse(server.recorder.requests.at(-1)?.body ?? "{}");
    expect(JSON.stringify(messages).split("the build ended")).toHaveLength(2);
  });

  test("for ever: so many calls and no more, and the turn has failed", async () => {
    const { model, server } = await servedModel();
    server.answers.push(...Array.from({ length: 50 }, () => broken));
    const plane = await hosted({ model, limits: QUICK });
    expect(await plane.converse("hello")).toMatchObject({
      state: "failed",
      note: expect.stringContaining("try later"),
    });
    expect(plane.agent.counters).toMatchObject({ model_calls: 4, retries: 3 });
    expect(await plane.events("agent.turn.end")).toMatchObject([{ status: "failed" }]);
  });

  test("for ever, with nobody there: what the agent handles goes to the user, the rest waits", async () => {
    const { model, server } = await servedModel();
    server.answers.push(...Array.from({ length: 50 }, () => broken));
    const plane = await hosted({ model, limits: QUICK, policy: { backoffMs: 20 } });
    const narrates = await plane.mustNarrate("tell the user");
    const context = await plane.critical("critical");
    await plane.becomes(narrates, "ESCALATED attempts");
    await eventually(
      async () => (await plane.stored(context)).delivery,
      ({ quiet }) => quiet,
    );
    const { model_calls } = plane.agent.counters;
    expect(model_calls).toBeLessThanOrEqual(6);
    await eventually(
      async () => plane.store.waiting(HOST, null),
      (waiting) => waiting.length === 0,
    );
    await plane.turnsOver(1);
    expect(plane.agent.counters.model_calls).toBe(model_calls);
    expect(await plane.shown()).toEqual(["tell the user"]);
    // Nobody is called with nothing to tell.
    for (const { body } of server.recorder.requests) expect(body).toContain("kind=direct.notify");
  });

  test("by saying no is not asked again", async () => {
    const { model, server } = await servedModel();
    server.answers.push({ error: { message: "wrong key", type: "authentication_error" }, status: 401 });
    const plane = await hosted({ model, limits: QUICK });
    expect(await plane.converse("hello")).toMatchObject({ state: "failed" });
    expect(plane.agent.counters).toMatchObject({ model_calls: 1, retries: 0 });
  });

  test("in the middle of an answer: what was said is kept, and it goes on once", async () => {
    const { model } = await servedModel({}, { chunkSize: 4, latency: 20, truncateAfterChunks: 3 });
    const plane = await hosted({ model, limits: QUICK });
    expect(await plane.converse("hello")).toMatchObject({ state: "failed" });
    expect(plane.agent.counters.model_calls).toBe(2);
    const items = await plane.items();
    expect(items.filter((item) => item.type === "chat_response")).toMatchObject([
      { truncated: true },
      { truncated: true },
    ]);
    expect(items[2]).toMatchObject({
      type: "chat_request",
      source: "system",
      content: "The answer was cut off by an error of the provider; go on.",
    });
  });
});

describe("a provider that takes a role back", () => {
  test("is told as text from then on, and what it was told stays as it was sent", async () => {
    const { model, server } = await servedModel();
    const plane = await hosted({ model });
    server.answers.push({
      error: {
        message: "Unsupported value: 'messages[1].role' does not support 'developer'",
        type: "invalid_request_error",
      },
      status: 400,
    });
    await plane.notify({ content: "the build ended" });
    expect((await plane.converse("one")).state).toBe("completed");
    await plane.agent.close();
    await plane.host({ model });
    await plane.converse("two");
    const [, second, third] = server.recorder.requests.map(({ body }) => JSON.parse(body).messages);
    expect(second.some(({ role }: { role: string }) => role === "developer")).toBe(false);
    expect(third.slice(0, second.length)).toEqual(second);
    expect(JSON.stringify(third)).toContain("the build ended");
  });
});

describe("a limit", () => {
  const again: Tool = { name: "again", description: "Again.", input: z.object({}), run: () => "again" };

  test("of model calls ends the turn and tells the user", async () => {
    const { model, server } = await servedModel();
    let number = 0;
    server.answers.push(
      ...Array.from({ length: 10 }, () => ({
        content: "",
        toolCalls: [{ id: `c${++number}`, name: "again", arguments: "{}" }],
      })),
    );
    const plane = await hosted({ model, tools: [again], limits: { iterations: 3 } });
    expect(await plane.converse("go")).toMatchObject({ state: "failed", note: "the turn had its 3 model calls" });
    expect(plane.agent.counters.model_calls).toBe(3);
    expect(await plane.events("budget.iteration.exceeded")).toMatchObject([
      { budget_type: "iteration", current: 3, limit: 3 },
    ]);
    expect((await plane.shown())[0]).toContain("budget exceeded");
  });

  test("of tokens too", async () => {
    const { model, server } = await servedModel();
    server.answers.push({
      content: "",
      toolCalls: [{ id: "c1", name: "again", arguments: "{}" }],
      usage: { prompt_tokens: 90, completion_tokens: 20 },
    });
    const plane = await hosted({ model, tools: [again], limits: { tokens: 100 } });
    expect(await plane.converse("go")).toMatchObject({ state: "failed", note: "the turn had its 100 tokens" });
    expect(await plane.events("budget.token.exceeded")).toMatchObject([{ current: 110, limit: 100 }]);
  });

  test("of time cuts the answer off", async () => {
    const plane = await hosted({ limits: { time_ms: 200 } });
    expect(await plane.converse("say slowly 500")).toMatchObject({
      state: "failed",
      note: "the turn had its 200 milliseconds",
    });
    expect((await plane.items()).at(-1)).toMatchObject({ type: "chat_response", truncated: true });
    expect(await plane.events("budget.timeout.exceeded")).toHaveLength(1);
  });
});

describe("a tool", () => {
  test("that fails or takes too long is a result, an event, and no news to the agent that saw it", async () => {
    const { model, server } = await servedModel();
    const fails: Tool = {
      name: "fails",
      description: "Fails.",
      input: z.object({}),
      run: () => {
        throw new Error("out of paper");
      },
    };
    const hangs: Tool = {
      name: "hangs",
      description: "Hangs.",
      input: z.object({}),
      timeout_ms: 30,
      run: () => new Promise<string>(() => {}),
    };
    const works: Tool = {
      name: "works",
      description: "Works.",
      input: z.object({ path: z.string() }),
      run: ({ path }) => `read ${path}`,
    };
    const plane = await hosted({ model, tools: [fails, hangs, works] as Tool[] });
    server.answers.push({
      content: "",
      toolCalls: [
        { id: "c1", name: "hangs", arguments: "{}" },
        { id: "c2", name: "fails", arguments: "{}" },
        { id: "c3", name: "works", arguments: '{"path":"a"}' },
        { id: "c4", name: "works", arguments: '{"path":1}' },
      ],
    });
    expect((await plane.converse("go")).state).toBe("completed");
    const results = (await plane.items()).filter((item) => item.type === "tool_call_response");
    expect(results).toMatchObject([
      { id: "c1", output: "timed out after 30 ms", is_error: true },
      { id: "c2", output: "out of paper", is_error: true },
      { id: "c3", output: "read a", is_error: false },
      { id: "c4", is_error: true },
    ]);
    expect(await plane.events("tool.call.pending")).toHaveLength(4);
    expect(await plane.events("tool.call.success")).toMatchObject([{ tool_name: "works", call_id: "c3" }]);
    expect(await plane.events("tool.call.timeout")).toMatchObject([{ tool_name: "hangs", timeout_ms: 30 }]);
    expect(await plane.events("tool.call.failure")).toMatchObject([
      { tool_name: "fails", error_message: "out of paper" },
      { tool_name: "works" },
    ]);
    const { stored } = await plane.store.list(HOST, { thread_id: threadId(THREAD), limit: 100 });
    const failures = stored.filter(({ notification }) => notification.kind.startsWith("tool.call."));
    expect(failures.length).toBeGreaterThan(0);
    expect(failures.map(({ delivery }) => delivery.reason)).toEqual(failures.map(() => "observed"));
    expect(server.recorder.requests.at(-1)?.body).not.toContain("tool_fail");
  });

  test("that hears nothing does not keep the host from closing", async () => {
    let entered: () => void = () => {};
    const running = new Promise<void>((resolve) => {
      entered = resolve;
    });
    const deaf: Tool = {
      name: "deaf",
      description: "Hears nothing.",
      input: z.object({}),
      run: () => {
        entered();
        return new Promise<string>(() => {});
      },
    };
    const plane = await hosted({ tools: [deaf] });
    const turn = await plane.say("call deaf {}");
    await running;
    await plane.agent.close();
    expect(await plane.store.turn(HOST, turn.id)).toMatchObject({ state: "failed", note: "the host was closed" });
    expect((await plane.items()).at(-1)).toMatchObject({ type: "tool_call_response", is_error: true });
  });

  test("runs beside the others of its batch", async () => {
    const { model, server } = await servedModel();
    let meet: () => void = () => {};
    const met = new Promise<void>((resolve) => {
      meet = resolve;
    });
    let here = 0;
    const meets: Tool = {
      name: "meets",
      description: "Meets another.",
      input: z.object({}),
      run: async () => {
        here += 1;
        if (here === 2) meet();
        await met;
        return `met ${here}`;
      },
    };
    const plane = await hosted({ model, tools: [meets] });
    server.answers.push({
      content: "",
      toolCalls: ["c1", "c2"].map((id) => ({ id, name: "meets", arguments: "{}" })),
    });
    expect((await plane.converse("go")).state).toBe("completed");
  });

  test("of a taken name, or with none, is refused", async () => {
    const tool = (name: string): Tool => ({ name, description: "", input: z.object({}), run: () => "" });
    await expect(hosted({ tools: [tool("tell_user")] })).rejects.toThrow(/built-in names are taken/);
    await expect(hosted({ tools: [tool("two words")] })).rejects.toThrow(/letters, digits/);
  });
});

describe("read_notifications", () => {
  test("shows what waits, what the user was shown, and one by its id; nothing of others", async () => {
    const { model, server } = await servedModel();
    const plane = await hosted({ model, budget: { items: 1, tokens: 10, lines: 1 } });
    await plane.notify({ content: "first\n---\n**Tell the user:**" });
    await plane.notify({ content: "second" });
    await plane.notify({ content: "third" });
    await plane.notify({ content: "of another", thread_id: "other" });
    await plane.notify({ content: "on the floor", target: "user", handler: "system" });
    await plane.notify({ content: "in the inbox", target: "user", handler: "system", thread_id: undefined });
    const foreign = await plane.notify({ content: "of eve", user_id: "eve", thread_id: undefined });
    const read = (id: string, input: object) => ({
      content: "",
      toolCalls: [{ id, name: "read_notifications", arguments: JSON.stringify(input) }],
    });
    server.answers.push(
      read("r1", {}),
      read("r2", { floor: true }),
      read("r3", { inbox: true }),
      read("r4", { id: foreign }),
      read("r5", { after: "nonsense" }),
      { content: "ok" },
    );
    expect((await plane.converse("what else?")).state).toBe("completed");
    const outputs = (await plane.items()).flatMap((item) => (item.type === "tool_call_response" ? [item.output] : []));
    expect(outputs[0]).toMatch(/PENDING, info, \d+ s ago\): <data id=[\w-]+ kind=direct\.notify>third<\/data/);
    expect(outputs[0]).not.toContain("of another");
    expect(outputs[1]).toContain("on the floor");
    expect(outputs[2]).toContain("in the inbox");
    expect(outputs[3]).toMatch(/there is no such notification/);
    expect(outputs[4]).toMatch(/after: is not where another page ended/);
  });
});

describe("after a crash", () => {
  test("a turn that nobody runs has failed, its calls have results, and its words are kept", async () => {
    const { model, server } = await servedModel();
    let runs = 0;
    let entered: () => void = () => {};
    const running = new Promise<void>((resolve) => {
      entered = resolve;
    });
    const stuck: Tool = {
      name: "stuck",
      description: "Stays.",
      input: z.object({}),
      run: () => {
        runs += 1;
        entered();
        return new Promise<string>(() => {});
      },
    };
    const plane = await hosted({ model, tools: [stuck], policy: { backoffMs: 1 } });
    const decides = await plane.decides("yours");
    await plane.becomes(decides, "DELIVERED");
    await plane.turnsOver(1);
    server.answers.push({ content: "", toolCalls: [{ id: "c1", name: "stuck", arguments: "{}" }] });
    await plane.agent.pause(HOST, THREAD);
    const narrates = await plane.mustNarrate("tell the user");
    const turn = await plane.say("go");
    await plane.agent.resume(HOST, THREAD);
    await running;
    await plane.agent.steer(HOST, { thread_id: THREAD, content: "unheard" });
    const queued = await plane.say("next");

    server.answers.push(
      {
        content: "You should know.",
        toolCalls: [{ id: "a1", name: "acknowledge_notifications", arguments: `{"acknowledged_ids":["${narrates}"]}` }],
      },
      { content: "ok" },
    );
    // The first host is left where it is, and never comes back.
    await plane.host({ model, tools: [stuck] });
    expect((await plane.store.turn(HOST, turn.id))?.state).toBe("failed");
    expect((await plane.agent.ended(queued.id)).state).toBe("completed");
    const items = await plane.items();
    expect(items.filter((item) => item.type === "tool_call_response")[0]).toMatchObject({ id: "c1", is_error: true });
    expect(items).toContainEqual({ type: "chat_request", content: "unheard", source: "user", steer: 1 });
    expect(runs).toBe(1);
    const last = JSON.parse(server.recorder.requests.at(-1)?.body ?? "{}");
    expect(JSON.stringify(last.messages)).toContain("unheard");
    await eventually(
      () => plane.state(narrates),
      (state) => state === "DELIVERED" || state.startsWith("ESCALATED"),
    );
  });

  test("a turn whose lease ran out meanwhile has left nothing open, either", async () => {
    const { model, server } = await servedModel();
    const plane = await hosted({ model });
    const begun = await plane.store.beginTurn(HOST, {
      thread_id: threadId(THREAD),
      turn_id: null,
      source: "user",
      content: "go",
      point: "turn_start",
      limit: 10,
      compose: () => ({ told: [], text: "", form: "text" }),
      owner: "hosted",
      lease_ms: 200,
      succeeds: null,
    });
    const turn_id = begun?.turn.id ?? ("" as never);
    const call = { id: "c1", name: "stuck", input: {} };
    await plane.store.stepTurn(HOST, {
      turn_id,
      items: [
        { type: "chat_response", content: "" },
        { type: "tool_call_request", ...call },
        { type: "steer", steer: 1, content: "unheard" },
      ],
      collect: null,
    });
    await eventually(
      () => plane.store.turn(HOST, turn_id),
      (turn) => turn?.state === "failed",
    );
    expect((await plane.converse("next")).state).toBe("completed");
    const { messages } = JSON.parse(server.recorder.requests.at(-1)?.body ?? "{}");
    expect(messages.slice(1)).toMatchObject([
      { role: "user", content: "go" },
      { role: "assistant", tool_calls: [{ id: "c1" }] },
      { role: "tool", tool_call_id: "c1" },
      { role: "user", content: "unheard" },
      { role: "user", content: "next" },
    ]);
  });

  test("what was collected and not told is told by the next host", async () => {
    const { model, server } = await servedModel({}, { latency: 60_000 });
    const plane = await hosted({ model, policy: { backoffMs: 1 } });
    const id = await plane.mustNarrate("tell the user");
    await plane.becomes(id, "LOCKED");
    await eventually(
      async () => server.recorder.requests.length,
      (count) => count === 1,
    );
    await plane.host();
    await plane.becomes(id, "DELIVERED");
    expect((await plane.texts()).join("\n")).toContain("You should know: tell the user");
  });
});
