/** The bounds of a server that only show after a while, or in great numbers: the same server with smaller ones. */
import { describe, expect, it, onTestFinished } from "vitest";
import { userId } from "../../src/domain/ids.js";
import { systemClock } from "../../src/platform/clock.js";
import { Caller } from "../../src/server/access.js";
import { Ingest } from "../../src/server/ingest.js";
import { SERVER_LIMITS, type ServerLimits } from "../../src/server/limits.js";
import { RateLimit } from "../../src/server/rate.js";
import { TidingsServer } from "../../src/server/server.js";
import { eventually, openTidings, temporaryFolder } from "../support/folder.js";
import { frameBytes, OPCODE, openRawWebSocket, RawSocket, requestText, upgradeLines } from "../support/raw.js";

async function start(limits: Partial<ServerLimits>): Promise<TidingsServer & { defects: unknown[] }> {
  const defects: unknown[] = [];
  const server = await TidingsServer.start({
    data: await temporaryFolder(),
    port: 0,
    limits,
    onDefect: (error) => defects.push(error),
  });
  onTestFinished(() => server.close());
  return Object.assign(server, { defects });
}

const headOf = (server: TidingsServer, first: string, ...more: string[]) =>
  requestText([first, `Host: ${new URL(server.url).host}`, `Authorization: Bearer ${server.token}`, ...more]);

const GOOD = { type: "cli.a.b", source: "limits" };

function post(server: TidingsServer, path: string, body: unknown): Promise<Response> {
  const headers = { authorization: `Bearer ${server.token}` };
  return fetch(new URL(path, server.url), { method: "POST", headers, body: JSON.stringify(body) });
}

/** So many connections, each of which asks for more than the system takes for itself, and reads nothing of it. */
async function askMuch(server: TidingsServer, connections: number): Promise<RawSocket[]> {
  const content = "x".repeat(16_000);
  for (let n = 0; n < 60; n += 1)
    await post(server, "/rpc", { id: 1, method: "notification/notify", params: { content, target: "user" } });
  const body = JSON.stringify({ id: 1, method: "notification/list", params: { limit: 60 } });
  const asked = headOf(server, "POST /rpc HTTP/1.1", `Content-Length: ${body.length}`) + body;
  const open = Array.from({ length: connections }, async () => {
    const deaf = await RawSocket.open(server.url);
    deaf.socket.pause();
    deaf.write(asked.repeat(60));
    return deaf;
  });
  return Promise.all(open);
}

describe("time", () => {
  it("a head that does not come to its end is not waited for, nor silence", async () => {
    const server = await start({ headersMs: 1_000, requestMs: 60_000 });
    for (const bytes of ["", "GET /healthz HTTP/1.1\r\nHost: ", "GET /ws HTTP/1.1\r\nUpgrade: websocket\r\n"]) {
      const raw = await RawSocket.open(server.url);
      raw.write(bytes);
      await raw.closed();
    }
    expect((await post(server, "/v1/events", GOOD)).status).toBe(202);
  });

  it("a body that does not come to its end is not waited for, and leaves nothing", async () => {
    const server = await start({ headersMs: 1_000, requestMs: 1_500 });
    for (const head of [["Content-Length: 40"], ["Transfer-Encoding: chunked"]]) {
      const raw = await RawSocket.open(server.url);
      raw.write(headOf(server, "POST /v1/events HTTP/1.1", ...head) + (head[0]?.startsWith("T") ? "1\r\n{\r\n" : "{"));
      expect((await raw.response()).status).toBe(408);
      await raw.closed();
    }
    expect(server.defects).toEqual([]);
    const list = await post(server, "/rpc", { id: 1, method: "notification/list" });
    expect(await list.json()).toMatchObject({ result: { notifications: [] } });
  });

  it("an answer that nobody reads is not kept for ever", async () => {
    const server = await start({ requestMs: 500, tokenBytes: 2_000_000 });
    await askMuch(server, 6);
    await eventually(
      () => post(server, "/v1/events", GOOD),
      ({ status }) => status === 429,
    );
    await eventually(
      () => post(server, "/v1/events", GOOD),
      ({ status }) => status === 202,
    );
    expect(server.defects).toEqual([]);
  });
});

describe("numbers", () => {
  it("connections beyond the limit are refused with 429, and taken when others have gone", async () => {
    const server = await start({ sockets: 2 });
    const open = [await openRawWebSocket(server), await openRawWebSocket(server)];
    const ask = async () => {
      const raw = await RawSocket.open(server.url);
      raw.write(requestText(upgradeLines(server.token, [`Host: ${new URL(server.url).host}`])));
      return raw.response();
    };
    const refused = await ask();
    expect([refused.status, refused.headers["retry-after"]]).toEqual([429, "1"]);
    expect((await post(server, "/v1/events", GOOD)).status).toBe(202);
    open[0]?.socket.destroy();
    await eventually(ask, ({ status }) => status === 101);
  });

  it("connections of one user are bounded too, and nothing to another", async () => {
    const server = await start({ socketsPerUser: 1 });
    const tokens = await Promise.all(
      ["ada", "bob"].map(async (user_id) => {
        const params = { user_id, scopes: ["read"] };
        const answer = await post(server, "/rpc", { id: 1, method: "token/create", params });
        return ((await answer.json()) as { result: { token: string } }).result.token;
      }),
    );
    for (const token of tokens) {
      await openRawWebSocket(server, token);
      await expect(openRawWebSocket(server, token)).rejects.toThrow("429");
    }
  });

  it("what is under way of one token is bounded in bytes, and nothing to another", async () => {
    const server = await start({ tokenBytes: 10_000 });
    const made = await post(server, "/rpc", { id: 1, method: "token/create", params: { scopes: ["ingest"] } });
    const { token } = ((await made.json()) as { result: { token: string } }).result;
    const begin = async (bytes: number) => {
      const raw = await RawSocket.open(server.url);
      raw.write(headOf(server, "POST /v1/events HTTP/1.1", "Content-Length: 20000") + " ".repeat(bytes));
      return raw;
    };
    // Bodies that never end, until there is no room for another byte.
    const open = [await begin(5_000), await begin(5_000)];
    await eventually(
      () => post(server, "/v1/events", GOOD),
      ({ status }) => status === 429,
    );
    const refused = await post(server, "/v1/events", GOOD);
    expect(refused.headers.get("retry-after")).toBe("1");
    expect(await refused.json()).toMatchObject({ error: { code: "overloaded", retry_after_ms: 1_000 } });
    const other = await fetch(new URL("/v1/events", server.url), {
      method: "POST",
      headers: { authorization: `Bearer ${token}` },
      body: JSON.stringify(GOOD),
    });
    expect(other.status).toBe(202);
    for (const raw of open) raw.socket.destroy();
    await eventually(
      () => post(server, "/v1/events", GOOD),
      ({ status }) => status === 202,
    );
  });

  it("answers of one token that are not read are bounded in bytes", async () => {
    const server = await start({ tokenBytes: 2_000_000 });
    const open = await askMuch(server, 6);
    await eventually(
      () => post(server, "/v1/events", GOOD),
      ({ status }) => status === 429,
    );
    for (const raw of open) raw.socket.destroy();
    await eventually(
      () => post(server, "/v1/events", GOOD),
      ({ status }) => status === 202,
    );
    expect(server.defects).toEqual([]);
  });

  it("events that wait for their commit are bounded; what is over is refused whole and can be sent again", async () => {
    const tidings = await openTidings();
    const limits = { ...SERVER_LIMITS, eventsWaiting: 10 };
    const ingest = new Ingest(limits, new RateLimit(systemClock, limits.ratePerSecond, limits.rateBurst));
    const scopes = ["ingest"] as const;
    const caller = new Caller(tidings, { token_id: null, user_id: userId("ada"), scopes, expires_at: null });
    const six = Array.from({ length: 6 }, (_, index) => ({ ...GOOD, dedupe_key: `k${index}` }));
    const [first, second] = await Promise.allSettled([ingest.take(caller, six), ingest.take(caller, six)]);
    expect(first).toMatchObject({ status: "fulfilled", value: { length: 6 } });
    expect(second).toMatchObject({ status: "rejected", reason: { code: "overloaded", retryable: true } });
    expect((await tidings.list({ user_id: "ada" })).notifications).toHaveLength(6);
    expect(await ingest.take(caller, six)).toHaveLength(6);
  });

  it("calls of one connection that are not answered yet are bounded", async () => {
    const server = await start({ callsPerSocket: 1 });
    const raw = await openRawWebSocket(server);
    const call = (id: number) => frameBytes(OPCODE.text, JSON.stringify({ id, method: "event/emit", params: GOOD }));
    raw.write(Buffer.concat([1, 2, 3, 4, 5].map(call)));
    const answered: { id: number; error?: { code: number } }[] = [];
    while (answered.length < 5) {
      const message = JSON.parse(String((await raw.frame()).payload)) as { id?: number };
      if (message.id !== undefined) answered.push({ ...message, id: message.id });
    }
    const codes = new Map(answered.map(({ id, error }) => [id, error?.code]));
    expect(codes).toEqual(
      new Map([
        [1, undefined],
        [2, -32001],
        [3, -32001],
        [4, -32001],
        [5, -32001],
      ]),
    );
  });
});
