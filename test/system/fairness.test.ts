/** Nobody is held up by what another asks for, or sends. */
import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { eventually, temporaryFolder } from "../support/folder.js";
import { endKeptServer, startKeptServer } from "../support/kept_server.js";
import { Server } from "../support/server.js";
import { Duplex, framesOf, type StreamFrame } from "../support/stream.js";

const PROGRAM = fileURLToPath(new URL("../../dist/cli/main.js", import.meta.url));
const OVERLOADED = -32001;
const ENTRIES = 20_000;
const AT_ONCE = 1_000;

let server: Server;
let journal_id: string;
beforeAll(async () => {
  server = await startKeptServer(["--events-per-second", "100000"]);
  journal_id = (await server.call<{ journal_id: string }>("initialize")).journal_id;
  for (let from = 0; from < ENTRIES; from += AT_ONCE) {
    const events = Array.from({ length: AT_ONCE }, (_, n) => ({
      ...{ type: "cli.build.finished", source: "ci", dedupe_key: `${from + n}` },
      payload: { message: `build ${from + n}` },
    }));
    expect((await server.post("/v1/events", events)).status).toBe(202);
  }
});
afterAll(async () => {
  await endKeptServer(server);
});

async function figure(name: string, of = server): Promise<number> {
  const { text } = await of.get("/metrics");
  return Number(new RegExp(`^${name} ([0-9]+)$`, "m").exec(text)?.[1]);
}

/** From the first entry on. Nothing of that is wanted, so nothing fills the connection. */
function resume(): Duplex {
  const query = `journal_id=${journal_id}&after_seq=0&opt_out=notification/created,notification/updated`;
  return new Duplex(`${server.url}/rpc/stream?${query}`, { token: server.token, method: "GET" });
}

const opened = (stream: Duplex) =>
  new Promise<void>((resolve) => {
    stream.request.on("response", () => resolve());
  });

describe("a client that comes back after a long while", () => {
  test("does not hold up the calls of others, nor do many of them at once", async () => {
    const streams = Array.from({ length: 8 }, resume);
    await Promise.all(streams.map(opened));
    for (let calls = 1; calls <= 20; calls += 1) {
      await server.call("inbox/counts");
      expect(streams.filter(({ frames }) => frames.all.length > 0).length, `after ${calls} calls`).toBe(0);
    }
    for (const { request } of streams) request.destroy();
    await eventually(
      () => figure("tidings_clients_resuming"),
      (resuming) => resuming === 0,
    );
  });

  test("is not read for any longer when it has gone", async () => {
    const before = await figure("tidings_replayed_entries_total");
    const stream = resume();
    await opened(stream);
    await eventually(
      () => figure("tidings_clients_resuming"),
      (resuming) => resuming === 1,
    );
    stream.request.destroy();
    await eventually(
      () => figure("tidings_clients_resuming"),
      (resuming) => resuming === 0,
    );
    expect((await figure("tidings_replayed_entries_total")) - before).toBeLessThan(ENTRIES);
  });
});

/** Many times what may come at once: twice as much as in a second. */
const RATE = 20;
const SENT = 20 * RATE;

/** Of whatever is no call, so much is answered as such as the rate allows; the rest is too much, and says when to come again. */
function expectLimited(errors: readonly (StreamFrame["error"] | undefined)[]): void {
  expect(errors).toHaveLength(SENT);
  const refused = errors.filter((error) => error?.code === OVERLOADED);
  expect(errors.length - refused.length).toBeGreaterThanOrEqual(RATE);
  expect(refused.length).toBeGreaterThan(0);
  for (const error of refused) expect(error?.data["retry_after_ms"]).toBeGreaterThan(0);
}

describe("what is no call costs of the rate of its token", () => {
  /** What is said on it is read at once, so that the time that it takes gives no rate back. */
  const limited = async () => {
    const one = await Server.start({ args: ["--events-per-second", String(RATE)] });
    const token = async () => (await one.createToken({ user_id: "ada", scopes: ["read", "ingest"] })).token;
    return { one, token };
  };
  const errorsOf = (frames: readonly object[]) =>
    frames.flat().flatMap((frame) => ("error" in frame ? [(frame as StreamFrame).error] : []));
  const enough = (frames: readonly object[]) => (errorsOf(frames).length >= SENT ? errorsOf(frames) : undefined);

  test("over a WebSocket, a stream of lines, and standard input", async () => {
    const { one, token } = await limited();
    for (const text of ["{", "1", '{"id":7}', "[]"]) {
      const client = await one.connect({ token: await token() });
      for (let n = 0; n < SENT; n += 1) client.send(text);
      expectLimited((await client.until(enough)) as StreamFrame["error"][]);

      const stream = new Duplex(`${one.url}/rpc/stream`, { token: await token() });
      stream.say(Array.from({ length: SENT }, () => text).join("\n"));
      expectLimited(await stream.frames.until(enough));
    }
    const args = ["serve", "--stdio", "--data", await temporaryFolder(), "--provider", "none"];
    const child = spawn(process.execPath, [PROGRAM, ...args, "--events-per-second", String(RATE)], {
      stdio: ["pipe", "pipe", "ignore"],
    });
    onTestFinished(() => {
      child.kill("SIGKILL");
    });
    const frames = framesOf(child.stdout);
    child.stdin.write("{\n".repeat(SENT));
    expectLimited(await frames.until(enough));
  });

  test("as an element of a batch, and as a line or a ping that is not answered as a call", async () => {
    const { one, token } = await limited();
    const batches = await one.connect({ token: await token() });
    for (let n = 0; n < SENT / 100; n += 1) batches.send(JSON.stringify(Array.from({ length: 100 }, () => 1)));
    expectLimited((await batches.until(enough)) as StreamFrame["error"][]);

    const blank = new Duplex(`${one.url}/rpc/stream`, { token: await token() });
    blank.say("\n".repeat(SENT));
    expect((await blank.rpc("inbox/counts")).error?.code).toBe(OVERLOADED);

    const pings = await one.connect({ token: await token() });
    for (let n = 0; n < SENT; n += 1) pings.socket.ping();
    expect((await pings.rpc("inbox/counts")).error?.code).toBe(OVERLOADED);
  });

  test.each([
    ["/rpc", "{"],
    ["/v1/events", "{"],
    ["/v1/events", '{"type": "bad"}'],
    ["/v1/events", "[]"],
  ])("as the body of a request to %s: %s", async (path, body) => {
    const { one, token } = await limited();
    const mine = await token();
    const statuses = new Map<number, number>();
    while (!statuses.has(429) && (statuses.get(400) ?? 0) < SENT)
      for (const { status } of await Promise.all(Array.from({ length: 50 }, () => one.post(path, body, mine))))
        statuses.set(status, (statuses.get(status) ?? 0) + 1);
    expect([...statuses.keys()].toSorted()).toEqual([400, 429]);
    expect(statuses.get(400)).toBeGreaterThanOrEqual(RATE);
  });
});

describe("a client that sends without end", () => {
  /** What the server refuses between two answers that another gets, one after the other. */
  async function refusedBetween(one: Server, flood: () => Promise<void>, calls: number): Promise<number[]> {
    const refused = () => figure("tidings_rate_limited_total", one);
    void flood();
    await eventually(refused, (count) => count > 0);
    const seen: number[] = [];
    for (let call = 0; call <= calls; call += 1) seen.push(await refused());
    return seen.slice(1).map((count, at) => count - (seen[at] ?? 0));
  }

  const FLOOD = 1_000_000;
  const MESSAGES = 1_000;

  test.each(["websocket", "ndjson"])("over %s: others are answered between few of its messages", async (transport) => {
    const one = await Server.start({ args: ["--events-per-second", "1"] });
    const { token } = await one.createToken({ user_id: "ada", scopes: ["read"] });
    let sent = 0;
    let over = false;
    onTestFinished(() => {
      over = true;
    });
    const client = transport === "websocket" ? await one.connect({ token }) : undefined;
    const stream = new Duplex(`${one.url}/rpc/stream`, { token });
    const flood = async () => {
      for (; !over && sent < FLOOD; sent += MESSAGES) {
        if (client === undefined) stream.request.write("{\n".repeat(MESSAGES));
        else for (let n = 0; n < MESSAGES; n += 1) client.socket.send("{");
        await new Promise((resolve) => setImmediate(resolve));
      }
    };
    const between = await refusedBetween(one, flood, 10);
    expect(Math.max(...between)).toBeGreaterThan(0);
    expect(Math.max(...between)).toBeLessThan(5_000);
  });
});
