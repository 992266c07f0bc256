/** Telling an agent, over the wire: the real server, real leases, real kills. */
import { once } from "node:events";
import { request } from "node:http";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Scope } from "../../src/domain/token.js";
import { Tidings } from "../../src/index.js";
import { eventually } from "../support/folder.js";
import { newThread, sharedServer } from "../support/pipeline.js";
import { type RpcReply, Server } from "../support/server.js";

const CONFLICT = -32009;
const NOT_FOUND = -32004;
const OVERLOADED = -32001;

interface Carrier {
  id: string;
  thread_id: string;
  point: string;
  state: string;
  lease: { id: string; owner: string; expires_at: string } | null;
  notifications: { id: string; content: string; must_narrate: boolean }[];
  more: number;
}
type Collected = { carrier: Carrier | null };
type Ended = { carrier_id: string; state: string; notifications: { id: string; state: string }[] };

const MUST_NARRATE = { target: "user", handler: "agent" };

/** Ends the server and checks all of its guarantees. */
async function stopSound(server: Server): Promise<void> {
  expect(await server.stop()).toBe(0);
  expect(server.stderr).toBe("");
  await sound(server.data);
}

async function sound(data: string): Promise<void> {
  const reader = await Tidings.open({ data, mode: "read" });
  const { ok, problems } = await reader.audit().finally(() => reader.close());
  expect({ ok, problems }).toEqual({ ok: true, problems: [] });
}

async function tell(server: Server, thread_id: string, content: string, more = {}): Promise<string> {
  const { id } = await server.call<{ id: string }>("notification/notify", { content, thread_id, ...more });
  return id;
}

async function collected(server: Server, thread_id: string, more = {}, token = server.token): Promise<Carrier> {
  const params = { thread_id, point: "turn_start", ...more };
  const { carrier } = await server.call<Collected>("agent/collect", params, token);
  if (carrier === null) throw new Error("nothing was collected");
  return carrier;
}

const stateOf = async (server: Server, id: string) =>
  (await server.call<{ state: string }>("notification/read", { id })).state;

/** For tests that need a thread of their own, and no more. */
let server: Server;
let end: () => Promise<void>;
beforeAll(async () => {
  ({ server, end } = await sharedServer());
});
afterAll(async () => {
  await stopSound(server);
  await end();
});

describe("an agent in any language", () => {
  test("starts a thread, collects, renews and settles, with a token of its own", async () => {
    const server = await Server.start();
    const tokenOf = async (...scopes: Scope[]) => (await server.createToken({ user_id: "ada", scopes })).token;
    const [agent, producer, screen] = [await tokenOf("agent"), await tokenOf("ingest"), await tokenOf("read")];
    const client = await server.connect({ token: screen });
    await client.welcomed();
    const thread = await server.call<{ thread_id: string }>("thread/start", {}, agent);
    expect(thread).toEqual({
      thread_id: expect.any(String),
      session_id: thread.thread_id,
      user_id: "ada",
      state: "running",
      started_at: expect.any(String),
      created_at: expect.any(String),
      budgets: null,
    });
    const { thread_id } = thread;
    expect(await server.call("thread/start", { thread_id }, agent)).toEqual(thread);
    expect(await server.rpc("thread/start", { thread_id: "mine" }, agent)).toMatchObject({
      error: { code: NOT_FOUND },
    });

    const notify = (content: string, more = {}) =>
      server.call<{ id: string }>("notification/notify", { content, thread_id, ...more }, producer);
    const passive = await notify("The build is red");
    const told = await notify("Lunch is at noon", MUST_NARRATE);
    const untold = await notify("Rain at one", MUST_NARRATE);
    const carrier = await collected(server, thread_id, { owner: "loop 1" }, agent);
    expect(carrier).toMatchObject({
      thread_id,
      point: "turn_start",
      state: "open",
      lease: { owner: "loop 1" },
      more: 0,
    });
    expect(carrier.notifications.map(({ id, must_narrate }) => [id, must_narrate])).toEqual([
      [passive.id, false],
      [told.id, true],
      [untold.id, true],
    ]);
    const { lease } = await server.call<{ lease: { expires_at: string } }>(
      "agent/renew",
      { carrier_id: carrier.id, lease_ms: 3_600_000 },
      agent,
    );
    expect(lease.expires_at > (carrier.lease?.expires_at ?? "")).toBe(true);
    const settle = { carrier_id: carrier.id, acknowledged_ids: [told.id] };
    const settled = await server.call<Ended>("agent/settle", settle, agent);
    expect(settled).toMatchObject({
      carrier_id: carrier.id,
      state: "sent",
      notifications: [
        { id: passive.id, state: "DELIVERED" },
        { id: told.id, state: "DELIVERED" },
        { id: untold.id, state: "ESCALATED" },
      ],
    });
    expect(await server.call("agent/settle", settle, agent)).toEqual(settled);
    // What the agent did not tell, the user's screen is shown at once.
    const { params } = await client.frame((frame) => frame.method === "notification/created");
    expect(params?.notification).toMatchObject({ id: untold.id, state: "ESCALATED", reason: "unacknowledged" });
    expect(await server.rpc("agent/fail", { carrier_id: carrier.id }, agent)).toMatchObject({
      error: { code: CONFLICT, data: { reason: "terminal" } },
    });
    const { story } = await server.call<{ story: { text: string }[] }>("notification/explain", { id: passive.id });
    expect(story.map(({ text }) => text).join("\n")).toMatch(
      new RegExp(`Carrier ${carrier.id} .*opened[^]*Carrier ${carrier.id} .*sent[^]*Settled by its holder`),
    );
    await stopSound(server);
  });

  test("one at a time holds a thread; two collectors at once never get the same (I1)", async () => {
    const thread_id = newThread();
    for (let item = 0; item < 12; item += 1) await tell(server, thread_id, `item ${item}`);
    const tries = Array.from({ length: 8 }, (_, n) =>
      server.rpc<Collected>("agent/collect", {
        thread_id,
        point: "turn_start",
        owner: n % 2 === 0 ? "even" : "odd",
        limit: 2,
      }),
    );
    const replies = await Promise.all(tries);
    const refused = replies.filter(({ error }) => error !== undefined);
    expect(refused).toHaveLength(4);
    for (const { error } of refused) expect(error).toMatchObject({ code: CONFLICT, data: { reason: "thread_held" } });
    const got = replies.flatMap(({ result }) => result?.carrier?.notifications.map(({ id }) => id) ?? []);
    expect(new Set(got).size).toBe(8);
    expect(got).toHaveLength(8);
  });

  test("of another's carrier and thread nobody learns that they are there (I18)", async () => {
    await server.call("thread/start", { user_id: "ada", thread_id: "ada's" });
    await server.call("notification/notify", { content: "for ada", user_id: "ada", thread_id: "ada's" });
    const carrier = await collected(server, "ada's");
    const { token } = await server.createToken({ user_id: "eve", scopes: ["agent"] });
    const nobodys = carrier.id.replace(/^.{8}/, "00000000");
    for (const method of ["agent/settle", "agent/fail", "agent/renew"]) {
      const answer = async (carrier_id: string) =>
        JSON.stringify(await server.rpc(method, { carrier_id }, token)).replaceAll(carrier_id, "ID");
      expect(await answer(carrier.id)).toBe(await answer(nobodys));
      expect(await answer(carrier.id)).toContain(`"code":${NOT_FOUND}`);
    }
    const inThread = async (thread_id: string) =>
      JSON.stringify(
        await server.rpc("agent/collect", { thread_id, point: "turn_start", wait_ms: 60_000 }, token),
      ).replaceAll(thread_id, "THREAD");
    expect(await inThread("ada's")).toBe(await inThread("nobody"));
    expect(await server.call<Ended>("agent/settle", { carrier_id: carrier.id })).toMatchObject({ state: "sent" });
  });

  test("closing the thread ends its carriers", async () => {
    const server = await Server.start();
    const id = await tell(server, "t1", "x", MUST_NARRATE);
    const carrier = await collected(server, "t1");
    await server.stop();
    // No method closes a thread yet: the library does, on the same folder.
    const tidings = await Tidings.open({ data: server.data });
    await tidings.closeThread("t1");
    await tidings.close();
    const again = await Server.start({ data: server.data });
    expect(await stateOf(again, id)).toBe("ESCALATED");
    for (const method of ["agent/settle", "agent/fail"])
      expect(await again.rpc(method, { carrier_id: carrier.id })).toMatchObject({
        error: { code: CONFLICT, data: { reason: "stale_lease" } },
      });
    expect(await again.rpc("agent/collect", { thread_id: "t1", point: "turn_start" })).toMatchObject({
      error: { code: CONFLICT, data: { reason: "thread_closed" } },
    });
    await stopSound(again);
  });
});

describe("when things go wrong", () => {
  test("a kill between collect and settle: the carrier is there, and settles once (I6, I10)", async () => {
    const server = await Server.start();
    const ids = [await tell(server, "t1", "passive"), await tell(server, "t1", "narrate", MUST_NARRATE)];
    const carrier = await collected(server, "t1");
    await server.kill();
    const again = await Server.start({ data: server.data });
    expect(await again.rpc("agent/collect", { thread_id: "t1", point: "turn_start", owner: "new" })).toMatchObject({
      error: { data: { reason: "thread_held" } },
    });
    const settle = { carrier_id: carrier.id, acknowledged_ids: ids };
    const settled = await again.call<Ended>("agent/settle", settle);
    expect(settled.notifications.map(({ state }) => state)).toEqual(["DELIVERED", "DELIVERED"]);
    await again.kill();
    const third = await Server.start({ data: server.data });
    expect(await third.call("agent/settle", settle)).toEqual(settled);
    await stopSound(third);
  });

  test("a lease that runs out while nobody is there: void, and the next agent is told (I3, I8)", async () => {
    const server = await Server.start();
    const [passive, narrate] = [await tell(server, "t1", "passive"), await tell(server, "t1", "narrate", MUST_NARRATE)];
    const carrier = await collected(server, "t1", { lease_ms: 200 });
    await server.kill();
    const again = await Server.start({ data: server.data });
    await eventually(
      () => stateOf(again, narrate),
      (state) => state === "ESCALATED",
    );
    expect(await again.rpc("agent/settle", { carrier_id: carrier.id, acknowledged_ids: [narrate] })).toMatchObject({
      error: { code: CONFLICT, data: { reason: "stale_lease" } },
    });
    const next = await collected(again, "t1", { owner: "new", wait_ms: 20_000 });
    expect(next.notifications.map(({ id }) => id)).toEqual([passive]);
    await stopSound(again);
  });

  test("an agent that fails thrice: its items go to the user, in real time", async () => {
    const thread_id = newThread();
    const id = await tell(server, thread_id, "x", { handler: "agent" });
    for (const state of ["PENDING", "PENDING", "ESCALATED"]) {
      const carrier = await collected(server, thread_id, { wait_ms: 20_000 });
      const failed = await server.call<Ended>("agent/fail", { carrier_id: carrier.id, reason: "no\nanswer" });
      expect(failed).toMatchObject({ carrier_id: carrier.id, state: "void", notifications: [{ id, state }] });
      expect(await server.rpc("agent/settle", { carrier_id: carrier.id })).toMatchObject({
        error: { code: CONFLICT, data: { reason: "stale_lease", id: carrier.id } },
      });
    }
  });
});

describe("waiting", () => {
  /** A call over a connection of its own, which can be cut. */
  function waitingCall(server: Server, thread_id: string, more = {}) {
    const call = request(new URL("/rpc", server.url), {
      method: "POST",
      headers: { authorization: `Bearer ${server.token}`, "content-type": "application/json" },
    });
    call.on("error", () => {});
    const params = { thread_id, point: "turn_start", wait_ms: 60_000, ...more };
    call.end(JSON.stringify({ jsonrpc: "2.0", id: 1, method: "agent/collect", params }));
    const answer = once(call, "response").then(async ([response]) => {
      let text = "";
      for await (const chunk of response.setEncoding("utf8")) text += chunk;
      return JSON.parse(text) as RpcReply<Collected>;
    });
    answer.catch(() => {});
    return { call, answer };
  }

  const start = async (server: Server, thread_id: string) => server.call("thread/start", { thread_id });

  /** So many calls that come after those before. */
  const further = async (server: Server, count: number) =>
    Promise.all(Array.from({ length: count }, (_, n) => start(server, `other ${n}`)));

  test("a call is answered by the first thing that comes, over HTTP and WebSocket", async () => {
    const [first, second] = [newThread(), newThread()];
    await start(server, first);
    await start(server, second);
    const client = await server.connect();
    const http = waitingCall(server, first).answer;
    const socket = client.rpc<Collected>("agent/collect", { thread_id: second, point: "after_tool", wait_ms: 60_000 });
    const [one, two] = [await tell(server, first, "one"), await tell(server, second, "two")];
    expect((await http).result?.carrier?.notifications).toMatchObject([{ id: one, content: "one" }]);
    expect((await socket).result?.carrier?.notifications).toMatchObject([{ id: two, content: "two" }]);
  });

  test("a batch is not cut short: it comes when its window ends, once", async () => {
    const thread_id = newThread();
    await start(server, thread_id);
    const client = await server.connect();
    const waiting = client.rpc<Collected>("agent/collect", { thread_id, point: "turn_start", wait_ms: 60_000 });
    // The server has seen it: it has answered what came after it.
    await client.rpc("runtime/status");
    const failure = (tool_name: string) => ({
      type: "tool.call.failure",
      source: "tools",
      severity: "error",
      thread_id,
      payload: { tool_name, error_message: "timed out" },
    });
    for (const tool of ["one", "two", "three"]) await server.post("/v1/events", failure(tool));
    const { carrier } = (await waiting).result ?? {};
    expect(carrier?.notifications).toMatchObject([{ count: 3, subscriber_id: "tool_failure" }]);
    expect(carrier?.more).toBe(0);
  });

  test("a client of the WebSocket that goes away takes nothing with it", async () => {
    const server = await Server.start();
    await start(server, "t1");
    const client = await server.connect();
    const params = { thread_id: "t1", point: "turn_start", wait_ms: 60_000, owner: "gone" };
    client.rpc("agent/collect", params).catch(() => {});
    // The server has seen it: it has answered what came after it.
    await client.rpc("runtime/status");
    client.socket.terminate();
    await eventually(
      () => server.call<{ connections: number }>("runtime/status"),
      ({ connections }) => connections === 0,
    );
    const id = await tell(server, "t1", "x");
    expect((await collected(server, "t1", { owner: "here" })).notifications).toMatchObject([{ id }]);
    await stopSound(server);
  });

  test("the server's end answers those who wait, and is not held up by them", async () => {
    const server = await Server.start();
    await start(server, "t1");
    const waiting = Array.from({ length: 5 }, () => waitingCall(server, "t1").answer);
    const client = await server.connect();
    const socket = client.rpc("agent/collect", { thread_id: "t1", point: "turn_start", wait_ms: 60_000 });
    socket.catch(() => {});
    await further(server, 5);
    await stopSound(server);
    for (const reply of await Promise.all(waiting))
      expect(reply).toEqual({ jsonrpc: "2.0", id: 1, result: { carrier: null } });
    await client.closed;
  });

  test("so many of one user wait, and no more; one that goes away leaves its place and takes nothing with it", async () => {
    const server = await Server.start();
    await start(server, "t1");
    await start(server, "t2");
    const gone = waitingCall(server, "t1", { owner: "gone" });
    const others: ReturnType<typeof waitingCall>[] = [];
    // One that the call below came before is refused, and asks again.
    const ask = () => {
      const one = waitingCall(server, "t2");
      others.push(one);
      void one.answer.then(({ error }) => error !== undefined && ask()).catch(() => {});
    };
    for (let count = 0; count < 99; count += 1) ask();
    const oneMore = () => server.rpc("agent/collect", { thread_id: "t2", point: "turn_start", wait_ms: 1 });
    expect(await eventually(oneMore, ({ error }) => error !== undefined)).toMatchObject({
      status: 429,
      error: { code: OVERLOADED, data: { retry_after_ms: expect.any(Number) } },
    });
    // Without waiting, and for another user, all is as before.
    expect(await server.rpc("agent/collect", { thread_id: "t2", point: "turn_start" })).toMatchObject({
      result: { carrier: null },
    });
    const { token } = await server.createToken({ user_id: "ada", scopes: ["agent"] });
    const { thread_id } = await server.call<{ thread_id: string }>("thread/start", {}, token);
    const params = { thread_id, point: "turn_start", wait_ms: 1 };
    expect(await server.rpc("agent/collect", params, token)).toMatchObject({ result: { carrier: null } });
    gone.call.destroy();
    // Its place is free as soon as the server has seen that it is gone.
    await eventually(oneMore, ({ error }) => error === undefined);
    const id = await tell(server, "t1", "x");
    expect((await collected(server, "t1", { owner: "here" })).notifications).toMatchObject([{ id }]);
    for (const { call } of others) call.destroy();
    await stopSound(server);
  });
});

test("a carrier over the WebSocket is as large as an answer may be, and the rest comes next", async () => {
  const server = await Server.start();
  const ids: string[] = [];
  for (let item = 0; item < 60; item += 1) ids.push(await tell(server, "t1", `${item} ${"\u{1f4a5}".repeat(8_000)}`));
  const client = await server.connect();
  const got: string[] = [];
  for (let more = 60; more > 0; ) {
    const { result } = await client.rpc<Collected>("agent/collect", {
      thread_id: "t1",
      point: "turn_start",
      limit: 100,
    });
    if (result?.carrier === null || result?.carrier === undefined) throw new Error("nothing was collected");
    got.push(...result.carrier.notifications.map(({ id }) => id));
    more = result.carrier.more;
    expect(got.length + more).toBe(60);
  }
  expect(got).toEqual(ids);
  await stopSound(server);
});
