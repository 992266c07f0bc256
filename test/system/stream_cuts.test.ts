/**
 * Connections that are cut: a proxy ends them at every byte of a short session, and at random in a longer one, while things
 * happen. Whoever comes back has been told everything once, in its order, or that something is missing (I17).
 */
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { TidingsClient } from "../../src/client/index.js";
import { type Cursor, CuttingProxy, type Kind, StubbornClient, type Told } from "../support/cutting.js";
import { endKeptServer, startKeptServer } from "../support/kept_server.js";
import type { Server } from "../support/server.js";

/** How many longer sessions; `npm run cuts` asks for more. */
const SESSIONS = Number(process.env["TIDINGS_CUT_SESSIONS"] ?? 2);
const SEED = Number(process.env["TIDINGS_CUT_SEED"] ?? 42);
/** So many clients of the short session at once. */
const AT_ONCE = 400;

/** At each byte of the WebSocket's session both of its clients; without it they take turns, one at each byte. */
const EACH_AT_EVERY_BYTE = process.env["TIDINGS_CUT_SESSIONS"] !== undefined;

/** The way of one `tidings/client` at a time: the first connection that comes after `cutAt` was set is cut there. */
interface Door {
  readonly proxy: CuttingProxy;
  cutAt: number | undefined;
}
/** There before the server, which has to know their names. */
let doors: Door[];
let server: Server;
beforeAll(async () => {
  doors = await Promise.all(Array.from({ length: AT_ONCE / 2 }, () => door()));
  const names = doors.map(({ proxy }) => new URL(proxy.url).host).join(",");
  const args = ["--provider", "rehearsal", "--heartbeat-ms", "500", "--allow-host", names];
  server = await startKeptServer(args);
  for (const { proxy } of doors) proxy.pointAt(server.url);
});
async function door(): Promise<Door> {
  const proxy = await CuttingProxy.start("http://127.0.0.1:1", () => {
    const { cutAt } = one;
    one.cutAt = undefined;
    return cutAt;
  });
  const one: Door = { proxy, cutAt: undefined };
  return one;
}
afterAll(async () => {
  for (const { proxy } of doors) proxy.stop();
  await endKeptServer(server);
});

let people = 0;
async function person() {
  people += 1;
  const user_id = `p${people}`;
  const { token } = await server.createToken({ user_id, scopes: ["read", "ack", "ingest", "agent"] });
  const call = <Result = Record<string, string>>(method: string, params: object = {}) =>
    server.call<Result>(method, params, token);
  const { journal_id, last_seq } = await server.call<{ journal_id: string; last_seq: number }>("runtime/status");
  const cursor: Cursor = { journal_id, after_seq: last_seq };
  return { user_id, token, call, cursor };
}
type Person = Awaited<ReturnType<typeof person>>;

const LAST = "the last word";
const isLast = ({ method, params }: Told) =>
  method === "notification/created" && (params["notification"] as { content: string }).content === LAST;
const say = (me: Person, content: string) => me.call("notification/notify", { content, target: "user" });

/** Something of every kind that costs no time, in few bytes. */
async function shortSession(me: Person): Promise<void> {
  const { thread_id = "" } = await me.call("thread/start");
  // A notice is told of twice, by one entry: as a notification, and as an item of the conversation.
  await me.call("notification/notify", { content: "pill", target: "user", thread_id });
  await me.call("thread/pause", { thread_id });
  const { turn_id } = await me.call("turn/start", { thread_id, input: "later" });
  await me.call("queue/remove", { turn_id });
  await me.call("thread/resume", { thread_id });
}
const isResumed = ({ method }: Told) => method === "thread/resumed";

async function client(me: Person, kind: Kind, cuts: (connection: number) => number | undefined) {
  const proxy = await CuttingProxy.start(server.url, cuts);
  const { url } = server;
  return { proxy, client: new StubbornClient(proxy, { url, token: me.token, cursor: me.cursor, kind }) };
}

/** Everybody was told the same, whole, and nobody had to begin anew. */
function compareWhole(clients: readonly StubbornClient[], whole: readonly Told[], what: string): void {
  for (const [at, { told, resets, problems }] of clients.entries()) {
    expect(problems, `${what} ${at}`).toEqual([]);
    expect(resets, `${what} ${at}`).toEqual([]);
    expect(told, `${what} ${at}`).toEqual(whole);
  }
}

const seqOf = ({ params }: Told) => params["seq"] as number;
const partOf = ({ params }: Told) => (params["part"] as number | undefined) ?? 1;
const placeOf = (told: Told) => `${seqOf(told)}.${partOf(told)}`;

/**
 * Each was told, from its cursor on and again from each reset on, all that anybody was told there. Answers how often
 * something was told to one that had been told to another.
 */
function compareWithOthers(clients: readonly StubbornClient[], after_seq: number): number {
  const byPlace = new Map<string, Told>();
  let compared = 0;
  for (const one of clients.flatMap(({ told }) => told)) {
    const other = byPlace.get(placeOf(one));
    if (other === undefined) byPlace.set(placeOf(one), one);
    else compared += 1;
  }
  const all = [...byPlace.values()].toSorted((a, b) => seqOf(a) - seqOf(b) || partOf(a) - partOf(b));
  for (const [n, { told, resets, problems }] of clients.entries()) {
    expect(problems, `client ${n}`).toEqual([]);
    const begins = [{ at: 0, newest_seq: after_seq }, ...resets];
    for (const [nth, { at, newest_seq }] of begins.entries()) {
      const until = begins[nth + 1]?.at;
      const piece = told.slice(at, until);
      const last = piece.at(-1);
      if (last === undefined) continue;
      const end = all.findIndex((one) => placeOf(one) === placeOf(last));
      const expected = all.slice(0, end + 1).filter((one) => seqOf(one) > newest_seq);
      expect(piece, `client ${n} from ${newest_seq} on`).toEqual(expected);
    }
    // To the end, unless the last that it was told was to begin anew after that.
    const end = Math.max(...[...told.slice(-1).map(seqOf), ...resets.slice(-1).map((reset) => reset.newest_seq)]);
    expect(end, `client ${n}`).toBeGreaterThanOrEqual(Math.max(...all.map(seqOf)));
  }
  return compared;
}

test("at every byte of a session while it happens: each client has every entry once, in order", async () => {
  // What one client is sent in all, over one connection.
  const first = await person();
  const { proxy, client: uncut } = await client(first, "ndjson", () => undefined);
  const sizes: number[] = [];
  const followed = uncut.follow(isResumed);
  await shortSession(first);
  await followed;
  sizes.push(...uncut.told.map((one) => JSON.stringify(one).length));
  expect(proxy.connections).toBe(1);
  expect(uncut.told.map(({ method }) => method)).toEqual([
    "thread/started",
    "notification/created",
    "item/created",
    "thread/paused",
    "item/created",
    "item/deleted",
    "thread/resumed",
  ]);
  const bytes = sizes.reduce((sum, size) => sum + size + 120, 600);

  let cut = 0;
  for (let from = 0; from < bytes; from += AT_ONCE) {
    const me = await person();
    const clients = await Promise.all(
      Array.from({ length: AT_ONCE }, (_, n) => client(me, "ndjson", (at) => (at === 0 ? from + n : undefined))),
    );
    const all = clients.map((one) => one.client.follow(isResumed));
    const whole = await client(me, "ndjson", () => undefined);
    const reference = whole.client.follow(isResumed);
    await shortSession(me);
    await Promise.all([...all, reference]);
    compareWhole(
      clients.map((one) => one.client),
      whole.client.told,
      `byte ${from} +`,
    );
    cut += clients.reduce((sum, one) => sum + one.proxy.cuts, 0);
  }
  // The last of them were beyond the end.
  expect(cut).toBeGreaterThan(bytes - 3 * AT_ONCE);
});

/** As few bytes as tell of one entry twice, and of one after it, in a thread that is there before. */
async function pillPerson(): Promise<Person & { thread_id: string }> {
  const me = await person();
  const { thread_id = "" } = await me.call("thread/start");
  const { last_seq } = await server.call<{ last_seq: number }>("runtime/status");
  return { ...me, thread_id, cursor: { ...me.cursor, after_seq: last_seq } };
}
async function shorterSession({ call, thread_id }: Person & { thread_id: string }): Promise<void> {
  await call("notification/notify", { content: "pill", target: "user", thread_id });
  await call("thread/pause", { thread_id });
}
const isPaused = ({ method }: Told) => method === "thread/paused";

/** What `tidings/client` tells over a WebSocket through this door, up to the last of the session. A reset is told too. */
async function library({ token, cursor }: Person, { proxy: { url } }: Door): Promise<Told[]> {
  const client = new TidingsClient({ url, token, cursor, reconnect: { min_ms: 1, max_ms: 20 } });
  const told: Told[] = [];
  for await (const { method, params } of client.notifications()) {
    if (method === "inbox/counts") continue;
    const { prev_seq: _, ...rest } = params as unknown as Record<string, unknown>;
    told.push({ method, params: rest });
    if (method === "thread/paused") break;
  }
  client.close();
  return told;
}

test("at every byte of a WebSocket, by a reader of its own or by tidings/client: every entry once, in order", async () => {
  // What each is sent in all, over one connection, from the first byte of the handshake.
  const first = await pillPerson();
  const [way] = doors as [Door];
  const { proxy, client: uncut } = await client(first, "websocket", () => undefined);
  const both = [uncut.follow(isPaused), library(first, way)];
  await shorterSession(first);
  await Promise.all(both);
  expect(uncut.told.map(({ method }) => method)).toEqual(["notification/created", "item/created", "thread/paused"]);
  expect([proxy.connections, way.proxy.connections]).toEqual([1, 1]);
  const bytes = Math.max(proxy.bytes, way.proxy.bytes);

  const readsAt = (byte: number) => EACH_AT_EVERY_BYTE || byte % 2 === 0;
  const libraryAt = (byte: number) => EACH_AT_EVERY_BYTE || byte % 2 === 1;
  let cut = 0;
  for (let from = 0; from < bytes; from += doors.length) {
    const me = await pillPerson();
    const at = doors.map((_, n) => from + n);
    const readers = await Promise.all(
      at.filter(readsAt).map((byte) => client(me, "websocket", (nth) => (nth === 0 ? byte : undefined))),
    );
    const ways = doors.filter((_, n) => libraryAt(from + n));
    const before = ways.reduce((sum, one) => sum + one.proxy.cuts, 0);
    for (const [n, one] of doors.entries()) one.cutAt = from + n;
    const whole = await client(me, "websocket", () => undefined);
    const all = [whole, ...readers].map((one) => one.client.follow(isPaused));
    const libraries = ways.map((one) => library(me, one));
    await shorterSession(me);
    await Promise.all(all);
    const clients = readers.map((one) => one.client);
    compareWhole(clients, whole.client.told, `byte ${from} +`);
    for (const [n, told] of (await Promise.all(libraries)).entries())
      expect(told, `client ${n} of byte ${from} +`).toEqual(whole.client.told);
    cut += readers.reduce((sum, one) => sum + one.proxy.cuts, 0);
    cut += ways.reduce((sum, one) => sum + one.proxy.cuts, 0) - before;
  }
  // Nobody has the last of it without what comes before: each that was to be cut there was.
  expect(cut).toBeGreaterThanOrEqual(uncut.told.reduce((sum, one) => sum + JSON.stringify(one).length, 0));
});

/** Turns, tools, notices and messages that wait, as they come. */
async function longSession(me: Person, random: () => number): Promise<number> {
  const { thread_id = "" } = await me.call("thread/start");
  const ids: string[] = [];
  for (let n = 0; n < 25; n += 1) {
    const what = Math.floor(random() * 6);
    if (what === 0) ids.push((await say(me, `said ${n}`))["id"] ?? "");
    else if (what === 1)
      await me.call("notification/notify", { content: `pill ${n}`, target: "user", thread_id, dedupe_key: "same" });
    else if (what === 2) await me.call("turn/deliver", { thread_id, input: `call read_notifications {}` });
    else if (what === 3) await me.call("turn/deliver", { thread_id, input: `hello ${n}` });
    else if (what === 4) {
      await me.call("thread/pause", { thread_id });
      const { turn_id } = await me.call("turn/start", { thread_id, input: "never mind" });
      await me.call("queue/remove", { turn_id });
      await me.call("thread/resume", { thread_id });
    } else {
      const id = ids.pop();
      if (id !== undefined) await server.rpc("notification/ack", { id, revision: 1, action: "rendered" }, me.token);
    }
  }
  // Much at once, so that something comes at the very moment at which one that comes back has caught up.
  for (let n = 0; n < 3; n += 1)
    await Promise.all(Array.from({ length: 20 }, (_, of) => say(me, `one of many ${n} ${of}`)));
  await me.call("thread/close", { thread_id });
  return (await me.call<{ seq: number }>("notification/notify", { content: LAST, target: "user" })).seq;
}

const KINDS: readonly Kind[] = ["ndjson", "sse", "websocket"];

test.each<[string, number | null]>([
  ["nothing else happens", null],
  ["retention removes what is older than two seconds", 2_000],
  ["retention removes all that it can", 0],
])("at random, again and again, over every transport, while %s", async (_what, older_than_ms) => {
  let [sessions, compared, pruned] = [0, 0, 0];
  await fc.assert(
    fc.asyncProperty(fc.infiniteStream(fc.noBias(fc.nat({ max: 999_999 }))), async (numbers) => {
      sessions += 1;
      const random = () => (numbers.next().value as number) / 1_000_000;
      const me = await person();
      const clients = await Promise.all(
        Array.from({ length: 12 }, (_, n) => {
          const kind = KINDS[n % KINDS.length] ?? "ndjson";
          return client(me, kind, (at) => (at > 40 ? undefined : 300 + Math.floor(random() * 9_000)));
        }),
      );
      const whole = await client(me, "ndjson", () => undefined);
      const all = [whole, ...clients].map((one) => one.client.follow(isLast));
      let over = false;
      const pruning = (async () => {
        while (older_than_ms !== null && !over)
          pruned += (await server.call<{ entries: number }>("runtime/prune", { older_than_ms })).entries;
      })();
      const last = await longSession(me, random);
      for (const one of [whole, ...clients]) one.client.endsAt(last);
      await Promise.all(all);
      over = true;
      await pruning;
      const everybody = [whole, ...clients].map((one) => one.client);
      if (older_than_ms === null) compareWhole(everybody, whole.client.told, "client");
      compared += compareWithOthers(everybody, me.cursor.after_seq);
      expect(clients.reduce((sum, one) => sum + one.proxy.cuts, 0)).toBeGreaterThan(12);
    }),
    { numRuns: SESSIONS, seed: SEED, endOnFailure: true },
  );
  expect(sessions).toBe(SESSIONS);
  expect(compared).toBeGreaterThan(0);
  if (older_than_ms !== null) expect(pruned).toBeGreaterThan(0);
});
