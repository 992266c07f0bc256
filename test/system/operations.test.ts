/** What an operator sees of a server as a process: its figures, its log, and its end. */
import { createHmac } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";
import { describe, expect, test } from "vitest";
import { eventually, temporaryFolder } from "../support/folder.js";
import { RawSocket, requestText, upgradeLines } from "../support/raw.js";
import { Server } from "../support/server.js";
import { Duplex } from "../support/stream.js";

const METRICS_TOKEN = "only-for-the-figures";

interface Parsed {
  readonly families: ReadonlyMap<string, { readonly type: string; readonly help: string }>;
  /** By its name and labels as they are written. */
  readonly samples: ReadonlyMap<string, number>;
}

const LABEL = /([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"/;
const SAMPLE = new RegExp(
  `^([a-zA-Z_:][a-zA-Z0-9_:]*)(\\{${LABEL.source}(?:,${LABEL.source})*\\})? ([+-]?Inf|NaN|-?[0-9.]+(?:e[+-]?[0-9]+)?)$`,
);

/** As a strict reader of the format would: whatever is not of it throws. */
function parsed(text: string): Parsed {
  if (!text.endsWith("\n")) throw new Error("the last line has no end");
  const families = new Map<string, { type: string; help: string }>();
  const samples = new Map<string, number>();
  let family = "";
  let help = "";
  for (const line of text.slice(0, -1).split("\n")) {
    const [, helped, words] = /^# HELP ([a-z_]+) (.+)$/.exec(line) ?? [];
    const [, typed, type] = /^# TYPE ([a-z_]+) (counter|gauge|histogram)$/.exec(line) ?? [];
    if (helped !== undefined && words !== undefined) {
      if (families.has(helped)) throw new Error(`${helped} comes twice`);
      [family, help] = [helped, words];
    } else if (typed !== undefined && type !== undefined) {
      if (typed !== family) throw new Error(`a type of ${typed} after the help of ${family}`);
      families.set(family, { type, help });
    } else {
      const [, name = ""] = SAMPLE.exec(line) ?? [];
      const suffixes = families.get(family)?.type === "histogram" ? ["_bucket", "_sum", "_count"] : [""];
      if (!suffixes.some((suffix) => name === family + suffix)) throw new Error(`not of ${family}: ${line}`);
      const at = line.lastIndexOf(" ");
      if (samples.has(line.slice(0, at))) throw new Error(`twice: ${line}`);
      samples.set(line.slice(0, at), Number(line.slice(at + 1).replace("Inf", "Infinity")));
    }
  }
  return { families, samples };
}

async function figures(server: Server): Promise<ReadonlyMap<string, number>> {
  const { status, text, headers } = await server.get("/metrics");
  expect(status).toBe(200);
  expect(headers.get("content-type")).toBe("text/plain; version=0.0.4; charset=utf-8");
  const { families, samples } = parsed(text);
  for (const [name, { type }] of families) {
    expect(name).toMatch(/^tidings_[a-z_]+$/);
    expect(name.endsWith("_total"), name).toBe(type === "counter");
  }
  return samples;
}

describe("the figures", () => {
  test("are text that a strict reader takes, and move with what happens", async () => {
    const data = await temporaryFolder();
    writeFileSync(join(data, "tidings.toml"), '[hooks.ci]\nscheme = "github"\nsecret_env = "CI"\n');
    const server = await Server.start({ data, env: { CI: "secret", TIDINGS_METRICS_TOKEN: METRICS_TOKEN } });
    const before = await figures(server);
    expect(before.get('tidings_depth{state="DISPATCHED",channel="inbox"}')).toBe(0);
    expect(before.get("tidings_clients")).toBe(0);
    expect(before.get("tidings_ready")).toBe(1);
    expect([...before.keys()].filter((key) => key.startsWith("tidings_oldest"))).toEqual([]);

    const event = { type: "cli.build.finished", source: "ci", id: "1", payload: { message: "red" } };
    await server.post("/v1/events", event);
    await server.post("/v1/events", event);
    await server.post("/v1/events", { type: "no.such", source: "ci" });
    await server.post("/v1/events", { type: "bad" });
    const body = Buffer.from("{}");
    const signature = `sha256=${createHmac("sha256", "secret").update(body).digest("hex")}`;
    const hook = { method: "POST", token: null, body, headers: { "x-hub-signature-256": signature } };
    expect((await server.request("/v1/hooks/ci", hook)).status).toBe(202);
    expect((await server.request("/v1/hooks/ci", hook)).status).toBe(409);
    expect((await server.request("/v1/hooks/other", hook)).status).toBe(401);
    const client = await server.connect();
    await client.welcomed();
    const told = await server.call<{ thread_id: string }>("thread/start");
    await server.call("notification/notify", { content: "For you", thread_id: told.thread_id });
    const { carrier } = await server.call<{ carrier: { id: string; block: string } }>("agent/collect", {
      ...{ thread_id: told.thread_id, point: "turn_start" },
    });

    const during = await figures(server);
    const moved = (key: string) => during.get(key);
    expect(moved('tidings_depth{state="DISPATCHED",channel="inbox"}')).toBe(1);
    expect(moved('tidings_depth{state="LOCKED",channel="context"}')).toBe(1);
    expect(moved('tidings_events_total{outcome="accepted"}')).toBe(2);
    expect(moved('tidings_events_total{outcome="duplicate"}')).toBe(2);
    expect(moved('tidings_events_total{outcome="unmatched"}')).toBe(2);
    expect(moved('tidings_oldest_age_seconds{channel="inbox"}')).toBeGreaterThan(0);
    expect(moved("tidings_clients")).toBe(1);
    expect(moved('tidings_hook_requests_total{hook="ci",outcome="unmatched"}')).toBe(1);
    expect(moved('tidings_hook_requests_total{hook="ci",outcome="replayed"}')).toBe(1);
    expect([...during.keys()].filter((key) => key.includes('hook="other"'))).toEqual([]);
    expect(moved('tidings_http_requests_total{route="/v1/events",method="POST",status="202"}')).toBe(3);
    expect(moved('tidings_http_requests_total{route="/v1/events",method="POST",status="400"}')).toBe(1);
    expect(moved('tidings_http_requests_total{route="/v1/hooks/",method="POST",status="401"}')).toBe(1);
    expect(moved("tidings_tokens_injected_total")).toBe(0);
    const commits = moved("tidings_commit_seconds_count") ?? 0;
    expect(commits).toBeGreaterThanOrEqual(4);
    expect(moved('tidings_commit_seconds_bucket{le="+Inf"}')).toBe(commits);
    const buckets = [...during].flatMap(([key, value]) =>
      key.startsWith("tidings_commit_seconds_bucket") ? value : [],
    );
    expect(buckets).toEqual(buckets.toSorted((one, other) => one - other));
    expect(moved("tidings_commit_seconds_sum")).toBeGreaterThan(0);

    const [{ id, revision }] = (
      await server.call<{ notifications: [{ id: string; revision: number }] }>("notification/list", {
        ...{ user_id: "local", unread: true },
      })
    ).notifications;
    await server.call("notification/ack", { id, revision, action: "dismissed" });
    await server.call("agent/settle", { carrier_id: carrier.id });
    await client.close();
    const after = await eventually(
      () => figures(server),
      (samples) => samples.get("tidings_clients") === 0,
    );
    expect(after.get('tidings_depth{state="DISPATCHED",channel="inbox"}')).toBe(0);
    expect(after.get('tidings_depth{state="LOCKED",channel="context"}')).toBe(0);
    expect(after.get("tidings_delivered_total")).toBe(2);
    expect(after.get("tidings_blocks_injected_total")).toBe(1);
    expect(after.get("tidings_tokens_injected_total")).toBe(Math.ceil(carrier.block.length / 4));
    expect(await server.stop()).toBe(0);
  });

  test("count clients of every kind of stream, and what was too much for one of them", async () => {
    const server = await Server.start({ args: ["--heartbeat-ms", "10"] });
    const ofKind = (path: string, method: "GET" | "POST") =>
      new Duplex(`${server.url}${path}`, { token: server.token, method });
    const streams = [ofKind("/rpc/stream", "POST"), ofKind("/rpc/stream", "GET"), ofKind("/sse", "GET")];
    for (const stream of streams) await stream.frames.told("inbox/counts");
    const client = await server.connect();
    await client.welcomed();
    expect((await figures(server)).get("tidings_clients")).toBe(4);
    const [slow] = streams;
    slow?.response?.pause();
    const words = "x".repeat(15_000);
    const untilCounted = (key: string) =>
      eventually(
        async () => {
          await Promise.all(
            Array.from({ length: 10 }, () => server.call("notification/notify", { content: words, target: "user" })),
          );
          return (await figures(server)).get(key);
        },
        (count) => count !== 0,
      );
    // First what may be dropped, a heartbeat, is; then the client itself.
    expect(await untilCounted("tidings_frames_shed_total")).toBeGreaterThan(0);
    expect((await figures(server)).get("tidings_clients")).toBe(4);
    const waiting = await untilCounted("tidings_client_waiting_bytes_max");
    expect(waiting).toBeGreaterThan(0);
    expect(waiting).toBeLessThanOrEqual(1_048_576);
    expect(await untilCounted("tidings_clients_closed_slow_total")).toBe(1);
    slow?.response?.resume();
    await slow?.frames.over();
    const streamed = 'tidings_http_requests_total{route="/rpc/stream",method="POST",status="200"}';
    const later = await eventually(
      () => figures(server),
      (samples) => samples.get(streamed) === 1,
    );
    expect(later.get("tidings_clients")).toBe(3);
  });

  test("are for admin, and for a token that opens nothing else", async () => {
    const server = await Server.start({ env: { TIDINGS_METRICS_TOKEN: METRICS_TOKEN } });
    const reader = await server.createToken({ user_id: "ada", scopes: ["ingest", "read", "ack", "agent"] });
    expect((await server.get("/metrics", null)).status).toBe(401);
    expect((await server.get("/metrics", reader.token)).status).toBe(403);
    expect((await server.get("/metrics", METRICS_TOKEN)).status).toBe(200);
    expect((await server.get("/metrics", `${METRICS_TOKEN}x`)).status).toBe(401);
    expect((await server.rpc("runtime/status", {}, METRICS_TOKEN)).status).toBe(401);
    expect((await server.post("/v1/events", { type: "a.b", source: "c" }, METRICS_TOKEN)).status).toBe(401);
    // Nobody is named in them.
    await server.post("/v1/events", { type: "cli.a.b", source: "secret-source", user_id: "ada", id: "x" });
    expect((await server.get("/metrics")).text).not.toMatch(/ada|secret-source/);
  });

  test("say when an agent was woken, when something went on to the user, and what is dead", async () => {
    const args = ["--provider", "rehearsal", "--system-ttl-ms", "1500"];
    const server = await Server.start({ args });
    expect((await figures(server)).get('tidings_wakes_total{why="idle"}')).toBe(0);
    const { thread_id } = await server.call<{ thread_id: string }>("thread/start");
    await server.call("notification/notify", {
      ...{ content: "Look at it", thread_id, target: "agent", handler: "agent" },
    });
    await eventually(
      () => figures(server),
      (samples) => samples.get('tidings_wakes_total{why="idle"}') === 1,
    );
    // The agent of a thread that rests tells nobody, and then the thread is over: it goes to the user, who never looks.
    const { thread_id: rests } = await server.call<{ thread_id: string }>("thread/start");
    await server.call("thread/pause", { thread_id: rests });
    await server.call("notification/notify", {
      thread_id: rests,
      content: "Tell them",
      target: "user",
      handler: "agent",
    });
    expect((await figures(server)).get("tidings_escalations_total")).toBe(0);
    await server.call("thread/close", { thread_id: rests });
    expect((await figures(server)).get("tidings_escalations_total")).toBe(1);
    const samples = await eventually(
      () => figures(server),
      (one) => (one.get("tidings_dead_letters_total") ?? 0) >= 1,
    );
    expect(samples.get("tidings_dead_letters")).toBe(samples.get("tidings_dead_letters_total"));
    expect(samples.get("tidings_model_calls_total")).toBeGreaterThan(0);
  });
});

interface Line {
  time: string;
  level: string;
  message: string;
  request_id?: string;
  path?: string;
  status?: number;
  user_id?: string;
  [field: string]: unknown;
}

const lines = (server: Server): Line[] =>
  server.stderr
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as Line);

describe("the log", () => {
  test("is a JSON object a line, with the id of each request, and without what nobody may know", async () => {
    const server = await Server.start({ args: ["--log-format", "json", "--log-level", "debug"] });
    const own = await server.request("/v1/events?key=hidden", {
      ...{ method: "POST", headers: { "x-request-id": "mine-1" } },
      body: { type: "cli.a.b", source: "s", payload: { message: "a word of nobody else" } },
    });
    expect([own.status, own.headers.get("x-request-id")]).toEqual([202, "mine-1"]);
    for (const bad of ["", "a b", "x".repeat(129), "a;b"]) {
      const made = await server.request("/healthz", { headers: { "x-request-id": bad } });
      expect(made.headers.get("x-request-id")).toMatch(/^[\w-]{16}$/);
    }
    const stream = new Duplex(`${server.url}/rpc/stream?opt_out=inbox/counts`, { token: server.token });
    await stream.rpc("runtime/status");
    const streamed = stream.response?.headers["x-request-id"];
    expect(streamed).toMatch(/^[\w-]{16}$/);
    stream.request.end();
    await stream.frames.over();
    const refused = await server.get("/nowhere", "bad-token");
    expect(refused.headers.get("x-request-id")).toMatch(/^[\w-]{16}$/);
    const unknown = await server.post("/rpc", { method: "x", id: 1 }, "bad-token-of-somebody");
    expect(unknown.status).toBe(401);
    expect(await server.stop()).toBe(0);

    const said = lines(server);
    for (const { time, level, message } of said) {
      expect(time).toMatch(/^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/);
      expect(["debug", "info", "warn", "error"]).toContain(level);
      expect(message).not.toBe("");
    }
    expect(said.map(({ message }) => message)).toEqual(expect.arrayContaining(["ready", "closing", "closed"]));
    expect(said.find(({ request_id }) => request_id === "mine-1")).toMatchObject({
      ...{ level: "debug", method: "POST", path: "/v1/events", status: 202, user_id: "local", ms: expect.any(Number) },
    });
    expect(said.find(({ request_id }) => request_id === refused.headers.get("x-request-id"))).toMatchObject({
      ...{ path: "/nowhere", status: 404 },
    });
    expect(said.find(({ request_id }) => request_id === streamed)).toMatchObject({
      ...{ level: "debug", method: "POST", path: "/rpc/stream", status: 200, user_id: "local" },
    });
    for (const secret of [server.token, "bad-token", "a word of nobody else", "hidden"])
      expect(server.stderr).not.toContain(secret);
  });

  test("a WebSocket has an id too, as it is given and as it is refused, whatever for", async () => {
    const server = await Server.start({ args: ["--log-format", "json", "--log-level", "debug"] });
    const own = `Host: ${new URL(server.url).host}`;
    const { token: blind } = await server.createToken({ user_id: "blind", scopes: ["ingest"] });
    const upgrades: readonly (readonly [status: number, path: string, asked: readonly string[], user_id?: string])[] = [
      [101, "/ws", upgradeLines(server.token, [own], "/ws?opt_out=stream/heartbeat"), "local"],
      [400, "/ws", upgradeLines(server.token, [own], "/ws?hidden=1"), "local"],
      [400, "/ws", upgradeLines(server.token, [own]).filter((line) => !line.startsWith("Sec-WebSocket-Key")), "local"],
      [400, "/ws", upgradeLines(server.token, [own, "Sec-WebSocket-Protocol: other"])],
      [401, "/ws", upgradeLines("bad-token", [own])],
      [403, "/ws", upgradeLines(blind, [own]), "blind"],
      [403, "/ws", upgradeLines(server.token, ["Host: evil.example"])],
      [403, "/ws", upgradeLines(server.token, [own, "Origin: http://evil.example"])],
      [404, "/elsewhere", upgradeLines(server.token, [own], "/elsewhere")],
      [405, "/ws", upgradeLines(server.token, [own]).map((line) => line.replace(/^GET/, "POST"))],
    ];
    const ids: (string | undefined)[] = [];
    for (const [n, [status, , asked]] of upgrades.entries())
      for (const given of [[], [`X-Request-Id: mine-${n}`], ["X-Request-Id: a;b"]]) {
        const raw = await RawSocket.open(server.url);
        raw.write(requestText([...asked, ...given]));
        const answer = await raw.response();
        expect(answer.status, asked.join("; ")).toBe(status);
        const id = answer.headers["x-request-id"];
        expect(id).toMatch(given[0]?.includes("mine") ? new RegExp(`^mine-${n}$`) : /^[\w-]{16}$/);
        ids.push(id);
        raw.socket.destroy();
      }
    expect(new Set(ids).size).toBe(3 * upgrades.length);
    const { text } = await server.get("/metrics");
    expect(text).toContain('tidings_http_requests_total{route="/ws",method="GET",status="403"} 9\n');
    expect(text).toContain('tidings_http_requests_total{route="/ws",method="GET",status="101"} 3\n');
    expect(await server.stop()).toBe(0);
    const said = lines(server);
    for (const [n, [status, path, , user_id]] of upgrades.entries())
      for (const id of ids.slice(3 * n, 3 * n + 3)) {
        const found = said.filter(({ request_id }) => request_id === id);
        expect(found).toHaveLength(1);
        expect(found[0]).toMatchObject({ level: "debug", path, status, ms: expect.any(Number) });
        expect(found[0]?.user_id).toBe(user_id);
      }
    for (const secret of [server.token, blind, "bad-token", "hidden"]) expect(server.stderr).not.toContain(secret);
  });

  test("what is no request is answered with an id as well, and is in the log by it", async () => {
    const server = await Server.start({ args: ["--log-format", "json", "--log-level", "debug"] });
    const raw = await RawSocket.open(server.url);
    raw.write("what is hidden here\r\n\r\n");
    const { status, headers } = await raw.response();
    expect(status).toBe(400);
    expect(headers["x-request-id"]).toMatch(/^[\w-]{16}$/);
    expect(await server.stop()).toBe(0);
    const found = lines(server).filter(({ request_id }) => request_id === headers["x-request-id"]);
    expect(found).toMatchObject([{ level: "debug", status: 400, code: expect.stringMatching(/^HPE_/) }]);
    expect(server.stderr).not.toContain("hidden");
  });

  test("what is wrong in the server itself is found by the id of its request, over HTTP and streams", async () => {
    const before = await Server.start();
    const { data } = before;
    expect(await before.stop()).toBe(0);
    const database = new Database(join(data, "tidings.db"));
    database.prepare("INSERT INTO user_settings VALUES ('ada', 'damaged')").run();
    database.close();
    const server = await Server.start({ data, args: ["--log-format", "json"] });
    const call = { jsonrpc: "2.0", id: 1, method: "settings/get", params: { user_id: "ada" } };
    const failed = { error: { code: -32603, message: "an error of the server itself; see its log" } };
    const headers = { "x-request-id": "mine-2" };
    const over = await server.request("/rpc", { method: "POST", body: call, headers });
    expect([over.headers.get("x-request-id"), over.json]).toMatchObject(["mine-2", failed]);
    const stream = new Duplex(`${server.url}/rpc/stream`, { token: server.token });
    stream.say(call);
    expect(await stream.frames.answer(1)).toMatchObject(failed);
    const client = await server.connect({ headers: { "x-request-id": "mine-3" } });
    client.send(call);
    expect(await client.frame(({ id }) => id === 1)).toMatchObject(failed);
    expect(await server.stop()).toBe(0);
    const told = lines(server).filter(({ level }) => level === "error");
    const ids = ["mine-2", stream.response?.headers["x-request-id"], "mine-3"];
    expect(told.map(({ request_id, method }) => [request_id, method])).toEqual(ids.map((id) => [id, "settings/get"]));
  });

  test("says nothing in words while all is well, and what is wrong", async () => {
    const data = await temporaryFolder();
    const server = await Server.start({ data });
    await server.post("/v1/events", { type: "cli.a.b", source: "s" });
    await server.get("/nowhere", "bad-token");
    expect(server.stderr).toBe("");
    writeFileSync(join(data, "tidings.toml"), "[hooks.x]\n");
    await eventually(
      async () => server.stderr,
      (text) => /^tidings: .*tidings\.toml:1:2: hooks\.x\.scheme is required.*\n/.test(text),
    );
    expect(await server.stop()).toBe(0);
  });

  test("is refused in a form or at a level that there is not", async () => {
    await expect(Server.start({ args: ["--log-level", "loud"] })).rejects.toThrow(
      /--log-level.*debug, info, warn, error/s,
    );
    await expect(Server.start({ args: ["--log-format", "xml"] })).rejects.toThrow(/--log-format.*text, json/s);
  });
});

describe("the end", () => {
  /** A request that is begun, of whose body the last byte is missing. */
  async function begun(server: Server): Promise<{ raw: RawSocket; finish: (more?: string) => void }> {
    const body = JSON.stringify({ type: "cli.slow.body", source: "s", payload: { message: "It took a while" } });
    const raw = await RawSocket.open(server.url);
    raw.write(
      `${[
        "POST /v1/events HTTP/1.1",
        `Host: ${new URL(server.url).host}`,
        `Authorization: Bearer ${server.token}`,
        `Content-Length: ${Buffer.byteLength(body)}`,
      ].join("\r\n")}\r\n\r\n${body.slice(0, -1)}`,
    );
    return { raw, finish: (more = "") => raw.write(body.slice(-1) + more) };
  }

  test("is said by /readyz first; what is under way is answered, clients are told to go, and the code is 0", async () => {
    const server = await Server.start({ args: ["--drain-delay-ms", "1500", "--log-format", "json"] });
    expect((await server.get("/readyz", null)).status).toBe(200);
    const client = await server.connect();
    await client.welcomed();
    const streams = (["/rpc/stream", "/sse"] as const).map(
      (path) => new Duplex(`${server.url}${path}`, { token: server.token, method: "GET" }),
    );
    const speaking = new Duplex(`${server.url}/rpc/stream`, { token: server.token });
    streams.push(speaking);
    for (const stream of streams) await stream.frames.told("inbox/counts");
    const slow = await begun(server);
    const waiting = server
      .call<{ thread_id: string }>("thread/start")
      .then(({ thread_id }) => server.call("agent/collect", { thread_id, point: "turn_start", wait_ms: 60_000 }));
    await eventually(
      () => server.rpc("runtime/status"),
      ({ result }) => result !== undefined,
    );
    const ended = server.stop();
    const closing = await eventually(
      () => server.get<{ status: string }>("/readyz", null),
      ({ status }) => status === 503,
    );
    expect(closing.json).toEqual({ status: "closing" });
    expect((await server.get("/healthz", null)).status).toBe(200);
    expect((await server.get("/metrics")).text).toContain("\ntidings_ready 0\n");
    // A connection that is refused no more sends nothing that is lost: until then what is sent is taken.
    expect((await server.post("/v1/events", { type: "cli.late.one", source: "s" })).status).toBe(202);
    expect((await client.closed).code).toBe(1001);
    for (const { frames } of streams) {
      await frames.over();
      expect(frames.all.at(-1)).toMatchObject({ id: null, error: { message: "the server is going away" } });
    }
    expect((await server.get("/sse")).status).toBe(429);
    expect(await waiting).toEqual({ carrier: null });
    slow.finish();
    expect((await slow.raw.response()).status).toBe(202);
    expect(await ended).toBe(0);
    expect(lines(server).map(({ message }) => message)).toEqual(["ready", "closing", "closed"]);

    const again = await Server.start({ data: server.data });
    const { notifications } = await again.call<{ notifications: { kind: string }[] }>("notification/list", {});
    expect(notifications.map(({ kind }) => kind).sort()).toEqual(["cli.late.one", "cli.slow.body"]);
  });

  test("calls of streams that are under way are answered before the streams are ended, those that wait at once", async () => {
    const server = await Server.start();
    const client = await server.connect();
    const lines = new Duplex(`${server.url}/rpc/stream`, { token: server.token });
    for (const stream of [client, lines]) {
      const { result } = await stream.rpc("thread/start");
      const { thread_id } = result as { thread_id: string };
      const params = { thread_id, point: "turn_start", wait_ms: 60_000 };
      const call = { jsonrpc: "2.0", id: "wait", method: "agent/collect", params };
      if (stream === client) client.send(call);
      else lines.say(call);
      // They are begun in their order.
      await stream.rpc("inbox/counts");
    }
    const ended = server.stop();
    await client.closed;
    await lines.frames.over();
    const answered = { id: "wait", result: { carrier: null } };
    expect(client.frames.filter(({ id }) => id === "wait")).toMatchObject([answered]);
    expect(lines.frames.all.filter(({ id }) => id === "wait")).toMatchObject([answered]);
    expect(lines.frames.all.at(-1)).toMatchObject({ id: null, error: { message: "the server is going away" } });
    expect(await ended).toBe(0);
  });

  test("what was committed for a stream is answered, and what is not taken any more is not done", async () => {
    const server = await Server.start();
    const clients = await Promise.all(Array.from({ length: 8 }, () => server.connect()));
    for (const client of clients) await client.welcomed();
    const one = (id: string) => ({ jsonrpc: "2.0", id, method: "event/emit", params: { type: "cli.a.b", source: id } });
    for (let n = 0; n < 60; n += 1) for (const [of, client] of clients.entries()) client.send(one(`${of}.${n}`));
    // Of many commits the first is done, others are not.
    await Promise.race(clients.map((client) => client.frame(({ id }) => id !== undefined)));
    const ended = server.stop();
    for (const client of clients) expect((await client.closed).code).toBe(1001);
    expect(await ended).toBe(0);
    const answers = clients.flatMap(({ frames }) => frames.filter(({ id }) => id !== undefined));
    const done = answers.filter(({ result }) => result !== undefined).map(({ id }) => id);
    for (const { error } of answers) if (error !== undefined) expect(error.data?.code).toBe("closed");
    const again = await Server.start({ data: server.data });
    const { notifications } = await again.call<{ notifications: { source: string }[] }>("notification/list", {
      limit: 1_000,
    });
    expect(notifications.map(({ source }) => source).sort()).toEqual(done.sort());
  });

  test("refuses what is asked for after the door is shut, with a word, on a connection that is still there", async () => {
    const server = await Server.start();
    const slow = await begun(server);
    expect((await server.get("/healthz", null)).status).toBe(200);
    // Two requests on one connection: the first was begun before the end, the second is not.
    const ended = server.stop();
    await eventually(
      () =>
        fetch(new URL("/healthz", server.url)).then(
          () => "open",
          () => "shut",
        ),
      (door) => door === "shut",
    );
    const head = [
      "POST /v1/events HTTP/1.1",
      `Host: ${new URL(server.url).host}`,
      `Authorization: Bearer ${server.token}`,
    ];
    slow.finish(`${[...head, "Content-Length: 2"].join("\r\n")}\r\n\r\n{}`);
    expect((await slow.raw.response()).status).toBe(202);
    const refused = await slow.raw.response();
    expect([refused.status, refused.headers["connection"]]).toEqual([503, "close"]);
    expect(JSON.parse(refused.body)).toEqual({ error: { code: "closed", message: "the server is going away" } });
    expect(await ended).toBe(0);
  });
});
