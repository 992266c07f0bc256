/** What has happened over time, as a running server tells it: over a restart of any kind, and to whom. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import type { SeriesAnswer } from "../../src/index.js";
import { eventually, temporaryFolder } from "../support/folder.js";
import { Server } from "../support/server.js";

const DAY_MS = 86_400_000;
const FORBIDDEN = -32003;
const INVALID = -32602;

type Sums = Omit<SeriesAnswer["points"][number], "at">;

/** All points added up. */
function summed({ points }: SeriesAnswer): Sums {
  const sums: Record<string, number> = {};
  const by_channel: Record<string, number> = {};
  for (const { at: _, by_channel: one, ...counts } of points) {
    for (const [name, count] of Object.entries(counts)) sums[name] = (sums[name] ?? 0) + count;
    for (const [name, count] of Object.entries(one)) by_channel[name] = (by_channel[name] ?? 0) + count;
  }
  return { ...sums, by_channel } as Sums;
}

const series = (server: Server, params: object = {}, token: string | null = server.token) =>
  server.call<SeriesAnswer>("stats/series", params, token);

interface Notified {
  readonly id: string;
}

/** Something of everything for a user. */
async function happen(server: Server, user_id: string, round: string): Promise<void> {
  const key = (name: string) => ({ dedupe_key: `${round} ${name}` });
  // Taken by nobody; twice the same; shown and acknowledged; below its filter.
  await server.call("event/emit", { type: "nobody.takes.this", source: "test", user_id });
  for (const _ of [1, 2])
    await server.call("event/emit", { type: "cli.event", source: "test", user_id, ...key("merged") });
  const { id } = await server.call<Notified>("notification/notify", { content: "shown", target: "user", user_id });
  await server.call("notification/ack", { id, revision: 1, action: "rendered", user_id });
  await server.call("event/emit", {
    type: "cli.event",
    source: "test",
    severity: "debug",
    user_id,
    ...key("filtered"),
  });
  // Told to an agent: one that it has to tell on, and does not.
  const thread_id = `${user_id} ${round}`;
  await server.call("thread/start", { thread_id, user_id });
  const session = { address: "session", thread_id, user_id };
  await server.call("notification/notify", { ...session, content: "context", target: "agent" });
  await server.call("notification/notify", { ...session, content: "tell", target: "user", handler: "agent" });
  const { carrier } = await server.call<{ carrier: { id: string; block: string | { text: string } } }>(
    "agent/collect",
    {
      thread_id,
      point: "turn_start",
    },
  );
  await server.call("agent/settle", { carrier_id: carrier.id });
}

const ONCE = {
  events: 7,
  notifications: 5,
  merged: 1,
  delivered: 2,
  escalated: 1,
  failed: 0,
  suppressed: 1,
  wakes: 0,
  blocks_injected: 1,
  by_channel: { inbox: 1, floor: 0, agent: 0, context: 1 },
};

function times(count: number): typeof ONCE {
  const { by_channel, ...counts } = ONCE;
  const multiplied = (of: object) => Object.fromEntries(Object.entries(of).map(([name, one]) => [name, one * count]));
  return { ...multiplied(counts), by_channel: multiplied(by_channel) } as typeof ONCE;
}

test("what has happened is counted once, by user and for all, over restarts of both kinds", async () => {
  const data = await temporaryFolder();
  let server = await Server.start({ data });
  await happen(server, "ada", "first");
  const first = await series(server, { user_id: "ada" });
  expect(summed(first)).toMatchObject(ONCE);
  expect(first.points).toHaveLength(60);
  expect(first.now).toMatchObject({
    depth: { inbox: { DISPATCHED: 1 }, floor: { ESCALATED: 1 }, agent: {}, context: {} },
    unread: 3,
    unacknowledged: 2,
    dead_letters: 0,
  });
  expect(first.provider).toBeNull();
  // Killed after it was counted, and after what was not.
  await happen(server, "ada", "second");
  await happen(server, "bob", "first");
  await server.kill();
  server = await Server.start({ data });
  await happen(server, "bob", "second");
  const tokens = summed(await series(server, { user_id: "bob" })).tokens_injected;
  expect(tokens).toBeGreaterThan(0);
  await server.kill();
  server = await Server.start({ data });
  for (const [user, count] of [
    ["ada", 2],
    ["bob", 2],
    ["nobody", 0],
  ] as const)
    expect(summed(await series(server, { user_id: user })), user).toMatchObject(times(count));
  expect(await server.stop()).toBe(0);
  server = await Server.start({ data });
  const all = await series(server);
  expect(summed(all)).toMatchObject(times(4));
  // What was counted while it was shown is the same afterwards, whatever the step.
  for (const step_ms of [10_000, 30_000, 300_000, 900_000, 3_600_000, 21_600_000, 86_400_000])
    expect(summed(await series(server, { step_ms, user_id: "bob" })), String(step_ms)).toMatchObject({
      ...times(2),
      tokens_injected: tokens,
    });
});

test("a user sees their own, admin all or whom it names; steps and spans are checked", async () => {
  const server = await Server.start();
  await happen(server, "ada", "first");
  const { token } = await server.createToken({ user_id: "bob", scopes: ["read"] });
  expect(summed(await series(server, {}, token))).toMatchObject(times(0));
  expect(await server.rpc("stats/series", { user_id: "ada" }, token)).toMatchObject({ error: { code: FORBIDDEN } });
  const now = Date.now();
  const iso = (ms: number) => new Date(ms).toISOString();
  const bad = async (params: object, field: string) =>
    expect(await server.rpc("stats/series", params)).toMatchObject({ error: { code: INVALID, data: { field } } });
  await bad({ step_ms: 11_000 }, "step_ms");
  await bad({ from: iso(now), to: iso(now) }, "from");
  await bad({ from: iso(now - 400 * DAY_MS), step_ms: 10_000 }, "step_ms");
  await bad({ from: "yesterday" }, "from");
  // Whole steps, the last of which has begun; and as many points as fit where no step is given.
  const day = await series(server, { from: iso(now - DAY_MS), step_ms: 3_600_000 });
  expect(day.points.length).toBe(25);
  expect(day.points[0]?.at).toBe(day.from);
  expect(Date.parse(day.to)).toBeGreaterThan(now);
  const long = await series(server, { from: iso(now - 900 * DAY_MS) });
  expect(long).toMatchObject({ step_ms: 86_400_000 });
  expect(summed(long)).toMatchObject(ONCE);
  const before = await series(server, { from: iso(now - 2 * DAY_MS), to: iso(now - DAY_MS) });
  expect(summed(before)).toMatchObject(times(0));
});

test("says how the provider has answered", async () => {
  const server = await Server.start({ args: ["--provider", "rehearsal"] });
  const { thread_id } = await server.call<{ thread_id: string }>("thread/start", {});
  expect((await series(server)).provider).toMatchObject({ name: "rehearsal", calls: 0, last_answer_at: null });
  await server.call("turn/start", { thread_id, input: "hello" });
  const { provider, points } = await eventually(
    () => series(server),
    (answer) => answer.provider?.last_answer_at != null,
    30_000,
  );
  expect(provider).toMatchObject({ calls: 1, failures: 0, last_failure: null, rate_limited_until: null });
  expect(points.every(({ wakes }) => wakes === 0)).toBe(true);
});

test("says how the provider has failed, in its words to admin alone", async () => {
  const refusing = createServer((_request, response) => {
    response.writeHead(401, { "content-type": "application/json" });
    response.end(JSON.stringify({ error: { message: "the key is of no use", type: "authentication_error" } }));
  });
  await new Promise<void>((resolve) => refusing.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => new Promise<void>((resolve) => refusing.close(() => resolve())));
  const { port } = refusing.address() as AddressInfo;
  const base_url = `http://127.0.0.1:${port}/v1`;
  const args = ["--provider", "openai-compatible", "--model", "any", "--base-url", base_url, "--api-key-env", "A_KEY"];
  const server = await Server.start({ args, env: { A_KEY: "useless" } });
  const { token } = await server.createToken({ user_id: "ada", scopes: ["read", "agent"] });
  const { thread_id } = await server.call<{ thread_id: string }>("thread/start", {}, token);
  await server.call("turn/start", { thread_id, input: "hello" }, token);
  const failed = ({ provider }: SeriesAnswer) => (provider?.failures ?? 0) > 0;
  const { provider } = await eventually(() => series(server), failed, 30_000);
  expect(provider).toMatchObject({ name: "openai-compatible", model: "any", last_answer_at: null });
  expect(provider?.last_failure).toMatchObject({ kind: "auth", message: expect.stringContaining("of no use") });
  const { provider: seen } = await series(server, {}, token);
  expect(seen?.last_failure).toEqual({ ...provider?.last_failure, message: null });
});
