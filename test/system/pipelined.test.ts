/** Requests that are sent before those ahead of them are answered, on one connection of the real server. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { eventually } from "../support/folder.js";
import { sharedServer } from "../support/pipeline.js";
import { RawSocket, requestText, upgradeLines } from "../support/raw.js";
import type { Server } from "../support/server.js";

const WAITING_MAX = 60;
const LIMITS = `[server.limits]\nsockets_per_user = 2\nwaits_per_user = 1\nrequests_waiting = ${WAITING_MAX}\n`;

let server: Server;
let end: () => Promise<void>;
beforeAll(async () => {
  ({ server, end } = await sharedServer((_subscribers, data) => writeFileSync(join(data, "tidings.toml"), LIMITS)));
});
afterAll(async () => {
  expect(server.stderr).toBe("");
  await end();
});

const host = () => `Host: ${new URL(server.url).host}`;

function asked(first: string, more: readonly string[] = [], body = ""): string {
  return requestText([`${first} HTTP/1.1`, host(), `Authorization: Bearer ${server.token}`, ...more], body);
}

function posted(path: string, message: object): string {
  const body = JSON.stringify(message);
  return asked(`POST ${path}`, [`Content-Length: ${Buffer.byteLength(body)}`], body);
}

const call = (method: string, params: object) => posted("/rpc", { jsonrpc: "2.0", id: 1, method, params });

const connections = async () => (await server.call<{ connections: number }>("runtime/status")).connections;

const allGone = () => eventually(connections, (open) => open === 0);

async function waiting(): Promise<{ thread_id: string; point: string; wait_ms: number }> {
  const { thread_id } = await server.call<{ thread_id: string }>("thread/start");
  return { thread_id, point: "turn_start", wait_ms: 60_000 };
}

const H2C = ["Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQAAP__"];

test.each([
  ["GET /rpc/stream", "as it is", []],
  ["GET /sse", "as it is", []],
  ["GET /rpc/stream", "with another protocol", H2C],
] as const)("many %s on one connection, %s, are one stream, and none when it has gone", async (first, _how, more) => {
  const raw = await RawSocket.open(server.url);
  raw.write(asked(first, more).repeat(50));
  if (more.length === 0) {
    expect((await raw.response()).status).toBe(200);
    expect(await connections()).toBe(1);
  }
  // What asks for another protocol behind a request has ended it already.
  else await raw.closed();
  raw.socket.destroy();
  await allGone();
  const next = await RawSocket.open(server.url);
  next.write(asked(first, more));
  expect((await next.response()).status).toBe(200);
  next.socket.destroy();
  await allGone();
});

test("a call behind a stream is not begun: nothing waits or is held for a caller that has gone", async () => {
  const collect = await waiting();
  const raw = await RawSocket.open(server.url);
  raw.write(asked("GET /rpc/stream") + call("agent/collect", collect));
  expect((await raw.response()).status).toBe(200);
  raw.socket.destroy();
  await allGone();
  const { thread_id } = collect;
  const { id } = await server.call<{ id: string }>("notification/notify", { content: "news", thread_id });
  const told = await server.call<{ carrier: { notifications: { id: string }[] } }>("agent/collect", collect);
  expect(told.carrier.notifications.map((one) => one.id)).toEqual([id]);
});

test("each is begun when the one before it is answered, and all are answered in their order", async () => {
  const collect = await waiting();
  const raw = await RawSocket.open(server.url);
  raw.write(
    call("agent/collect", collect) +
      posted("/v1/events", { type: "cli.behind.it", source: "s" }) +
      call("notification/list", {}) +
      asked("GET /healthz"),
  );
  type Listed = { notifications: { kind: string }[] };
  const kinds = ({ notifications }: Listed) => notifications.map(({ kind }) => kind);
  // It waits when no other may.
  await eventually(
    () => server.rpc("agent/collect", { ...collect, wait_ms: 1 }),
    ({ error }) => error !== undefined,
  );
  expect(kinds(await server.call<Listed>("notification/list", {}))).not.toContain("cli.behind.it");
  const { thread_id } = collect;
  const { id } = await server.call<{ id: string }>("notification/notify", { content: "news", thread_id });
  expect(JSON.parse((await raw.response()).body).result.carrier.notifications).toMatchObject([{ id }]);
  expect((await raw.response()).status).toBe(202);
  expect(kinds(JSON.parse((await raw.response()).body).result)).toContain("cli.behind.it");
  expect(JSON.parse((await raw.response()).body)).toMatchObject({ status: "ok" });
});

test("what asks for another protocol behind a request ends the connection", async () => {
  for (const upgrade of [asked("GET /healthz", H2C), requestText(upgradeLines(server.token, [host()]))]) {
    const raw = await RawSocket.open(server.url);
    raw.write(asked("GET /rpc/stream") + upgrade);
    await raw.closed();
  }
  await allGone();
});

test("more than may wait on one connection end it", async () => {
  const raw = await RawSocket.open(server.url);
  raw.write(asked("GET /rpc/stream") + asked("GET /healthz").repeat(WAITING_MAX));
  expect((await raw.response()).status).toBe(200);
  expect(await connections()).toBe(1);
  raw.write(asked("GET /healthz"));
  await raw.closed();
  await allGone();
});
