/**
 * The client as programs use it, on a server of its own: what it is told over connections that are cut, that fall silent and
 * that lose messages, over a server that is killed; what becomes of its calls; and that it runs where nothing of Node is.
 */
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { createContext, runInContext } from "node:vm";
import { gzipSync } from "node:zlib";
import fc from "fast-check";
import { rolldown } from "rolldown";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { WebSocket } from "ws";
import {
  AccessError,
  type ClientOptions,
  InvalidInputError,
  isMiss,
  SlowConsumerError,
  type StatusDetail,
  TidingsClient,
  TidingsError,
  type Told,
  UnreachableError,
} from "../../src/client/index.js";
import { CuttingProxy, StubbornClient } from "../support/cutting.js";
import { eventually, temporaryFolder } from "../support/folder.js";
import { endKeptServer, startKeptServer } from "../support/kept_server.js";
import { Server } from "../support/server.js";
import { TamperingProxy } from "../support/tampering.js";

const CLIENT = fileURLToPath(new URL("../../dist/client/index.js", import.meta.url));
const FAST = { min_ms: 1, max_ms: 20 };
const TRANSPORTS = ["websocket", "ndjson"] as const;

let proxy: CuttingProxy;
let server: Server;
/** How the proxy cuts; each test its own way. */
let cutAfter: () => number | undefined = () => undefined;

beforeAll(async () => {
  proxy = await CuttingProxy.start("http://127.0.0.1:1", () => cutAfter());
  const args = ["--provider", "rehearsal", "--heartbeat-ms", "200", "--allow-host", new URL(proxy.url).host];
  server = await startKeptServer(args);
  proxy.pointAt(server.url);
});
afterAll(async () => {
  proxy.stop();
  await endKeptServer(server);
});

let people = 0;
async function person() {
  people += 1;
  const { token, user_id, id } = await server.createToken({
    user_id: `c${people}`,
    scopes: ["read", "ack", "ingest", "agent"],
  });
  const call = <Result = Record<string, string>>(method: string, params: object = {}) =>
    server.call<Result>(method, params, token);
  const notify = (content: string) =>
    call<{ id: string; seq: number }>("notification/notify", { content, target: "user" });
  return { token, token_id: id, user_id, call, notify };
}

/** A client that is closed when the test is over. */
function client(options: Partial<ClientOptions> & { token: string }): TidingsClient {
  const one = new TidingsClient({ url: server.url, reconnect: FAST, ...options });
  onTestFinished(() => one.close());
  return one;
}

async function connected(options: Partial<ClientOptions> & { token: string }): Promise<TidingsClient> {
  const one = await TidingsClient.connect({ url: server.url, reconnect: FAST, ...options });
  onTestFinished(() => one.close());
  return one;
}

function recorded(one: TidingsClient): Told[] {
  const all: Told[] = [];
  one.listen((told) => all.push(told));
  return all;
}

const contentsOf = (all: readonly Told[]) =>
  all.flatMap((told) => (told.method === "notification/created" ? [told.params.notification.content] : []));
const until = <Value>(read: () => Value, wanted: (value: Value) => boolean) =>
  eventually(async () => read(), wanted, 60_000);

/** What was told, without what depends on the connection, and without states and pieces. */
function chainOf(all: readonly Told[]): { method: string; params: object }[] {
  return all.flatMap(({ method, params }) => {
    if (!("prev_seq" in params)) return [];
    const { prev_seq: _, ...rest } = params;
    return [{ method, params: rest }];
  });
}

describe("what is told", () => {
  test("500 connections that are cut: every notification once, and in order (I17)", async () => {
    const me = await person();
    const { journal_id, last_seq } = await server.call<{ journal_id: string; last_seq: number }>("runtime/status");
    const cursor = { journal_id, after_seq: last_seq };
    // Beside them one that is never cut, and that shares no code with them.
    const uncut = await CuttingProxy.start(server.url, () => undefined);
    const reference = new StubbornClient(uncut, { url: server.url, token: me.token, cursor });
    const followed = reference.follow(({ params }) => JSON.stringify(params).includes("the last word"));
    // Some in the middle of the handshake, some after many frames.
    const random = fc.sample(fc.tuple(fc.nat({ max: 7 }), fc.nat({ max: 4_000 })), { numRuns: 10_000, seed: 7 });
    cutAfter = () => {
      const [kind, bytes] = random.pop() ?? [1, 0];
      return kind === 0 ? 40 + (bytes % 200) : 240 + bytes;
    };
    let cuts = 0;
    const clients = TRANSPORTS.map((transport) => {
      const one = client({ url: proxy.url, token: me.token, transport, cursor });
      const counted = { all: recorded(one), cuts: 0, one };
      one.onStatus((status) => {
        if (status !== "waiting") return;
        cuts += 1;
        counted.cuts += 1;
      });
      return counted;
    });
    const { thread_id } = await me.call("thread/start");
    for (let n = 0; cuts < 500 || clients.some((each) => each.cuts < 150); n += 1) {
      await me.notify(`said ${n}`);
      // Told of twice, by one entry: as a notification, and in the conversation.
      await me.call("notification/notify", { content: `pill ${n}`, target: "user", thread_id });
      if (n % 10 === 0) await me.call(n % 20 === 0 ? "thread/pause" : "thread/resume", { thread_id });
    }
    cutAfter = () => undefined;
    await me.notify("the last word");
    await followed;
    for (const { all } of clients)
      await until(
        () => contentsOf(all).at(-1),
        (last) => last === "the last word",
      );
    expect(reference.problems).toEqual([]);
    for (const { all, one } of clients) {
      expect(chainOf(all)).toEqual(reference.told);
      expect(one.cursor?.after_seq).toBeGreaterThanOrEqual(Number(reference.told.at(-1)?.params["seq"]));
      one.close();
    }
  });

  test("a server that is killed and started again, thrice, while events come: each is told once, in order", async () => {
    const data = await temporaryFolder();
    const env = { TIDINGS_OWN_TOKEN: "a-token-that-stays-the-same" };
    let killed = await Server.start({ data, env });
    const { url, token } = killed;
    const args = ["--port", new URL(url).port];
    const clients = await Promise.all(TRANSPORTS.map((transport) => connected({ url, token, transport })));
    const told = clients.map(recorded);
    const { journal_id, seq } = await killed.call<{ journal_id: string; seq: number }>("initialize");
    // Whether it was answered or not: what it has done is in the journal.
    const attempt = async (method: string, params: object = {}) =>
      (await killed.rpc<Record<string, string>>(method, params).catch(() => undefined))?.result ?? {};
    const acknowledge = { revision: 1, action: "rendered" };
    let emitted = 0;
    let over = false;
    const producing = (async () => {
      for (; !over; emitted += 1) {
        const event = {
          type: "cli.build.finished",
          source: "ci",
          id: `build ${emitted}`,
          dedupe_key: `build ${emitted}`,
          payload: { message: `build ${emitted}` },
        };
        // With an id of its own it is sent again until it is answered.
        await eventually(
          async () => (await killed.post("/v1/events", event).catch(() => undefined))?.status,
          (status) => status === 202,
          60_000,
        );
        // A conversation, what is told of twice in it by one entry, and what changes.
        if (emitted % 4 !== 0) continue;
        const { thread_id } = await attempt("thread/start");
        const { id } = await attempt("notification/notify", { content: `pill ${emitted}`, target: "user", thread_id });
        await attempt("notification/ack", { id, ...acknowledge });
        if (emitted % 8 === 0) await attempt("thread/close", { thread_id });
      }
    })();
    for (let kills = 0; kills < 3; kills += 1) {
      const soFar = emitted;
      await until(
        () => emitted,
        (count) => count > soFar + 20,
      );
      await killed.kill();
      for (const one of clients)
        await until(
          () => one.status,
          (status) => status !== "open",
        );
      killed = await Server.start({ data, env, args });
      for (const one of clients)
        await until(
          () => one.status,
          (status) => status === "open",
        );
    }
    over = true;
    await producing;
    const stored: string[] = [];
    for (let after: string | null | undefined; after !== null; ) {
      const asked = { limit: 1_000, ...(after === undefined ? {} : { after }) };
      const page = await killed.call<{ notifications: { content: string }[]; next: string | null }>(
        "notification/list",
        asked,
      );
      stored.unshift(...page.notifications.map(({ content }) => content).toReversed());
      after = page.next;
    }
    expect(stored.filter((content) => !content.startsWith("pill"))).toHaveLength(emitted);
    // Told in one piece, by one that shares no code with them.
    const last = await killed.call<{ seq: number }>("notification/notify", {
      content: "the last word",
      target: "user",
    });
    const uncut = await CuttingProxy.start(url, () => undefined);
    const whole = new StubbornClient(uncut, { url, token, cursor: { journal_id, after_seq: seq } });
    await whole.follow(({ params }) => params["seq"] === last.seq);
    expect(whole.problems).toEqual([]);
    expect(new Set(whole.told.map(({ method }) => method))).toEqual(
      new Set([
        ...["notification/created", "notification/updated", "thread/started", "thread/closed"],
        ...["item/created", "item/updated"],
      ]),
    );
    for (const all of told) {
      await until(
        () => chainOf(all).at(-1)?.params,
        (params) => (params as { seq?: number } | undefined)?.seq === last.seq,
      );
      expect(chainOf(all)).toEqual(whole.told);
      expect(contentsOf(all)).toEqual([...stored, "the last word"]);
    }
    for (const one of clients) one.close();
    expect(await killed.stop()).toBe(0);
  });

  test.each(TRANSPORTS)(
    "over %s: what waits first, then what comes, and from a cursor only what came since",
    async (transport) => {
      const me = await person();
      await me.notify("waited");
      const one = await connected({ token: me.token, transport });
      expect(one.server).toMatchObject({ user_id: me.user_id, agent: { provider: "rehearsal" } });
      const all = recorded(one);
      await until(
        () => all.length,
        (count) => count >= 2,
      );
      expect(all.map(({ method }) => method)).toEqual(["notification/created", "inbox/counts"]);
      expect(all[0]?.cursor).toBeNull();
      expect(all[1]?.cursor).toEqual(one.cursor);
      await me.notify("came");
      await until(
        () => contentsOf(all),
        (contents) => contents.includes("came"),
      );
      const { cursor } = one;
      one.close();
      await me.notify("missed");
      const again = recorded(client({ token: me.token, transport, cursor }));
      await until(
        () => contentsOf(again),
        (contents) => contents.length > 0,
      );
      expect(contentsOf(again)).toEqual(["missed"]);
    },
  );

  test("what comes before anybody listens is for the first who does, however much it is", async () => {
    const me = await person();
    const { journal_id, seq } = await me.call<{ journal_id: string; seq: number }>("initialize");
    const cursor = { journal_id, after_seq: seq };
    const one = await connected({ token: me.token, cursor });
    const statuses: string[] = [];
    one.onStatus((status) => statuses.push(status));
    const heard = recorded(await connected({ token: me.token, cursor }));
    for (let hundreds = 0; hundreds < 12; hundreds += 1) {
      const calls = Array.from({ length: 100 }, (_, n) => ({
        id: n,
        method: "notification/notify",
        params: { content: `${100 * hundreds + n}`, target: "user" },
      }));
      expect((await server.post("/rpc", calls, me.token)).status).toBe(200);
    }
    await until(
      () => contentsOf(heard).length,
      (count) => count === 1_200,
    );
    // They were sent to both at once, and this is answered after them.
    await one.call("inbox/counts");
    expect(statuses).toEqual([]);
    const all = recorded(one);
    await until(
      () => contentsOf(all).length,
      (count) => count >= 1_200,
    );
    expect(contentsOf(all)).toEqual(contentsOf(heard));
    // They are more than are kept: they were asked for again.
    await until(
      () => one.status,
      (status) => status === "open",
    );
    expect(statuses).toEqual(["waiting", "connecting", "open"]);
  });

  test.each(TRANSPORTS)(
    "over %s: without a cursor, too, nothing is lost between connect and listen, however much it is",
    async (transport) => {
      const me = await person();
      await me.notify("waited");
      const one = await connected({ token: me.token, transport });
      const heard = recorded(await connected({ token: me.token, transport }));
      const { thread_id } = await one.call("thread/start", {});
      for (let hundreds = 0; hundreds < 12; hundreds += 1) {
        const calls = Array.from({ length: 100 }, (_, n) => ({
          id: n,
          method: "notification/notify",
          params: { content: `${100 * hundreds + n}`, target: "user", ...(n === 0 ? { thread_id } : {}) },
        }));
        expect((await server.post("/rpc", calls, me.token)).status).toBe(200);
      }
      await until(
        () => contentsOf(heard).length,
        (count) => count === 1_201,
      );
      await one.call("inbox/counts");
      expect(one.cursor).toBeNull();
      const all = recorded(one);
      await until(
        () => contentsOf(all).length,
        (count) => count >= 1_201,
      );
      expect(chainOf(all)).toEqual(chainOf(heard));
    },
  );

  test.each(TRANSPORTS)(
    "over %s: nor where the server is killed between the two, whether or not somebody saw what came meanwhile",
    async (transport) => {
      const data = await temporaryFolder();
      const env = { TIDINGS_OWN_TOKEN: "a-token-that-stays-the-same" };
      let killed = await Server.start({ data, env });
      const { url, token } = killed;
      const say = (content: string) => killed.call("notification/notify", { content, target: "user" });
      const [one, other] = await Promise.all([
        connected({ url, token, transport }),
        connected({ url, token, transport }),
      ]);
      const heard = recorded(other);
      const { thread_id } = await one.call("thread/start", {});
      const seen = await one.call("notification/notify", { content: "seen elsewhere", target: "user" });
      await one.call("notification/ack", { id: seen.id, revision: 1, action: "clicked" });
      await until(
        () => heard.map(({ method }) => method),
        (methods) => methods.includes("notification/updated"),
      );
      await killed.kill();
      killed = await Server.start({ data, env, args: ["--port", new URL(url).port] });
      await killed.call("thread/close", { thread_id });
      await say("after the cut");
      await until(
        () => one.status,
        (status) => status === "open",
      );
      const all = recorded(one);
      await until(
        () => [...contentsOf(all), ...contentsOf(heard)].filter((content) => content === "after the cut").length,
        (count) => count === 2,
      );
      expect(chainOf(all)).toEqual(chainOf(heard));
      expect(chainOf(all).map(({ method }) => method)).toEqual([
        ...["thread/started", "notification/created", "notification/updated", "thread/closed", "notification/created"],
      ]);
    },
  );

  test("what is not wanted is not told; what the agent was told only to those who ask", async () => {
    const me = await person();
    const quiet = await connected({
      token: me.token,
      conversation: false,
      opt_out: ["inbox/counts", "notification/updated"],
    });
    const observing = await connected({ token: me.token, observe: true, opt_out: ["turn/progress"] });
    const [few, many] = [recorded(quiet), recorded(observing)];
    const { thread_id } = await observing.call("thread/start", {});
    await me.call("notification/notify", { content: "for the agent", thread_id });
    const { turn_id } = await observing.call("turn/start", { thread_id, input: "hello" });
    await until(
      () => many,
      (all) => all.some(({ method }) => method === "turn/completed"),
    );
    const items = many.flatMap((told) => (told.method === "item/created" ? [told.params] : []));
    expect(items.map(({ item_type }) => item_type)).toContain("observation");
    expect(items.every((item) => item.turn_id === turn_id)).toBe(true);
    expect(many.map(({ method }) => method)).not.toContain("turn/progress");
    const { id } = await me.notify("for me");
    await me.call("notification/ack", { id, revision: 1, action: "clicked" });
    await me.notify("the end");
    await until(
      () => contentsOf(few),
      (contents) => contents.includes("the end"),
    );
    expect(few.map(({ method }) => method)).toEqual(["notification/created", "notification/created"]);
  });

  test("iterators are independent of each other, can be filtered, and end with the client", async () => {
    const me = await person();
    const one = await connected({ token: me.token });
    const every = one.notifications();
    const created = one.notifications({ methods: ["notification/created"] });
    const left = one.notifications();
    await me.notify("first");
    await me.notify("second");
    const contents: string[] = [];
    for await (const told of created) {
      if (told.method === "stream/reset") throw new Error("nothing was lost");
      contents.push(told.params.notification.content);
      if (contents.length === 2) break;
    }
    expect(contents).toEqual(["first", "second"]);
    expect(await left.next()).toMatchObject({ value: { method: "inbox/counts" } });
    await left.return?.();
    expect(await left.next()).toEqual({ done: true, value: undefined });
    one.close();
    const methods: string[] = [];
    for await (const { method } of every) methods.push(method);
    expect(methods.filter((method) => method === "notification/created")).toHaveLength(2);
    expect(await one.notifications().next()).toEqual({ done: true, value: undefined });
  });

  test("whoever takes too long ends with an error that says where it was; from there nothing is missing", async () => {
    const me = await person();
    const one = await connected({ token: me.token });
    const slow = one.notifications({ methods: ["notification/created"], buffer: 10 });
    const all = recorded(one);
    for (let n = 0; n < 30; n += 1) await me.notify(`${n}`);
    await until(
      () => contentsOf(all).length,
      (count) => count === 30,
    );
    const taken: Told[] = [];
    const error = await (async () => {
      for await (const told of slow) taken.push(told);
      return undefined;
    })().catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(SlowConsumerError);
    expect(contentsOf(taken)).toEqual(Array.from({ length: 10 }, (_, n) => `${n}`));
    const { cursor } = error as SlowConsumerError;
    const rest = recorded(client({ token: me.token, cursor }));
    await until(
      () => contentsOf(rest).length,
      (count) => count >= 20,
    );
    expect(contentsOf(rest)).toEqual(Array.from({ length: 20 }, (_, n) => `${n + 10}`));
    // Nobody else was ended by it.
    await me.notify("after");
    await until(
      () => contentsOf(all).at(-1),
      (last) => last === "after",
    );
  });

  test.each(TRANSPORTS)(
    "over %s: a cursor that is of no use is answered with a reset, and it goes on after it",
    async (transport) => {
      const me = await person();
      await me.notify("waited");
      const foreign = client({ token: me.token, transport, cursor: { journal_id: "another", after_seq: 3 } });
      const all = recorded(foreign);
      await until(
        () => all.map(({ method }) => method),
        (methods) => methods.includes("inbox/counts"),
      );
      expect(all[0]).toMatchObject({ method: "stream/reset", params: { reason: "other_journal" } });
      await me.notify("came");
      await until(
        () => contentsOf(all),
        (contents) => contents.length >= 2,
      );
      expect(contentsOf(all)).toEqual(["waited", "came"]);
      // Of an iterator that asked for something else, too.
      const reset = await client({ token: me.token, transport, cursor: { journal_id: "another", after_seq: 3 } })
        .notifications({ methods: ["turn/failed"] })
        .next();
      expect(reset).toMatchObject({ value: { method: "stream/reset" } });
    },
  );
});

describe("connections", () => {
  test.each(TRANSPORTS)("over %s: one on which nothing is heard is cut, and gone on with", async (transport) => {
    const me = await person();
    const one = await connected({ url: proxy.url, token: me.token, transport, silence_ms: 3_000 });
    const all = recorded(one);
    const errors: (Error | undefined)[] = [];
    one.onStatus((_status, { error }) => errors.push(error));
    // Heartbeats keep it open.
    const { cursor } = one;
    await server.call("notification/notify", { content: "for somebody else", target: "user" });
    await until(
      () => one.cursor?.after_seq ?? 0,
      (seq) => seq > (cursor?.after_seq ?? 0),
    );
    expect(errors).toEqual([]);
    proxy.silence();
    // Others would find them among those that are kept for further requests.
    onTestFinished(() => proxy.cut());
    await me.notify("not heard");
    await until(
      () => contentsOf(all),
      (contents) => contents.includes("not heard"),
    );
    expect(errors[0]?.message).toMatch(/has said nothing for too long/);
    expect(contentsOf(all)).toEqual(["not heard"]);
  });

  test("a message that does not arrive is seen by the next one, or by a heartbeat, and comes once", async () => {
    const me = await person();
    const tampering = await TamperingProxy.start(server.url);
    const one = await connected({ url: tampering.url, token: me.token });
    const all = recorded(one);
    const lose = (content: string) => {
      let lost = false;
      tampering.tamper = (message) => {
        if (lost || !message.includes(content)) return [message];
        lost = true;
        return [];
      };
    };
    lose("lost, and one follows");
    await me.notify("lost, and one follows");
    await me.notify("follows");
    await until(
      () => contentsOf(all).length,
      (count) => count >= 2,
    );
    expect(contentsOf(all)).toEqual(["lost, and one follows", "follows"]);
    expect(tampering.connections).toBe(2);
    lose("lost, and nothing follows");
    await me.notify("lost, and nothing follows");
    await until(
      () => contentsOf(all).length,
      (count) => count >= 3,
    );
    expect(tampering.connections).toBe(3);
    tampering.tamper = (message) => (message.includes("notification/") ? [message, message] : [message]);
    await me.notify("twice");
    await me.notify("and on");
    await until(
      () => contentsOf(all).at(-1),
      (last) => last === "and on",
    );
    expect(contentsOf(all)).toEqual([
      "lost, and one follows",
      "follows",
      "lost, and nothing follows",
      "twice",
      "and on",
    ]);
    expect(tampering.connections).toBe(3);
  });

  test("a server that goes away: it says so, waits, and comes back; or at once if it is told to", async () => {
    const data = await temporaryFolder();
    const env = { TIDINGS_OWN_TOKEN: "a-token-that-stays-the-same" };
    const first = await Server.start({ data, env });
    const { url, token } = first;
    const one = client({ url, token, reconnect: { min_ms: 3_600_000, max_ms: 3_600_000 } });
    const seen: [string, StatusDetail][] = [];
    const stop = one.onStatus((status, detail) => seen.push([status, detail]));
    expect(one.status).toBe("connecting");
    await until(
      () => one.status,
      (status) => status === "open",
    );
    expect(await first.stop()).toBe(0);
    await until(
      () => one.status,
      (status) => status === "waiting",
    );
    const [, detail] = seen.at(-1) ?? [];
    expect(detail).toMatchObject({
      attempt: 1,
      error: { message: expect.stringContaining("the server is going away") },
    });
    expect(detail?.retry_in_ms).toBeGreaterThanOrEqual(1_800_000);
    const second = await Server.start({ data, env, args: ["--port", new URL(url).port] });
    one.retryNow();
    expect(one.status).toBe("connecting");
    await until(
      () => one.status,
      (status) => status === "open",
    );
    expect(seen.map(([status]) => status)).toEqual(["open", "waiting", "connecting", "open"]);
    stop();
    one.close();
    expect(one.status).toBe("closed");
    expect(seen).toHaveLength(4);
    expect(await second.stop()).toBe(0);
  });

  test.each(TRANSPORTS)("over %s: a token that is refused is an error, and not a loop", async (transport) => {
    const url = proxy.url;
    const unknown = await TidingsClient.connect({ url, token: "x".repeat(20), transport }).catch(
      (error: unknown) => error,
    );
    expect(unknown).toBeInstanceOf(AccessError);
    expect(unknown).toMatchObject({ code: "unauthorized" });
    const writes = await server.createToken({ user_id: "w", scopes: ["ingest"] });
    const forbidden = await TidingsClient.connect({ url, token: writes.token, transport }).catch(
      (error: unknown) => error,
    );
    expect(forbidden).toMatchObject({ name: "AccessError", code: "forbidden" });
    const unnamed = await CuttingProxy.start(server.url, () => undefined);
    const elsewhere = await TidingsClient.connect({ url: unnamed.url, token: server.token, transport }).catch(
      (error: unknown) => error,
    );
    expect(elsewhere).toMatchObject({ code: "forbidden", message: expect.stringContaining("--allow-host") });
    unnamed.stop();
    const wrong = { journal_id: "", after_seq: -1 };
    const me = await person();
    const bad = await TidingsClient.connect({ url, token: me.token, transport, cursor: wrong }).catch(
      (error: unknown) => error,
    );
    expect(bad).toBeInstanceOf(InvalidInputError);
    const nobody = await TidingsClient.connect({ url: "http://127.0.0.1:9", token: me.token, transport }).catch(
      (error: unknown) => error,
    );
    expect(nobody).toBeInstanceOf(UnreachableError);
    expect(() => new TidingsClient({ url: "127.0.0.1:4747", token: me.token, transport })).toThrow(InvalidInputError);

    const one = await connected({ url, token: me.token, transport });
    const iterator = one.notifications({ methods: ["turn/failed"] });
    const statuses: string[] = [];
    one.onStatus((status) => statuses.push(status));
    await server.call("token/revoke", { id: me.token_id });
    await expect(iterator.next()).rejects.toThrow(AccessError);
    expect(one.status).toBe("closed");
    expect(statuses).toEqual(["closed"]);
    const { connections } = proxy;
    await expect(one.call("inbox/counts")).rejects.toThrow(AccessError);
    one.retryNow();
    expect(proxy.connections).toBe(connections);
  });
});

describe("calls", () => {
  test.each(TRANSPORTS)("over %s: answers, misses and errors are what the library has", async (transport) => {
    const me = await person();
    const one = await connected({ token: me.token, transport });
    const { id } = await one.call("notification/notify", { content: "hello", target: "user" });
    const { notifications } = await one.call("notification/list", { unread: true });
    expect(notifications.map(({ content }) => content)).toEqual(["hello"]);
    const miss = await one.call("notification/ack", { id: "nothing", revision: 1, action: "clicked" });
    expect(isMiss(miss) && miss.miss).toBe("not_found");
    const acked = await one.call("notification/ack", { id, revision: 1, action: "clicked" });
    expect(isMiss(acked) ? acked : acked.state).toBe("DELIVERED");
    await expect(one.call("thread/read", { thread_id: "nothing" })).rejects.toMatchObject({ code: "not_found" });
    await expect(one.call("notification/list", { limit: 0 })).rejects.toMatchObject({ field: "limit" });
    await expect(one.call("runtime/prune", { older_than_ms: 1 })).rejects.toThrow(AccessError);
    expect(await one.call("runtime/status")).toMatchObject({ status: "running", user_id: me.user_id });
    expect(await one.call("initialize", { conversation: false })).toMatchObject({ user_id: me.user_id });
  });

  test("what a call causes is told before it is answered, as the server sends it", async () => {
    const me = await person();
    const one = await connected({ token: me.token });
    const all = recorded(one);
    const { thread_id } = await one.call("thread/start");
    expect(all.map(({ method }) => method)).toContain("thread/started");
    await one.call("thread/pause", { thread_id });
    expect(all.map(({ method }) => method)).toContain("thread/paused");
  });

  test("many at once, and one that is larger than a message may be, harm no connection", async () => {
    const me = await person();
    const one = await connected({ token: me.token });
    const statuses: string[] = [];
    one.onStatus((status) => statuses.push(status));
    const answers = await Promise.all(Array.from({ length: 300 }, () => one.call("inbox/counts")));
    expect(answers.every(({ cap }) => cap > 0)).toBe(true);
    const data = { text: "ö".repeat(32_750) };
    await one.call("notification/notify", { content: "large", target: "user", data });
    const { notifications } = await one.call("notification/list");
    expect(notifications[0]?.data).toEqual(data);
    expect(statuses).toEqual([]);
  });

  test.each(TRANSPORTS)(
    "over %s: cut before its answer, what reads is asked again; what does not says that nobody knows",
    async (transport) => {
      const me = await person();
      const one = await connected({ url: proxy.url, token: me.token, transport });
      const all = recorded(one);
      proxy.silence();
      const lost = one.call("notification/notify", { content: "done, and not answered", target: "user" });
      const read = one.call("notification/list");
      await eventually(
        () => me.call<{ notifications: unknown[] }>("notification/list"),
        ({ notifications }) => notifications.length === 1,
      );
      proxy.cut();
      await expect(lost).rejects.toMatchObject({ name: "UnreachableError", why: "lost" });
      expect((await read).notifications.map(({ content }) => content)).toEqual(["done, and not answered"]);
      await until(
        () => contentsOf(all),
        (contents) => contents.length > 0,
      );
      // It was not sent again.
      expect((await one.call("notification/list")).notifications).toHaveLength(1);
    },
  );

  test("while no server is there: what reads waits for it, what does not was not done; after the end nothing is asked", async () => {
    const data = await temporaryFolder();
    const env = { TIDINGS_OWN_TOKEN: "a-token-that-stays-the-same" };
    const first = await Server.start({ data, env });
    const { url, token } = first;
    const one = await connected({ url, token });
    await first.kill();
    await until(
      () => one.status,
      (status) => status !== "open",
    );
    const read = one.call("inbox/counts");
    await expect(one.call("notification/notify", { content: "not done", target: "user" })).rejects.toMatchObject({
      name: "UnreachableError",
      why: "unsent",
    });
    await expect(one.call("inbox/counts", {}, { timeout_ms: 1 })).rejects.toMatchObject({ why: "late" });
    const second = await Server.start({ data, env, args: ["--port", new URL(url).port] });
    expect(await read).toMatchObject({ unread: 0 });
    const waiting = one.call("agent/collect", { thread_id: "t", point: "immediate", wait_ms: 60_000 });
    one.close();
    await expect(waiting).rejects.toThrow(TidingsError);
    await expect(one.call("inbox/counts")).rejects.toMatchObject({ code: "closed" });
    expect(await second.stop()).toBe(0);
  });

  test("one can be given up", async () => {
    const me = await person();
    const one = await connected({ token: me.token });
    const { thread_id } = await one.call("thread/start");
    const giveUp = new AbortController();
    const params = { thread_id, point: "immediate", wait_ms: 60_000 } as const;
    const waiting = one.call("agent/collect", params, { signal: giveUp.signal });
    giveUp.abort(new Error("enough"));
    await expect(waiting).rejects.toThrow("enough");
    await expect(one.call("agent/collect", params, { timeout_ms: 50 })).rejects.toMatchObject({ why: "late" });
    await expect(one.call("inbox/counts", {}, { signal: giveUp.signal })).rejects.toThrow("enough");
    expect(await one.call("inbox/counts")).toMatchObject({ unread: 0 });
  });

  test("whoever follows the log goes on following it over another connection", async () => {
    const one = await connected({ url: proxy.url, token: server.token });
    const all = recorded(one);
    const { following } = await one.call("runtime/logStream", { follow: true, limit: 0 });
    expect(following).toBe(true);
    const again = new Promise<void>((resolve) => {
      one.onStatus((status) => {
        if (status === "open") resolve();
      });
    });
    proxy.cut();
    await again;
    await eventually(
      async () => {
        await server.call("runtime/pause", { timeout_seconds: 60 });
        await server.call("runtime/resume");
        return all.flatMap((told) => (told.method === "runtime/log" ? [told.params.message] : []));
      },
      (lines) => lines.includes("the agent was paused"),
    );
  });
});

test("it takes the WebSocket that is there, as newer versions of Node have one", async () => {
  const me = await person();
  const script = `
    const { TidingsClient } = await import(${JSON.stringify(CLIENT)});
    const client = await TidingsClient.connect({ url: ${JSON.stringify(server.url)}, token: ${JSON.stringify(me.token)} });
    const told = client.notifications({ methods: ["notification/created"] });
    await client.call("notification/notify", { content: "said", target: "user" });
    console.log(typeof WebSocket, (await told.next()).value.params.notification.content);
    client.close();
    for (const [url, token] of [[${JSON.stringify(server.url)}, "x".repeat(20)], ["http://127.0.0.1:9", "none"]])
      await TidingsClient.connect({ url, token }).catch(({ name }) => console.log(name));`;
  const words = ["--experimental-websocket", "--no-warnings", "--input-type=module", "--eval", script];
  const { stdout } = await promisify(execFile)(process.execPath, words);
  expect(stdout).toBe("function said\nAccessError\nUnreachableError\n");
});

describe("in browsers", () => {
  /** As a page would have it: in few bytes, with nothing of Node. */
  async function bundle() {
    const built = await rolldown({ input: CLIENT, platform: "browser" });
    const { output } = await built.generate({
      format: "iife",
      name: "tidings",
      minify: true,
      codeSplitting: false,
    });
    await built.close();
    expect(output).toHaveLength(1);
    const [{ code, moduleIds }] = output;
    return { code, moduleIds };
  }

  test("it is small, and there is nothing of Node, of ws or of zod in it", async () => {
    const { code, moduleIds } = await bundle();
    expect(moduleIds.filter((id) => id.includes("node_modules"))).toEqual([]);
    expect(code).not.toMatch(/node:|require\(|\bBuffer\b|zod/);
    expect(gzipSync(code).length).toBeLessThan(12_000);
  });

  test.each(TRANSPORTS)("over %s it runs where nothing is but what every browser has", async (transport) => {
    const { code } = await bundle();
    const me = await person();
    const page = createContext({
      ...{ AbortController, AbortSignal, fetch, performance, ReadableStream, TextDecoder, TextEncoder },
      ...{ URL, URLSearchParams, WebSocket, clearTimeout },
      // As in browsers, a number.
      setTimeout: (task: () => void, ms: number) => Number(setTimeout(task, ms)),
      options: { url: proxy.url, token: me.token, transport, reconnect: FAST },
      contents: [],
    });
    runInContext(code, page);
    onTestFinished(() => runInContext("client.close()", page));
    await runInContext(
      `(async () => {
        globalThis.client = await tidings.TidingsClient.connect(options);
        client.listen(({ method, params }) => {
          if (method === "notification/created") contents.push(params.notification.content);
        });
        await client.call("notification/notify", { content: "said", target: "user" });
      })()`,
      page,
    );
    const contents = () => runInContext("contents.join()", page) as string;
    await until(contents, (said) => said === "said");
    proxy.cut();
    await me.notify("after the cut");
    await until(contents, (said) => said === "said,after the cut");
    const refused = await runInContext(
      `tidings.TidingsClient.connect({ ...options, token: "x".repeat(20) }).catch(({ name }) => name)`,
      page,
    );
    expect(refused).toBe("AccessError");
  });
});
