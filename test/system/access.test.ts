/** Who gets in, and what they get to see: tokens and scopes, other people's things, and pages from elsewhere. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { SCOPES, type Scope } from "../../src/domain/token.js";
import { METHODS } from "../../src/server/methods.js";
import { RawSocket, requestText, upgradeLines } from "../support/raw.js";
import { type Client, type RpcFailure, type RpcReply, Server, UpgradeRefused } from "../support/server.js";
import { eventually, run } from "./cli.js";

const UNAUTHORIZED = -32002;
const FORBIDDEN = -32003;
const NOT_FOUND = -32004;
const NO_METHOD = -32601;

/** No notification, event or token has it, though it has the form. */
const NOBODYS = "01a1e260-c4aa-784f-9711-0fffffffffff";

let server: Server;
beforeAll(async () => {
  server = await Server.start({ data: await mkdtemp(join(tmpdir(), "tidings-access-")), keep: true });
});
afterAll(async () => {
  const { data } = server;
  expect(await server.stop()).toBe(0);
  expect(server.stderr).toBe("");
  const audit = await run(["audit", "--data", data, "--json"]);
  expect(audit).toMatchObject({ code: 0, stderr: "" });
  await rm(data, { recursive: true, force: true });
});

describe("scopes", () => {
  /** Which scope opens which method, each by itself. Admin's opens all of them. */
  const OPENED_BY: Readonly<Record<string, readonly Scope[]>> = {
    initialize: ["read"],
    "stream/resume": ["read"],
    "event/emit": ["ingest"],
    "notification/notify": ["ingest"],
    "notification/list": ["read"],
    "notification/changed": ["read"],
    "notification/read": ["read"],
    "notification/ack": ["ack"],
    "notification/explain": ["read"],
    "notification/redrive": ["ack"],
    "inbox/counts": ["read"],
    "thread/start": ["agent"],
    "thread/list": ["read"],
    "thread/read": ["read"],
    "thread/pause": ["agent"],
    "thread/resume": ["agent"],
    "thread/close": ["agent"],
    "turn/start": ["agent"],
    "turn/steer": ["agent"],
    "turn/deliver": ["agent"],
    "turn/interrupt": ["agent"],
    "queue/list": ["read"],
    "queue/update": ["agent"],
    "queue/remove": ["agent"],
    "agent/collect": ["agent"],
    "agent/renew": ["agent"],
    "agent/settle": ["agent"],
    "agent/fail": ["agent"],
    "subscriber/list": ["read"],
    "subscriber/preview": ["read"],
    "stats/series": ["read"],
    "settings/get": ["read"],
    "settings/update": ["ack"],
    "mcp/list": [],
    "mcp/approve": [],
    "runtime/status": ["read"],
    "runtime/pause": [],
    "runtime/resume": [],
    "runtime/logStream": [],
    "runtime/prune": [],
    "token/create": [],
    "token/list": [],
    "token/revoke": [],
  };

  /** Good parameters, so that what is refused is refused for want of a scope. `who` marks what is stored. */
  const PARAMS: Readonly<Record<string, (who: string) => object>> = {
    "stream/resume": () => ({ journal_id: NOBODYS, after_seq: 0 }),
    "event/emit": (who) => ({ type: "cli.scope.tried", source: who }),
    "notification/notify": (who) => ({ content: who, target: "user" }),
    "notification/read": () => ({ id: NOBODYS }),
    "notification/ack": () => ({ id: NOBODYS, revision: 1, action: "rendered" }),
    "notification/explain": () => ({ id: NOBODYS }),
    "notification/redrive": () => ({ id: NOBODYS }),
    "thread/read": () => ({ thread_id: NOBODYS }),
    "thread/pause": () => ({ thread_id: NOBODYS }),
    "thread/resume": () => ({ thread_id: NOBODYS }),
    "thread/close": () => ({ thread_id: NOBODYS }),
    "turn/start": () => ({ thread_id: NOBODYS, input: "hello" }),
    "turn/steer": () => ({ thread_id: NOBODYS, input: "hello" }),
    "turn/deliver": () => ({ thread_id: NOBODYS, input: "hello" }),
    "turn/interrupt": () => ({ turn_id: NOBODYS }),
    "queue/list": () => ({ thread_id: NOBODYS }),
    "queue/update": () => ({ turn_id: NOBODYS, input: "hello" }),
    "queue/remove": () => ({ turn_id: NOBODYS }),
    "agent/collect": () => ({ thread_id: NOBODYS, point: "turn_start" }),
    "agent/renew": () => ({ carrier_id: NOBODYS }),
    "agent/settle": () => ({ carrier_id: NOBODYS }),
    "agent/fail": () => ({ carrier_id: NOBODYS }),
    "subscriber/preview": () => ({ subscriber_id: "cli_event" }),
    "settings/update": () => ({ disabled_subscribers: ["mcp_connection"] }),
    "mcp/approve": () => ({ server: "files", tool: "read" }),
    "runtime/prune": () => ({ older_than_ms: 1_000_000_000 }),
    "token/create": (who) => ({ scopes: ["read"], name: who, user_id: "made" }),
    "token/revoke": () => ({ id: NOBODYS }),
  };

  /** This server hosts no agent: to be told so is to be let in. */
  const codeOf = (error: RpcFailure | undefined) => (error?.data?.reason === "no_agent" ? undefined : error?.code);
  const paramsOf = (method: string, who: string) => PARAMS[method]?.(who) ?? {};
  const opens = (scope: Scope, method: string) => scope === "admin" || OPENED_BY[method]?.includes(scope) === true;

  test("every method has its row, and every row its method", () => {
    expect(Object.keys(OPENED_BY).sort()).toEqual(METHODS.map(({ name }) => name).sort());
  });

  test.each(SCOPES)("a token with the scope %s alone opens what the table says, over HTTP", async (scope) => {
    const user_id = `http ${scope}`;
    const { token } = await server.createToken({ user_id, scopes: [scope] });
    for (const { name } of METHODS) {
      const { status, error } = await server.rpc(name, paramsOf(name, user_id), token);
      if (opens(scope, name)) expect([undefined, NOT_FOUND], name).toContain(codeOf(error));
      else expect({ name, status, code: error?.code }).toEqual({ name, status: 403, code: FORBIDDEN });
    }
    expect(await server.rpc("no/such", {}, token)).toMatchObject({ error: { code: NO_METHOD } });
    const posted = await server.post("/v1/events", { type: "cli.scope.posted", source: user_id }, token);
    expect(posted.status).toBe(opens(scope, "event/emit") ? 202 : 403);

    // What was refused has left nothing.
    const { notifications } = await server.call<{ notifications: { content: string }[] }>("notification/list", {
      user_id,
    });
    expect(notifications.length).toBe(opens(scope, "event/emit") ? 3 : 0);
    const { tokens } = await server.call<{ tokens: { name: string | null }[] }>("token/list", { user_id: "made" });
    expect(tokens.some(({ name }) => name === user_id)).toBe(opens(scope, "token/create"));
  });

  test.each(SCOPES)("a token with the scope %s opens what the table says, over the WebSocket", async (scope) => {
    const user_id = `ws ${scope}`;
    if (!opens(scope, "inbox/counts")) {
      const { token } = await server.createToken({ user_id, scopes: [scope] });
      expect(await statusOfUpgrade(token)).toBe(403);
    }
    const scopes: Scope[] = scope === "admin" ? [scope] : [...new Set<Scope>([scope, "read"])];
    const { token } = await server.createToken({ user_id, scopes });
    const client = await server.connect({ token });
    for (const { name } of METHODS) {
      const { error } = await client.rpc(name, paramsOf(name, user_id));
      const open = scopes.some((one) => opens(one, name));
      if (open) expect([undefined, NOT_FOUND], name).toContain(codeOf(error));
      else expect({ name, code: error?.code }).toEqual({ name, code: FORBIDDEN });
    }
    expect((await client.rpc("no/such")).error?.code).toBe(NO_METHOD);
  });

  test("scopes do not add up to more than each of them opens", async () => {
    const { token } = await server.createToken({
      user_id: "many",
      scopes: SCOPES.filter((scope) => scope !== "admin"),
    });
    for (const [name, scopes] of Object.entries(OPENED_BY)) {
      const { error } = await server.rpc(name, paramsOf(name, "many"), token);
      if (scopes.length === 0) expect({ name, code: error?.code }).toEqual({ name, code: FORBIDDEN });
      else expect([undefined, NOT_FOUND], name).toContain(codeOf(error));
    }
  });

  test("without the scope critical a priority is lowered, and without directive an instruction is refused", async () => {
    const tokenOf = async (...scopes: Scope[]) =>
      (await server.createToken({ user_id: "grants", scopes: ["ingest", ...scopes] })).token;
    const urgent = { content: "now", target: "user", priority: "critical" };
    const instruction = { content: "do", target: "user", handler: "agent", directive: "Tell them." };
    const priorityFor = async (token: string) => {
      const { id } = await server.call<{ id: string }>("notification/notify", urgent, token);
      return (await server.call<{ priority: string }>("notification/read", { id })).priority;
    };
    const plain = await tokenOf();
    expect(await priorityFor(plain)).toBe("high");
    expect(await priorityFor(await tokenOf("critical"))).toBe("critical");
    expect(await server.rpc("notification/notify", instruction, plain)).toMatchObject({ error: { code: FORBIDDEN } });
    expect(await server.rpc("notification/notify", instruction, await tokenOf("directive"))).toMatchObject({
      status: 200,
      result: { channel: "agent" },
    });
  });
});

describe("tokens that are no good", () => {
  const expectShut = async (token: string | null) => {
    const { status, json, headers } = await server.post<RpcReply<unknown>>(
      "/rpc",
      { id: 1, method: "runtime/status" },
      token,
    );
    expect({ status, code: json.error?.code }).toEqual({ status: 401, code: UNAUTHORIZED });
    expect(headers.get("www-authenticate")).toBe("Bearer");
    expect((await server.post("/v1/events", { type: "cli.a.b", source: "x" }, token)).status).toBe(401);
    expect(await statusOfUpgrade(token)).toBe(401);
  };

  test("none, garbage, another scheme, a good one with one letter changed", async () => {
    await expectShut(null);
    await expectShut("garbage");
    const { token } = await server.createToken({ user_id: "ada", scopes: ["read"] });
    const last = token.endsWith("A") ? "B" : "A";
    await expectShut(`${token.slice(0, -1)}${last}`);
    await expectShut(`${token}${last}`);
    const basic = await server.request("/rpc", {
      method: "POST",
      body: { id: 1, method: "runtime/status" },
      token: null,
      headers: { authorization: `Basic ${token}` },
    });
    expect(basic.status).toBe(401);
    expect((await server.rpc("runtime/status", {}, token)).status).toBe(200);
    // Every method wants one.
    for (const { name } of METHODS)
      expect(await server.rpc(name, {}, null)).toMatchObject({ status: 401, error: { code: UNAUTHORIZED } });
  });

  test("a revoked one, whose open connections are closed", async () => {
    const made = await server.createToken({ user_id: "ada", scopes: ["read", "ingest"] });
    const other = await server.createToken({ user_id: "ada", scopes: ["read"] });
    const [client, stays] = await Promise.all([
      server.connect({ token: made.token }),
      server.connect({ token: other.token }),
    ]);
    await Promise.all([client.welcomed(), stays.welcomed()]);
    await server.call("token/revoke", { id: made.id });
    expect(await client.closed).toMatchObject({ code: 1008, reason: "the token was revoked" });
    await expectShut(made.token);
    expect((await stays.rpc("runtime/status")).error).toBeUndefined();
  });

  test("an expired one, whose open connections are closed", async () => {
    const { token } = await server.createToken({ user_id: "ada", scopes: ["read", "ingest"], ttl_ms: 1_500 });
    const client = await server.connect({ token });
    expect(await client.closed).toMatchObject({ code: 1008, reason: "the token has expired" });
    await expectShut(token);
  });

  test("a subprotocol brings a token, beside ours and not alone", async () => {
    const { token } = await server.createToken({ user_id: "ada", scopes: ["read"] });
    const client = await server.connect({ token: null, protocols: ["tidings.v1", `bearer.${token}`] });
    expect(client.socket.protocol).toBe("tidings.v1");
    expect((await client.rpc<{ user_id: string }>("runtime/status")).result?.user_id).toBe("ada");
    expect(await statusOfUpgrade(null, ["tidings.v1", "bearer.garbage"])).toBe(401);
    expect(await statusOfUpgrade(null, [`bearer.${token}`])).toBe(400);
  });
});

describe("tries without a good token", () => {
  test("are slowed down; good tokens of the same address are served meanwhile (T11)", async () => {
    const tried = await Server.start();
    const { token } = await tried.createToken({ user_id: "ada", scopes: ["read", "ingest"] });
    const statuses = new Set<number>();
    let slowed = await tried.rpc("runtime/status", {}, "wrong");
    for (let tries = 0; slowed.status !== 429; tries += 1) {
      if (tries > 5_000) throw new Error("nothing slows it down");
      statuses.add(slowed.status);
      slowed = await tried.rpc("runtime/status", {}, "wrong");
    }
    expect([...statuses]).toEqual([401]);
    expect(slowed.error).toMatchObject({ code: -32001, data: { retry_after_ms: expect.any(Number) } });
    const hammering = Array.from({ length: 40 }, () => tried.post("/v1/events", {}, "wrong"));
    for (let n = 0; n < 20; n += 1) {
      expect((await tried.rpc("runtime/status", {}, token)).status).toBe(200);
      expect((await tried.post("/v1/events", { type: "cli.a.b", source: "s" }, token)).status).toBe(202);
    }
    const client = await tried.connect({ token });
    await client.welcomed();
    for (const { status, headers } of await Promise.all(hammering)) {
      expect([401, 429]).toContain(status);
      if (status === 429) expect(Number(headers.get("retry-after"))).toBeGreaterThanOrEqual(1);
    }
    expect(tried.stderr).toBe("");
  });
});

describe("what is another's", () => {
  interface Items {
    readonly notifications: { id: string; state: string; event_ids: string[] }[];
  }
  const itemsOf = async (user_id: string) => {
    const { notifications } = await server.call<Items>("notification/list", { user_id, limit: 1_000 });
    return notifications;
  };

  /** By the host: something in every state that a user sees, and an open thread. */
  async function furnish(user_id: string): Promise<void> {
    const tell = (more: object) =>
      server.call("notification/notify", { content: `for ${user_id}`, user_id, target: "user", ...more });
    await tell({ subject: user_id });
    await tell({ handler: "agent", ttl_ms: 1 });
    await tell({ ttl_ms: 1, data: { of: user_id } });
    await tell({ target: "agent", thread_id: threadOf(user_id) });
    await server.call("event/emit", {
      type: "budget.token.exceeded",
      source: user_id,
      payload: { message: user_id },
      user_id,
      thread_id: threadOf(user_id),
      id: "same for all",
    });
  }

  const threadOf = (user_id: string) => `thread of ${user_id}`;

  /** Until the watchdog has done its part: one item escalated, one dead. */
  const settled = (user_id: string) =>
    eventually(async () => {
      const states = (await itemsOf(user_id)).map(({ state }) => state);
      return states.includes("ESCALATED") && states.includes("FAILED") ? true : undefined;
    });

  const WITH_ID: Readonly<Record<string, object>> = {
    "notification/read": {},
    "notification/explain": {},
    "notification/redrive": {},
    "notification/ack": { revision: 1, action: "clicked" },
  };

  test("a method that takes an id answers for another's as for one that is not there (I18, T7)", async () => {
    const scopes: Scope[] = SCOPES.filter((scope) => scope !== "admin");
    await Promise.all(["eve's victim", "eve"].map(furnish));
    await settled("eve's victim");
    const { token } = await server.createToken({ user_id: "eve", scopes });
    const client = await server.connect({ token });
    const items = await itemsOf("eve's victim");
    expect(new Set(items.map(({ state }) => state))).toEqual(new Set(["DISPATCHED", "ESCALATED", "FAILED", "PENDING"]));
    const before = JSON.stringify(items);
    const foreign = items.flatMap(({ id, event_ids }) => [id, ...event_ids]);
    for (const [method, more] of Object.entries(WITH_ID)) {
      const answers = async (id: string) => {
        const body = { jsonrpc: "2.0", id: 1, method, params: { id, ...more } };
        const { status, text } = await server.post("/rpc", body, token);
        const { error, result } = await client.rpc(method, { id, ...more });
        return { status, text: text.replaceAll(id, "ID"), ws: JSON.stringify({ error, result }).replaceAll(id, "ID") };
      };
      const absent = await answers(NOBODYS);
      expect(absent.text).toContain(`"code":${NOT_FOUND}`);
      for (const id of foreign) expect(await answers(id), method).toEqual(absent);
    }
    expect(JSON.stringify(await itemsOf("eve's victim"))).toBe(before);
    for (const { name } of METHODS)
      if (!(name in WITH_ID)) expect(idFieldOf(name), `${name} takes an id and has no row here`).toBe(false);
  });

  /** The ids of tokens are admin's alone; an event's `id` is its producer's own. */
  function idFieldOf(name: string): boolean {
    const { params } = METHODS.find((method) => method.name === name) ?? {};
    const shape = (params as { shape?: Record<string, unknown> } | undefined)?.shape ?? {};
    return "id" in shape && !name.startsWith("token/") && name !== "event/emit";
  }

  test("another's thread is as one that is not there", async () => {
    await Promise.all(["mal's victim", "mal"].map(furnish));
    await settled("mal's victim");
    const { token } = await server.createToken({ user_id: "mal", scopes: ["ingest", "read"] });
    const before = JSON.stringify(await itemsOf("mal's victim"));
    const answers = async (thread_id: string) => {
      const event = { type: "cli.a.b", source: "mal", thread_id };
      const calls = [
        server.post("/v1/events", event, token),
        server.post("/v1/events", [event], token),
        server.post("/rpc", { id: 1, method: "event/emit", params: event }, token),
        server.post("/rpc", { id: 1, method: "notification/notify", params: { content: "x", thread_id } }, token),
        server.post("/rpc", { id: 1, method: "notification/list", params: { thread_id } }, token),
      ];
      const replies = await Promise.all(calls);
      return replies.map(({ status, text }) => ({ status, text: text.replaceAll(thread_id, "THREAD") }));
    };
    const absent = await answers("thread of nobody");
    expect(absent.map(({ status }) => status)).toEqual([404, 202, 200, 200, 200]);
    for (const { text } of absent.slice(0, 4)) expect(text).toContain("not_found");
    expect(await answers(threadOf("mal's victim"))).toEqual(absent);
    expect(JSON.stringify(await itemsOf("mal's victim"))).toBe(before);
  });

  test("of many events, those that name another's user are refused alone", async () => {
    const { token } = await server.createToken({ user_id: "moe", scopes: ["ingest"] });
    const event = (user_id?: string) => ({ type: "cli.a.b", source: "moe", user_id });
    const { status, json } = await server.post<{ outcome?: string; error?: { code: string } }[]>(
      "/v1/events",
      [event(), event("moe's victim"), event("moe"), event("local")],
      token,
    );
    expect(status).toBe(202);
    expect(json.map(({ outcome, error }) => outcome ?? error?.code)).toEqual([
      "accepted",
      "forbidden",
      "accepted",
      "forbidden",
    ]);
    expect(await itemsOf("moe's victim")).toEqual([]);
    expect((await server.post("/v1/events", event("moe's victim"), token)).status).toBe(403);
  });

  const RUNS = Number(process.env["TIDINGS_ISOLATION_RUNS"] ?? 8);
  const SEED = Number(process.env["TIDINGS_ISOLATION_SEED"] ?? 20_260_103);
  const NAMES = ["ada", "bob", "cyd"] as const;
  const GRANTED = SCOPES.filter((scope) => scope !== "admin");

  const LONG_MS = 3_600_000;

  interface Person {
    /** Also the mark: whatever is stored for them bears it, and whoever else is shown it has found a leak. */
    readonly user_id: string;
    /** Theirs, and open. */
    readonly carrier_id: string;
    readonly grants: { token: string; id: string; scopes: readonly Scope[]; client: Client | undefined }[];
    /** What they were answered, without the words that they had sent themselves. */
    readonly shown: string[];
  }

  interface Step {
    readonly by: number;
    readonly grant: number;
    readonly method: string;
    readonly socket: boolean;
    /** Whose ids are named in it, counted from the one who takes it, and whose name. */
    readonly whose: number;
    readonly named: number | null;
    readonly pick: number;
  }

  const namesOf = (opens: (scope: Scope) => boolean) =>
    METHODS.filter(({ scope }) => opens(scope)).map(({ name }) => name);
  /** Tried more often, since what they are for is seldom there. */
  const SELDOM = ["notification/redrive", "notification/redrive"];

  const step: fc.Arbitrary<Step> = fc.record({
    by: fc.nat(NAMES.length - 1),
    grant: fc.nat(1),
    method: fc.oneof(
      { weight: 9, arbitrary: fc.constantFrom(...namesOf((scope) => scope !== "admin"), ...SELDOM, "POST /v1/events") },
      { weight: 1, arbitrary: fc.constantFrom(...namesOf((scope) => scope === "admin")) },
    ),
    socket: fc.boolean(),
    whose: fc.oneof(fc.constant(0), fc.nat(NAMES.length - 1)),
    named: fc.oneof({ weight: 3, arbitrary: fc.constant(null) }, fc.nat(NAMES.length - 1)),
    pick: fc.nat(1_000),
  });

  /** The parameters of a step; `ids` are those of the one whose are named. A method that is not here fails the test. */
  type Make = (mine: string, whose: Person, ids: Ids, pick: number) => object;
  interface Ids {
    readonly notifications: readonly string[];
    readonly events: readonly string[];
  }
  const at = <Value>(list: readonly Value[], pick: number, otherwise: Value): Value =>
    list[pick % Math.max(1, list.length)] ?? otherwise;
  const event: Make = (mine, whose, _ids, pick) => ({
    type: at(["cli.a.b", "tool.call.failure", "budget.token.exceeded"], pick, ""),
    source: mine,
    payload: { message: mine },
    ...(pick % 2 === 0 ? { thread_id: threadOf(whose.user_id) } : {}),
    ...(pick % 3 === 0 ? { id: "same for all", dedupe_key: "same for all" } : {}),
  });
  const words: Make = (mine, whose) => ({ thread_id: threadOf(whose.user_id), input: mine });
  const thread: Make = (_mine, whose) => ({ thread_id: threadOf(whose.user_id) });
  const turn: Make = (mine) => ({ turn_id: NOBODYS, input: mine });
  const MAKE: Readonly<Record<string, Make>> = {
    initialize: (_mine, _whose, _ids, pick) => ({ observe: pick % 2 === 0 }),
    "stream/resume": (_mine, _whose, _ids, pick) => ({ journal_id: NOBODYS, after_seq: pick }),
    "POST /v1/events": event,
    "event/emit": event,
    "notification/notify": (mine, whose, _ids, pick) => ({
      content: mine,
      target: pick % 2 === 0 ? "user" : "agent",
      handler: pick % 4 < 2 ? "system" : "agent",
      dedupe_key: "same for all",
      ...(pick % 3 === 0 ? { thread_id: threadOf(whose.user_id) } : {}),
    }),
    "notification/list": (_mine, whose, ids, pick) => ({
      ...(pick % 2 === 0 ? { thread_id: threadOf(whose.user_id) } : {}),
      ...(pick % 3 === 0 ? { after: String(Number.parseInt(at(ids.notifications, pick, "0").slice(-12), 16)) } : {}),
      ...(pick % 5 === 0 ? { unread: true } : {}),
      ...(pick % 7 === 0 ? { state: "FAILED" } : {}),
    }),
    "notification/changed": (_mine, _whose, _ids, pick) => (pick % 3 === 0 ? {} : { after: String(pick % 4) }),
    "notification/read": (_mine, _whose, ids, pick) => ({ id: at(ids.notifications, pick, NOBODYS) }),
    "notification/ack": (_mine, _whose, ids, pick) => ({
      id: at(ids.notifications, pick, NOBODYS),
      revision: pick % 4 === 0 ? 2 : 1,
      action: at(["rendered", "clicked", "dismissed"], pick, ""),
    }),
    "notification/explain": (_mine, _whose, ids, pick) => ({
      id: at([...ids.notifications, ...ids.events], pick, NOBODYS),
    }),
    "notification/redrive": (_mine, _whose, ids, pick) => ({ id: at(ids.notifications, pick, NOBODYS) }),
    "inbox/counts": () => ({}),
    "thread/start": (_mine, whose, _ids, pick) => (pick % 2 === 0 ? { thread_id: threadOf(whose.user_id) } : {}),
    "thread/list": () => ({}),
    "thread/read": (mine, whose, ids, pick) => ({ ...thread(mine, whose, ids, pick), observe: true, internal: true }),
    "thread/pause": thread,
    "thread/resume": thread,
    // One's own stays open, for the other calls.
    "thread/close": (mine, whose) => ({ thread_id: mine === whose.user_id ? NOBODYS : threadOf(whose.user_id) }),
    "turn/start": words,
    "turn/steer": words,
    "turn/deliver": words,
    "turn/interrupt": turn,
    "queue/list": thread,
    "queue/update": turn,
    "queue/remove": () => ({ turn_id: NOBODYS }),
    "agent/collect": (mine, whose, _ids, pick) => ({
      thread_id: threadOf(whose.user_id),
      point: at(["turn_start", "after_tool", "turn_end"], pick, ""),
      owner: mine,
      lease_ms: LONG_MS,
      auto_settle: pick % 3 === 0,
    }),
    "agent/renew": (_mine, whose) => ({ carrier_id: whose.carrier_id, lease_ms: LONG_MS }),
    "agent/settle": (_mine, whose, ids) => ({
      carrier_id: whose.carrier_id,
      acknowledged_ids: ids.notifications.slice(0, 2),
    }),
    "agent/fail": (_mine, whose) => ({ carrier_id: whose.carrier_id, reason: "tried" }),
    "subscriber/list": (_mine, _whose, _ids, pick) => ({ matches: pick % 11 }),
    "subscriber/preview": (mine, whose, ids, pick) => ({
      subscriber_id: at(["cli_event", "tool_failure"], pick, ""),
      ...(pick % 2 === 0 ? { event_id: at(ids.events, pick, NOBODYS) } : { event: event(mine, whose, ids, pick) }),
    }),
    "stats/series": (_mine, _whose, _ids, pick) => ({ step_ms: at([10_000, 3_600_000], pick, 0) }),
    "settings/get": () => ({}),
    "settings/update": (_mine, _whose, _ids, pick) => ({
      disabled_subscribers: pick % 2 === 0 ? ["mcp_connection"] : [],
    }),
    "mcp/list": () => ({}),
    "mcp/approve": () => ({ server: "files", tool: "read" }),
    "runtime/status": () => ({}),
    "runtime/pause": () => ({ timeout_seconds: 0.01 }),
    "runtime/resume": () => ({}),
    "runtime/logStream": () => ({ follow: true }),
    "runtime/prune": () => ({ older_than_ms: 0 }),
    "token/create": (_mine, whose) => ({ user_id: whose.user_id, scopes: ["admin"] }),
    "token/list": () => ({}),
    "token/revoke": (_mine, whose, _ids, pick) => ({
      id: at(
        whose.grants.map(({ id }) => id),
        pick,
        NOBODYS,
      ),
    }),
  };
  const NAMING = new Set(METHODS.filter(({ name }) => takesUser(name)).map(({ name }) => name));
  function takesUser(name: string): boolean {
    const { params } = METHODS.find((method) => method.name === name) ?? {};
    return "user_id" in ((params as { shape?: Record<string, unknown> } | undefined)?.shape ?? {});
  }

  test("nobody is shown anything of another's, in answers, errors, counts or frames (I18, T7)", async () => {
    expect(Object.keys(MAKE).sort()).toEqual([...METHODS.map(({ name }) => name), "POST /v1/events"].sort());
    const worlds = Array.from({ length: RUNS }, (_, run) => NAMES.map((name) => `<${name} ${run}>`));
    await Promise.all(worlds.flat().map(furnish));
    await Promise.all(worlds.flat().map(settled));
    const answered = new Map<string, number>();
    let pushes = 0;
    let world = 0;
    const some = fc.oneof(fc.constant([...GRANTED]), fc.subarray(GRANTED, { minLength: 1 }));
    const grants = fc.array(some, { minLength: 2 * NAMES.length, maxLength: 2 * NAMES.length });
    await fc.assert(
      fc.asyncProperty(
        grants,
        fc.array(step, { minLength: 60, maxLength: 100, size: "max" }),
        async (scopes, steps) => {
          const people = await Promise.all(
            (worlds[world] ?? []).map((user_id, n) => settle(user_id, scopes.slice(2 * n))),
          );
          world += 1;
          let things = await thingsOf(people);
          for (const one of steps) {
            const result = await take(one, people, things);
            if (result !== undefined) answered.set(one.method, (answered.get(one.method) ?? 0) + 1);
            const next = await thingsOf(people);
            for (const [n, { user_id }] of people.entries())
              if (n !== one.by) expect(next[n]?.text, `what ${user_id} has`).toBe(things[n]?.text);
            things = next;
          }
          pushes += await lookAtFrames(people);
          lookForLeaks(people, things);
        },
      ),
      { numRuns: RUNS, seed: SEED, endOnFailure: true },
    );
    // Without an agent there are no turns; what is another's then is in the tests of the hosted one.
    const ADMINS = ["runtime/prune", "runtime/pause", "runtime/resume", "runtime/logStream"];
    const never = ["token/", "mcp/", "turn/", "queue/update", "queue/remove", "thread/close", ...ADMINS];
    for (const name of Object.keys(MAKE)) {
      const reached = answered.get(name) ?? 0;
      if (never.some((start) => name.startsWith(start))) expect(reached, name).toBe(0);
      else expect(reached, name).toBeGreaterThan(0);
    }
    expect(pushes).toBeGreaterThan(RUNS * NAMES.length);
  });

  /** Tokens with these scopes, and a WebSocket with each that may have one. */
  async function settle(user_id: string, scopes: readonly (readonly Scope[])[]): Promise<Person> {
    const grants = await Promise.all(
      scopes.slice(0, 2).map(async (some) => {
        const { token, id } = await server.createToken({ user_id, scopes: some });
        const client = some.includes("read") ? await server.connect({ token }) : undefined;
        return { token, id, scopes: some, client };
      }),
    );
    const { carrier } = await server.call<{ carrier: { id: string } }>("agent/collect", {
      thread_id: threadOf(user_id),
      point: "turn_start",
      owner: user_id,
      lease_ms: LONG_MS,
    });
    return { user_id, carrier_id: carrier.id, grants, shown: [] };
  }

  interface Things extends Ids {
    readonly text: string;
  }

  function thingsOf(people: readonly Person[]): Promise<Things[]> {
    return Promise.all(
      people.map(async ({ user_id }) => {
        const items = await itemsOf(user_id);
        return {
          text: JSON.stringify([items, await server.call("settings/get", { user_id })]),
          notifications: items.map(({ id }) => id),
          events: items.flatMap(({ event_ids }) => event_ids),
        };
      }),
    );
  }

  /** Takes the step and keeps what was shown. Answers the result, if it was none but that. */
  async function take(one: Step, people: readonly Person[], things: readonly Things[]): Promise<unknown> {
    const owner = (one.by + one.whose) % people.length;
    const [by, whose, ids] = [people[one.by], people[owner], things[owner]];
    const grant = by?.grants[one.grant];
    const make = MAKE[one.method];
    if (by === undefined || whose === undefined || ids === undefined || grant === undefined || make === undefined)
      throw new Error("the step names nobody");
    const named = one.named === null ? undefined : people[one.named]?.user_id;
    const names = named !== undefined && (NAMING.has(one.method) || one.method === "POST /v1/events");
    const params = { ...make(by.user_id, whose, ids, one.pick), ...(names ? { user_id: named } : {}) };
    const keep = (text: string) => by.shown.push(withoutSent(text, params));
    if (one.method === "POST /v1/events") {
      const { status, text, json } = await server.post("/v1/events", params, grant.token);
      keep(text);
      if (names && named !== by.user_id) expect(status).toBe(403);
      return status === 202 ? json : undefined;
    }
    const { error, result } =
      one.socket && grant.client !== undefined
        ? await grant.client.rpc<Record<string, unknown>>(one.method, params)
        : await server.rpc<Record<string, unknown>>(one.method, params, grant.token);
    keep(JSON.stringify({ error, result }));
    if (names && named !== by.user_id) expect(error?.code, one.method).toBe(FORBIDDEN);
    if (one.method === "inbox/counts" && result !== undefined)
      expect(result).toEqual(await server.call("inbox/counts", { user_id: by.user_id }));
    return result;
  }

  /** An answer may repeat what it was asked about: an id, or a thread. */
  function withoutSent(text: string, params: object): string {
    const sent = Object.values(params).filter((value) => typeof value === "string" && value.length > 12);
    return sent.reduce((left: string, value: string) => left.replaceAll(value, ""), text);
  }

  /**
   * The last push comes to every client of its user, and so everything before it; the last counts are the user's own.
   * Answers how many pushes came.
   */
  async function lookAtFrames(people: readonly Person[]): Promise<number> {
    let pushes = 0;
    for (const { user_id, grants, shown } of people) {
      const { id } = await server.call<{ id: string }>("notification/notify", {
        content: `the last for ${user_id}`,
        user_id,
        target: "user",
      });
      for (const { client } of grants) {
        if (client === undefined) continue;
        await client.pushed("created", id);
        const counts = await server.call<{ unread: number }>("inbox/counts", { user_id });
        await client.until((frames) => {
          const last = frames.findLast(({ method }) => method === "inbox/counts")?.params;
          return last?.unread === counts.unread ? last : undefined;
        });
        pushes += client.pushes.length;
        for (const frame of client.frames) if (frame.method !== undefined) shown.push(JSON.stringify(frame));
        await client.close();
      }
    }
    return pushes;
  }

  function lookForLeaks(people: readonly Person[], things: readonly Things[]): void {
    for (const [n, { user_id, shown }] of people.entries()) {
      const all = shown.join("\n");
      for (const [m, other] of people.entries()) {
        if (m === n) continue;
        const secrets = [
          other.user_id,
          ...(things[m]?.notifications ?? []),
          ...(things[m]?.events ?? []),
          ...other.grants.flatMap(({ id, token }) => [id, token]),
        ];
        for (const secret of secrets)
          if (all.includes(secret))
            expect.fail(`${user_id} was shown ${secret}: ${shown.find((text) => text.includes(secret))}`);
      }
    }
  }
});

describe("where a request says that it goes, and where it comes from (T6)", () => {
  /** With PORT for the server's own. What Node itself refuses has 400. */
  const HOSTS: readonly (readonly [host: string, taken: boolean])[] = [
    ["127.0.0.1:PORT", true],
    ["localhost:PORT", true],
    ["LOCALHOST:PORT", true],
    ["LocalHost:PORT", true],
    ["[::1]:PORT", true],
    ["127.0.0.1:1", false],
    ["localhost:1", false],
    ["127.0.0.1", false],
    ["localhost", false],
    ["[::1]", false],
    ["localhost.:PORT", false],
    ["127.0.0.1.:PORT", false],
    ["localhost:PORT.", false],
    ["evil.example", false],
    ["evil.example:PORT", false],
    ["localhost.evil.example:PORT", false],
    ["127.0.0.1.evil.example:PORT", false],
    ["127.0.0.1.nip.example:PORT", false],
    ["evil.example/localhost:PORT", false],
    ["evil@localhost:PORT", false],
    ["localhost:PORT@evil.example", false],
    ["0.0.0.0:PORT", false],
    ["127.1:PORT", false],
    ["2130706433:PORT", false],
    ["[::ffff:127.0.0.1]:PORT", false],
    ["127.0.0.1:PORT, evil.example", false],
    ["127.0.0.1:PORT evil.example", false],
    ["", false],
  ];

  const ORIGINS: readonly (readonly [origin: string, taken: boolean])[] = [
    ["http://127.0.0.1:PORT", true],
    ["http://localhost:PORT", true],
    ["http://[::1]:PORT", true],
    ["HTTP://LOCALHOST:PORT", false],
    ["http://localhost:PORT/", false],
    ["http://localhost", false],
    ["http://127.0.0.1", false],
    ["http://localhost:1", false],
    ["http://localhost.:PORT", false],
    ["https://127.0.0.1:PORT", false],
    ["https://localhost:PORT", false],
    ["http://evil.example", false],
    ["http://evil.example:PORT", false],
    ["https://evil.example", false],
    ["http://localhost.evil.example:PORT", false],
    ["http://127.0.0.1.evil.example:PORT", false],
    ["http://localhost:PORT.evil.example", false],
    ["http://evil.example#http://localhost:PORT", false],
    ["http://user@localhost:PORT", false],
    ["http://localhost:PORT http://evil.example", false],
    ["http://0.0.0.0:PORT", false],
    ["null", false],
    ["file://", false],
    ["chrome-extension://abcdefghijklmnop", false],
    ["ws://localhost:PORT", false],
    ["localhost:PORT", false],
    ["", false],
  ];

  /** Whole sets of headers, and targets. */
  const SHAPES: readonly (readonly [name: string, lines: readonly string[], taken: boolean, target?: string])[] = [
    ["own host, no origin", ["Host: 127.0.0.1:PORT"], true],
    ["two hosts, the own first", ["Host: 127.0.0.1:PORT", "Host: evil.example"], false],
    ["two hosts, the own last", ["Host: evil.example", "Host: 127.0.0.1:PORT"], false],
    ["two hosts, written differently", ["HOST: 127.0.0.1:PORT", "hOsT: evil.example"], false],
    ["the own host twice", ["Host: 127.0.0.1:PORT", "Host: 127.0.0.1:PORT"], false],
    ["no host", [], false],
    ["a forwarded host", ["Host: evil.example", "X-Forwarded-Host: 127.0.0.1:PORT"], false],
    [
      "two origins, the own first",
      ["Host: 127.0.0.1:PORT", "Origin: http://127.0.0.1:PORT", "Origin: http://e.example"],
      false,
    ],
    [
      "two origins, the own last",
      ["Host: 127.0.0.1:PORT", "Origin: http://e.example", "Origin: http://127.0.0.1:PORT"],
      false,
    ],
    ["the whole address", ["Host: 127.0.0.1:PORT"], true, "http://127.0.0.1:PORTPATH"],
    ["the whole address of another", ["Host: 127.0.0.1:PORT"], false, "http://evil.examplePATH"],
    ["the whole address of another, as the host", ["Host: evil.example"], false, "http://evil.examplePATH"],
    ["the own address, another host", ["Host: evil.example"], false, "http://127.0.0.1:PORTPATH"],
    ["an address that begins as the own", ["Host: 127.0.0.1:PORT"], false, "http://127.0.0.1:PORT.evil.examplePATH"],
    ["an address with a name before it", ["Host: 127.0.0.1:PORT"], false, "http://127.0.0.1:PORT@evil.examplePATH"],
  ];

  const CASES = [
    ...HOSTS.map(([host, taken]) => ({ name: `Host: ${host}`, lines: [`Host: ${host}`], taken, target: "PATH" })),
    ...ORIGINS.map(([origin, taken]) => {
      const lines = ["Host: 127.0.0.1:PORT", `Origin: ${origin}`];
      return { name: `Origin: ${origin}`, lines, taken, target: "PATH" };
    }),
    ...SHAPES.map(([name, lines, taken, target = "PATH"]) => ({ name, lines, taken, target })),
  ];

  /** All that can be spoken to: an event, a call, and streams of every kind; and what is answered where it is taken. */
  const DOORS: readonly (readonly [verb: "GET" | "POST", path: string, taken: number])[] = [
    ["POST", "/v1/events", 202],
    ["POST", "/rpc", 200],
    ["POST", "/rpc/stream", 200],
    ["GET", "/rpc/stream", 200],
    ["GET", "/sse", 200],
    ["GET", "/ws", 101],
  ];
  const TAKEN = DOORS.map(([, , status]) => status);

  /** What the server answers to the same headers at each of its doors. */
  function statuses(at: Server, lines: readonly string[], target: string, source: string): Promise<number[]> {
    const { port } = new URL(at.url);
    const own = lines.map((line) => line.replaceAll("PORT", port));
    const origin = own.find((line) => line.startsWith("Origin: "))?.slice("Origin: ".length);
    const event = { type: "cli.door.tried", source };
    return Promise.all(
      DOORS.map(async ([verb, path, taken]) => {
        const asked = target.replaceAll("PORT", port).replace("PATH", path);
        const raw = await RawSocket.open(at.url);
        // Each that says something says an event: what is refused leaves none.
        const said = path === "/v1/events" ? event : { id: 1, method: "event/emit", params: event };
        const body = `${JSON.stringify(said)}\n`;
        const length = verb === "POST" ? [`Content-Length: ${body.length}`] : [];
        const head = [`Authorization: Bearer ${at.token}`, "Connection: close", ...length];
        if (path === "/ws") raw.write(requestText(upgradeLines(at.token, own, asked)));
        else raw.write(requestText([`${verb} ${asked} HTTP/1.1`, ...own, ...head], verb === "POST" ? body : ""));
        const { status, headers, body: answer } = await raw.response();
        // A page may read what is answered if it is let in, and only then.
        if (path !== "/ws") expect(headers["access-control-allow-origin"]).toBe(status === taken ? origin : undefined);
        expect(headers["access-control-allow-credentials"]).toBeUndefined();
        // Whoever is refused gets the refusal, and nothing after it; a call is refused as a call.
        if (status !== taken) {
          await raw.closed();
          if (status === 403)
            expect(JSON.parse(answer)).toMatchObject(
              path === "/rpc" ? { id: null, error: { code: FORBIDDEN } } : { error: { code: "forbidden" } },
            );
          if (path === "/ws") await expect(raw.frame()).rejects.toThrow('after ""');
          else expect(headers["content-type"] ?? "").not.toMatch(/ndjson|event-stream/);
        }
        raw.socket.destroy();
        return status;
      }),
    );
  }

  const eventsFrom = async (at: Server) => {
    const { notifications } = await at.call<{ notifications: { kind: string; source: string }[] }>(
      "notification/list",
      { limit: 1_000 },
    );
    return notifications.filter(({ kind }) => kind === "cli.door.tried").map(({ source }) => source);
  };

  for (const { name, lines, taken, target } of CASES) {
    test(`${name} is ${taken ? "taken" : "refused"}`, async () => {
      const answered = await statuses(server, lines, target, name);
      if (taken) expect(answered).toEqual(TAKEN);
      else for (const [n, status] of answered.entries()) expect([400, 403], DOORS[n]?.join(" ")).toContain(status);
      expect((await eventsFrom(server)).includes(name)).toBe(taken);
    });
  }

  /** What a browser asks before it sends what a page wants to send. */
  async function preflight(at: Server, path: string, lines: readonly string[]) {
    const { port } = new URL(at.url);
    const raw = await RawSocket.open(at.url);
    raw.write(
      requestText([
        `OPTIONS ${path} HTTP/1.1`,
        ...lines.map((line) => line.replaceAll("PORT", port)),
        "Connection: close",
      ]),
    );
    const { status, headers } = await raw.response();
    const told = Object.entries(headers).filter(([name]) => name.startsWith("access-control-") || name === "vary");
    return { status, told: Object.fromEntries(told) };
  }
  const WANTED = [
    "Access-Control-Request-Method: POST",
    "Access-Control-Request-Headers: authorization, CE-id, x-evil",
  ];

  test.each(ORIGINS)("what a page of Origin %s may send is told only if it is let in", async (origin, taken) => {
    const { status, told } = await preflight(server, "/rpc", ["Host: 127.0.0.1:PORT", `Origin: ${origin}`, ...WANTED]);
    if (taken)
      expect({ status, told }).toEqual({
        status: 204,
        told: {
          "access-control-allow-origin": origin.replace("PORT", new URL(server.url).port),
          "access-control-allow-methods": "POST",
          "access-control-allow-headers": "authorization, content-type, last-event-id, x-request-id, ce-id",
          "access-control-expose-headers": "x-request-id, retry-after",
          "access-control-max-age": "600",
          vary: "origin",
        },
      });
    else {
      expect([400, 403]).toContain(status);
      expect(told).toEqual({});
    }
  });

  test("of hooks, pages and what there is not nothing is told; without an Origin nobody asks for a page", async () => {
    const page = ["Host: 127.0.0.1:PORT", "Origin: http://localhost:PORT"];
    for (const [path, lines, status] of [
      ["/v1/hooks/none", [...page, ...WANTED], 405],
      ["/", [...page, ...WANTED], 405],
      ["/rpc", ["Host: 127.0.0.1:PORT", ...WANTED], 405],
      ["/rpc", ["Host: evil.example", "Origin: http://localhost:PORT", ...WANTED], 403],
    ] as const)
      expect(await preflight(server, path, lines), path).toEqual({ status, told: {} });
    expect((await preflight(server, "/none", [...page, ...WANTED])).status).toBe(404);
    expect((await preflight(server, "/rpc", page)).status).toBe(405);
  });

  test("a request of HTTP/1.0 without a host is refused too", async () => {
    for (const path of ["/healthz", "/"]) {
      const raw = await RawSocket.open(server.url);
      raw.write(`GET ${path} HTTP/1.0\r\n\r\n`);
      expect((await raw.response()).status).toBe(403);
    }
  });

  test("pages and health are for those who name it rightly", async () => {
    const { port } = new URL(server.url);
    for (const path of ["/", "/healthz", "/readyz"]) {
      for (const [host, status] of [
        [`localhost:${port}`, 200],
        ["evil.example", 403],
      ] as const) {
        const raw = await RawSocket.open(server.url);
        raw.write(requestText([`GET ${path} HTTP/1.1`, `Host: ${host}`]));
        expect((await raw.response()).status).toBe(status);
      }
    }
  });

  test("--allow-host and --allow-origin add names, and nothing beside them", async () => {
    const args = ["--allow-host", "Tidings.example, box.example:8443", "--allow-origin", "https://page.example"];
    const open = await Server.start({ args });
    const cases: readonly (readonly [lines: readonly string[], taken: boolean])[] = [
      [["Host: 127.0.0.1:PORT"], true],
      [["Host: tidings.example"], true],
      [["Host: TIDINGS.example"], true],
      [["Host: box.example:8443"], true],
      [["Host: box.example"], false],
      [["Host: box.example:PORT"], false],
      [["Host: tidings.example:1"], false],
      [["Host: sub.tidings.example"], false],
      [["Host: tidings.example.evil.example"], false],
      [["Host: page.example"], false],
      [["Host: tidings.example", "Origin: https://tidings.example"], true],
      [["Host: tidings.example", "Origin: http://tidings.example"], true],
      [["Host: 127.0.0.1:PORT", "Origin: https://page.example"], true],
      [["Host: box.example:8443", "Origin: https://page.example"], true],
      [["Host: 127.0.0.1:PORT", "Origin: http://page.example"], false],
      [["Host: 127.0.0.1:PORT", "Origin: https://page.example:8443"], false],
      [["Host: 127.0.0.1:PORT", "Origin: https://sub.page.example"], false],
      [["Host: 127.0.0.1:PORT", "Origin: https://page.example.evil.example"], false],
      [["Host: 127.0.0.1:PORT", "Origin: null"], false],
    ];
    for (const [n, [lines, taken]] of cases.entries())
      expect(await statuses(open, lines, "PATH", `case ${n}`), lines.join(", ")).toEqual(
        taken ? TAKEN : TAKEN.map(() => 403),
      );
    const expected = cases.flatMap(([, taken], n) => (taken ? [`case ${n}`] : []));
    expect(new Set(await eventsFrom(open))).toEqual(new Set(expected));
  });
});

async function statusOfUpgrade(token: string | null, protocols: readonly string[] = []): Promise<number> {
  try {
    await server.connect({ token, protocols });
  } catch (error) {
    if (error instanceof UpgradeRefused) return error.status;
    throw error;
  }
  return 101;
}
