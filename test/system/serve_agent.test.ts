/** The hosted agent over the wire: `tidings serve`, calls, and what a WebSocket client is pushed of conversations. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { ThreadPage, TurnView } from "../../src/runtime/conversation.js";
import { eventually, temporaryFolder } from "../support/folder.js";
import { endKeptServer, startKeptServer } from "../support/kept_server.js";
import { type Client, type Frame, type RpcReply, Server } from "../support/server.js";
import { run } from "./cli.js";

const INVALID = -32602;
const NOT_FOUND = -32004;
const CONFLICT = -32009;

interface ThreadAnswer {
  thread_id: string;
  session_id: string;
  state: string;
  started_at: string;
}
type TurnAnswer = TurnView & { started_at: string | null };
interface Interrupted {
  turn_id: string;
  state: string;
  turn: TurnView;
  unconsumed: string[];
  successor: TurnAnswer | null;
}

/** What a push of a conversation says, beside what the type of frames knows. */
type Params = NonNullable<Frame["params"]> & Record<string, unknown>;

let server: Server;
beforeAll(async () => {
  server = await startKeptServer(["--provider", "rehearsal"]);
});
afterAll(async () => {
  await endKeptServer(server);
});

/** Tests share the server, so each has a user of its own. */
let users = 0;
async function person() {
  users += 1;
  const user_id = `person ${users}`;
  const { token } = await server.createToken({
    user_id,
    scopes: ["read", "ack", "ingest", "agent", "critical", "directive"],
  });
  const call = <Result = Record<string, unknown>>(method: string, params: object = {}) =>
    server.call<Result>(method, params, token);
  const { thread_id } = await call<ThreadAnswer>("thread/start");
  const tell = async (content: string, more: object = {}) =>
    (await call<{ id: string }>("notification/notify", { content, thread_id, ...more })).id;
  return { user_id, token, call, thread_id, tell };
}

async function follower(token: string, view: object = {}): Promise<Client> {
  const client = await server.connect({ token });
  const { error } = await client.rpc("initialize", view);
  expect(error).toBeUndefined();
  return client;
}

const words = (text: string) => [{ type: "message", role: "user", content: [{ type: "input_text", text }] }];

/** The frames about conversations, in short. */
function told(client: Client): string[] {
  return client.frames.flatMap(({ method, params }) => {
    const { item_type, role, content, status } = (params ?? {}) as Params;
    if (method === undefined || method === "turn/progress" || !/^(thread|turn|item)\//.test(method)) return [];
    if (!method.startsWith("item/")) return [method];
    const { text, name } = (content ?? {}) as { text?: string; name?: string };
    return [[method, role ?? item_type, status, text ?? name].filter((word) => word !== undefined).join(" ")];
  });
}

function paramsOf(client: Client, method: string): Params[] {
  return client.frames.filter((frame) => frame.method === method).map(({ params }) => params as Params);
}

function ended(client: Client, turn_id: string): Promise<Frame> {
  const over = /^turn\/(completed|interrupted|failed)$/;
  return client.frame(({ method, params }) => over.test(method ?? "") && (params as Params)["turn_id"] === turn_id);
}

/** The turn is over, by its place in the queue. */
function idle({ call, thread_id }: Awaited<ReturnType<typeof person>>): Promise<unknown> {
  return eventually(
    () => call<{ turns: TurnView[] }>("queue/list", { thread_id }),
    ({ turns }) => turns.length === 0,
  );
}

describe("a turn", () => {
  test("is pushed from its beginning to its end, each frame in its place, and the lifecycle before the answers", async () => {
    const { token, call, thread_id: _, user_id } = await person();
    const client = await follower(token);
    const started = await client.rpc<ThreadAnswer>("thread/start", {});
    const { thread_id } = started.result as ThreadAnswer;
    expect(started.result).toMatchObject({ session_id: thread_id, state: "running", user_id });
    const { result: turn } = await client.rpc<TurnAnswer>("turn/start", { thread_id, input: words("good day") });
    expect(turn).toMatchObject({ thread_id, state: "active", source: "user", content: "good day" });
    const turn_id = turn?.turn_id ?? "";
    await ended(client, turn_id);
    expect(told(client)).toEqual([
      "thread/started",
      "turn/started",
      "item/created user completed good day",
      'item/created assistant completed I read: "good day".\nThere are no notifications.',
      "turn/completed",
    ]);
    const at = (wanted: (frame: Frame) => boolean) => client.frames.findIndex(wanted);
    const answerTo = (id: string) => at((frame) => frame.id === id);
    expect(at(({ method }) => method === "thread/started")).toBeLessThan(answerTo("call 2"));
    expect(at(({ method }) => method === "turn/started")).toBeLessThan(answerTo("call 3"));

    // The forms of the seed, with the place in the journal.
    const place = { seq: expect.any(Number), journal_id: expect.any(String) };
    const [, , third] = client.frames.filter(
      ({ params }) => params?.seq !== undefined && params.prev_seq !== undefined,
    );
    expect(paramsOf(client, "thread/started")).toEqual([
      {
        thread_id,
        type: "started",
        state: "running",
        started_at: started.result?.started_at,
        prev_seq: null,
        ...place,
      },
    ]);
    const active = { turn_id, thread_id, started_at: turn?.started_at };
    expect(paramsOf(client, "turn/started")).toEqual([
      { ...active, type: "started", state: "active", source: "user", prev_seq: expect.any(Number), ...place },
    ]);
    expect(third?.params).toEqual({
      item_id: expect.any(String),
      type: "created",
      item_type: "message",
      role: "user",
      status: "completed",
      content: { text: "good day" },
      timestamp: expect.stringMatching(/^\d{4}-.*Z$/),
      thread_id,
      turn_id,
      prev_seq: expect.any(Number),
      ...place,
    });
    expect(paramsOf(client, "turn/completed")).toEqual([
      {
        ...active,
        type: "completed",
        state: "completed",
        completed_at: expect.any(String),
        prev_seq: expect.any(Number),
        // The entry says two things: what the agent said, and that the turn is over.
        part: 2,
        ...place,
      },
    ]);

    // Text came as it was made, before the whole; without a place, since it may be dropped.
    const progress = paramsOf(client, "turn/progress");
    expect(progress.map(({ delta }) => delta).join("")).toBe('I read: "good day".\nThere are no notifications.');
    let offset = 0;
    for (const one of progress) {
      const { after_seq } = progress[0] ?? {};
      expect(one).toEqual({ turn_id, thread_id, delta: expect.any(String), offset, after_seq });
      offset += String(one["delta"]).length;
    }
    const whole = at(({ params }) => (params as Params | undefined)?.["role"] === "assistant");
    const pieces = client.frames.flatMap(({ method }, index) => (method === "turn/progress" ? [index] : []));
    expect(Math.max(...pieces)).toBeLessThan(whole);

    // As it is read afterwards.
    const page = await call<ThreadPage>("thread/read", { thread_id });
    expect(page.items.map((item) => item.item_id)).toEqual(
      paramsOf(client, "item/created").map(({ item_id }) => item_id),
    );
    expect(page.next).toBe(null);
    expect(await call("thread/list")).toMatchObject({ threads: [{ thread_id, state: "running" }, {}], next: null });
  });

  test("every frame names the one before it, whatever it is about", async () => {
    const { token, call, thread_id, tell } = await person();
    const client = await follower(token, { observe: true });
    await tell("pill", { target: "user" });
    await tell("in the inbox", { target: "user", thread_id: undefined });
    await tell("for the agent");
    const { turn_id } = await call<TurnAnswer>("turn/start", { thread_id, input: "call read_notifications {}" });
    await ended(client, turn_id);
    let before: number | null = null;
    const placed = client.frames.filter(({ params }) => params?.prev_seq !== undefined);
    expect(placed.length).toBeGreaterThan(8);
    for (const { params } of placed) {
      expect(params?.prev_seq).toBe(before);
      expect(params?.seq).toBeGreaterThanOrEqual(before ?? 0);
      before = params?.seq ?? null;
    }
  });

  test("tool calls, notices and, for those who ask, what the agent was told; nothing for those who did not initialize", async () => {
    const { token, call, thread_id, tell } = await person();
    const [plain, follows, observes] = [
      await server.connect({ token }),
      await follower(token),
      await follower(token, { observe: true }),
    ];
    await plain.welcomed();
    const notice = await tell("Disk at 91%", { target: "user", severity: "warning" });
    await tell("The build is red");
    const { turn_id } = await call<TurnAnswer>("turn/start", { thread_id, input: "call read_notifications {}" });
    await Promise.all([ended(follows, turn_id), ended(observes, turn_id)]);
    expect(told(follows)).toEqual([
      expect.stringMatching(/^item\/created system DISPATCHED/),
      "turn/started",
      "item/created user completed call read_notifications {}",
      expect.stringMatching(/^item\/created assistant completed I was told: The build is red/),
      "item/created tool_call pending read_notifications",
      "item/updated tool_call completed read_notifications",
      expect.stringMatching(/^item\/created assistant completed read_notifications answered/),
      "turn/completed",
    ]);
    const [pill] = paramsOf(follows, "item/created");
    expect(pill).toMatchObject({ item_type: "notice", turn_id: null, content: { notification: { id: notice } } });
    const [updated] = paramsOf(follows, "item/updated");
    const created = paramsOf(follows, "item/created").find(({ item_type }) => item_type === "tool_call");
    expect(updated).toMatchObject({
      item_id: created?.["item_id"],
      content: { name: "read_notifications", output: expect.any(String) },
    });
    const observed = told(observes).filter((line) => !told(follows).includes(line));
    expect(observed).toEqual([
      "item/created system open The build is red",
      "item/updated system sent The build is red",
    ]);

    // Its delivery changes, and so does the pill.
    await call("notification/ack", { id: notice, revision: 1, action: "dismissed" });
    const changed = await follows.frame(({ params }) => (params as Params | undefined)?.["status"] === "DELIVERED");
    expect(changed).toMatchObject({
      method: "item/updated",
      params: { item_id: pill?.["item_id"], item_type: "notice" },
    });
    await plain.pushed("updated", notice);
    expect(new Set(plain.frames.map(({ method }) => method))).toEqual(
      new Set(["inbox/counts", "notification/created", "notification/updated"]),
    );
  });

  test("is pushed whole to a client that comes in the middle of it", async () => {
    const me = await person();
    const { token, call, thread_id } = me;
    const first = await follower(token);
    const { turn_id } = await call<TurnAnswer>("turn/start", { thread_id, input: "say slowly 30" });
    await first.frame(({ method }) => method === "turn/progress");
    await first.close();
    const second = await follower(token);
    await call("turn/steer", { turn_id, input: words("call read_notifications {}") });
    const end = await ended(second, turn_id);
    const { started_at } = paramsOf(first, "turn/started")[0] ?? {};
    expect(end).toMatchObject({ method: "turn/completed", params: { started_at } });
    expect(told(second)).toEqual([
      "item/created user pending call read_notifications {}",
      expect.stringMatching(/^item\/created assistant completed word-1 /),
      "item/created user completed call read_notifications {}",
      "item/deleted user deleted",
      "item/created tool_call pending read_notifications",
      "item/updated tool_call completed read_notifications",
      expect.stringMatching(/^item\/created assistant completed read_notifications answered/),
      "turn/completed",
    ]);
    const steer = paramsOf(second, "item/created")[0]?.["item_id"];
    expect(paramsOf(second, "item/deleted")).toMatchObject([{ item_id: steer, item_type: "steer" }]);
  });

  test("that the user does not see is not pushed; what the agent tells the user from it is a notice", async () => {
    const me = await person();
    const { token, call, thread_id, tell } = me;
    const client = await follower(token, { observe: true });
    const directive = 'call tell_user {"text":"Something you should know"}';
    const id = await tell("Something happened", { handler: "agent", directive });
    await client.frame(({ params }) => params?.notification?.content === "Something you should know");
    const internal = await eventually(
      async () => (await call<ThreadPage>("thread/read", { thread_id, internal: true, observe: true })).items,
      (items) => items.some(({ type }) => type === "tool_call"),
    );
    expect(internal.filter((item) => item.internal === true).length).toBeGreaterThan(2);
    await idle(me);
    const { turn_id } = await call<TurnAnswer>("turn/start", { thread_id, input: "and now?" });
    await ended(client, turn_id);
    const visible = told(client);
    expect(visible[0]).toMatch(/^item\/created system ESCALATED/);
    expect(visible.slice(1, 3)).toEqual(["turn/started", "item/created user completed and now?"]);
    expect(paramsOf(client, "turn/started").map((params) => params["turn_id"])).toEqual([turn_id]);
    for (const { turn_id: of } of paramsOf(client, "turn/progress")) expect(of).toBe(turn_id);
    expect(await call("notification/read", { id })).toMatchObject({ state: "ESCALATED" });
  });
});

describe("while a turn runs", () => {
  test("only so many messages wait, of either kind; there is room again when one is taken back", async () => {
    const { token, call, thread_id } = await person();
    const OVERLOADED = -32_001;
    const refused = { error: { code: OVERLOADED, data: { retry_after_ms: expect.any(Number) } } };
    await call("thread/pause", { thread_id });
    const waiting: TurnAnswer[] = [];
    for (let sent = 0; sent < 100; sent += 1) waiting.push(await call("turn/start", { thread_id, input: `${sent}` }));
    expect(await server.rpc("turn/start", { thread_id, input: "too much" }, token)).toMatchObject(refused);
    expect(await server.rpc("turn/deliver", { thread_id, input: "too much" }, token)).toMatchObject(refused);
    await call("queue/remove", { turn_id: waiting[50]?.turn_id });
    expect(await call("turn/start", { thread_id, input: "the last" })).toMatchObject({ state: "queued" });
    await call("thread/close", { thread_id });

    const other = await person();
    await other.call("turn/start", { thread_id: other.thread_id, input: "say slowly 5000" });
    for (let sent = 0; sent < 100; sent += 1)
      await other.call("turn/steer", { thread_id: other.thread_id, input: `${sent}` });
    const more = { thread_id: other.thread_id, input: "too much" };
    expect(await server.rpc("turn/steer", more, other.token)).toMatchObject(refused);
    await other.call("thread/close", { thread_id: other.thread_id });
  });

  test("a further message waits, can be changed and taken back, and has its turn", async () => {
    const me = await person();
    const { token, call, thread_id } = me;
    const client = await follower(token);
    const running = await call<TurnAnswer>("turn/start", { thread_id, input: "say slowly 20" });
    const [one, two] = [
      await call<TurnAnswer>("turn/start", { thread_id, input: "first" }),
      await call<TurnAnswer>("turn/start", { thread_id, input: "second" }),
    ];
    expect([one, two].map(({ state, started_at }) => [state, started_at])).toEqual([
      ["queued", null],
      ["queued", null],
    ]);
    expect(await call("queue/list", { thread_id })).toMatchObject({
      turns: [
        { turn_id: running.turn_id, state: "active" },
        { turn_id: one.turn_id, state: "queued", content: "first" },
        { turn_id: two.turn_id },
      ],
    });
    expect(await call("queue/update", { turn_id: one.turn_id, input: words("changed") })).toMatchObject({
      turn_id: one.turn_id,
      state: "queued",
      content: "changed",
    });
    expect(await call("queue/remove", { turn_id: two.turn_id })).toMatchObject({ state: "removed" });
    expect(await server.rpc("queue/update", { turn_id: running.turn_id, input: "x" }, token)).toMatchObject({
      error: { code: CONFLICT, data: { reason: "terminal" } },
    });
    await ended(client, one.turn_id);
    expect(told(client)).toContain("item/created user completed changed");
    // What waits is told too, and that it waits no more: one was taken back, one had its turn.
    expect(told(client).filter((line) => line.includes("pending") || line.includes("deleted"))).toEqual([
      "item/created user pending first",
      "item/created user pending second",
      "item/updated user pending changed",
      "item/deleted user deleted",
      "item/deleted user deleted",
    ]);
    const [taken, begun] = paramsOf(client, "item/deleted").map((params) => params["turn_id"]);
    expect([taken, begun]).toEqual([two.turn_id, one.turn_id]);
    expect(told(client).join()).not.toContain("completed second");
    const started = paramsOf(client, "turn/started").map((params) => params["turn_id"]);
    expect(started).toEqual([running.turn_id, one.turn_id]);
  });

  test("it is steered by either id, and only while it is active", async () => {
    const me = await person();
    const { token, call, thread_id } = me;
    const client = await follower(token);
    const { turn_id } = await call<TurnAnswer>("turn/start", { thread_id, input: "say slowly 20" });
    expect(await call("turn/steer", { turn_id, input: words("this too") })).toMatchObject({
      turn_id,
      state: "active",
      accepted_items: 1,
    });
    expect(await call("turn/deliver", { thread_id, input: "and this" })).toMatchObject({ turn_id, how: "steered" });
    const other = await server.rpc("turn/steer", { thread_id, expected_turn_id: thread_id, input: "x" }, token);
    expect(other).toMatchObject({ error: { code: CONFLICT, data: { reason: "turn_not_active" } } });
    await ended(client, turn_id);
    expect(told(client)).toContain("item/created user completed this too");
    expect(told(client)).toContain("item/created user completed and this");
    for (const where of [{ turn_id }, { thread_id }])
      expect(await server.rpc("turn/steer", { ...where, input: "late" }, token)).toMatchObject({
        error: { code: CONFLICT, data: { reason: "turn_not_active" } },
      });
    expect(await call("turn/deliver", { thread_id, input: "anew" })).toMatchObject({ how: "started", state: "active" });
    await idle(me);
  });

  test("words that it had not taken up when it ended stay in the conversation, and are not said to be taken up", async () => {
    const data = await temporaryFolder();
    const env = { TIDINGS_OWN_TOKEN: "a-token-that-stays-the-same" };
    const args = ["--provider", "rehearsal"];
    const first = await Server.start({ data, env, args });
    const running = async (one: Server, client: Client) => {
      const { thread_id } = await one.call<ThreadAnswer>("thread/start");
      const { turn_id } = await one.call<TurnAnswer>("turn/start", { thread_id, input: "say slowly 1000" });
      await client.frame(
        ({ method, params }) => method === "turn/progress" && params?.["turn_id" as never] === turn_id,
      );
      await one.call("turn/steer", { turn_id, input: "mind this" });
      return { thread_id, turn_id };
    };
    const said = async (one: Server, thread_id: string) =>
      (await one.call<ThreadPage>("thread/read", { thread_id })).items.flatMap((item) =>
        item.type === "message" && item.role === "user" ? [item.content] : [],
      );
    const kept = [{ text: "say slowly 1000" }, { text: "mind this" }];

    const client = await first.connect();
    await client.rpc("initialize");
    const closed = await running(first, client);
    await first.call("thread/close", { thread_id: closed.thread_id });
    await client.frame(({ method }) => method === "thread/closed");
    const about = client.frames.filter(({ params }) => JSON.stringify(params ?? {}).includes(closed.turn_id));
    const types = about.map(({ method, params }) => [
      method,
      (params as Params)["item_type"],
      (params as Params)["content"],
    ]);
    expect(types.slice(-4)).toMatchObject([
      ["item/created", "message", { text: expect.stringMatching(/./) }],
      ["item/created", "message", { text: "mind this" }],
      ["item/deleted", "steer", undefined],
      ["turn/interrupted", undefined, undefined],
    ]);
    expect(JSON.stringify(about)).not.toContain("steered");
    expect(await said(first, closed.thread_id)).toEqual(kept);

    const failed = await running(first, client);
    await first.kill();
    const second = await Server.start({ data, env, args });
    await eventually(
      () => second.call<ThreadPage>("thread/read", { thread_id: failed.thread_id }),
      ({ items }) => items.every(({ status }) => status !== "pending"),
    );
    expect(await said(second, failed.thread_id)).toEqual(kept);
  });

  test("it is interrupted, with a reply and without; a finished one answers what it is", async () => {
    const me = await person();
    const { token, thread_id } = me;
    const client = await follower(token);
    const first = (await client.rpc<TurnAnswer>("turn/start", { thread_id, input: "say slowly 1000" })).result;
    await client.frame(({ method }) => method === "turn/progress");
    const replied = await client.rpc<Interrupted>("turn/interrupt", {
      turn_id: first?.turn_id,
      input: words("say slowly 1001"),
    });
    const { successor } = replied.result as Interrupted;
    expect(replied.result).toMatchObject({ turn_id: first?.turn_id, state: "interrupted", unconsumed: [] });
    expect(successor).toMatchObject({ state: "active", content: "say slowly 1001" });
    const next = successor?.turn_id ?? "";
    await client.frame(({ method, params }) => method === "turn/progress" && (params as Params)["turn_id"] === next);
    const stopped = await client.rpc<Interrupted>("turn/interrupt", { turn_id: next });
    expect(stopped.result).toMatchObject({
      turn_id: next,
      state: "interrupted",
      turn: { state: "stopped" },
      successor: null,
    });
    expect(paramsOf(client, "turn/interrupted")).toMatchObject([
      { turn_id: first?.turn_id, state: "interrupted", continued_by: next },
      { turn_id: next, state: "interrupted", continued_by: null },
    ]);
    // Each before the answer of the call that caused it.
    const at = (wanted: (frame: Frame) => boolean) => client.frames.findLastIndex(wanted);
    expect(at(({ method }) => method === "turn/interrupted")).toBeLessThan(at((frame) => frame.id === stopped.id));
    expect(told(client).filter((line) => line.includes("assistant interrupted word-1"))).toHaveLength(2);
    expect((await client.rpc("turn/interrupt", { turn_id: next })).result).toMatchObject({ state: "stopped" });
    const { turn_id } = (await client.rpc<TurnAnswer>("turn/start", { thread_id, input: "hello" }))
      .result as TurnAnswer;
    await ended(client, turn_id);
    expect((await client.rpc("turn/interrupt", { turn_id })).result).toMatchObject({
      state: "completed",
      successor: null,
    });
  });

  test("something critical cuts it off: the turn that goes on is named", async () => {
    const { token, call, thread_id, tell } = await person();
    const client = await follower(token);
    const { turn_id } = await call<TurnAnswer>("turn/start", { thread_id, input: "say slowly 1000" });
    await client.frame(({ method }) => method === "turn/progress");
    await tell("The disk is full", { severity: "critical" });
    const { params } = await ended(client, turn_id);
    const { continued_by } = params as Params;
    const second = await client.frame(
      ({ method, params }) => method === "turn/started" && (params as Params)["turn_id"] !== turn_id,
    );
    expect(second.params).toMatchObject({ turn_id: continued_by, source: "system" });
    await call("turn/interrupt", { turn_id: String(continued_by) });
  });
});

describe("a thread", () => {
  test("is paused and resumed, twice as once, and closed; what is said meanwhile waits", async () => {
    const me = await person();
    const { token, thread_id } = me;
    const client = await follower(token);
    for (const state of ["paused", "paused"])
      expect((await client.rpc("thread/pause", { thread_id })).result).toMatchObject({ thread_id, state });
    const { result } = await client.rpc<TurnAnswer>("turn/start", { thread_id, input: "hello" });
    expect(result).toMatchObject({ state: "queued" });
    for (const state of ["running", "running"])
      expect((await client.rpc("thread/resume", { thread_id })).result).toMatchObject({ state });
    await ended(client, result?.turn_id ?? "");
    await client.rpc("turn/start", { thread_id, input: "say slowly 1000" });
    await client.frame(({ method, params }) => method === "turn/progress" && (params as Params)["delta"] === "word-1 ");
    expect((await client.rpc("thread/close", { thread_id })).result).toMatchObject({ state: "closed" });
    const lifecycle = told(client).filter((line) => !line.startsWith("item/"));
    expect(lifecycle).toEqual([
      "thread/paused",
      "thread/resumed",
      "turn/started",
      "turn/completed",
      "turn/started",
      "turn/interrupted",
      "thread/closed",
    ]);
    const refused = { error: { code: CONFLICT, data: { reason: "thread_closed" } } };
    expect(await client.rpc("turn/start", { thread_id, input: "late" })).toMatchObject(refused);
    expect(await client.rpc("thread/pause", { thread_id })).toMatchObject(refused);
    expect((await client.rpc("thread/list")).result).toMatchObject({ threads: [{ thread_id, state: "closed" }] });
  });

  test("is read in pages, which fit the answer of a WebSocket", async () => {
    const me = await person();
    const { token, call, thread_id } = me;
    const client = await server.connect({ token });
    const long = "x".repeat(16_000);
    for (let n = 0; n < 12; n += 1) {
      await call("turn/start", { thread_id, input: `${n} ${long}` });
      await idle(me);
    }
    const items: unknown[] = [];
    let pages = 0;
    for (let after: number | null = 0; after !== null; pages += 1) {
      const page: RpcReply<ThreadPage> = await client.rpc("thread/read", { thread_id, after });
      expect(page.error).toBeUndefined();
      items.push(...(page.result?.items ?? []));
      after = page.result?.next ?? null;
    }
    expect(pages).toBeGreaterThan(1);
    expect(items).toEqual((await call<ThreadPage>("thread/read", { thread_id })).items);
    expect(items).toHaveLength(24);
  });
});

test("what is another's answers as if it did not exist, and is not pushed (I18)", async () => {
  const [ada, eve] = [await person(), await person()];
  const client = await follower(eve.token, { observe: true });
  const { turn_id } = await ada.call<TurnAnswer>("turn/start", { thread_id: ada.thread_id, input: "say slowly 1000" });
  const queued = await ada.call<TurnAnswer>("turn/start", { thread_id: ada.thread_id, input: "wait" });
  const absent = "01a1e260-c4aa-784f-9711-0fffffffffff";
  const calls = (thread_id: string, turn: string, waiting: string): [string, object][] => [
    ["thread/read", { thread_id, observe: true, internal: true }],
    ["thread/pause", { thread_id }],
    ["thread/resume", { thread_id }],
    ["thread/close", { thread_id }],
    ["turn/start", { thread_id, input: "x" }],
    ["turn/steer", { thread_id, input: "x" }],
    ["turn/steer", { turn_id: turn, input: "x" }],
    ["turn/deliver", { thread_id, input: "x" }],
    ["turn/interrupt", { turn_id: turn }],
    ["turn/interrupt", { turn_id: turn, input: "x" }],
    ["queue/list", { thread_id }],
    ["queue/update", { turn_id: waiting, input: "x" }],
    ["queue/remove", { turn_id: waiting }],
  ];
  const answers = async (...ids: [string, string, string]) => {
    const all: string[] = [];
    for (const [method, params] of calls(...ids)) {
      const { result, error } = await server.rpc(method, params, eve.token);
      all.push(ids.reduce((text, id) => text.replaceAll(id, "ID"), `${method} ${JSON.stringify({ result, error })}`));
    }
    return all;
  };
  const foreign = await answers(ada.thread_id, turn_id, queued.turn_id);
  expect(foreign).toEqual(await answers(absent, absent, absent));
  for (const answer of foreign) expect(answer).toContain(`"code":${NOT_FOUND}`);
  expect(await ada.call("queue/list", { thread_id: ada.thread_id })).toMatchObject({
    turns: [
      { turn_id, state: "active" },
      { turn_id: queued.turn_id, content: "wait" },
    ],
  });
  await ada.call("thread/close", { thread_id: ada.thread_id });
  const { turn_id: own } = await eve.call<TurnAnswer>("turn/start", { thread_id: eve.thread_id, input: "hello" });
  await ended(client, own);
  expect(JSON.stringify(client.frames)).not.toContain(ada.thread_id);
  // Admin's token acts for whom it names.
  const { turn_id: named } = await server.call<TurnAnswer>("turn/start", {
    thread_id: eve.thread_id,
    user_id: eve.user_id,
    input: "from the host",
  });
  await ended(client, named);
});

test.each<[what: string, method: string, params: object, field: string]>([
  ["no words", "turn/start", { input: "" }, "input"],
  ["no input", "turn/start", {}, "input"],
  ["no messages", "turn/start", { input: [] }, "input"],
  ["an input of another kind", "turn/start", { input: 7 }, "input"],
  ["too many words", "turn/start", { input: "x".repeat(16_385) }, "input"],
  ["another role", "turn/start", { input: [{ type: "message", role: "system", content: [] }] }, "input.0.role"],
  ["no content", "turn/start", { input: [{ type: "message", role: "user", content: [] }] }, "input.0.content"],
  ["an image", "turn/start", { input: [{ ...words("")[0], content: [{ type: "image" }] }] }, "input.0.content.0.type"],
  ["no id", "turn/steer", { thread_id: undefined, input: "x" }, "thread_id"],
  ["two turns", "turn/steer", { turn_id: "a", expected_turn_id: "b", input: "x" }, "expected_turn_id"],
  ["no items", "thread/read", { limit: 0 }, "limit"],
  ["another wish", "initialize", { thread_id: undefined, observe: 1 }, "observe"],
])("%s (%s) is refused, and the answer says where", async (_what, method, params, field) => {
  const { token, thread_id } = await person();
  const { error } = await server.rpc(method, { thread_id, ...params }, token);
  expect(error).toMatchObject({ code: INVALID, data: { field } });
});

test("several messages are one, each on lines of its own", async () => {
  const me = await person();
  const input = [...words("one"), { type: "message", role: "user", content: [{ type: "input_text", text: "two" }] }];
  expect(await me.call("turn/start", { thread_id: me.thread_id, input })).toMatchObject({ content: "one\ntwo" });
  await idle(me);
});

describe("what the agent runs on", () => {
  /** Without those of whoever runs the tests. */
  const KEYS = { OPENAI_API_KEY: "", OPENAI_BASE_URL: "", ANTHROPIC_API_KEY: "" };
  const agentOf = (one: Server) => one.call<{ agent: unknown }>("runtime/status").then(({ agent }) => agent);

  test("the rehearsal model, where nobody says anything else; none, where that is said", async () => {
    const plain = await Server.start({ agent: "its own", env: KEYS });
    expect(plain.stdout).toBe(`Tidings is ready: ${plain.url}/#token=${plain.token}\nIts agent runs on rehearsal.\n`);
    expect(await agentOf(plain)).toEqual({ provider: "rehearsal", model: "rehearsal" });
    const none = await Server.start({ args: ["--json"] });
    expect(JSON.parse(none.stdout)).toMatchObject({ ready: { agent: null } });
    const { thread_id } = await none.call<ThreadAnswer>("thread/start");
    const asked: [string, object][] = [
      ["turn/start", { thread_id, input: "x" }],
      ["turn/steer", { thread_id, input: "x" }],
      ["turn/deliver", { thread_id, input: "x" }],
      ["turn/interrupt", { turn_id: thread_id }],
    ];
    for (const [method, params] of asked)
      expect(await none.rpc(method, params), method).toMatchObject({
        error: { code: CONFLICT, message: expect.stringContaining("--provider"), data: { reason: "no_agent" } },
      });
    // What needs no agent works without one.
    expect(await none.call("thread/pause", { thread_id })).toMatchObject({ state: "paused" });
    expect(await none.call("thread/resume", { thread_id })).toMatchObject({ state: "running" });
    expect(await none.call("queue/list", { thread_id })).toEqual({ turns: [] });
    expect(await none.call("thread/close", { thread_id })).toMatchObject({ state: "closed" });
  });

  test("[agent] of the file, unless a flag names another provider", async () => {
    const config = join(await temporaryFolder(), "tidings.toml");
    await writeFile(
      config,
      '[agent]\nprovider = "openai-compatible"\nmodel = "qwen3"\nbase_url = "http://127.0.0.1:9/v1"\n',
    );
    const served = await Server.start({ agent: "its own", args: ["--config", config], env: KEYS });
    expect(await agentOf(served)).toEqual({ provider: "openai-compatible", model: "qwen3" });
    expect(served.stdout).toContain("Its agent runs on openai-compatible qwen3.");
    const line = ["chat", "--data", await temporaryFolder(), "--config", config, "--provider", "openai"];
    const other = await run(line, { env: { ...KEYS, OPENAI_API_KEY: "not a key" } });
    expect(other).toMatchObject({ code: 2, stdout: "" });
    expect(other.stderr).toContain("needs the name of a model");
  });

  test.each<[string, string[], Record<string, string>, RegExp]>([
    ["a provider without a model", ["--provider", "openai"], { OPENAI_API_KEY: "k" }, /needs the name of a model/],
    [
      "a provider without its key",
      ["--provider", "openai", "--model", "m"],
      {},
      /set the environment variable OPENAI_/,
    ],
    [
      "another key that is not there",
      ["--provider", "anthropic", "--model", "m", "--api-key-env", "NOPE_KEY"],
      {},
      /NOPE_KEY/,
    ],
    ["a model without a provider or a key", ["--model", "m"], {}, /name the provider/],
    ["an address without a provider", ["--base-url", "http://127.0.0.1:9"], {}, /name the provider/],
    ["a provider that there is not", ["--provider", "opnai"], {}, /did you mean openai\?/],
    ["an address that is none", ["--provider", "openai-compatible", "--base-url", "here"], {}, /--base-url: must be/],
    ["a key where its name belongs", ["--provider", "openai", "--api-key-env", "sk-1"], {}, /--api-key-env: must be/],
  ])("%s ends the start with a message and exit code 2", async (_what, args, env, message) => {
    const data = await temporaryFolder();
    const ended = await run(["serve", "--port", "0", "--data", data, ...args], { env: { ...KEYS, ...env } });
    expect(ended).toMatchObject({ code: 2, stdout: "" });
    expect(ended.stderr).toMatch(message);
    expect(ended.stderr.trim().split("\n")).toHaveLength(1);
  });

  test.each<[string, string[], Record<string, string>, object]>([
    ["with OpenAI's key", ["--model", "gpt-5.1"], { OPENAI_API_KEY: "k" }, { provider: "openai", model: "gpt-5.1" }],
    ["with Anthropic's", ["--model", "m"], { ANTHROPIC_API_KEY: "k" }, { provider: "anthropic", model: "m" }],
    [
      "with both, by its name",
      ["--model", "claude-x"],
      { OPENAI_API_KEY: "k", ANTHROPIC_API_KEY: "k" },
      { provider: "anthropic", model: "claude-x" },
    ],
    ["with a key and no model", [], { OPENAI_API_KEY: "k" }, { provider: "rehearsal", model: "rehearsal" }],
  ])("a model that is named goes where its key is: %s", async (_what, args, env, agent) => {
    const ended = await run(["chat", "--json", "--data", await temporaryFolder(), ...args], {
      env: { ...KEYS, ...env },
    });
    expect(JSON.parse(ended.stdout.split("\n")[0] ?? "")).toMatchObject({ chat: { agent } });
    expect(ended.code).toBe(0);
    if (args.length === 0) expect(ended.stderr).toContain("OPENAI_API_KEY is set, and no model is named");
    else expect(ended.stderr).toBe("");
  });
});
