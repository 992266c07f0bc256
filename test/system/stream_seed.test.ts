/**
 * The document that the stream was first described in, example by example, by `curl` as it writes it and a token: what it
 * sends is sent as it is, and what it shows is seen on the wire. The examples are in `notification_stream.json`.
 */
import { readFile } from "node:fs/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { METHODS } from "../../src/server/methods.js";
import { NOTIFICATION_NAMES } from "../../src/server/notifications.js";
import { endKeptServer, startKeptServer } from "../support/kept_server.js";
import { modelServer } from "../support/recorder.js";
import { Server } from "../support/server.js";
import { Curl, type StreamFrame } from "../support/stream.js";

interface Message {
  readonly id?: number;
  readonly method?: string;
  readonly params?: Record<string, unknown>;
  readonly result?: Record<string, unknown>;
}
interface Seed {
  readonly request_headers: Record<string, string>;
  readonly response_headers: Record<string, string>;
  readonly notifications: Record<string, { readonly params: Record<string, unknown> }>;
  readonly requests: readonly Message[];
  readonly responses: readonly Message[];
  readonly flow: readonly { readonly from: "client" | "server"; readonly message: Message }[];
  readonly control_methods: readonly string[];
  readonly runtime_methods: readonly string[];
}

const CONFLICT = -32009;

let seed: Seed;
let server: Server;
beforeAll(async () => {
  seed = JSON.parse(await readFile(new URL("../fixtures/notification_stream.json", import.meta.url), "utf8")) as Seed;
  server = await startKeptServer(["--provider", "rehearsal"]);
});
afterAll(async () => {
  await endKeptServer(server);
});

/** The line of the document, with a token; `more` makes it the POST whose body stays open. */
function curl({ url }: Server, token: string, ...more: string[]): Curl {
  const headers = Object.entries(seed.request_headers).flatMap(([name, value]) => ["-H", `${name}: ${value}`]);
  return new Curl([...headers, "-H", `Authorization: Bearer ${token}`, ...more, `${url}/rpc/stream`]);
}
const HELD_OPEN = ["-X", "POST", "-T", "."];

async function person(one: Server = server) {
  const { token } = await one.createToken({ user_id: `person ${Math.random()}`, scopes: ["read", "agent", "ingest"] });
  return token;
}

const lifecycleOrItem = ({ method }: StreamFrame) => /^(item|turn|thread)\//.test(method ?? "");
/** What a client of the document looks at: answers, and the notifications that it knows. */
const known = ({ frames }: Curl) =>
  frames.all.filter(({ method }) => method === undefined || method in seed.notifications);

function inShort({ method, id, error, params }: StreamFrame): string {
  if (method === undefined) return error === undefined ? `result ${id}` : `error ${id}`;
  return method.startsWith("item/") ? `${method} ${params.item_type}` : method;
}

/** The examples with the ids that there are here. */
function filled(message: Message, ids: Readonly<Record<string, string>>): object {
  return JSON.parse(
    Object.entries(ids).reduce((text, [before, after]) => text.replaceAll(before, after), JSON.stringify(message)),
  );
}

describe("the flow of the document", () => {
  test("on POST with the body held open, and on GET beside it, line by line, with its headers", async () => {
    const model = await modelServer();
    model.answers.push({ toolCalls: [{ name: "read_notifications", arguments: "{}" }] }, { content: "查过了。" });
    const hosted = await Server.start({
      args: ["--provider", "openai-compatible", "--model", "qwen3", "--base-url", `${model.url}/v1`],
    });
    const token = await person(hosted);
    const listens = curl(hosted, token);
    await listens.frames.told("inbox/counts");
    const speaks = curl(hosted, token, ...HELD_OPEN);
    await speaks.frames.told("inbox/counts");
    for (const one of [listens, speaks]) {
      expect(one.head[0]).toBe("http/1.1 200 ok");
      for (const [name, value] of Object.entries(seed.response_headers))
        expect(one.head).toContain(`${name}: ${value}`.toLowerCase());
    }

    const [start, turn, steer, interrupt] = seed.flow.filter(({ from }) => from === "client").map((one) => one.message);
    const ids: Record<string, string> = {};
    speaks.say(filled(start as Message, ids));
    ids["thread_abc"] = (await speaks.frames.answer(1)).result.thread_id;
    speaks.say(filled(turn as Message, ids));
    ids["turn_123"] = (await speaks.frames.answer(2)).result.turn_id;
    await speaks.frames.told("turn/completed");
    speaks.say(filled(steer as Message, ids));
    await speaks.frames.answer(3);
    speaks.say(filled(interrupt as Message, ids));
    await speaks.frames.answer(4);

    expect(known(speaks).map(inShort)).toEqual([
      "thread/started",
      "result 1",
      "turn/started",
      "result 2",
      "item/created message",
      "item/created tool_call",
      "item/updated tool_call",
      "item/created message",
      "turn/completed",
      // The document steers a turn that is over, and is told that it is active: here it is told what is so.
      "error 3",
      "result 4",
    ]);
    const [first, second, third, fourth] = await Promise.all([1, 2, 3, 4].map((id) => speaks.frames.answer(id)));
    const { thread_abc: thread_id, turn_123: turn_id } = ids;
    expect(first?.result).toMatchObject({ thread_id, session_id: thread_id });
    expect(second?.result).toMatchObject({ turn_id, state: "active", started_at: expect.stringMatching(/Z$/) });
    expect(third?.error).toMatchObject({ code: CONFLICT, data: { reason: "turn_not_active" } });
    expect(fourth?.result).toMatchObject({ turn_id, state: "completed" });

    // Every line that the document shows, up to there, is among them in its order.
    const shown = seed.flow.filter(({ from }) => from === "server").map(({ message }) => message);
    const until = shown.findIndex(({ id }) => id === 3);
    const lines = known(speaks).map(({ method, id }) => method ?? `result ${id}`);
    let at = -1;
    for (const { method, id } of shown.slice(0, until)) {
      at = lines.indexOf(method ?? `result ${id}`, at + 1);
      expect(at, `${method ?? id}`).toBeGreaterThanOrEqual(0);
    }

    // Whoever only listens is told the same, but for the answers.
    await listens.frames.told("turn/completed");
    expect(listens.frames.all.filter(lifecycleOrItem)).toEqual(speaks.frames.all.filter(lifecycleOrItem));
    expect(listens.frames.all.some(({ id }) => id !== undefined)).toBe(false);

    // It goes on for as long as the body is open, and ends with it.
    speaks.close();
    await speaks.frames.over();
    expect(speaks.frames.all.at(-1)?.error).toBe(undefined);
  });

  test("a turn that is steered while it runs, and interrupted", async () => {
    const token = await person();
    const speaks = curl(server, token, ...HELD_OPEN);
    const ids: Record<string, string> = {};
    speaks.say({ jsonrpc: "2.0", id: 1, method: "thread/start", params: {} });
    ids["thread_abc"] = (await speaks.frames.answer(1)).result.thread_id;
    speaks.say({
      jsonrpc: "2.0",
      id: 2,
      method: "turn/start",
      params: { thread_id: ids["thread_abc"], input: "say slowly 500" },
    });
    ids["turn_123"] = (await speaks.frames.answer(2)).result.turn_id;
    const steer = seed.requests.find(({ method }) => method === "turn/steer") as Message;
    speaks.say(filled(steer, ids));
    expect((await speaks.frames.answer(3)).result).toMatchObject({
      turn_id: ids["turn_123"],
      state: "active",
      accepted_items: 1,
    });
    const last = seed.flow.findLast(({ from }) => from === "client")?.message as Message;
    await speaks.frames.told("item/created", ({ item_type }) => item_type === "steer");
    await speaks.frames.told("turn/progress");
    speaks.say(filled(last, ids));
    expect((await speaks.frames.answer(4)).result).toMatchObject({ turn_id: ids["turn_123"], state: "interrupted" });
    expect(known(speaks).map(inShort)).toEqual([
      "thread/started",
      "result 1",
      "turn/started",
      "result 2",
      "item/created message",
      "result 3",
      "item/created steer",
      "item/created message",
      // Words that the turn has not taken up are given back before its end is told.
      "item/deleted steer",
      "turn/interrupted",
      "result 4",
    ]);
    expect((await speaks.frames.answer(4)).result.unconsumed).toEqual(["补充上下文：只改 pkg/serve"]);
  });

  test("the requests of its example of both directions, in one piece", async () => {
    const token = await person();
    const speaks = curl(server, token, ...HELD_OPEN);
    speaks.say({ jsonrpc: "2.0", id: 0, method: "thread/start", params: {} });
    const { thread_id } = (await speaks.frames.answer(0)).result;
    const both = seed.requests.slice(0, 2).map((message) => filled(message, { thread_abc: thread_id }));
    speaks.say(both.map((message) => JSON.stringify(message)).join("\n"));
    for (const { id, result } of seed.responses) {
      const answer = await speaks.frames.answer(id ?? -1);
      for (const [name, value] of Object.entries(result ?? {}))
        if (name === "state") expect(answer.result).toMatchObject({ state: value });
        else expect(typeof answer.result[name], name).toBe(typeof value);
    }
    await speaks.frames.told("turn/completed");
  });
});

describe("its smallest turn/start", () => {
  test("begins a turn, which is told from its begin to its end, and has these words", async () => {
    const token = await person();
    const speaks = curl(server, token, ...HELD_OPEN);
    speaks.say({ jsonrpc: "2.0", id: 1, method: "thread/start", params: {} });
    const { thread_id } = (await speaks.frames.answer(1)).result;
    const smallest = seed.requests[2] as Message;
    expect(smallest.method).toBe("turn/start");
    speaks.say(filled(smallest, { thread_abc: thread_id }));
    const { result } = await speaks.frames.answer(2);
    const { turn_id } = result;
    expect(result).toMatchObject({ thread_id, state: "active", started_at: expect.stringMatching(/Z$/) });
    await speaks.frames.told("turn/completed", (params) => params["turn_id"] === turn_id);
    const answered = known(speaks).findIndex(({ id }) => id === 2);
    const about = known(speaks).slice(answered - 1);
    expect(about.map(inShort)).toEqual([
      "turn/started",
      "result 2",
      "item/created message",
      "item/created message",
      "turn/completed",
    ]);
    for (const { method, params } of about)
      if (method !== undefined) expect(params, method).toMatchObject({ turn_id, thread_id });
    const items = about.filter(({ method }) => method === "item/created").map(({ params }) => params);
    expect(items).toMatchObject([
      { role: "user", status: "completed", content: { text: "请给我一个修复方案" } },
      { role: "assistant", status: "completed", content: { text: expect.stringMatching(/./) } },
    ]);
  });
});

describe("the notifications of the document", () => {
  test("each of the ten types is seen on a stream, with the fields of its example", async () => {
    const token = await person();
    const listens = curl(server, token);
    await listens.frames.told("inbox/counts");
    const call = <Result = Record<string, string>>(method: string, params: object) =>
      server.call<Result>(method, params, token);
    const { thread_id } = await call("thread/start", {});
    const { turn_id } = await call("turn/start", { thread_id, input: "call read_notifications {}" });
    await listens.frames.told("turn/completed", (params) => params["turn_id"] === turn_id);
    const slow = await call("turn/start", { thread_id, input: "say slowly 500" });
    await call("turn/steer", { turn_id: slow["turn_id"], input: "later" });
    await call("turn/interrupt", { turn_id: slow["turn_id"] });
    await call("thread/pause", { thread_id });
    await call("thread/resume", { thread_id });
    await call("thread/close", { thread_id });
    await listens.frames.told("thread/closed");
    expect(Object.keys(seed.notifications)).toHaveLength(10);
    for (const [method, { params }] of Object.entries(seed.notifications)) {
      const told = await listens.frames.told(method);
      expect(told.jsonrpc).toBe("2.0");
      expect(Object.keys(told)).toEqual(["jsonrpc", "method", "params"]);
      for (const [name, value] of Object.entries(params)) {
        expect(typeof told.params[name], `${method} ${name}`).toBe(typeof value);
        if (name === "type" || name === "state") expect(told.params[name], method).toBe(value);
      }
    }
  });

  test("every name is written with a slash, and there is a constant for it", () => {
    const slashed = /^[a-z]+\/[a-z][a-zA-Z]*$/;
    for (const name of NOTIFICATION_NAMES) expect(name).toMatch(slashed);
    for (const { name } of METHODS) if (name !== "initialize") expect(name).toMatch(slashed);
    for (const name of Object.keys(seed.notifications)) expect(NOTIFICATION_NAMES).toContain(name);
    for (const name of seed.control_methods) expect(METHODS.map((method) => method.name)).toContain(name);
  });

  test("the methods that it calls holon/… are those of the runtime", async () => {
    for (const method of seed.runtime_methods) {
      const { result, error } = await server.rpc<Record<string, unknown>>(method, {});
      expect(error, method).toBe(undefined);
      const own = await server.rpc<Record<string, unknown>>(method.replace("holon/", "runtime/"), {});
      expect(Object.keys(result ?? {}), method).toEqual(Object.keys(own.result ?? {}));
    }
    expect(await server.call("runtime/resume")).toMatchObject({ state: "running" });
  });
});
