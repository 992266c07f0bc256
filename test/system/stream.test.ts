/** Streams over HTTP and stdio: what their clients send and are told, how they end, and that nobody waits for another. */
import { type ChildProcess, spawn } from "node:child_process";
import { type IncomingMessage, request } from "node:http";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { eventually, temporaryFolder } from "../support/folder.js";
import { endKeptServer, startKeptServer } from "../support/kept_server.js";
import { frameBytes, OPCODE, openRawWebSocket, RawSocket, requestText } from "../support/raw.js";
import { Server } from "../support/server.js";
import { Duplex, Frames, framesOf, type StreamFrame } from "../support/stream.js";
import { run } from "./cli.js";

const PROGRAM = fileURLToPath(new URL("../../dist/cli/main.js", import.meta.url));
const OVERLOADED = -32001;
const INVALID = -32602;

let server: Server;
beforeAll(async () => {
  server = await startKeptServer(["--provider", "rehearsal", "--heartbeat-ms", "200"]);
});
afterAll(async () => {
  await endKeptServer(server);
});

let people = 0;
async function person(scopes: ("read" | "ack" | "ingest" | "agent")[] = ["read", "ack", "ingest", "agent"]) {
  people += 1;
  const user_id = `streamer ${people}`;
  const { token, id } = await server.createToken({ user_id, scopes });
  const call = <Result = Record<string, string>>(method: string, params: object = {}) =>
    server.call<Result>(method, params, token);
  const say = async (content: string) => (await call("notification/notify", { content, target: "user" }))["id"];
  return { user_id, token, token_id: id, call, say };
}

async function listen(token: string, query = ""): Promise<Duplex> {
  const stream = new Duplex(`${server.url}/rpc/stream${query}`, { token, method: "GET" });
  await stream.frames.told("inbox/counts");
  return stream;
}

async function converse(token: string, query = ""): Promise<Duplex> {
  const stream = new Duplex(`${server.url}/rpc/stream${query}`, { token });
  await stream.frames.told("inbox/counts");
  return stream;
}

const contents = (frames: readonly StreamFrame[]) =>
  frames.flatMap(({ method, params }) => (method === "notification/created" ? [params.notification.content] : []));

test("a stream that does not want the counts says by a heartbeat where it begins, before anything else", async () => {
  const one = await Server.start();
  const say = (content: string) => one.call<{ seq: number }>("notification/notify", { content, target: "user" });
  const waiting = await say("waits");
  for (const path of ["/rpc/stream", "/sse"]) {
    const stream = new Duplex(`${one.url}${path}?opt_out=inbox/counts`, { token: one.token, method: "GET" });
    await stream.frames.told("notification/created");
    const { seq } = await say("comes");
    await stream.frames.told("notification/created", (params) => params["seq"] === seq);
    const beat = stream.frames.all.find(({ params }) => params["waiting"] !== true);
    expect(beat?.method).toBe("stream/heartbeat");
    expect(beat?.params).toMatchObject({ seq: expect.any(Number), up_to_seq: expect.any(Number) });
    expect(beat?.params.seq).toBeGreaterThanOrEqual(waiting.seq);
    const { journal_id, up_to_seq } = beat?.params ?? {};
    const query = `opt_out=inbox/counts&journal_id=${journal_id}&after_seq=${up_to_seq}`;
    const again = new Duplex(`${one.url}${path}?${query}`, { token: one.token, method: "GET" });
    expect((await again.frames.told("notification/created")).params.notification.content).toBe("comes");
    again.request.destroy();
    stream.request.destroy();
  }
});

describe("POST /rpc/stream", () => {
  test("answers each line while the body is open: calls, batches, what is no call, and what is to be answered not at all", async () => {
    const me = await person();
    const stream = await converse(me.token);
    stream.say("");
    stream.say("{");
    stream.say('{"jsonrpc":"2.0","method":"inbox/counts"}');
    stream.say([
      { id: "a", method: "inbox/counts" },
      { id: "b", method: "no/such" },
    ]);
    const batch = await stream.frames.until((all) => all.find((frame) => Array.isArray(frame)));
    expect(batch).toMatchObject([
      { id: "a", result: { unread: 0 } },
      { id: "b", error: { code: -32601 } },
    ]);
    expect(stream.frames.all.filter(({ method }) => method === undefined)).toMatchObject([
      { id: null, error: { code: -32700 } },
      batch as unknown as object,
    ]);
    expect((await stream.rpc("thread/list")).result).toMatchObject({ threads: [] });
  });

  test("a body that is sent whole is answered whole, and then the response ends", async () => {
    const me = await person();
    const lines = Array.from({ length: 300 }, (_, n) => ({ jsonrpc: "2.0", id: n, method: "inbox/counts" }));
    const body = lines.map((line) => JSON.stringify(line)).join("\n");
    const { status, text } = await server.request("/rpc/stream", { method: "POST", body, token: me.token });
    expect(status).toBe(200);
    const answers = text
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as StreamFrame);
    const ids = answers.flatMap(({ id, error }) => (id === undefined ? [] : [error === undefined ? id : "error"]));
    expect(ids.sort((one, other) => Number(one) - Number(other))).toEqual(lines.map(({ id }) => id));
  });

  test("what a call waits for is answered after the body has ended", async () => {
    const me = await person();
    const { thread_id } = await me.call("thread/start");
    await me.call("thread/pause", { thread_id });
    const stream = await converse(me.token);
    stream.say({ id: 1, method: "agent/collect", params: { thread_id, point: "after_tool", wait_ms: 20_000 } });
    stream.request.end();
    await me.call("notification/notify", { content: "for the agent", thread_id });
    expect((await stream.frames.answer(1)).result.carrier.notifications).toHaveLength(1);
    await stream.frames.over();
  });

  test("a call that waits is refused beside others: it would hold up their answers, and what is told after these", async () => {
    const me = await person();
    const stream = await converse(me.token);
    const { thread_id } = (await stream.rpc("thread/start")).result;
    const { thread_id: other } = (await stream.rpc("thread/start")).result;
    const nothing = { thread_id: other, point: "after_tool", wait_ms: 12_000 };
    const waits = { id: "waits", method: "agent/collect", params: nothing };
    stream.say([{ id: "turn", method: "turn/start", params: { thread_id, input: "hello" } }, waits]);
    // More than may wait for a client that does not read: this one does.
    const content = "x".repeat(15_000);
    await Promise.all(Array.from({ length: 90 }, (_, n) => me.say(`${n} ${content}`)));
    await stream.frames.until((all) => (contents(all).length === 90 ? true : undefined), "all that was said");
    const isBatch = (frame: StreamFrame) => Array.isArray(frame);
    expect(await stream.frames.frame(isBatch)).toMatchObject([
      { id: "turn", result: { state: "active" } },
      { id: "waits", error: { code: INVALID, data: { field: "wait_ms" } } },
    ]);
    await stream.frames.told("turn/completed");
    const at = (wanted: (frame: StreamFrame) => boolean) => stream.frames.all.findIndex(wanted);
    const answered = at(isBatch);
    expect(at(({ method }) => method === "turn/started")).toBeLessThan(answered);
    expect(at(({ method }) => method === "item/created")).toBeGreaterThan(answered);
    // By itself it waits, in a batch of one too; and over POST /rpc, where nobody is told anything, beside others.
    const { next } = (await stream.rpc("notification/changed")).result;
    const alone = { method: "notification/changed", params: { after: next, wait_ms: 20_000 } };
    stream.say([{ id: "one", ...alone }]);
    stream.say({ id: "two", ...alone });
    const both = server.post(
      "/rpc",
      [
        { id: 1, method: "inbox/counts" },
        { id: 2, ...alone },
      ],
      me.token,
    );
    await me.say("at last");
    const changed = { result: { notifications: [{ content: "at last" }] } };
    expect(await stream.frames.frame((frame) => isBatch(frame) && at((one) => one === frame) > answered)).toMatchObject(
      [changed],
    );
    expect(await stream.frames.answer("two")).toMatchObject(changed);
    expect((await both).json).toMatchObject([{ id: 1 }, changed]);
  });

  test("a line that is too long is refused and ends the stream; the server goes on (T9)", async () => {
    const me = await person();
    const stream = await converse(me.token);
    stream.request.write(Buffer.alloc(200_000, "x"));
    const error = await stream.frames.frame(({ id }) => id === null);
    expect(error.error).toMatchObject({ code: -32700 });
    await stream.frames.over();
    expect((await server.get("/healthz")).status).toBe(200);
  });

  test("a client that goes in the middle of a line is nobody's failure", async () => {
    const me = await person();
    const raw = await RawSocket.open(server.url);
    const head = [
      "POST /rpc/stream HTTP/1.1",
      `Host: ${new URL(server.url).host}`,
      `Authorization: Bearer ${me.token}`,
    ];
    raw.write(requestText([...head, "Transfer-Encoding: chunked"], '5\r\n{"id"\r\n'));
    await eventually(
      async () => (await server.call<{ connections: number }>("runtime/status")).connections,
      (n) => n > 0,
    );
    raw.socket.destroy();
    await eventually(
      async () => (await server.call<{ connections: number }>("runtime/status")).connections,
      (n) => n === 0,
    );
  });
});

describe("who may, and what they ask for", () => {
  test.each(["/rpc/stream", "/sse"])("%s wants a token, the scope read, and fields that it knows", async (path) => {
    const me = await person();
    const blind = await person(["ingest"]);
    expect((await server.get(path, null)).status).toBe(401);
    expect((await server.get(path, blind.token)).status).toBe(403);
    for (const [query, field] of [
      ["?after=1", "after"],
      ["?observe=perhaps", "observe"],
      ["?opt_out=turn/nothing", "opt_out.0"],
      ["?opt_out=stream/reset", "opt_out.0"],
      ["?after_seq=1", "journal_id"],
      ["?journal_id=x&after_seq=-1", "after_seq"],
    ])
      expect(await server.get(`${path}${query}`, me.token), query).toMatchObject({
        status: 400,
        json: { error: { field } },
      });
    expect((await server.request(path, { method: "DELETE" })).status).toBe(405);
    const odd = await server.request("/sse", { token: me.token, headers: { "last-event-id": "yesterday" } });
    expect(odd.status).toBe(400);
  });

  test("nobody is told anything of another's, live or from a cursor (I18)", async () => {
    const [ada, eve] = [await person(), await person()];
    const { journal_id } = await ada.call("runtime/status");
    await ada.say("ada's own");
    const late = new Duplex(`${server.url}/rpc/stream?journal_id=${journal_id}&after_seq=0`, {
      token: eve.token,
      method: "GET",
    });
    const live = await listen(eve.token);
    await ada.call("thread/start");
    await eve.say("eve's own");
    for (const stream of [late, live]) {
      await stream.frames.told("notification/created");
      expect(contents(stream.frames.all)).toEqual(["eve's own"]);
      expect(stream.frames.text).not.toContain("ada");
      expect(stream.frames.all.some(({ method }) => method === "thread/started")).toBe(false);
    }
  });

  test("a revoked token's streams end, and say why", async () => {
    const me = await person();
    const stream = await listen(me.token);
    await server.call("token/revoke", { id: me.token_id });
    await stream.frames.over();
    expect(stream.frames.all.at(-1)).toMatchObject({ id: null, error: { code: -32002 } });
  });

  test("methods that a client does not want are left out, and what is left is still one chain", async () => {
    const me = await person();
    const stream = await converse(me.token, "?opt_out=turn/progress");
    const opt_out = ["turn/progress", "item/created", "stream/heartbeat"];
    expect((await stream.rpc("initialize", { opt_out })).result).toMatchObject({ user_id: me.user_id });
    const { thread_id } = (await stream.rpc("thread/start")).result;
    await stream.rpc("turn/start", { thread_id, input: "call read_notifications {}" });
    await stream.frames.told("turn/completed");
    const told = stream.frames.all.filter(({ params }) => params?.prev_seq !== undefined);
    expect(told.map(({ method }) => method)).toEqual([
      "thread/started",
      "turn/started",
      "item/updated",
      "turn/completed",
    ]);
    expect(told.map(({ params }) => params.prev_seq)).toEqual([
      null,
      ...told.slice(0, -1).map(({ params }) => params.seq),
    ]);
    expect(stream.frames.all.some(({ method }) => method === "turn/progress")).toBe(false);
    expect((await stream.rpc("initialize", { opt_out: ["turn/nothing"] })).error).toMatchObject({ code: INVALID });
    const heard = await listen(me.token, "?conversation=false");
    await me.call("thread/start");
    await me.say("still told");
    await heard.frames.told("notification/created");
    expect(heard.frames.all.some(({ method }) => method === "thread/started")).toBe(false);
  });
});

describe("items that change and go", () => {
  /** What was told of items, in short; `deleted` has no content. */
  const items = (frames: readonly StreamFrame[]) =>
    frames.flatMap(({ method, params }) =>
      method?.startsWith("item/") ? [`${method} ${params.item_type} ${params.status}`] : [],
    );

  test("an observation is deleted when it is withdrawn: the agent failed, its lease ended, or its thread did", async () => {
    const me = await person();
    const { thread_id } = await me.call("thread/start");
    // The agent that is hosted does not take it.
    await me.call("thread/pause", { thread_id });
    const observes = await listen(me.token, "?observe=true");
    const socket = await server.connect({ token: me.token });
    await socket.rpc("initialize", { observe: true, conversation: true });
    const follows = await listen(me.token);
    // What was withdrawn comes again after a while.
    const collect = async (more: object = {}) => {
      const asked = { thread_id, point: "after_tool", wait_ms: 20_000, ...more };
      const { carrier } = await me.call<{ carrier: { id: string } }>("agent/collect", asked);
      return carrier.id;
    };
    await me.call("notification/notify", { content: "for the agent", thread_id });

    const failed = await collect();
    const of = (carrier_id: string) => (params: Record<string, unknown>) =>
      (params["content"] as { carrier_id?: string } | undefined)?.carrier_id === carrier_id;
    const withdrawn: string[] = [];
    const isWithdrawn = async (carrier_id: string) => {
      const { params } = await observes.frames.told("item/created", of(carrier_id));
      const deleted = await observes.frames.told("item/deleted", ({ item_id }) => item_id === params.item_id);
      expect(deleted.params).toMatchObject({ type: "deleted", item_type: "observation", status: "deleted", thread_id });
      expect(deleted.params).not.toHaveProperty("content");
      withdrawn.push(params.item_id);
    };
    await me.call("agent/fail", { carrier_id: failed, reason: "the model did not answer" });
    await isWithdrawn(failed);
    await isWithdrawn(await collect({ lease_ms: 1_000 }));
    const sent = await collect();
    await me.call("agent/settle", { carrier_id: sent });
    await observes.frames.told("item/updated", of(sent));
    await me.call("notification/notify", { content: "for the agent, later", thread_id });
    const last = await collect();
    await me.call("thread/close", { thread_id });
    await isWithdrawn(last);

    const changes = [
      ...["item/created observation open", "item/deleted observation deleted"],
      ...["item/created observation open", "item/deleted observation deleted"],
      ...["item/created observation open", "item/updated observation sent"],
      ...["item/created observation open", "item/deleted observation deleted"],
    ];
    expect(items(observes.frames.all).filter((line) => line.includes("observation"))).toEqual(changes);
    const told = await socket.until((frames) => {
      const all = items(frames as StreamFrame[]).filter((line) => line.includes("observation"));
      return all.length === changes.length ? all : undefined;
    });
    expect(told).toEqual(changes);
    // Who did not ask for what the agent is told hears nothing of it, nor that it was withdrawn.
    await follows.frames.told("thread/closed");
    expect(items(follows.frames.all).filter((line) => line.includes("observation"))).toEqual([]);
    // Who comes later is told the same from the journal.
    const { journal_id } = await me.call("runtime/status");
    const { seq } = observes.frames.all.find(({ method }) => method === "item/created")?.params ?? {};
    const later = await listen(me.token, `?observe=true&journal_id=${journal_id}&after_seq=${seq - 1}`);
    await later.frames.told("thread/closed");
    expect(items(later.frames.all).filter((line) => line.includes("observation"))).toEqual(changes);
    const gone = later.frames.all.filter(({ method }) => method === "item/deleted").map(({ params }) => params.item_id);
    expect(gone).toEqual(withdrawn);
  });

  test("a call that fails, a message that waits and is changed and taken back, a notice that is seen", async () => {
    const me = await person();
    const stream = await converse(me.token);
    const { thread_id } = (await stream.rpc("thread/start")).result;
    await stream.rpc("turn/start", { thread_id, input: "call no_such_tool {}" });
    await stream.frames.told("turn/completed");
    await stream.rpc("thread/pause", { thread_id });
    const { turn_id } = (await stream.rpc("turn/start", { thread_id, input: "later" })).result;
    await stream.rpc("queue/update", { turn_id, input: "much later" });
    await stream.rpc("queue/remove", { turn_id });
    const asked = { content: "look", target: "user", severity: "warning", thread_id };
    const { id } = (await stream.rpc("notification/notify", asked)).result;
    await stream.rpc("notification/ack", { id, revision: 1, action: "dismissed" });
    await stream.frames.told(
      "item/updated",
      ({ item_type, status }) => item_type === "notice" && status === "DELIVERED",
    );
    const changed = stream.frames.all.filter(({ method }) => method === "item/updated" || method === "item/deleted");
    expect(items(changed)).toEqual([
      "item/updated tool_call failed",
      "item/updated queued pending",
      "item/deleted queued deleted",
      "item/updated notice DELIVERED",
    ]);
    // Each is of an item that was created before, and says what has changed of it.
    for (const { params } of changed) {
      const created = await stream.frames.told("item/created", ({ item_id }) => item_id === params.item_id);
      expect(created.params.seq).toBeLessThan(params.seq);
      expect(created.params.item_type).toBe(params.item_type);
    }
    expect(changed[1]?.params.content).toEqual({ text: "much later" });
  });
});

describe("resuming", () => {
  test("by a call on an open stream: what was missed follows the answer, and then what comes", async () => {
    const me = await person();
    const { journal_id, seq } = (await (await converse(me.token)).rpc("initialize")).result;
    await me.say("one");
    await me.say("two");
    const stream = await converse(me.token);
    expect(contents(stream.frames.all)).toEqual(["one", "two"]);
    const { result } = await stream.rpc("stream/resume", { journal_id, after_seq: seq });
    expect(result).toMatchObject({ resumed: true, reset: null, journal_id, oldest_seq: expect.any(Number) });
    await me.say("three");
    await stream.frames.told("notification/created", (params) => JSON.stringify(params).includes("three"));
    const after = stream.frames.all.slice(stream.frames.all.findIndex(({ id }) => id === "call 1"));
    expect(contents(after)).toEqual(["one", "two", "three"]);
    const placed = after.filter(({ params }) => params?.prev_seq !== undefined);
    expect(placed[0]?.params.prev_seq).toBe(seq);
  });

  test.each(["/rpc/stream", "/ws"])(
    "%s: two at once are told one after the other; who asks meanwhile is answered",
    async (path) => {
      const me = await person();
      const { journal_id } = await me.call("runtime/status");
      const { last_seq: after_seq } = await server.call<{ last_seq: number }>("runtime/status");
      // More than is sent at once.
      const words = Array.from({ length: 100 }, (_, n) => `${n} ${"x".repeat(10_000)}`);
      for (const word of words) await me.say(word);
      // What is said is said in one piece: neither of the two is told before the other was read.
      let frames: StreamFrame[] = [];
      let say: (...lines: readonly object[]) => void;
      if (path === "/ws") {
        const raw = await openRawWebSocket(server, me.token);
        void (async () => {
          for (;;) frames.push(JSON.parse(String((await raw.frame()).payload)) as StreamFrame);
        })().catch(() => {});
        say = (...lines) =>
          raw.write(Buffer.concat(lines.map((line) => frameBytes(OPCODE.text, JSON.stringify(line)))));
      } else {
        const stream = await converse(me.token);
        frames = stream.frames.all;
        say = (...lines) => stream.request.write(lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
      }
      const seen = (what: (frame: StreamFrame) => boolean) =>
        eventually(
          async () => frames.some(what),
          (found) => found,
        );
      await seen(({ method }) => method === "inbox/counts");
      const before = frames.length;
      const resume = { method: "stream/resume", params: { journal_id, after_seq } };
      say({ id: "one", ...resume }, { id: "two", ...resume });
      await seen(({ id }) => id === "one");
      say({ id: "asked", method: "initialize", params: { conversation: true } });
      await seen(({ id }) => id === "asked");
      await me.say("the last word");
      const told = await eventually(
        async () => frames.slice(before).filter(({ method }) => method === "notification/created"),
        (all) => contents(all).at(-1) === "the last word",
      );
      const inShort = (all: readonly string[]) => all.map((text) => text.split(" ", 1)[0]).join(" ");
      expect(inShort(contents(told))).toBe(inShort([...words, ...words, "the last word"]));
    },
  );

  test("a cursor that is no good is answered with stream/reset, the oldest and the newest; what comes then is told", async () => {
    const me = await person();
    await me.say("waits");
    const { journal_id = "" } = await me.call("runtime/status");
    for (const [reason, cursor] of [
      ["other_journal", { journal_id: "01a1e260-c4aa-784f-9711-0fffffffffff", after_seq: 1 }],
      ["cursor_ahead", { journal_id, after_seq: 1_000_000_000 }],
    ] as const) {
      const query = new URLSearchParams({ journal_id: cursor.journal_id, after_seq: String(cursor.after_seq) });
      const stream = await listen(me.token, `?${query}`);
      const [first] = stream.frames.all;
      expect(first).toMatchObject({ method: "stream/reset", params: { reason, journal_id } });
      expect(first?.params.newest_seq).toBeGreaterThanOrEqual(first?.params.oldest_seq);
      expect(contents(stream.frames.all)).toContain("waits");
      const open = await converse(me.token);
      const { result } = await open.rpc("stream/resume", cursor);
      expect(result).toMatchObject({ resumed: false, reset: reason });
      const at = (wanted: (frame: StreamFrame) => boolean) => open.frames.all.findIndex(wanted);
      expect(at(({ method }) => method === "stream/reset")).toBeLessThan(at(({ id }) => id === "call 1"));
      await me.say(`after ${reason}`);
      for (const one of [stream, open])
        await one.frames.told("notification/created", (params) => JSON.stringify(params).includes(`after ${reason}`));
      // Without a stream it is no more than asked.
      expect(await me.call("stream/resume", cursor)).toMatchObject({ resumed: false, reset: reason });
    }
  });

  test("a cursor that retention has passed is too old; one that it has not goes on", async () => {
    const me = await person();
    const { journal_id } = await me.call("runtime/status");
    const [one, two] = [await me.say("one"), await me.say("two")];
    for (const id of [one, two]) await me.call("notification/ack", { id, revision: 1, action: "clicked" });
    const { last_seq } = await server.call<{ last_seq: number }>("runtime/status");
    await server.call("runtime/prune", { older_than_ms: 0 });
    const old = await listen(me.token, `?journal_id=${journal_id}&after_seq=${last_seq - 2}`);
    expect(old.frames.all[0]).toMatchObject({
      method: "stream/reset",
      params: { reason: "cursor_too_old", oldest_seq: last_seq + 1, newest_seq: last_seq },
    });
    const good = await listen(me.token, `?journal_id=${journal_id}&after_seq=${last_seq}`);
    await me.say("three");
    await good.frames.told("notification/created");
    expect(good.frames.all.some(({ method }) => method === "stream/reset")).toBe(false);
  });

  test("heartbeats say what was sent last, and up to where there was nothing else", async () => {
    const me = await person();
    const stream = await listen(me.token);
    await me.say("one");
    const told = await stream.frames.told("notification/created");
    await person();
    const { last_seq, journal_id } = await server.call<{ last_seq: number; journal_id: string }>("runtime/status");
    const beat = await stream.frames.told("stream/heartbeat", ({ up_to_seq }) => Number(up_to_seq) >= last_seq);
    expect(beat.params).toEqual({ journal_id, seq: told.params.seq, up_to_seq: expect.any(Number) });
    expect(last_seq).toBeGreaterThan(told.params.seq);
  });
});

describe("many at once", () => {
  test("subscribers come and go while much is told at the same time: who stays has all of it, once and in one order", async () => {
    const me = await person();
    const streams = await Promise.all(
      Array.from({ length: 40 }, (_, n) => (n % 2 === 0 ? listen(me.token) : converse(me.token))),
    );
    const sockets = await Promise.all(Array.from({ length: 10 }, () => server.connect({ token: me.token })));
    await Promise.all(sockets.map((one) => one.welcomed()));
    const said = Array.from({ length: 120 }, (_, n) => me.say(`word ${n}`));
    await Promise.all(said.slice(0, 40));
    const leaving = streams.filter((_, n) => n % 4 === 0);
    for (const one of leaving) one.request.destroy();
    await Promise.all(said);
    const staying = streams.filter((one) => !leaving.includes(one));
    const heard = await Promise.all(
      staying.map(({ frames }) => frames.until((all) => (contents(all).length === 120 ? contents(all) : undefined))),
    );
    const [order] = heard;
    expect(new Set(order).size).toBe(120);
    for (const one of heard) expect(one).toEqual(order);
    for (const one of sockets)
      expect(
        await one.until((all) =>
          contents(all as StreamFrame[]).length === 120 ? contents(all as StreamFrame[]) : undefined,
        ),
      ).toEqual(order);
    const { connections } = await server.call<{ connections: number }>("runtime/status");
    expect(connections).toBeLessThanOrEqual(40 - leaving.length + 10 + 40);
    await eventually(
      async () => (await server.call<{ connections: number }>("runtime/status")).connections,
      (open) => open <= 40 - leaving.length + 10,
    );
  });

  test("one that does not read is ended and can go on where it was; nobody waits for it (T10)", async () => {
    const me = await person();
    const { journal_id, seq } = (await (await converse(me.token)).rpc("initialize")).result;
    const reads = await listen(me.token);
    const stuck = await new Promise<IncomingMessage>((resolve) => {
      const asked = request(`${server.url}/rpc/stream`, { headers: { authorization: `Bearer ${me.token}` } }, resolve);
      onTestFinished(() => {
        asked.destroy();
      });
      asked.end();
    });
    stuck.pause();
    // More than what may wait, and than what the system takes for itself.
    const content = "x".repeat(15_000);
    const count = 900;
    for (let n = 0; n < count; n += 30)
      await Promise.all(Array.from({ length: 30 }, (_, of) => me.say(`${n + of} ${content}`)));
    const heard = await reads.frames.until((all) => (contents(all).length === count ? contents(all) : undefined));
    const partly = new Frames();
    stuck.on("data", (chunk: Buffer) => partly.take(chunk));
    stuck.on("error", () => {});
    stuck.on("close", () => partly.end());
    stuck.resume();
    await partly.over();
    const had = partly.all.filter(({ params }) => params?.prev_seq !== undefined);
    expect(had.length).toBeLessThan(count);
    const ended = partly.all.at(-1);
    if (ended?.error !== undefined) expect(ended.error.code).toBe(OVERLOADED);
    const { seq: last = seq, part } = had.at(-1)?.params ?? {};
    const cursor = `journal_id=${journal_id}&after_seq=${last}${part === undefined ? "" : `&after_part=${part}`}`;
    const again = new Duplex(`${server.url}/rpc/stream?${cursor}`, { token: me.token, method: "GET" });
    const rest = await again.frames.until((all) =>
      contents(all).length === count - contents(had).length ? contents(all) : undefined,
    );
    expect([...contents(had), ...rest]).toEqual(heard);
  });
});

describe("the runtime", () => {
  test("pauses everywhere, by itself for a while, and goes on with what waits", async () => {
    const me = await person();
    const stream = await converse(me.token);
    const { thread_id } = (await stream.rpc("thread/start")).result;
    const paused = await server.call<{ state: string }>("runtime/pause");
    expect(paused).toEqual({ state: "paused", resumes_at: null });
    expect(await server.call("holon/pause")).toEqual(paused);
    expect(await me.call("runtime/status")).toMatchObject({ state: "paused" });
    const { result } = await stream.rpc("turn/start", { thread_id, input: "hello" });
    expect(result).toMatchObject({ state: "queued", started_at: null });
    await stream.frames.told("item/created", ({ item_type }) => item_type === "queued");
    expect(stream.frames.all.some(({ method }) => method === "turn/started")).toBe(false);
    expect(await server.call("runtime/resume")).toEqual({ state: "running", resumes_at: null });
    await stream.frames.told("turn/completed", ({ turn_id }) => turn_id === result.turn_id);

    const brief = await server.call<{ resumes_at: string }>("runtime/pause", { timeout_seconds: 0.2 });
    expect(brief).toMatchObject({ state: "paused", resumes_at: expect.stringMatching(/Z$/) });
    const { turn_id } = (await stream.rpc("turn/start", { thread_id, input: "again" })).result;
    await stream.frames.told("turn/completed", (params) => params["turn_id"] === turn_id);
    expect(await me.call("runtime/status")).toMatchObject({ state: "running", resumes_at: null });
    expect((await server.rpc("runtime/pause", { timeout_seconds: 0 })).error?.code).toBe(INVALID);
  });

  test("shows its log, and goes on doing so for those who follow it", async () => {
    const admin = await server.createToken({ user_id: "operator", scopes: ["admin"] });
    const stream = await converse(admin.token);
    const { result } = await stream.rpc("holon/logStream", { follow: true });
    expect(result).toMatchObject({ following: true, lines: expect.any(Array) });
    expect(result.lines[0]).toEqual({
      ...{ time: expect.any(String), level: "info", message: "ready" },
      fields: { url: server.url, pid: expect.any(Number), version: expect.any(String), agent: expect.any(String) },
    });
    await server.call("runtime/pause");
    await server.call("runtime/resume");
    expect((await stream.frames.told("runtime/log")).params).toMatchObject({ message: "the agent was paused" });
    expect(await server.call("runtime/logStream", { follow: true, limit: 1 })).toMatchObject({
      following: false,
      lines: [{ message: "the agent goes on" }],
    });
  });

  test("counts the events of a user, and of all for admin", async () => {
    const me = await person();
    await me.say("one");
    await server.post("/v1/events", [{ type: "cli.a.b", source: "s" }, { type: "x" }], me.token);
    expect(await me.call("holon/status")).toMatchObject({ events_processed: 2, state: "running" });
    expect((await server.call<{ events_processed: number }>("runtime/status")).events_processed).toBeGreaterThan(1);
  });
});

describe("tidings serve --stdio", () => {
  function serve(
    data: string,
    ...more: readonly string[]
  ): {
    process: ChildProcess;
    frames: Frames;
    stderr: () => string;
    ended: Promise<number | null>;
  } {
    const words = ["serve", "--stdio", "--data", data, "--provider", "rehearsal", ...more];
    const child = spawn(process.execPath, [PROGRAM, ...words]);
    onTestFinished(() => {
      child.kill("SIGKILL");
    });
    let stderr = "";
    child.stderr.on("data", (text: Buffer) => {
      stderr += String(text);
    });
    const ended = new Promise<number | null>((resolve) => child.on("close", resolve));
    return { process: child, frames: framesOf(child.stdout), stderr: () => stderr, ended };
  }

  test("speaks lines of JSON and nothing else, as the server's own token, and ends with its input", async () => {
    const data = await temporaryFolder();
    const served = serve(data);
    const say = (line: object) => served.process.stdin?.write(`${JSON.stringify(line)}\n`);
    say({ id: 1, method: "thread/start", params: {} });
    const { thread_id } = (await served.frames.answer(1)).result;
    say({ id: 2, method: "turn/start", params: { thread_id, input: "hello" } });
    await served.frames.told("turn/completed");
    say({ id: 3, method: "token/list" });
    expect((await served.frames.answer(3)).result).toEqual({ tokens: [] });
    const listed = await run(["inbox", "--data", data, "--json"]);
    expect(listed).toMatchObject({ code: 0 });
    say({ id: 4, method: "runtime/status" });
    served.process.stdin?.end();
    expect((await served.frames.answer(4)).result).toMatchObject({ user_id: "local", connections: 1 });
    expect(await served.ended).toBe(0);
    const lines = served.frames.text.trimEnd().split("\n");
    for (const line of lines) expect(() => JSON.parse(line), line).not.toThrow();
    expect(served.stderr()).toMatch(/^tidings: ready at http:\/\/127\.0\.0\.1:\d+\n$/);
  });

  test("its log is on standard error, in its own form, whatever is said", async () => {
    const served = serve(await temporaryFolder(), "--log-format", "json", "--log-level", "debug");
    served.process.stdin?.write('{"id": 1, "method": "runtime/logStream", "params": {"follow": true}}\n');
    const { result } = await served.frames.answer(1);
    expect(result).toMatchObject({ following: true, lines: [{ level: "info", message: "ready" }] });
    const { url } = result.lines[0].fields as { url: string };
    expect((await fetch(`${url}/healthz`)).status).toBe(200);
    const { params } = await served.frames.told("runtime/log");
    expect(params).toMatchObject({ level: "debug", fields: { path: "/healthz", status: 200 } });
    served.process.stdin?.end();
    expect(await served.ended).toBe(0);
    for (const line of served.frames.text.trimEnd().split("\n"))
      expect(JSON.parse(line)).toHaveProperty("jsonrpc", "2.0");
    const said = served.stderr().trimEnd().split("\n");
    expect(said.map((line) => (JSON.parse(line) as { message: string }).message)).toEqual([
      ...["ready", "GET /healthz 200", "closing", "closed"],
    ]);
  });

  test("a client that does not read its output holds up nobody", async () => {
    const data = await temporaryFolder();
    const child = spawn(process.execPath, [PROGRAM, "serve", "--stdio", "--data", data, "--provider", "none"], {
      stdio: ["pipe", "pipe", "pipe"],
      env: { ...process.env, TIDINGS_OWN_TOKEN: "a-token-of-the-test" },
    });
    onTestFinished(() => {
      child.kill("SIGKILL");
    });
    child.stdout.pause();
    const told = await new Promise<string>((resolve) => child.stderr.on("data", (text) => resolve(String(text))));
    const url = /ready at (\S+)/.exec(told)?.[1] ?? "";
    const notify = (content: string) =>
      fetch(`${url}/rpc`, {
        method: "POST",
        headers: { authorization: "Bearer a-token-of-the-test" },
        body: JSON.stringify({ id: 1, method: "notification/notify", params: { content, target: "user" } }),
      });
    for (let n = 0; n < 150; n += 1) expect((await notify(`${n} ${"x".repeat(15_000)}`)).status).toBe(200);
    // It is told so, and the process ends with its input as ever.
    const frames = framesOf(child.stdout);
    child.stdout.resume();
    const ended = new Promise((resolve) => child.on("close", resolve));
    expect(await frames.frame(({ id }) => id === null)).toMatchObject({ error: { code: OVERLOADED } });
    expect((await notify("once more")).status).toBe(200);
    child.stdin.end();
    expect(await ended).toBe(0);
  });
});
