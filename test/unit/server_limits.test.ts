/**
 * The bounds of a server, each through a server that has a smaller one: what is within it is taken, what is one over is
 * refused with its code, over every way in that it concerns.
 */
import { expect, it, test } from "vitest";
import { userId } from "../../src/domain/ids.js";
import { systemClock } from "../../src/platform/clock.js";
import { Caller } from "../../src/server/access.js";
import { EventCounts } from "../../src/server/event_counts.js";
import { Ingest } from "../../src/server/ingest/ingest.js";
import { SERVER_LIMITS, type ServerLimits } from "../../src/server/limits.js";
import { RateLimit } from "../../src/server/rate.js";
import { TidingsServer } from "../../src/server/server.js";
import { eventually, openTidings, temporaryFolder } from "../support/folder.js";
import { ask, Limited } from "../support/limited.js";
import { frameBytes, OPCODE, openRawWebSocket, RawSocket, requestText, upgradeLines } from "../support/raw.js";
import { Duplex, type StreamFrame } from "../support/stream.js";

const GOOD = { type: "cli.a.b", source: "limits" };
const OVERLOADED = -32001;
const INVALID_REQUEST = -32600;
const PARSE_ERROR = -32700;

const start = (limits: Partial<ServerLimits>) => Limited.start(limits);
const status = async (response: Promise<Response>) => (await response).status;
/** A JSON text of exactly so many bytes that is no event and no call. */
const sized = (bytes: number) => `{"unknown":"${"x".repeat(bytes - 14)}"}`;
const nested = (depth: number) => `${'{"a":'.repeat(depth)}1${"}".repeat(depth)}`;
const chunked = (text: string) => `${[...text].map((one) => `1\r\n${one}\r\n`).join("")}0\r\n\r\n`;
const BODIES = ["/rpc", "/v1/events", "/v1/hooks/limited"] as const;

/** So many connections, each of which asks for more than the system takes for itself, and reads nothing of it. */
async function askMuch(limited: Limited, connections: number): Promise<RawSocket[]> {
  for (let n = 0; n < 60; n += 1) await limited.say(`${n} ${"x".repeat(16_000)}`);
  const body = JSON.stringify({ id: 1, method: "notification/list", params: { limit: 60 } });
  const asked = limited.head("POST /rpc HTTP/1.1", `Content-Length: ${body.length}`) + body;
  const open = Array.from({ length: connections }, async () => {
    const deaf = await RawSocket.open(limited.server.url);
    deaf.socket.pause();
    deaf.write(asked.repeat(60));
    return deaf;
  });
  return Promise.all(open);
}

/** Every kind of stream; the status of the answer, and of one that is refused after how long to come again. */
const STREAMS = ["GET /ws", "GET /rpc/stream", "POST /rpc/stream", "GET /sse"] as const;

async function openStream(limited: Limited, kind: (typeof STREAMS)[number], token = limited.server.token) {
  const raw = await RawSocket.open(limited.server.url);
  const host = `Host: ${limited.host}`;
  const lines = [`${kind} HTTP/1.1`, host, `Authorization: Bearer ${token}`];
  if (kind === "GET /ws") raw.write(requestText(upgradeLines(token, [host])));
  else raw.write(requestText(kind.startsWith("POST") ? [...lines, "Transfer-Encoding: chunked"] : lines));
  const { status: said, headers } = await raw.response();
  return { raw, said, retryAfter: headers["retry-after"] };
}

/** Of each kind one is taken, the next is refused, and taken when the first has gone. */
async function oneOfEachKind(limited: Limited, token?: string): Promise<void> {
  for (const kind of STREAMS) {
    const first = await openStream(limited, kind, token);
    expect([200, 101], kind).toContain(first.said);
    const refused = await openStream(limited, kind, token);
    expect([refused.said, refused.retryAfter], kind).toEqual([429, "1"]);
    first.raw.socket.destroy();
    const again = await eventually(
      () => openStream(limited, kind, token),
      ({ said }) => said !== 429,
    );
    again.raw.socket.destroy();
    await eventually(
      () => limited.connections(),
      (open) => open === 0,
    );
  }
}

/** How many clients were too slow. */
async function endedSlow({ server }: Limited): Promise<number> {
  const headers = { authorization: `Bearer ${server.token}` };
  const text = await (await fetch(new URL("/metrics", server.url), { headers })).text();
  return Number(/^tidings_clients_closed_slow_total (\d+)$/m.exec(text)?.[1]);
}

/** Told more than may wait, while it does not read: what it had, why it ended, and that the rest follows its cursor. */
async function tooSlow(limited: Limited, path: string): Promise<void> {
  const { server } = limited;
  const stuck = new Duplex(`${server.url}${path}`, { token: server.token, method: "GET" });
  await stuck.frames.told("inbox/counts");
  stuck.response?.pause();
  const said: string[] = [];
  const before = await endedSlow(limited);
  await eventually(
    async () => {
      for (let n = 0; n < 20; n += 1) {
        said.push(String(said.length));
        await limited.say(`${said.at(-1)} ${"x".repeat(16_000)}`);
      }
      return endedSlow(limited);
    },
    (ended) => ended > before,
  );
  stuck.response?.resume();
  await stuck.frames.over();
  const ended = stuck.frames.all.at(-1)?.error;
  expect(ended).toMatchObject({
    code: OVERLOADED,
    data: { code: "overloaded", cursor: { after_seq: expect.any(Number) } },
  });
  const { cursor = {} } = ended?.data ?? {};
  const { journal_id, after_seq } = cursor as { journal_id: string; after_seq: number };
  const contents = (frames: readonly StreamFrame[]) =>
    frames.flatMap(({ params }) =>
      params?.prev_seq === undefined ? [] : [(params.notification.content as string).split(" ", 1)[0]],
    );
  const had = contents(stuck.frames.all);
  expect(had.length).toBeLessThan(said.length);
  const again = `${server.url}${path}?journal_id=${journal_id}&after_seq=${after_seq}`;
  const { frames } = new Duplex(again, { token: server.token, method: "GET" });
  const rest = await frames.until((all) =>
    contents(all).length >= said.length - had.length ? contents(all) : undefined,
  );
  expect([...had, ...rest]).toEqual(said);
}

const CASES: { readonly [Name in keyof ServerLimits]: () => Promise<void> } = {
  headerBytes: async () => {
    const limited = await start({ headerBytes: 4_096 });
    const ask = async (bytes: number) => {
      const raw = await limited.raw("GET /healthz HTTP/1.1", [`X-Long: ${"x".repeat(bytes)}`]);
      return (await raw.response()).status;
    };
    expect([await ask(3_000), await ask(4_097)]).toEqual([200, 431]);
  },

  bodyBytes: async () => {
    const limited = await start({ bodyBytes: 2_000 });
    for (const path of BODIES) {
      expect(await status(limited.post(path, sized(2_000))), path).not.toBe(413);
      expect(await status(limited.post(path, sized(2_001))), path).toBe(413);
      const raw = await limited.raw(`POST ${path} HTTP/1.1`, ["Transfer-Encoding: chunked"], chunked(sized(2_001)));
      expect((await raw.response()).status, `${path} in chunks`).toBe(413);
    }
  },

  bodyPieces: async () => {
    const limited = await start({ bodyPieces: 20 });
    for (const path of BODIES)
      for (const [pieces, over] of [
        [20, false],
        [21, true],
      ] as const) {
        const raw = await limited.raw(`POST ${path} HTTP/1.1`, ["Transfer-Encoding: chunked"], chunked(sized(pieces)));
        expect((await raw.response()).status === 413, `${path} ${pieces}`).toBe(over);
      }
  },

  jsonDepth: async () => {
    const limited = await start({ jsonDepth: 8 });
    // The call is one level, its parameters are the next.
    const call = (depth: number) => `{"id":1,"method":"inbox/counts","params":${nested(depth)}}`;
    for (const speaker of await limited.speakers()) {
      speaker.send(call(7));
      expect((await speaker.frame(({ id }) => id === 1)).error?.code, speaker.name).toBe(-32602);
      speaker.send(call(8).replace('"id":1', '"id":2'));
      const { error } = await speaker.frame(({ id }) => id === 2);
      expect(error, speaker.name).toMatchObject({ code: INVALID_REQUEST, data: { code: "invalid_input" } });
      expect((await ask(speaker, "after", "inbox/counts")).error, speaker.name).toBeUndefined();
    }
    const event = (depth: number) => `{"type":"cli.a.b","source":"s","payload":${nested(depth)}}`;
    for (const [depth, event_status, hook_status] of [
      [7, 202, 202],
      [8, 400, 400],
    ] as const) {
      expect(await status(limited.post("/v1/events", event(depth)))).toBe(event_status);
      expect(await status(limited.hook(event(depth)))).toBe(hook_status);
    }
  },

  jsonKeys: async () => {
    const limited = await start({ jsonKeys: 20 });
    // Those of the call are three.
    const keys = (count: number) =>
      Object.fromEntries(Array.from({ length: count }, (_, n) => [`k${n}`, [] as number[]]));
    const call = (params: object) => JSON.stringify({ id: 1, method: "inbox/counts", params });
    for (const speaker of await limited.speakers()) {
      speaker.send(call(keys(17)));
      expect((await speaker.frame(({ id }) => id === 1)).error?.code, speaker.name).toBe(-32602);
      speaker.send(call(keys(18)).replace('"id":1', '"id":2'));
      const { error } = await speaker.frame(({ id }) => id === 2);
      expect(error, speaker.name).toMatchObject({ code: INVALID_REQUEST, data: { code: "invalid_input" } });
      expect((await ask(speaker, "after", "inbox/counts")).error, speaker.name).toBeUndefined();
    }
    const event = (count: number) => JSON.stringify({ ...GOOD, payload: { list: Array(count).fill(1) } });
    for (const [count, expected] of [
      [16, 202],
      [17, 400],
    ] as const) {
      expect(await status(limited.post("/v1/events", event(count)))).toBe(expected);
      expect(await status(limited.hook(event(count)))).toBe(expected);
    }
  },

  tokenBytes: async () => {
    const limited = await start({ tokenBytes: 10_000 });
    const other = await limited.token("other");
    const begin = (bytes: number) =>
      limited.raw("POST /v1/events HTTP/1.1", ["Content-Length: 20000"], " ".repeat(bytes));
    // Bodies that never end, until there is no room for another byte.
    const open = [await begin(5_000), await begin(5_000)];
    for (const path of ["/v1/events", "/rpc"]) {
      await eventually(
        () => status(limited.post(path, GOOD)),
        (said) => said === 429,
      );
      const refused = await limited.post(path, GOOD);
      expect(refused.headers.get("retry-after")).toBe("1");
      const error = path === "/rpc" ? { code: OVERLOADED, data: { retry_after_ms: 1_000 } } : { code: "overloaded" };
      expect(await refused.json()).toMatchObject({ error });
    }
    expect(await status(limited.post("/v1/events", GOOD, other))).toBe(202);
    for (const raw of open) raw.socket.destroy();
    await eventually(
      () => status(limited.post("/v1/events", GOOD)),
      (said) => said === 202,
    );
    // Of hooks, whose senders nobody knows yet, all together.
    const hooks = [await limited.raw("POST /v1/hooks/limited HTTP/1.1", ["Content-Length: 20000"], " ".repeat(10_000))];
    await eventually(
      () => status(limited.hook("{}")),
      (said) => said === 429,
    );
    for (const raw of hooks) raw.socket.destroy();
    let sent = 0;
    await eventually(
      () => {
        sent += 1;
        return status(limited.hook(JSON.stringify({ sent })));
      },
      (said) => said === 202,
    );
  },

  eventsPerRequest: async () => {
    const limited = await start({ eventsPerRequest: 3 });
    const batch = (type: string, events: readonly object[]) =>
      status(
        fetch(new URL("/v1/events", limited.server.url), {
          method: "POST",
          headers: { authorization: `Bearer ${limited.server.token}`, "content-type": type },
          body: JSON.stringify(events),
        }),
      );
    const cloud = { ...GOOD, specversion: "1.0", id: "1" };
    for (const [type, one] of [
      ["application/json", GOOD],
      ["application/cloudevents-batch+json", cloud],
    ] as const)
      expect([await batch(type, Array(3).fill(one)), await batch(type, Array(4).fill(one))], type).toEqual([202, 400]);
  },

  attributesPerEvent: async () => {
    const limited = await start({ attributesPerEvent: 6 });
    const post = (type: string, headers: Readonly<Record<string, string>>, body: unknown) =>
      fetch(new URL("/v1/events", limited.server.url), {
        method: "POST",
        headers: { authorization: `Bearer ${limited.server.token}`, "content-type": type, ...headers },
        body: JSON.stringify(body),
      });
    const attributes = (more: number): Record<string, string> => ({
      ...{ specversion: "1.0", id: String(more), source: "/limits", type: "cli.a.b" },
      ...Object.fromEntries(Array.from({ length: more }, (_, n) => [`more${n}`, "x"])),
    });
    const asHeaders = (given: Record<string, string>) =>
      Object.fromEntries(Object.entries(given).map(([name, value]) => [`ce-${name}`, value]));
    const structured = "application/cloudevents+json";
    expect((await post(structured, {}, attributes(2))).status).toBe(202);
    // The content type is one of them.
    expect((await post("application/json", asHeaders(attributes(1)), {})).status).toBe(202);
    for (const refused of [
      await post(structured, {}, attributes(3)),
      await post("application/json", asHeaders(attributes(2)), {}),
    ]) {
      expect(refused.status).toBe(400);
      expect(await refused.text()).toContain("has more than 6 attributes");
    }
  },

  signaturesPerRequest: async () => {
    const limited = await start({ signaturesPerRequest: 2 });
    const post = (name: string, signatures: number) =>
      fetch(new URL(`/v1/hooks/${name}`, limited.server.url), {
        method: "POST",
        headers: { "webhook-signature": Array<string>(signatures).fill("v1,x").join(" ") },
        body: "{}",
      });
    // Whether or not there is such a hook.
    for (const name of ["limited", "none"]) {
      expect((await post(name, 2)).status).toBe(401);
      const refused = await post(name, 3);
      expect(refused.status).toBe(400);
      expect(await refused.json()).toMatchObject({ error: { field: "webhook-signature" } });
    }
  },

  callsPerBatch: async () => {
    const limited = await start({ callsPerBatch: 3 });
    const calls = (count: number) =>
      JSON.stringify(Array.from({ length: count }, (_, id) => ({ id, method: "inbox/counts" })));
    for (const speaker of await limited.speakers()) {
      speaker.send(calls(3));
      expect(await speaker.frame((frame) => Array.isArray(frame)), speaker.name).toHaveLength(3);
      speaker.send(calls(4));
      expect((await speaker.frame(({ id }) => id === null)).error?.code, speaker.name).toBe(INVALID_REQUEST);
    }
  },

  answerBytes: async () => {
    const limited = await start({ answerBytes: 8_192 });
    for (let n = 0; n < 12; n += 1) await limited.say(`${n} ${"x".repeat(1_000)}`);
    const { notifications, next } = await limited.call<{ notifications: object[]; next: string }>("notification/list");
    expect(JSON.stringify(notifications).length).toBeLessThan(8_192 + 2_000);
    expect([notifications.length < 12, typeof next]).toEqual([true, "string"]);
    // Of a batch, what comes after too much is not run.
    const list = Array.from({ length: 60 }, (_, id) => ({ id, method: "notification/list" }));
    const answers = (await (await limited.post("/rpc", list)).json()) as StreamFrame[];
    expect(answers[0]?.error).toBeUndefined();
    expect(answers.at(-1)?.error).toMatchObject({ code: OVERLOADED, data: { retry_after_ms: expect.any(Number) } });
  },

  messageAnswerBytes: async () => {
    const limited = await start({ messageAnswerBytes: 8_192 });
    for (let n = 0; n < 12; n += 1) await limited.say(`${n} ${"x".repeat(1_000)}`);
    for (const speaker of (await limited.speakers()).slice(1)) {
      const { result } = await ask(speaker, "list", "notification/list");
      expect([result.notifications.length < 12, typeof result.next], speaker.name).toEqual([true, "string"]);
    }
    expect((await limited.call<{ notifications: object[] }>("notification/list")).notifications).toHaveLength(12);
  },

  messageBytes: async () => {
    const limited = await start({ messageBytes: 2_000 });
    const call = (bytes: number) => {
      const head = '{"id":"sized","method":"inbox/counts","unknown":"';
      return `${head}${"x".repeat(bytes - head.length - 2)}"}`;
    };
    const codes = new Map([
      ["WebSocket", 1009],
      ["POST /rpc/stream", PARSE_ERROR],
      ["stdio", PARSE_ERROR],
    ]);
    for (const speaker of (await limited.speakers()).slice(1)) {
      speaker.send(call(2_000));
      expect((await speaker.frame(({ id }) => id === "sized")).error, speaker.name).toBeUndefined();
      speaker.send(call(2_001));
      expect(await speaker.closed(), speaker.name).toBe(codes.get(speaker.name));
    }
  },

  messageFragments: async () => {
    const limited = await start({ messageFragments: 8 });
    const fragments = (count: number) => {
      const text = JSON.stringify({ id: 1, method: "inbox/counts" }).padEnd(count);
      const part = (n: number) => (n === count - 1 ? text.slice(n) : (text[n] ?? ""));
      return Array.from({ length: count }, (_, n) =>
        frameBytes(n === 0 ? OPCODE.text : OPCODE.continuation, part(n), { fin: n === count - 1 }),
      );
    };
    const raw = await openRawWebSocket(limited.server);
    raw.write(Buffer.concat(fragments(8)));
    for (let answered = false; !answered; ) answered = String((await raw.frame()).payload).includes('"id":1,');
    raw.write(Buffer.concat(fragments(9)));
    expect(await raw.closeCode()).toBe(1008);
  },

  messagePieces: async () => {
    const limited = await start({ messagePieces: 8 });
    const raw = await openRawWebSocket(limited.server);
    const frame = frameBytes(OPCODE.text, JSON.stringify({ id: 1, method: "inbox/counts", pad: "x".repeat(60_000) }));
    let at = 0;
    // Byte by byte, each when the one before has gone: sooner or later more than eight of them have been read one by one.
    while (!raw.ended && at < frame.length - 1) {
      await raw.writeAll(frame.subarray(at, at + 1));
      await new Promise((resolve) => setImmediate(resolve));
      at += 1;
    }
    expect(await raw.closeCode()).toBe(1008);
    const whole = await openRawWebSocket(limited.server);
    whole.write(frameBytes(OPCODE.text, JSON.stringify({ id: 1, method: "inbox/counts" })));
    for (let answered = false; !answered; ) answered = String((await whole.frame()).payload).includes('"id":1,');
  },

  outgoingBytes: async () => {
    const limits = { outgoingBytes: 100_000, closeMs: 60_000 };
    const limited = await start(limits);
    await tooSlow(limited, "/rpc/stream");
    await tooSlow(await start(limits), "/sse");
    // Over a WebSocket the reason says it.
    const deaf = await openRawWebSocket(limited.server);
    deaf.socket.pause();
    const before = await endedSlow(limited);
    await eventually(
      async () => {
        for (let n = 0; n < 20; n += 1) await limited.say(`${n} ${"x".repeat(16_000)}`);
        return endedSlow(limited);
      },
      (ended) => ended > before,
    );
    deaf.socket.resume();
    let last = "";
    for (;;) {
      const { opcode, payload } = await deaf.frame();
      if (opcode === OPCODE.text) {
        const { params } = JSON.parse(String(payload)) as StreamFrame;
        if (params?.prev_seq !== undefined) last = `${params.journal_id}:${params.seq}`;
      } else if (opcode === OPCODE.close) {
        expect(payload.readUInt16BE(0)).toBe(1013);
        expect(payload.toString("utf8", 2)).toBe(
          `too slow: more than 100000 bytes were waiting; connect again after ${last}`,
        );
        break;
      }
    }
  },

  callsPerSocket: async () => {
    const limited = await start({ callsPerSocket: 2 });
    const { thread_id } = await limited.call<{ thread_id: string }>("thread/start");
    const wait = (id: string, wait_ms = 60_000) =>
      JSON.stringify({ id, method: "agent/collect", params: { thread_id, point: "turn_start", wait_ms } });
    const socket = await limited.overWebSocket();
    for (const id of ["one", "two", "three"]) socket.send(wait(id));
    const refused = await socket.frame(({ id }) => id === "three");
    expect(refused.error).toMatchObject({ code: OVERLOADED, data: { retry_after_ms: expect.any(Number) } });
    // Lines are read no further until one is answered: the third is not refused, and comes after.
    for (const lines of [limited.overLines(), limited.overStdio()]) {
      const answered: unknown[] = [];
      const seen = lines.frame(({ id }) => {
        if (id !== undefined && !answered.includes(id)) answered.push(id);
        return id === "six";
      });
      for (const id of ["four", "five"]) lines.send(wait(id, 300));
      lines.send(JSON.stringify({ id: "six", method: "inbox/counts" }));
      expect((await seen).error, lines.name).toBeUndefined();
      expect(answered.indexOf("six"), lines.name).toBeGreaterThan(0);
    }
  },

  waits: async () => {
    const limited = await start({ waits: 2 });
    await countWaits(limited, ["ada", "bob"]);
  },

  waitsPerUser: async () => {
    const limited = await start({ waitsPerUser: 2 });
    await countWaits(limited, ["ada", "ada"]);
    const bob = await limited.token("bob");
    const speaker = limited.overLines(bob);
    const { thread_id } = (await ask(speaker, "start", "thread/start")).result;
    // Another's is another count.
    const { error } = await ask(speaker, "short", "agent/collect", { thread_id, point: "turn_start", wait_ms: 10 });
    expect(error).toBeUndefined();
  },

  sockets: async () => {
    const limited = await start({ sockets: 1 });
    await oneOfEachKind(limited);
    expect(await status(limited.post("/v1/events", GOOD))).toBe(202);
  },

  socketsPerUser: async () => {
    const limited = await start({ socketsPerUser: 1 });
    const ada = await limited.token("ada");
    await oneOfEachKind(limited, ada);
    const held = await openStream(limited, "GET /sse", ada);
    expect(held.said).toBe(200);
    expect((await openStream(limited, "GET /sse", await limited.token("bob"))).said).toBe(200);
  },

  connectionsPerAddress: async () => {
    const limited = await start({ connectionsPerAddress: 2 });
    const { url, token } = limited.server;
    const taken = [await openStream(limited, "GET /sse"), await openStream(limited, "GET /ws")];
    expect(taken.map(({ said }) => said)).toEqual([200, 101]);
    // Nothing that needs a token or a signature is answered; the connection ends.
    for (const [line, more, body] of [
      ["POST /rpc HTTP/1.1", ["Content-Length: 2"], "{}"],
      ["POST /v1/events HTTP/1.1", ["Content-Length: 2"], "{}"],
      ["POST /v1/hooks/limited HTTP/1.1", ["Content-Length: 2"], "{}"],
      ["GET /sse HTTP/1.1", [], ""],
      ["GET /rpc/stream HTTP/1.1", [], ""],
      ["POST /rpc/stream HTTP/1.1", ["Transfer-Encoding: chunked"], ""],
    ] as const) {
      const raw = await limited.raw(line, more, body);
      const refused = await raw.response();
      expect([refused.status, refused.headers["retry-after"], refused.headers["connection"]], line).toEqual([
        429,
        "1",
        "close",
      ]);
      const { error } = JSON.parse(refused.body) as { error: object };
      expect(error, line).toMatchObject(line.startsWith("POST /rpc ") ? { code: OVERLOADED } : { code: "overloaded" });
      await raw.closed();
    }
    const upgrade = await RawSocket.open(url);
    upgrade.write(requestText(upgradeLines(token, [`Host: ${limited.host}`])));
    expect((await upgrade.response()).status).toBe(429);
    await upgrade.closed();
    // One that says nothing is not kept, and of very many not even told why.
    const silent = await Promise.all(Array.from({ length: 6 }, () => RawSocket.open(url)));
    await Promise.all(silent.map((raw) => raw.closed()));
    for (const { raw } of taken) raw.socket.destroy();
    await eventually(
      () => status(limited.post("/v1/events", GOOD)).catch(() => 0),
      (said) => said === 202,
    );
    expect(limited.defects).toEqual([]);
  },

  requestsWaiting: async () => {
    const limited = await start({ requestsWaiting: 2 });
    const next = limited.head("GET /healthz HTTP/1.1");
    const raw = await limited.raw("GET /sse HTTP/1.1", [], next.repeat(2));
    expect((await raw.response()).status).toBe(200);
    expect(await limited.connections()).toBe(1);
    raw.write(next);
    await raw.closed();
    expect(limited.defects).toEqual([]);
  },

  itemsAtConnect: async () => {
    const limited = await start({ itemsAtConnect: 2 });
    for (const content of ["one", "two", "three"]) await limited.say(content);
    const { frames } = new Duplex(`${limited.server.url}/rpc/stream`, { token: limited.server.token });
    const counts = await frames.told("inbox/counts");
    expect(counts.params.unacknowledged).toBe(3);
    const items = frames.all.flatMap(({ params }) => params?.notification?.content ?? []);
    expect(items).toEqual(["two", "three"]);
  },

  heartbeatMs: async () => {
    const limited = await start({ heartbeatMs: 20 });
    for (const speaker of (await limited.speakers()).slice(1))
      await speaker.frame(({ method }) => method === "stream/heartbeat");
    const events = new Duplex(`${limited.server.url}/sse`, { token: limited.server.token, method: "GET" });
    await events.frames.told("stream/heartbeat");
  },

  pingMs: async () => {
    const limited = await start({ pingMs: 50, pongMs: 60_000 });
    const raw = await openRawWebSocket(limited.server);
    // Asked again and again for as long as it answers.
    for (let pings = 0; pings < 3; ) {
      if ((await raw.frame()).opcode !== OPCODE.ping) continue;
      pings += 1;
      raw.write(frameBytes(OPCODE.pong, ""));
    }
    expect(await limited.connections()).toBe(1);
  },

  pongMs: async () => {
    const limited = await start({ pingMs: 50, pongMs: 100 });
    const raw = await openRawWebSocket(limited.server);
    expect(await raw.closeCode()).toBeUndefined();
    // Over HTTP nobody is asked: who takes nothing of what waits is not there.
    const gone = await limited.raw("GET /rpc/stream HTTP/1.1", []);
    gone.socket.pause();
    await eventually(
      async () => {
        for (let n = 0; n < 20; n += 1) await limited.say(`${n} ${"x".repeat(16_000)}`);
        return limited.connections();
      },
      (open) => open === 0,
    );
    expect(limited.defects).toEqual([]);
  },

  closeMs: async () => {
    const limited = await start({ closeMs: 100 });
    const { token, id } = await limited.call<{ token: string; id: string }>("token/create", { scopes: ["read"] });
    const deaf = await openRawWebSocket(limited.server, token);
    await limited.call("token/revoke", { id });
    // It does not answer the close.
    expect(await deaf.closeCode()).toBe(1008);
    await deaf.closed();
  },

  ratePerSecond: async () => {
    const limited = await start({ ratePerSecond: 20, rateBurst: 1 });
    const ada = await limited.token("ada");
    const refused = async () => (await status(limited.post("/rpc", { id: 1, method: "inbox/counts" }, ada))) === 429;
    await eventually(refused, (over) => over);
    await eventually(refused, (over) => !over);
  },

  rateBurst: async () => {
    const limited = await start({ ratePerSecond: 20, rateBurst: 5 });
    const [ada, bob] = [await limited.token("ada"), await limited.token("bob")];
    const lines = limited.overLines(ada);
    const socket = await limited.overWebSocket(ada);
    const calls = (count: number) => Array.from({ length: count }, (_, id) => ({ id, method: "inbox/counts" }));
    // Two streams and three calls are five.
    const within = (await (await limited.post("/rpc", calls(3), ada)).json()) as StreamFrame[];
    expect(within.map(({ error }) => error)).toEqual([undefined, undefined, undefined]);
    // What comes at once is taken from a full measure, and what follows pays for it: for a long while nothing more is taken.
    await eventually(
      () => status(limited.post("/v1/events", Array(900).fill(GOOD), ada)),
      (said) => said === 202,
    );
    const overloaded = { code: OVERLOADED, data: { code: "overloaded", retry_after_ms: expect.any(Number) } };
    for (const speaker of [lines, socket])
      expect((await ask(speaker, "over", "inbox/counts")).error, speaker.name).toMatchObject(overloaded);
    const over = await limited.post("/rpc", { id: 1, method: "inbox/counts" }, ada);
    expect(Number(over.headers.get("retry-after"))).toBeGreaterThan(5);
    expect([over.status, await over.json()]).toMatchObject([429, { error: overloaded }]);
    const event = await limited.post("/v1/events", GOOD, ada);
    expect([event.status, await event.json()]).toMatchObject([429, { error: { retry_after_ms: expect.any(Number) } }]);
    for (const kind of STREAMS) expect((await openStream(limited, kind, ada)).said, kind).toBe(429);
    expect(await status(limited.post("/v1/events", GOOD, bob))).toBe(202);
    // A hook has a measure of its own.
    await eventually(
      async () => (await limited.hook(JSON.stringify({ n: Math.random() }))).status,
      (said) => said === 429,
    );
  },

  refusalsPerSecond: async () => {
    const limited = await start({ refusalsPerSecond: 20, refusalsBurst: 1 });
    const bad = () => status(limited.post("/rpc", {}, "bad"));
    await eventually(bad, (said) => said === 429);
    await eventually(bad, (said) => said === 401);
  },

  refusalsBurst: async () => {
    const limited = await start({ refusalsPerSecond: 1, refusalsBurst: 3 });
    const said = await Promise.all(Array.from({ length: 40 }, () => status(limited.post("/v1/events", GOOD, "bad"))));
    expect(said.filter((one) => one === 401).length).toBeGreaterThanOrEqual(3);
    expect(said).toContain(429);
    for (const kind of STREAMS)
      await eventually(
        () => openStream(limited, kind, "bad"),
        (one) => one.said === 429,
      );
    await eventually(
      () => status(limited.post("/v1/hooks/limited", "{}")),
      (one) => one === 429,
    );
    // A good token is never slowed down by them.
    expect(await status(limited.post("/v1/events", GOOD))).toBe(202);
  },

  eventsWaiting: async () => {
    const tidings = await openTidings();
    const limits = { ...SERVER_LIMITS, eventsWaiting: 10 };
    const rate = new RateLimit(systemClock, limits.ratePerSecond, limits.rateBurst);
    const ingest = new Ingest(limits, rate, new EventCounts());
    const scopes = ["ingest"] as const;
    const caller = new Caller(tidings, { token_id: null, user_id: userId("ada"), scopes, expires_at: null });
    const events = (count: number) => ({
      many: Array.from({ length: count }, (_, index) => ({ input: { ...GOOD, dedupe_key: `k${index}` } })),
    });
    const [first, second] = await Promise.allSettled([ingest.take(caller, events(6)), ingest.take(caller, events(5))]);
    expect(first).toMatchObject({ status: "fulfilled", value: { length: 6 } });
    expect(second).toMatchObject({ status: "rejected", reason: { code: "overloaded", retryable: true } });
    expect((await tidings.list({ user_id: "ada" })).notifications).toHaveLength(6);
    expect(await ingest.take(caller, events(10))).toHaveLength(10);
  },

  headersMs: async () => {
    const limited = await start({ headersMs: 1_000, requestMs: 60_000 });
    const unfinished = ["", "GET /healthz HTTP/1.1\r\nHost: ", "GET /ws HTTP/1.1\r\nUpgrade: websocket\r\n"];
    await Promise.all(
      unfinished.map(async (bytes) => {
        const raw = await RawSocket.open(limited.server.url);
        raw.write(bytes);
        await raw.closed();
      }),
    );
    // Nor for one that comes a little at a time.
    const slow = await RawSocket.open(limited.server.url);
    slow.write("GET /healthz HTTP/1.1\r\n");
    for (let n = 0; !slow.ended; n += 1) {
      slow.write(`X-${n}: x\r\n`);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    expect(await status(limited.post("/v1/events", GOOD))).toBe(202);
  },

  requestMs: async () => {
    const limited = await start({ headersMs: 1_000, requestMs: 1_500 });
    const late = BODIES.flatMap((path) =>
      ["Content-Length: 40", "Transfer-Encoding: chunked"].map(async (head) => {
        const begun = head.startsWith("T") ? "1\r\n{\r\n" : "{";
        const raw = await limited.raw(`POST ${path} HTTP/1.1`, [head], begun);
        // A little at a time is no better.
        const dripping = setInterval(() => raw.write(head.startsWith("T") ? "1\r\n \r\n" : " "), 200);
        expect((await raw.response()).status, path).toBe(408);
        clearInterval(dripping);
        await raw.closed();
      }),
    );
    await Promise.all(late);
    expect(limited.defects).toEqual([]);
    expect(await limited.call("notification/list")).toMatchObject({ notifications: [] });
  },

  keepAliveMs: async () => {
    const limited = await start({ keepAliveMs: 100 });
    const raw = await limited.raw("GET /healthz HTTP/1.1", []);
    expect((await raw.response()).status).toBe(200);
    await raw.closed();
  },

  drainDelayMs: async () => {
    const limited = await start({ drainDelayMs: 1_000 });
    const closing = limited.server.close();
    // The door is still open, and says so.
    expect((await fetch(new URL("/readyz", limited.server.url))).status).toBe(503);
    await closing;
    await expect(fetch(new URL("/readyz", limited.server.url))).rejects.toThrow();
  },

  drainMs: async () => {
    const limited = await start({ drainDelayMs: 0, drainMs: 200, requestMs: 60_000 });
    const raw = await limited.raw("POST /v1/events HTTP/1.1", ["Content-Length: 100"], "{");
    await eventually(
      () => status(limited.post("/v1/events", GOOD)),
      (said) => said === 202,
    );
    await limited.server.close();
    await raw.closed();
  },
};

/** So many calls that wait as there are users, and then one more. */
async function countWaits(limited: Limited, users: readonly string[]): Promise<void> {
  const collect = { point: "turn_start", wait_ms: 60_000 };
  const waiting = await Promise.all(
    users.map(async (user) => {
      const speaker = limited.overLines(await limited.token(user));
      const { thread_id } = (await ask(speaker, "start", "thread/start")).result;
      return { speaker, thread_id };
    }),
  );
  for (const { speaker, thread_id } of waiting)
    speaker.send(JSON.stringify({ id: "wait", method: "agent/collect", params: { ...collect, thread_id } }));
  const last = waiting.at(-1);
  if (last === undefined) throw new Error("nobody waits");
  const over = () => ask(last.speaker, "over", "agent/collect", { ...collect, thread_id: last.thread_id, wait_ms: 1 });
  const { error } = await over();
  expect(error).toMatchObject({ code: OVERLOADED, data: { retry_after_ms: expect.any(Number) } });
}

test("every limit has its case, and each of them is one", () => {
  expect(Object.keys(CASES).sort()).toEqual(Object.keys(SERVER_LIMITS).sort());
});

test.each(Object.entries(CASES))("%s", (_name, run) => run());

it("the body of a stream is not late, however long it is open; a body that is only slow is", async () => {
  const limited = await start({ headersMs: 200, requestMs: 400, heartbeatMs: 100 });
  const slow = await limited.raw("POST /rpc HTTP/1.1", ["Content-Length: 100"]);
  const stream = new Duplex(`${limited.server.url}/rpc/stream`, { token: limited.server.token });
  expect((await slow.response()).status).toBe(408);
  // Well beyond both times.
  await stream.frames.until((all) =>
    all.filter(({ method }) => method === "stream/heartbeat").length >= 12 ? true : undefined,
  );
  expect((await stream.rpc("inbox/counts")).result).toMatchObject({ unread: 0 });
  expect(limited.defects).toEqual([]);
});

it("an answer that nobody reads is not kept for ever", async () => {
  const limited = await start({ requestMs: 500, tokenBytes: 2_000_000 });
  await askMuch(limited, 6);
  await eventually(
    () => status(limited.post("/v1/events", GOOD)),
    (said) => said === 429,
  );
  await eventually(
    () => status(limited.post("/v1/events", GOOD)),
    (said) => said === 202,
  );
  expect(limited.defects).toEqual([]);
});

it("answers of one token that are not read are bounded in bytes", async () => {
  const limited = await start({ tokenBytes: 2_000_000 });
  const open = await askMuch(limited, 6);
  await eventually(
    () => status(limited.post("/v1/events", GOOD)),
    (said) => said === 429,
  );
  for (const raw of open) raw.socket.destroy();
  await eventually(
    () => status(limited.post("/v1/events", GOOD)),
    (said) => said === 202,
  );
  expect(limited.defects).toEqual([]);
});

it("limits that are none, or no number within their range, are refused with a word, and nothing is opened", async () => {
  const data = await temporaryFolder();
  for (const [limits, words] of [
    [{ bodyByte: 5_000 }, "limits.bodyByte: is not a known limit; did you mean bodyBytes?"],
    [{ body_bytes: 5_000 }, "limits.body_bytes: is not a known limit; did you mean bodyBytes?"],
    [{ bodyBytes: 0 }, "limits.bodyBytes: must be a whole number from 1024 to 1073741824"],
    [{ jsonDepth: 1.5 }, "limits.jsonDepth: must be a whole number from 8 to 500"],
    [{ pingMs: "1" }, "limits.pingMs: must be a whole number from 10 to 86400000"],
  ] as const)
    await expect(TidingsServer.start({ data, port: 0, limits: limits as object })).rejects.toThrow(words);
});
