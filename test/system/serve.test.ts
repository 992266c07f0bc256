/** The server as a process: from an event of one program to the acknowledgement of another, its life, and its tokens. */
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { createServer, type IncomingMessage, request } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { networkInterfaces } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { eventually, openTidings, temporaryFolder } from "../support/folder.js";
import { type Client, type Frame, Server, UpgradeRefused } from "../support/server.js";
import { type Ended, ndjson, type Row, run } from "./cli.js";

const NO_TIME = "2026-11-16T00:00:00.000Z";

/** A command on the server's data folder, in a process of its own. */
function tidings(server: Pick<Server, "data">, ...words: string[]): Promise<Ended> {
  return run([...words, "--data", server.data]);
}

async function asJson<Answer = Row>(server: Pick<Server, "data">, ...words: string[]): Promise<Answer> {
  const { code, stdout, stderr } = await tidings(server, ...words, "--json");
  if (code !== 0) throw new Error(`tidings ${words.join(" ")} ended with ${code}: ${stdout}${stderr}`);
  return JSON.parse(stdout) as Answer;
}

type Kept = Row & { event_ids: string[] };

async function rows(server: Server): Promise<Kept[]> {
  return (await server.call<{ notifications: Kept[] }>("notification/list", { limit: 1_000 })).notifications;
}

async function storyOf(server: Server, id: string): Promise<string> {
  const { story } = await server.call<{ story: { text: string }[] }>("notification/explain", { id });
  return story.map(({ text }) => text).join("\n");
}

/** What is in the folder of a server that has ended, which must be sound. */
async function leftBy(server: Server): Promise<Kept[]> {
  const left = await openTidings({ data: server.data });
  expect(await left.audit()).toMatchObject({ ok: true, problems: [] });
  const { notifications, next } = await left.list({ limit: 1_000 });
  expect(next).toBe(null);
  return notifications;
}

function notify(server: Server, input: object, token?: string): Promise<Row> {
  return server.call("notification/notify", input, token);
}

/** The counts that the client was told last, once they are these. */
function counts(client: Client, unacknowledged: number, unread: number): Promise<Frame> {
  return client.until((frames) => {
    const last = frames.findLast(({ method }) => method === "inbox/counts");
    const { params } = last ?? {};
    return params?.unacknowledged === unacknowledged && params.unread === unread ? last : undefined;
  });
}

/** Every push names the one before it, and the first names none. */
function expectChain(client: Client): void {
  let before: number | null = null;
  for (const { params } of client.pushes) {
    expect(params?.prev_seq).toBe(before);
    expect(params?.journal_id).toMatch(/^[0-9a-f-]{36}$/);
    expect(params?.seq).toBeGreaterThanOrEqual(before ?? 1);
    before = params?.seq ?? null;
  }
}

describe("from end to end", () => {
  test("an event of one process is shown to two clients, and one acknowledgement settles it for both", async () => {
    const server = await Server.start();
    const [phone, desk] = [await server.connect(), await server.connect()];
    await Promise.all([counts(phone, 0, 0), counts(desk, 0, 0)]);

    const emitted = await asJson<{ id: string; seq: number; matches: { notification: Row }[] }>(
      server,
      ...["emit", "cli.build.finished", "--source", "ci", "--severity", "warning", "--message", "2 tests are red"],
    );
    const id = emitted.matches[0]?.notification.id ?? "";
    for (const client of [phone, desk]) {
      const { params } = await client.pushed("created", id);
      expect(params).toEqual({
        notification: expect.objectContaining({ id, state: "DISPATCHED", channel: "inbox", revision: 1, count: 1 }),
        seq: emitted.seq,
        prev_seq: null,
        journal_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      });
      expect(params?.notification?.content).toContain("2 tests are red");
      await counts(client, 1, 1);
    }

    const acknowledged = await phone.rpc("notification/ack", { id, revision: 1, action: "rendered" });
    expect(acknowledged.result).toMatchObject({ id, state: "DELIVERED", action: "rendered", read_at: null });
    for (const client of [phone, desk]) {
      const { params } = await client.pushed("updated", id);
      expect(params).toMatchObject({
        notification: { id, state: "DELIVERED", action: "rendered" },
        prev_seq: emitted.seq,
      });
      await counts(client, 0, 1);
    }
    await desk.rpc("notification/ack", { id, revision: 1, action: "dismissed" });
    await Promise.all([counts(phone, 0, 0), counts(desk, 0, 0)]);
    for (const client of [phone, desk]) expectChain(client);

    const listed = await tidings(server, "ledger", "--json");
    expect(ndjson(listed.stdout)).toMatchObject([{ id, state: "DELIVERED", action: "dismissed" }]);
    const told = await asJson<{ story: { text: string }[] }>(server, "explain", id);
    const story = told.story.map(({ text }) => text).join("\n");
    expect(story).toContain(`Event ${emitted.id}: cli.build.finished from ci, severity warning, for user local.`);
    expect(story).toContain("Acknowledged by the user (rendered). [LOCKED, DELIVERED]");
    expect(story).toContain("The user dismissed it.");
  });

  test("an agent's item that nobody takes waits as an escalated one for the client that connects later", async () => {
    const server = await Server.start();
    const sent = await notify(server, { content: "The deploy failed", target: "user", handler: "agent", ttl_ms: 50 });
    expect(sent).toMatchObject({ state: "PENDING", channel: "agent" });
    await eventually(
      () => server.call<Row>("notification/read", { id: sent.id }),
      ({ state }) => state === "ESCALATED",
    );

    const client = await server.connect();
    await counts(client, 1, 1);
    const { params } = await client.pushed("created", sent.id);
    expect(params).toMatchObject({
      notification: { state: "ESCALATED", channel: "inbox", reason: "deadline", content: "The deploy failed" },
      prev_seq: null,
    });
    expect(
      (await client.rpc("notification/ack", { id: sent.id, revision: 1, action: "clicked" })).result,
    ).toMatchObject({
      state: "DELIVERED",
    });
    await counts(client, 0, 0);
    expect(await rows(server)).toMatchObject([{ id: sent.id, state: "DELIVERED", channel: "inbox" }]);
    const story = await storyOf(server, sent.id);
    expect(story).toMatch(/Taken to the user on the channel inbox, .*: no agent took it before its deadline\./);
    expect(story).toContain("Acknowledged by the user (clicked).");
  });

  test("what escalates while a client is connected comes to it as a new one", async () => {
    const server = await Server.start();
    const client = await server.connect();
    await client.welcomed();
    const { id } = await notify(server, { content: "Nobody told you", target: "user", handler: "agent", ttl_ms: 50 });
    expect((await client.pushed("created", id)).params?.notification).toMatchObject({ state: "ESCALATED" });
    expect(client.pushes).toHaveLength(1);
  });

  test("an old revision does not settle a newer text", async () => {
    const server = await Server.start();
    const client = await server.connect();
    const first = { content: "1 test is red", target: "user", dedupe_key: "build", dedupe_window_ms: 60_000 };
    const { id } = await notify(server, first);
    await client.pushed("created", id);
    await notify(server, { ...first, content: "2 tests are red" });
    const { params } = await client.pushed("updated", id);
    expect(params?.notification).toMatchObject({
      revision: 2,
      count: 2,
      content: "2 tests are red",
      state: "DISPATCHED",
    });

    const stale = { code: -32009, data: { code: "conflict", reason: "stale_revision", id } };
    for (const from of [client, server])
      expect((await from.rpc("notification/ack", { id, revision: 1, action: "clicked" })).error).toMatchObject(stale);
    expect(await tidings(server, "ack", id, "--revision", "1")).toMatchObject({ code: 4 });
    expect(await rows(server)).toMatchObject([{ id, state: "DISPATCHED", revision: 2 }]);
    const settled = await client.rpc("notification/ack", { id, revision: 2, action: "clicked" });
    expect(settled.result).toMatchObject({ state: "DELIVERED", revision: 2 });
  });

  test("a repeat of the same words is an update with a higher count and the same revision", async () => {
    const server = await Server.start();
    const client = await server.connect();
    const input = { content: "The disk is nearly full", target: "user", dedupe_key: "disk", dedupe_window_ms: 60_000 };
    const { id } = await notify(server, input);
    for (const count of [2, 3]) {
      await notify(server, input);
      const { params } = await client.frame((frame) => frame.params?.notification?.count === count);
      expect(params?.notification).toMatchObject({ id, count, revision: 1 });
    }
    expect(client.pushes.map(({ method }) => method)).toEqual([
      "notification/created",
      "notification/updated",
      "notification/updated",
    ]);
    expectChain(client);
    await counts(client, 1, 1);
  });

  test("what is the agent's alone is not pushed, neither as it comes nor at connect", async () => {
    const server = await Server.start();
    const early = await server.connect();
    await early.welcomed();
    for (const handler of ["agent", "system"])
      await notify(server, { content: "for the agent", target: "agent", handler });
    await notify(server, { content: "to be told by the agent", target: "user", handler: "agent" });
    const { id } = await notify(server, { content: "for the user", target: "user" });
    await early.pushed("created", id);
    const late = await server.connect();
    await counts(late, 1, 1);
    for (const client of [early, late])
      expect(client.pushes.map(({ params }) => params?.notification?.id)).toEqual([id]);
    expect(await rows(server)).toHaveLength(4);
  });

  test("an item of a conversation is shown on its floor", async () => {
    const server = await Server.start();
    const client = await server.connect();
    const { id } = await notify(server, { content: "The upload is done", target: "user", thread_id: "chat-1" });
    const { params } = await client.pushed("created", id);
    expect(params?.notification).toMatchObject({ channel: "floor", thread_id: "chat-1", state: "DISPATCHED" });
    await counts(client, 1, 1);
    const late = await server.connect();
    expect((await late.pushed("created", id)).params?.notification).toMatchObject({ channel: "floor" });
    await late.rpc("notification/ack", { id, revision: 1, action: "clicked" });
    expect((await client.pushed("updated", id)).params?.notification).toMatchObject({ state: "DELIVERED" });
  });

  test("at connect come the newest 100, oldest first, and the counts of all; what follows goes on from there", async () => {
    const server = await Server.start();
    const events = Array.from({ length: 130 }, (_, n) => ({
      type: "cli.a.b",
      source: "test",
      payload: { message: `${n}` },
    }));
    const { status, json } = await server.post<{ seq: number; matches: { notification: Row }[] }[]>(
      "/v1/events",
      events,
    );
    expect(status).toBe(202);
    const ids = json.map(({ matches }) => matches[0]?.notification.id);

    const client = await server.connect();
    const told = await client.welcomed();
    expect(told.params).toMatchObject({ unacknowledged: 130, unread: 130, seq: json.at(-1)?.seq });
    expect(client.frames.indexOf(told), "the counts come after the items").toBe(100);
    expect(client.pushes.map(({ params }) => params?.notification?.id)).toEqual(ids.slice(30));
    expect(client.pushes.every(({ method }) => method === "notification/created")).toBe(true);

    const { id } = await notify(server, { content: "one more", target: "user" });
    expect((await client.pushed("created", id)).params?.prev_seq).toBe(json.at(-1)?.seq);
    expectChain(client);
    const page = await server.call<{ notifications: Row[] }>("notification/list", { user_id: "local", limit: 200 });
    expect(page.notifications, "the rest is in the list").toHaveLength(131);
  });

  test("each connection has a chain of its own", async () => {
    const server = await Server.start();
    const first = await server.connect();
    const one = await notify(server, { content: "one", target: "user" });
    await first.pushed("created", one.id);
    const second = await server.connect();
    await second.pushed("created", one.id);
    await second.rpc("notification/ack", { id: one.id, revision: 1, action: "clicked" });
    const third = await server.connect();
    await third.welcomed();
    const two = await notify(server, { content: "two", target: "user" });
    for (const client of [first, second, third]) {
      await client.pushed("created", two.id);
      expectChain(client);
    }
    expect([first, second, third].map(({ pushes }) => pushes.length)).toEqual([3, 3, 1]);
  });
});

/** Begins an event's request; what is returned sends the rest of it, and answers what the server does. */
async function beginRequest(server: Server): Promise<() => Promise<{ status: number; body: string }>> {
  const body = JSON.stringify({ type: "cli.a.b", source: "slow", payload: { message: "under way" } });
  const begun = request(new URL("/v1/events", server.url), {
    method: "POST",
    headers: { authorization: `Bearer ${server.token}`, "content-length": String(body.length) },
  });
  const answered = new Promise<{ status: number; body: string }>((resolve, reject) => {
    begun.on("error", reject);
    begun.on("response", (response: IncomingMessage) => {
      let text = "";
      response.setEncoding("utf8").on("data", (chunk: string) => {
        text += chunk;
      });
      response.on("end", () => resolve({ status: response.statusCode ?? 0, body: text }));
    });
  });
  answered.catch(() => {});
  await new Promise((resolve) => begun.write(body.slice(0, 20), resolve));
  // What is asked for later is answered: so what was sent earlier has arrived.
  await server.get("/healthz");
  return () => {
    begun.end(body.slice(20));
    return answered;
  };
}

/** The server has begun to end: it has taken its file away. */
async function ending(server: Server): Promise<void> {
  await eventually(
    async () => existsSync(join(server.data, "server.json")),
    (exists) => !exists,
  );
}

/** A connection that asks for nothing; undefined where none is made. */
function opened(server: Server): Promise<Socket | undefined> {
  const { hostname, port } = new URL(server.url);
  return new Promise((resolve) => {
    const socket = connect(Number(port), hostname);
    socket.on("connect", () => resolve(socket));
    socket.on("error", () => resolve(undefined));
  });
}

describe("the life of the process", () => {
  test.each(["SIGTERM", "SIGINT"] as const)("it says that it is ready, and %s ends it in order", async (signal) => {
    const server = await Server.start();
    expect(server.stdout).toBe(`Tidings is ready: ${server.url}/#token=${server.token}\n`);
    expect(server.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
    const file = join(server.data, "server.json");
    expect(JSON.parse(readFileSync(file, "utf8"))).toEqual({ url: server.url, token: server.token, pid: server.pid });
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(await server.get("/healthz", null)).toMatchObject({ status: 200, json: { status: "ok", version: "0.1.0" } });
    expect(await server.get("/readyz", null)).toMatchObject({ status: 200, json: { status: "ready" } });
    expect((await server.get("/", null)).text).toContain("<title>Tidings</title>");
    const status = await server.call("runtime/status");
    expect(status).toMatchObject({ status: "running", pid: server.pid, user_id: "local", connections: 0 });
    const client = await server.connect();
    await client.welcomed();

    expect(await server.stop(signal)).toBe(0);
    expect(await client.closed).toEqual({ code: 1001, reason: "the server is going away" });
    expect(existsSync(file)).toBe(false);
    expect(server.stdout, "nothing but the ready line").toMatch(/^[^\n]*\n$/);
    expect(server.stderr).toBe("");
    expect(server.farewell).toEqual(["tidings: stopping: what is under way is answered first\n", "tidings: stopped\n"]);
    expect(await leftBy(server)).toEqual([]);
  });

  test("a request that is under way when it ends is answered; nothing else is waited for, and a signal is enough", async () => {
    const server = await Server.start();
    const finish = await beginRequest(server);
    const silent = await opened(server);
    const left = new Promise((resolve) => silent?.on("close", resolve));
    server.process.kill("SIGTERM");
    await ending(server);
    await left;
    expect(await opened(server), "nobody else comes in").toBe(undefined);
    for (const signal of ["SIGTERM", "SIGINT", "SIGINT"] as const) server.process.kill(signal);
    const { status, body } = await finish();
    expect(status).toBe(202);
    expect(await server.ended).toBe(0);
    const { id } = JSON.parse(body) as { id: string };
    expect(await leftBy(server)).toMatchObject([{ event_ids: [id] }]);
  });

  test("of events that are being posted when it ends, each is stored and answered, or gets an error", async () => {
    const server = await Server.start();
    const answered: string[] = [];
    let enough = () => {};
    const manyAnswered = new Promise<void>((resolve) => {
      enough = resolve;
    });
    const refusals: unknown[] = [];
    const producer = async (source: string) => {
      for (let n = 0; ; n += 1) {
        try {
          const { status, json } = await server.post<{ id: string }>("/v1/events", {
            type: "cli.a.b",
            source,
            id: `${n}`,
          });
          if (status !== 202) throw new Error(`answered ${status}`);
          answered.push(json.id);
          if (answered.length >= 100) enough();
        } catch (error) {
          refusals.push(error);
          return n;
        }
      }
    };
    const producers = Array.from({ length: 16 }, (_, number) => producer(`producer ${number}`));
    await manyAnswered;
    expect(await server.stop()).toBe(0);
    const accepted = (await Promise.all(producers)).reduce((sum, n) => sum + n, 0);
    expect(refusals).toHaveLength(16);
    expect(accepted).toBe(answered.length);

    const stored = new Set((await leftBy(server)).flatMap(({ event_ids }) => event_ids));
    expect(answered.filter((id) => !stored.has(id))).toEqual([]);
  });

  test("a second one on the same folder is refused, and the first goes on", async () => {
    const server = await Server.start();
    const second = await run(["serve", "--port", "0", "--data", server.data]);
    expect(second).toEqual({
      code: 5,
      stdout: "",
      stderr: `tidings: ${server.data} is in use: its server runs at ${server.url}. Use that one, or end it.\n`,
    });
    const asked = await run(["serve", "--port", "0", "--data", server.data, "--json"]);
    expect(asked.code).toBe(5);
    expect(JSON.parse(asked.stdout)).toMatchObject({ error: { code: "store_busy" } });
    expect(JSON.parse(readFileSync(join(server.data, "server.json"), "utf8"))).toMatchObject({ pid: server.pid });
    expect(await server.get("/readyz")).toMatchObject({ status: 200 });
  });

  test("after a kill its file is in nobody's way: commands work on the folder, and another server starts", async () => {
    const killed = await Server.start();
    const { id } = await notify(killed, { content: "kept", target: "user" });
    expect(await killed.stop("SIGKILL")).toBe("SIGKILL");
    const file = join(killed.data, "server.json");
    expect(JSON.parse(readFileSync(file, "utf8"))).toMatchObject({ pid: killed.pid });

    expect(await asJson(killed, "inbox")).toMatchObject({ notifications: [{ id }] });
    expect(await asJson(killed, "emit", "cli.a.b")).toMatchObject({ outcome: "accepted" });
    expect((await tidings(killed, "doctor")).stdout).toContain("none runs");

    const next = await Server.start({ data: killed.data });
    expect(JSON.parse(readFileSync(file, "utf8"))).toEqual({ url: next.url, token: next.token, pid: next.pid });
    expect(next.token, "so that pages and clients go on").toBe(killed.token);
    const client = await next.connect();
    await client.pushed("created", id);
    await counts(client, 2, 2);
    expect(await next.stop()).toBe(0);
    expect(existsSync(file)).toBe(false);
  });

  test("a port that is taken is told in one line", async () => {
    const other = createServer().listen(0, "127.0.0.1");
    onTestFinished(() => void other.close());
    await new Promise((resolve) => other.once("listening", resolve));
    const { port } = other.address() as AddressInfo;
    const data = await temporaryFolder();
    const refused = await run(["serve", "--port", String(port), "--data", data]);
    expect(refused).toEqual({
      code: 5,
      stdout: "",
      stderr: `tidings: 127.0.0.1:${port} is taken by another program; choose another --port, or 0 for a free one\n`,
    });
    expect(existsSync(join(data, "server.json"))).toBe(false);
    expect(await run(["emit", "cli.a.b", "--data", data]), "and the folder is free again").toMatchObject({ code: 0 });
  });

  test("the environment says where it listens and which token is its own; flags win; --json makes the line JSON", async () => {
    const own = "a-token-of-my-own-choice";
    const free = createServer().listen(0, "127.0.0.1");
    await new Promise((resolve) => free.once("listening", resolve));
    const { port } = free.address() as AddressInfo;
    await new Promise((resolve) => free.close(resolve));
    const env = { TIDINGS_PORT: String(port), TIDINGS_HOST: "127.0.0.1", TIDINGS_OWN_TOKEN: own };
    const server = await Server.start({ env, args: ["--json"] });
    expect(JSON.parse(server.stdout)).toEqual({
      ready: { url: `http://127.0.0.1:${port}`, token: own, pid: server.pid, agent: null },
    });
    expect(await server.rpc("runtime/status")).toMatchObject({ status: 200, result: { status: "running" } });
    expect(await server.stop()).toBe(0);

    const flagged = await Server.start({
      env: { ...env, TIDINGS_HOST: "nowhere.invalid" },
      args: ["--port=0", "--host", "localhost"],
    });
    expect(flagged.url).toMatch(/^http:\/\/localhost:\d+$/);
    expect(flagged.url).not.toBe(`http://localhost:${port}`);
    expect((await flagged.get("/healthz")).status).toBe(200);
  });

  test("bad usage, and an address that is none of this machine's, are told in one line, and nothing is made", async () => {
    const root = await temporaryFolder();
    const cases: [words: string[], env: Record<string, string>, code: number, told: string][] = [
      [[], { TIDINGS_PORT: "http" }, 2, 'TIDINGS_PORT: must be a port, not "http"'],
      [["--host="], {}, 2, "--host: must be an address"],
      [["--port", "0"], { TIDINGS_OWN_TOKEN: "too short" }, 2, "TIDINGS_OWN_TOKEN: must be 16 to 200 letters"],
      [["--port", "0", "--token", "x"], {}, 2, "serve works on a data folder"],
      [
        ["--port", "0", "--host", "nowhere.invalid"],
        {},
        5,
        "nowhere.invalid is no address of this machine; see --host",
      ],
    ];
    for (const [n, [words, env, code, told]] of cases.entries()) {
      const data = join(root, String(n));
      const ended = await run(["serve", "--data", data, ...words], { env });
      expect(ended).toMatchObject({ code, stdout: "", stderr: expect.stringMatching(/^tidings: [^\n]+\n$/) });
      expect(ended.stderr).toContain(told);
      expect(existsSync(code === 2 ? data : join(data, "server.json"))).toBe(false);
    }
  });

  const hasIPv6 = Object.values(networkInterfaces()).some((all) => all?.some(({ address }) => address === "::1"));
  test.runIf(hasIPv6)("it listens on an address of IPv6 as well, where the commands find it", async () => {
    const server = await Server.start({ args: ["--host", "::1"] });
    expect(server.url).toMatch(/^http:\/\/\[::1\]:\d+$/);
    const client = await server.connect();
    const emitted = await asJson<{ matches: { notification: Row }[] }>(server, "emit", "cli.a.b");
    await client.pushed("created", emitted.matches[0]?.notification.id ?? "");
    expect(await server.stop()).toBe(0);
  });
});

async function refusedUpgrade(opened: Promise<Client>): Promise<UpgradeRefused> {
  try {
    await opened;
  } catch (error) {
    if (error instanceof UpgradeRefused) return error;
    throw error;
  }
  throw new Error("it was not refused");
}

/** The names of the files in the folder that hold these bytes. */
function filesWith(folder: string, text: string): string[] {
  return readdirSync(folder)
    .filter((name) => readFileSync(join(folder, name)).includes(text))
    .sort();
}

describe("tokens", () => {
  test("are printed once, and only their digest is kept", async () => {
    const server = await Server.start();
    const created = await asJson<Record<string, unknown> & { token: string; id: string }>(
      server,
      ...["token", "create", "--user", "ada", "--scope", "read,ack,read", "--name", "phone", "--expires-in", "30d"],
    );
    expect(created).toEqual({
      token: expect.stringMatching(/^tdg_[\w-]{43}$/),
      id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      name: "phone",
      user_id: "ada",
      scopes: ["read", "ack"],
      created_at: expect.any(String),
      expires_at: expect.any(String),
      revoked_at: null,
    });
    const words = await tidings(server, "token", "create", "--scope", "ingest");
    expect(words.stdout).toMatch(/^tdg_[\w-]{43}\n$/);
    expect(words.stderr).toMatch(/^For local, scope ingest, good until it is revoked\.\n.*only time.*\nRevoke it: /);
    expect((await server.rpc("runtime/status", {}, created.token)).result).toMatchObject({ user_id: "ada" });

    const texts = [created.token, words.stdout.trim()];
    const digests = texts.map((text) => createHash("sha256").update(text).digest("base64url"));
    const keep = readdirSync(server.data);
    expect(keep).toContain("tidings.db-wal");
    for (const text of texts) expect(filesWith(server.data, text)).toEqual([]);
    for (const digest of digests) expect(filesWith(server.data, digest).length).toBeGreaterThan(0);
    expect(filesWith(server.data, server.token).sort()).toEqual(["server.json", "server.token"]);
    expect(filesWith(server.data, createHash("sha256").update(server.token).digest("base64url"))).toEqual([]);
    const listed = (await tidings(server, "token", "list")).stdout;
    expect(listed).toContain(created.id);
    for (const text of texts) expect(listed).not.toContain(text);

    expect(await server.stop()).toBe(0);
    for (const text of texts) expect(filesWith(server.data, text)).toEqual([]);
    expect(filesWith(server.data, server.token)).toEqual(["server.token"]);
    for (const digest of digests) expect(filesWith(server.data, digest)).toEqual(["tidings.db"]);
  });

  test("that are revoked open nothing any more, and what they had opened is closed", async () => {
    const server = await Server.start();
    const scopes = ["read", "ack", "ingest"] as const;
    const [one, other] = [
      await server.createToken({ user_id: "ada", scopes }),
      await server.createToken({ user_id: "ada", scopes }),
    ];
    const [first, second, untouched] = [
      await server.connect({ token: one.token }),
      await server.connect({ token: one.token }),
      await server.connect({ token: other.token }),
    ];
    await Promise.all([first, second, untouched].map((client) => client.welcomed()));

    const revoked = await tidings(server, "token", "revoke", one.id);
    expect(revoked).toEqual({ code: 0, stdout: `${one.id} of ada is revoked.\n`, stderr: "" });
    for (const client of [first, second])
      expect(await client.closed).toEqual({ code: 1008, reason: "the token was revoked" });

    expect((await server.post("/v1/events", { type: "cli.a.b", source: "x" }, one.token)).status).toBe(401);
    const call = await server.rpc("inbox/counts", {}, one.token);
    expect(call).toMatchObject({ status: 401, error: { code: -32002, data: { code: "unauthorized" } } });
    expect(await refusedUpgrade(server.connect({ token: one.token }))).toMatchObject({ status: 401 });
    const { id } = await notify(server, { content: "still here", target: "user" }, other.token);
    await untouched.pushed("created", id);
    expect(await tidings(server, "token", "revoke", one.id), "again changes nothing").toMatchObject({ code: 0 });
    expect(await tidings(server, "token", "revoke", "nobody")).toMatchObject({
      code: 3,
      stderr: 'tidings: no token "nobody"\n',
    });
  });

  test("that were revoked on the folder itself, while no server ran, open nothing in the next one; the others do", async () => {
    const server = await Server.start();
    const [gone, kept] = [
      await server.createToken({ scopes: ["read"] }),
      await server.createToken({ scopes: ["read"] }),
    ];
    expect(await server.stop()).toBe(0);
    expect(await tidings(server, "token", "revoke", gone.id)).toMatchObject({ code: 0 });
    const made = await asJson<{ token: string }>(server, "token", "create", "--scope", "read");
    const next = await Server.start({ data: server.data });
    const statuses = [gone.token, kept.token, made.token].map(
      async (token) => (await next.rpc("inbox/counts", {}, token)).status,
    );
    expect(await Promise.all(statuses)).toEqual([401, 200, 200]);
    const client = await next.connect({ token: kept.token });
    await client.welcomed();
  });

  test("that have expired are refused, and their connections closed", async () => {
    const server = await Server.start();
    const { token, expires_at } = await server.createToken({ user_id: "ada", scopes: ["read"], ttl_ms: 4_000 });
    expect(Date.parse(expires_at ?? NO_TIME)).toBeGreaterThan(Date.now() - 60_000);
    const client = await server.connect({ token });
    await client.welcomed();
    expect(await client.closed).toEqual({ code: 1008, reason: "the token has expired" });
    expect((await server.rpc("inbox/counts", {}, token)).status).toBe(401);
    expect(await refusedUpgrade(server.connect({ token }))).toMatchObject({ status: 401 });
    expect((await tidings(server, "token", "list")).stdout).toMatch(/ read +expired /);
  });

  test("go with a WebSocket as a subprotocol, of which the server chooses its own", async () => {
    const server = await Server.start();
    const { token } = await server.createToken({ user_id: "ada", scopes: ["read"] });
    for (const protocols of [
      ["tidings.v1", `bearer.${token}`],
      [`bearer.${token}`, "other", "tidings.v1"],
    ]) {
      const client = await server.connect({ token: null, protocols });
      expect(client.socket.protocol).toBe("tidings.v1");
      await client.welcomed();
    }
    const headed = await server.connect({ token, protocols: ["tidings.v1"] });
    expect(headed.socket.protocol).toBe("tidings.v1");
    const bare = await server.connect({ token });
    expect(bare.socket.protocol).toBe("");
    const refusals = await Promise.all([
      refusedUpgrade(server.connect({ token: null })),
      refusedUpgrade(server.connect({ token: null, protocols: ["tidings.v1"] })),
      refusedUpgrade(server.connect({ token: null, protocols: ["tidings.v1", "bearer.wrong"] })),
      refusedUpgrade(server.connect({ token: null, protocols: [`bearer.${token}`] })),
    ]);
    expect(refusals.map(({ status }) => status)).toEqual([401, 401, 401, 400]);
  });

  test("without the scope read open no WebSocket", async () => {
    const server = await Server.start();
    const { token } = await server.createToken({ scopes: ["ingest", "ack", "critical", "directive", "agent"] });
    const { status, body } = await refusedUpgrade(server.connect({ token }));
    expect(status).toBe(403);
    expect(JSON.parse(body)).toMatchObject({ error: { code: "forbidden", message: expect.stringContaining("read") } });
  });

  test("without the scope critical tell nobody anything critical, and the story says so", async () => {
    const server = await Server.start();
    const [plain, critical] = [
      await server.createToken({ user_id: "ada", scopes: ["ingest", "read"] }),
      await server.createToken({ user_id: "ada", scopes: ["ingest", "read", "critical"] }),
    ];
    const input = { content: "The house is on fire", severity: "critical", target: "user" };
    const [lowered, kept] = [await notify(server, input, plain.token), await notify(server, input, critical.token)];
    const priorities = [lowered, kept].map(({ id }) =>
      server.call<{ priority: string }>("notification/read", { id }, plain.token),
    );
    expect(await Promise.all(priorities)).toMatchObject([
      { priority: "high", severity: "critical" },
      { priority: "critical", severity: "critical" },
    ]);
    const marked = "the priority critical was lowered to high: its sender lacks the scope critical";
    expect(await storyOf(server, lowered.id)).toContain(marked);
    expect(await storyOf(server, kept.id)).not.toContain(marked);
  });

  test("without the scope directive instruct no agent", async () => {
    const server = await Server.start();
    const [plain, may] = [
      await server.createToken({ scopes: ["ingest", "critical"] }),
      await server.createToken({ scopes: ["ingest", "directive"] }),
    ];
    const input = { content: "The build failed", target: "agent", handler: "agent", directive: "Fix it" };
    const refused = await server.rpc("notification/notify", input, plain.token);
    expect(refused).toMatchObject({ status: 403, error: { code: -32003, data: { code: "forbidden" } } });
    expect(await rows(server)).toEqual([]);
    expect((await server.rpc("notification/notify", input, may.token)).status).toBe(200);
    expect(await rows(server)).toMatchObject([{ directive: "Fix it", channel: "agent" }]);
  });
});
