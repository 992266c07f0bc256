/** Whatever comes in, in whatever shape and amount: it gets its typed answer, the server goes on, others do not wait. */
import { readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { LIMITS } from "../../src/domain/limits.js";
import { SERVER_LIMITS } from "../../src/server/limits.js";
import { frameBytes, OPCODE, openRawWebSocket, type RawResponse, RawSocket, requestText } from "../support/raw.js";
import { type RpcFailure, Server } from "../support/server.js";
import { eventually, run } from "./cli.js";

const RUNS = Number(process.env["TIDINGS_INPUT_RUNS"] ?? 15);
const SEED = Number(process.env["TIDINGS_INPUT_SEED"] ?? 20_260_103);

const PARSE_ERROR = -32700;
const INVALID_REQUEST = -32600;
const NO_METHOD = -32601;
const INVALID_PARAMS = -32602;
const OVERLOADED = -32001;
const FORBIDDEN = -32003;
const NOT_FOUND = -32004;
const CONFLICT = -32009;
const TYPED = [INVALID_PARAMS, FORBIDDEN, NOT_FOUND, CONFLICT];

let server: Server;
beforeAll(async () => {
  server = await Server.start({ data: await mkdtemp(join(tmpdir(), "tidings-input-")), keep: true });
});
afterEach(async () => {
  expect((await server.get("/healthz")).status).toBe(200);
  expect(server.stderr).toBe("");
});
afterAll(async () => {
  const { data } = server;
  const audit = await run(["audit", "--data", data, "--json"]);
  expect(audit).toMatchObject({ code: 0, stderr: "" });
  expect(await server.stop()).toBe(0);
  expect(server.stderr).toBe("");
  await rm(data, { recursive: true, force: true });
});

const GOOD = { type: "cli.a.b", source: "input" };

interface Refusal {
  error: { code: string; message: string; field?: string; reason?: string };
}

/** One request by hand, with the server's own token; the connection stays open. */
async function send(lines: readonly string[], ...body: (string | Buffer)[]): Promise<RawSocket> {
  const raw = await RawSocket.open(server.url);
  const [first = "", ...rest] = lines;
  const own = [`Host: ${new URL(server.url).host}`, `Authorization: Bearer ${server.token}`];
  raw.write(requestText([first, ...own, ...rest]));
  for (const part of body) if (!(await raw.writeAll(Buffer.from(part)))) break;
  return raw;
}

async function reply(lines: readonly string[], ...body: (string | Buffer)[]): Promise<RawResponse> {
  return (await send(lines, ...body)).response();
}

/** What the server's process holds, in MiB; 0 where the system does not tell. */
function memory(pid = server.pid): number {
  if (process.platform !== "linux") return 0;
  const [, kilobytes = "0"] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
  return Number(kilobytes) / 1_024;
}

const post = (path: string, body: string | Uint8Array) => server.post<Refusal>(path, body);

describe("bodies", () => {
  const { bodyBytes } = SERVER_LIMITS;
  /** An event that is exactly so large, with what is refused in it: it is read, and only then refused. */
  const sized = (bytes: number) => {
    const head = '{"type":"cli.a.b","source":"input","unknown":"';
    return `${head}${"x".repeat(bytes - head.length - 2)}"}`;
  };
  const chunked = (text: string, size: number) => {
    const chunks: string[] = [];
    for (let at = 0; at < text.length; at += size) {
      const part = text.slice(at, at + size);
      chunks.push(`${part.length.toString(16)}\r\n${part}\r\n`);
    }
    return `${chunks.join("")}0\r\n\r\n`;
  };

  test("1 MiB is read, one byte more is refused with 413, with a length and in chunks", async () => {
    const line = "POST /v1/events HTTP/1.1";
    for (const [bytes, status, code] of [
      [bodyBytes, 400, "invalid_input"],
      [bodyBytes + 1, 413, "too_large"],
    ] as const) {
      const text = sized(bytes);
      const whole = await reply([line, `Content-Length: ${bytes}`], text);
      const pieces = await reply([line, "Transfer-Encoding: chunked"], chunked(text, 10_000));
      for (const { status: got, body } of [whole, pieces]) {
        expect(got).toBe(status);
        expect((JSON.parse(body) as Refusal).error.code).toBe(code);
      }
    }
    const events = Array.from({ length: 900 }, () => ({ ...GOOD, payload: { text: "x".repeat(1_000) } }));
    expect(Buffer.byteLength(JSON.stringify(events))).toBeLessThan(bodyBytes);
    expect((await server.post("/v1/events", events)).status).toBe(202);
  });

  test("whoever sends far too much sees the answer, not a broken connection", async () => {
    const megabyte = Buffer.alloc(1_000_000, "x");
    for (const lines of [
      ["POST /v1/events HTTP/1.1", "Content-Length: 30000000"],
      ["POST /rpc HTTP/1.1", "Content-Length: 30000000"],
      ["POST /v1/events HTTP/1.1", "Content-Length: 30000000", "Expect: 100-continue"],
    ]) {
      const raw = await send(lines, ...Array<Buffer>(30).fill(megabyte));
      let { status } = await raw.response();
      if (status === 100) ({ status } = await raw.response());
      expect(status).toBe(413);
      await raw.closed();
    }
    const nobody = await RawSocket.open(server.url);
    nobody.write(
      requestText(["POST /v1/events HTTP/1.1", `Host: ${new URL(server.url).host}`, "Content-Length: 30000000"]),
    );
    for (let n = 0; n < 30; n += 1) await nobody.writeAll(megabyte);
    expect((await nobody.response()).status).toBe(401);
  });

  test("a body in pieces of one byte is not kept (I19)", async () => {
    const before = memory();
    const bite = Buffer.from("1\r\nx\r\n".repeat(10_000));
    const sent = await Promise.all(
      Array.from({ length: 6 }, () =>
        send(["POST /v1/events HTTP/1.1", "Transfer-Encoding: chunked"], ...Array<Buffer>(60).fill(bite)),
      ),
    );
    for (const raw of sent) {
      const { status, body } = await raw.response();
      expect(status).toBe(413);
      expect(body).toContain("pieces");
    }
    expect(memory() - before).toBeLessThan(150);
  });

  test("a length that lies is waited for, or cuts the body off, and disturbs nobody", async () => {
    const text = JSON.stringify(GOOD);
    const long = await send(["POST /v1/events HTTP/1.1", `Content-Length: ${text.length + 10}`], text);
    expect((await server.post("/v1/events", GOOD)).status).toBe(202);
    long.socket.destroy();
    const short = await send(["POST /v1/events HTTP/1.1", `Content-Length: ${text.length - 1}`], text);
    expect((await short.response()).status).toBe(400);
    // The byte that is left is no request: the connection ends.
    await short.closed();
  });

  test("two opinions about the length are refused, and nothing is smuggled behind them", async () => {
    const smuggled = requestText([
      "POST /v1/events HTTP/1.1",
      `Host: ${new URL(server.url).host}`,
      `Authorization: Bearer ${server.token}`,
      "Content-Length: 40",
    ]);
    const inner = `${smuggled}{"type":"cli.smuggled.in","source":"evil"}`;
    for (const headers of [
      ["Content-Length: 5", "Transfer-Encoding: chunked"],
      ["Transfer-Encoding: chunked", `Content-Length: ${inner.length}`],
      ["Content-Length: 5", `Content-Length: ${inner.length}`],
      ["Content-Length: 5, 5"],
      ["Content-Length: +5"],
      ["Content-Length: 0x5"],
      ["Content-Length: -1"],
      ["Transfer-Encoding: chunked, identity"],
      ["Transfer-Encoding: xchunked"],
      ["Transfer-Encoding : chunked"],
    ]) {
      const raw = await send(["POST /v1/events HTTP/1.1", ...headers], `0\r\n\r\n${inner}`);
      expect((await raw.response()).status, headers.join(", ")).toBe(400);
      await raw.closed();
    }
    const { notifications } = await server.call<{ notifications: { kind: string }[] }>("notification/list");
    expect(notifications.filter(({ kind }) => kind === "cli.smuggled.in")).toEqual([]);
  });

  test("what is no JSON, no UTF-8, or nothing at all", async () => {
    const bad: readonly (readonly [string | Uint8Array, string])[] = [
      ["", "is not JSON"],
      [" ", "is not JSON"],
      ["{", "is not JSON"],
      ["{} {}", "is not JSON"],
      ["{'type':'cli.a.b'}", "is not JSON"],
      ['{"type":"cli.a.b",}', "is not JSON"],
      ["NaN", "is not JSON"],
      ["\u0000", "is not JSON"],
      [Buffer.from([0xff, 0xfe, 0x7b, 0x00]), "is not UTF-8"],
      [Buffer.concat([Buffer.from('{"type":"'), Buffer.from([0xc3, 0x28]), Buffer.from('"}')]), "is not UTF-8"],
      [Buffer.concat([Buffer.from('"'), Buffer.from([0xed, 0xa0, 0x80]), Buffer.from('"')]), "is not UTF-8"],
      [Buffer.concat([Buffer.from('"'), Buffer.from([0xc0, 0xaf]), Buffer.from('"')]), "is not UTF-8"],
    ];
    for (const [body, reason] of bad) {
      const event = await post("/v1/events", body);
      expect(event).toMatchObject({ status: 400, json: { error: { code: "invalid_input" } } });
      expect(event.json.error.reason).toContain(reason);
      const call = await post("/rpc", body);
      expect(call).toMatchObject({ status: 400, json: { jsonrpc: "2.0", id: null, error: { code: PARSE_ERROR } } });
      expect(call.json.error.message).toContain(reason);
    }
    for (const body of ["null", "true", "1", '"text"', "[null]", "[[]]"]) {
      const { status, text } = await post("/v1/events", body);
      expect([status, text.includes("must be an event")]).toEqual([body.startsWith("[") ? 202 : 400, true]);
      expect((await post("/rpc", body)).text).toContain(String(INVALID_REQUEST));
    }
    // A mark of the byte order is let pass, as RFC 8259 allows.
    expect((await server.post("/v1/events", `\ufeff${JSON.stringify(GOOD)}`)).status).toBe(202);
  });

  test("nesting of any depth is refused, and does not overflow", async () => {
    const deep = (open: string, close: string, depth: number) => `${open.repeat(depth)}1${close.repeat(depth)}`;
    for (const nested of [deep("[", "]", 100_000), deep('{"a":', "}", 100_000), "[".repeat(100_000)]) {
      for (const body of [nested, `{"type":"cli.a.b","source":"s","payload":{"a":${nested}}}`]) {
        const event = await post("/v1/events", body);
        expect([202, 400]).toContain(event.status);
        expect(event.text).toContain("invalid_input");
        const call = await post("/rpc", `{"id":1,"method":"event/emit","params":${body}}`);
        expect(call.text).toContain('"error"');
        expect(call.status).toBeLessThan(500);
      }
    }
    const payload = (depth: number) => JSON.parse(deep('{"a":', "}", depth)) as object;
    expect((await server.post("/v1/events", { ...GOOD, payload: payload(LIMITS.payloadDepth) })).status).toBe(202);
    expect((await server.post("/v1/events", { ...GOOD, payload: payload(LIMITS.payloadDepth + 1) })).status).toBe(400);
  });

  test("keys that name prototypes are refused everywhere, and change nothing", async () => {
    for (const key of ["__proto__", "constructor", "prototype"]) {
      const poison = `"${key}":{"polluted":"yes","user_id":"evil","scope":"admin"}`;
      const good = '"type":"cli.a.b","source":"input"';
      for (const body of [
        `{${good},${poison}}`,
        `{${good},"payload":{${poison}}}`,
        `{${good},"payload":{"a":[{"b":{${poison}}}]}}`,
      ]) {
        expect((await post("/v1/events", body)).status, body).toBe(400);
        expect((await post("/v1/events", `[${body}]`)).text).toContain("invalid_input");
        expect((await post("/rpc", `{"id":1,"method":"event/emit","params":${body}}`)).text).toContain(
          String(INVALID_PARAMS),
        );
      }
      const notify = `{"content":"x","data":{"a":{${poison}}}}`;
      expect((await post("/rpc", `{"id":1,"method":"notification/notify","params":${notify}}`)).text).toContain(
        String(INVALID_PARAMS),
      );
      for (const method of ["notification/list", "runtime/status", "token/create"])
        expect((await post("/rpc", `{"id":1,"method":"${method}","params":{${poison}}}`)).text).toContain(
          String(INVALID_PARAMS),
        );
      // Beside the parts of a call they are nothing to anybody.
      const beside = await post("/rpc", `{"id":1,"method":"runtime/status",${poison}}`);
      expect(beside.text).toContain('"running"');
      expect((await post("/rpc", `{"id":1,"method":"${key}"}`)).text).toContain(String(NO_METHOD));
      expect((await server.get(`/${key}`)).status).toBe(404);
    }
    const after = await server.post("/v1/events", GOOD);
    expect(after.status).toBe(202);
    expect(after.text).not.toContain("polluted");
    expect((await server.rpc("notification/list", {})).error).toBeUndefined();
  });
});

describe("values of any kind in any field", () => {
  const text = fc.oneof(
    fc.string({ unit: "binary", maxLength: 40 }),
    fc.constantFrom(
      "",
      " ",
      "\u0000",
      "\ud800",
      "a\ud800b",
      "\u202eevil",
      "x".repeat(201),
      "x".repeat(70_000),
      "cli.a.b",
      "local",
      "info",
      "critical",
      "user",
      "agent",
      "system",
      "session",
      "clicked",
      "FAILED",
      "inbox",
      "next",
      "immediate",
      "__proto__",
      "constructor",
      "01a1e260-c4aa-784f-9711-000000000001",
      "01a1e260-c4aa-784f-9711-ffffffffffff",
      "ffffffff-ffff-ffff-ffff-ffffffffffff",
      "2026-01-03T15:30:00Z",
      "0000-01-01T00:00:00+23:59",
      "9999-12-31T23:59:59.999999999-23:59",
      "2024-02-30T00:00:00Z",
      "999999999999999",
      "'; DROP TABLE journal; --",
    ),
  );
  const number = fc.oneof(fc.integer(), fc.double(), fc.constantFrom(0, -0, 1, -1, 1e308, 2 ** 53, 1e21, 0.5));
  const value = fc.oneof(
    { weight: 3, arbitrary: text },
    { weight: 2, arbitrary: number },
    { weight: 1, arbitrary: fc.constantFrom(null, true, false, [], {}, [[]], { a: null }) },
    { weight: 2, arbitrary: fc.jsonValue({ maxDepth: 4 }) },
  );
  const mostly = (usual: unknown, seldom: fc.Arbitrary<unknown>): fc.Arbitrary<unknown> =>
    fc.oneof({ weight: 6, arbitrary: fc.constant(usual) }, { weight: 1, arbitrary: seldom });
  /** Some of the fields, with a good value or with any. */
  const objectOf = (good: Record<string, unknown>, more: readonly string[]) => {
    const known = Object.entries(good).map(([name, fine]) => [name, mostly(fine, mostly(undefined, value))]);
    const other = more.map((name) => [name, mostly(undefined, value)]);
    const unknown = fc.dictionary(fc.string({ maxLength: 12 }), value, { maxKeys: 2 });
    return fc
      .tuple(fc.record(Object.fromEntries([...known, ...other])), fc.integer({ min: 0, max: 9 }), unknown)
      .map(([fields, n, extra]): object => (n === 0 ? { ...fields, ...extra } : fields));
  };

  const event = objectOf({ type: "cli.a.b", source: "input" }, [
    "severity",
    "payload",
    "user_id",
    "thread_id",
    "dedupe_key",
    "subject",
    "id",
    "timestamp",
  ]);
  const PARAMS: Readonly<Record<string, fc.Arbitrary<unknown>>> = {
    "event/emit": event,
    "notification/notify": objectOf({ content: "words" }, [
      "severity",
      "priority",
      "inject_at",
      "address",
      "target",
      "handler",
      "user_id",
      "thread_id",
      "dedupe_key",
      "dedupe_window_ms",
      "ttl_ms",
      "directive",
      "subject",
      "data",
      "kind",
    ]),
    "notification/list": objectOf({ limit: 2 }, [
      "user_id",
      "thread_id",
      "channel",
      "state",
      "unread",
      "unacknowledged",
      "after",
    ]),
    "notification/ack": objectOf({ id: "01a1e260-c4aa-784f-9711-000000000001", revision: 1, action: "clicked" }, [
      "user_id",
    ]),
    "notification/read": objectOf({ id: "01a1e260-c4aa-784f-9711-000000000001" }, ["user_id"]),
    "notification/explain": objectOf({ id: "01a1e260-c4aa-784f-9711-000000000001" }, ["user_id"]),
    "notification/redrive": objectOf({ id: "01a1e260-c4aa-784f-9711-000000000001" }, ["user_id"]),
    "inbox/counts": objectOf({}, ["user_id"]),
    "runtime/status": objectOf({}, ["verbose"]),
    "token/create": objectOf({ scopes: ["read"] }, ["user_id", "name", "ttl_ms"]),
    "token/list": objectOf({ user_id: "nobody" }, []),
    "token/revoke": objectOf({ id: "01a1e260-c4aa-784f-9711-000000000001" }, []),
  };
  const isTyped = (code: number | undefined) => code === undefined || TYPED.includes(code);

  test("an event gets 202 or a typed 400, each of many its own outcome", async () => {
    const seen = new Map<string, number>();
    const count = (what: string) => seen.set(what, (seen.get(what) ?? 0) + 1);
    await fc.assert(
      fc.asyncProperty(fc.array(event, { minLength: 60, maxLength: 60 }), async (events) => {
        const { status, json } = await server.post<({ outcome?: string } & Partial<Refusal>)[]>("/v1/events", events);
        expect(status).toBe(202);
        expect(json).toHaveLength(events.length);
        for (const { outcome, error } of json) {
          if (error !== undefined) expect(["invalid_input", "conflict", "not_found"]).toContain(error.code);
          else expect(["accepted", "duplicate", "unmatched"]).toContain(outcome);
          count(outcome ?? error?.code ?? "");
        }
        const one = await server.post("/v1/events", events[0]);
        expect([202, 400, 404, 409]).toContain(one.status);
      }),
      { numRuns: RUNS, seed: SEED, endOnFailure: true },
    );
    expect(seen.get("accepted")).toBeGreaterThan(10);
    expect(seen.get("invalid_input")).toBeGreaterThan(10);
  });

  test("a call gets a result or a typed error, over HTTP and over the WebSocket", async () => {
    const client = await server.connect();
    const call = fc
      .constantFrom(...Object.keys(PARAMS))
      .chain((method) => fc.record({ method: fc.constant(method), params: PARAMS[method] ?? fc.constant({}) }));
    const seen = new Set<string>();
    await fc.assert(
      fc.asyncProperty(fc.array(call, { minLength: 40, maxLength: 40 }), async (calls) => {
        const batch = calls.map((one, id) => ({ jsonrpc: "2.0", id, ...one }));
        const { status, json } = await server.post<{ id: number; error?: RpcFailure }[]>("/rpc", batch);
        expect(status).toBe(200);
        expect(json.map(({ id }) => id)).toEqual(batch.map(({ id }) => id));
        for (const { id, error } of json) {
          expect(isTyped(error?.code), JSON.stringify([calls[id], error])).toBe(true);
          seen.add(`${calls[id]?.method} ${error === undefined ? "done" : "refused"}`);
        }
        for (const { method, params } of calls.slice(0, 4)) {
          if (JSON.stringify(params).length > 60_000) continue;
          const { error } = await client.rpc(method, params as object);
          expect(isTyped(error?.code), JSON.stringify([method, params, error])).toBe(true);
        }
      }),
      { numRuns: RUNS, seed: SEED, endOnFailure: true },
    );
    for (const method of Object.keys(PARAMS)) expect(seen).toContain(`${method} refused`);
    for (const method of ["event/emit", "notification/notify", "notification/list", "token/create", "inbox/counts"])
      expect(seen).toContain(`${method} done`);
  });

  test.for<[method: string, params: object, field: string, reason: string]>([
    ["notification/list", { limit: 5_000 }, "limit", "must be at most 1000"],
    ["notification/list", { limit: 1.5 }, "limit", "must be a whole number"],
    ["notification/list", { unread: 3 }, "unread", "must be true or false"],
    ["notification/list", { state: [] }, "state", "must not be empty"],
    ["notification/notify", { content: 4 }, "content", "must be text"],
    ["notification/notify", { content: "x", ttl_ms: 0 }, "ttl_ms", "must be at least 1"],
    ["notification/notify", { content: "x", target: "me" }, "target", "must be one of user, agent"],
    ["notification/ack", { id: "x", revision: 1 }, "action", "is required"],
    ["settings/update", { disabled_subscribers: "x" }, "disabled_subscribers", "must be a list"],
    [
      "token/create",
      { scopes: ["read", "x"] },
      "scopes.1",
      "must be one of ingest, critical, directive, read, ack, agent, admin",
    ],
  ])("what %s refuses of %j is said in plain words", async ([method, params, field, reason]) => {
    const { json } = await server.post("/rpc", { jsonrpc: "2.0", id: 1, method, params });
    expect(json).toMatchObject({ error: { message: `${field}: ${reason}`, data: { field, reason } } });
  });

  test("numbers that JSON can write and nobody can hold", async () => {
    for (const huge of ["1e400", "-1e400", "1".repeat(400), "0.0000000001e-400"]) {
      for (const body of [
        `{"type":"cli.a.b","source":"s","payload":{"n":${huge}}}`,
        `{"type":"cli.a.b","source":${huge}}`,
      ])
        expect([202, 400]).toContain((await post("/v1/events", body)).status);
      const ack = `{"id":1,"method":"notification/ack","params":{"id":"x","revision":${huge},"action":"clicked"}}`;
      expect((await post("/rpc", ack)).text).toContain(String(INVALID_PARAMS));
      const { text, status } = await post("/rpc", `{"id":${huge},"method":"runtime/status"}`);
      expect([status, text.includes('"running"')]).toEqual([200, true]);
    }
  });
});

describe("many at once", () => {
  const outcomes = async (events: readonly unknown[]) => {
    const { status, json } = await server.post<({ outcome?: string } & Partial<Refusal>)[]>("/v1/events", events);
    expect(status).toBe(202);
    return json.map(({ outcome, error }) => outcome ?? `${error?.code} ${error?.field}`);
  };

  test("none, 1,000 and 1,001 events; each has its own outcome, in order", async () => {
    expect(await server.post("/v1/events", [])).toMatchObject({
      status: 400,
      json: { error: { code: "invalid_input" } },
    });
    const bad: readonly (readonly [unknown, string])[] = [
      [{ ...GOOD, type: "one" }, "invalid_input type"],
      [{ ...GOOD, source: 5 }, "invalid_input source"],
      [{ ...GOOD, more: true }, "invalid_input more"],
      [{ ...GOOD, payload: [] }, "invalid_input payload"],
      [null, "invalid_input "],
      ["text", "invalid_input "],
      [[GOOD], "invalid_input "],
      [{ ...GOOD, timestamp: "yesterday" }, "invalid_input timestamp"],
      [{}, "invalid_input type"],
    ];
    const mixed = Array.from({ length: 1_000 }, (_, n) => (n % 3 === 0 ? bad[n % bad.length] : undefined));
    const events = mixed.map((one, n) => (one === undefined ? { ...GOOD, id: `mixed ${n}` } : one[0]));
    const expected = mixed.map((one) => (one === undefined ? "accepted" : one[1]));
    expect(await outcomes(events)).toEqual(expected);
    expect(await outcomes(events), "again").toEqual(expected.map((one) => (one === "accepted" ? "duplicate" : one)));
    const over = await server.post("/v1/events", [...events, GOOD]);
    expect(over).toMatchObject({ status: 400, json: { error: { code: "invalid_input" } } });
    expect(over.text).toContain("1001");
  });

  test("batches of 0, 100 and 101 calls, and what may be in one", async () => {
    const call = { jsonrpc: "2.0", method: "inbox/counts" };
    const calls = (count: number) => Array.from({ length: count }, (_, id) => ({ ...call, id }));
    const refused = { status: 400, json: { id: null, error: { code: INVALID_REQUEST } } };
    expect(await server.post("/rpc", [])).toMatchObject(refused);
    expect(await server.post("/rpc", calls(101))).toMatchObject(refused);
    const { json } = await server.post<{ id: number; result: object }[]>("/rpc", calls(100));
    expect(json.map(({ id }) => id)).toEqual(calls(100).map(({ id }) => id));
    expect(json.every(({ result }) => "unread" in result)).toBe(true);
    const mixed = [1, null, [], "x", { id: "a" }, { id: "b", method: "no/such" }, { ...call }, { ...call, id: null }];
    const answers = await server.post<{ id: unknown; error?: RpcFailure }[]>("/rpc", mixed);
    expect(answers.json.map(({ id, error }) => [id, error?.code])).toEqual([
      [null, INVALID_REQUEST],
      [null, INVALID_REQUEST],
      [null, INVALID_REQUEST],
      [null, INVALID_REQUEST],
      ["a", INVALID_REQUEST],
      ["b", NO_METHOD],
      [null, undefined],
    ]);
    const silent = await server.post("/rpc", [call, { ...call, method: "no/such" }]);
    expect([silent.status, silent.text]).toEqual([204, ""]);
  });

  test("calls without an id are run and not answered; ids and params of other kinds", async () => {
    const notify = (content: string) => ({ method: "notification/notify", params: { content, user_id: "quiet" } });
    expect((await server.post("/rpc", notify("no id"))).status).toBe(204);
    const { notifications } = await server.call<{ notifications: { content: string }[] }>("notification/list", {
      user_id: "quiet",
    });
    expect(notifications.map(({ content }) => content)).toEqual(["no id"]);
    expect((await server.post("/rpc", { method: "no/such" })).status).toBe(204);

    for (const id of [null, 0, -1, 1.5, "", "x".repeat(1_000), "\ud800"]) {
      const { json } = await server.post<{ id: unknown }>("/rpc", { id, method: "inbox/counts" });
      expect(json.id).toBe(id);
    }
    for (const id of [true, {}, [], [1], { id: 1 }])
      expect(await server.post("/rpc", { id, method: "inbox/counts" })).toMatchObject({
        status: 400,
        json: { id: null, error: { code: INVALID_REQUEST } },
      });
    for (const params of [[], [1], "x", 5, true])
      expect((await server.post("/rpc", { id: 1, method: "inbox/counts", params })).text).toContain(
        String(INVALID_PARAMS),
      );
    for (const params of [null, {}])
      expect((await server.post("/rpc", { id: 1, method: "inbox/counts", params })).status).toBe(200);
    for (const method of [null, 5, {}, ["inbox/counts"], ""])
      expect((await server.post("/rpc", { id: 1, method })).text).toContain('"error"');
    for (const jsonrpc of ["1.0", 2, null, {}])
      expect((await server.post("/rpc", { jsonrpc, id: 1, method: "inbox/counts" })).status).toBe(400);
  });

  test("a call that looks like an answer is a call like any other", async () => {
    for (const error of ["null", "{}", '{"code":1,"data":{"retry_after_ms":"x"}}']) {
      const body = `{"jsonrpc":"2.0","id":7,"method":"inbox/counts","error":${error},"result":1}`;
      const { status, json } = await server.post<{ id: number; result: object }>("/rpc", body);
      expect({ status, id: json.id }).toEqual({ status: 200, id: 7 });
      expect(json.result).toHaveProperty("unread");
    }
  });
});

describe("paths and verbs", () => {
  test("what is not there, and what is there and not asked for so", async () => {
    for (const path of [
      "/nothing",
      "/v1",
      "/v1/events/",
      "/rpc/",
      "/../etc/passwd",
      "/%2e%2e",
      "//healthz",
      "/HEALTHZ",
    ]) {
      const { status, body } = await reply([`GET ${path} HTTP/1.1`]);
      expect(status, path).toBe(404);
      expect((JSON.parse(body) as Refusal).error.code).toBe("not_found");
    }
    const allowed: readonly (readonly [string, string])[] = [
      ["/", "GET, HEAD"],
      ["/healthz", "GET, HEAD"],
      ["/readyz", "GET, HEAD"],
      ["/v1/events", "POST"],
      ["/rpc", "POST"],
    ];
    for (const [path, allow] of allowed)
      for (const method of ["GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"]) {
        if (allow.split(", ").includes(method)) continue;
        const { status, headers } = await reply([`${method} ${path} HTTP/1.1`, "Content-Length: 0"]);
        expect([path, method, status, headers["allow"]]).toEqual([path, method, 405, allow]);
      }
    const plain = await reply(["GET /ws HTTP/1.1"]);
    expect([plain.status, plain.headers["upgrade"]]).toEqual([426, "websocket"]);
    const none = await send(["CONNECT evil.example:443 HTTP/1.1"]);
    await none.closed();
    expect((await reply(["GET /healthz?x=1#y HTTP/1.1"])).status).toBe(200);
  });

  test("headers that are too large or broken", async () => {
    const large = await reply(["GET /healthz HTTP/1.1", `X: ${"x".repeat(20_000)}`]);
    expect(large.status).toBe(431);
    for (const line of ["X\u0000: y", "X y: z", ": y", "X: a\u0000b"])
      expect((await reply(["GET /healthz HTTP/1.1", line])).status, line).toBe(400);
    const words = await RawSocket.open(server.url);
    words.write("hello\r\n\r\n");
    expect((await words.response()).status).toBe(400);
    for (const token of ["", " ", "a b", "x".repeat(10_000), "\u00e9", "tdg_\t"]) {
      const raw = await RawSocket.open(server.url);
      raw.write(
        requestText([
          "POST /rpc HTTP/1.1",
          `Host: ${new URL(server.url).host}`,
          `Authorization: Bearer ${token}`,
          "Content-Length: 0",
        ]),
      );
      expect((await raw.response()).status).toBe(401);
    }
  });

  test("what asks for HTTP/2 is answered in HTTP/1.1", async () => {
    const body = JSON.stringify({ ...GOOD, source: "speaks h2" });
    const upgrade = ["Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQAAP__"];
    const raw = await send(["POST /v1/events HTTP/1.1", ...upgrade, `Content-Length: ${body.length}`], body);
    expect((await raw.response()).status).toBe(202);
    // The connection is kept, and goes on as any other.
    raw.write(requestText(["GET /healthz HTTP/1.1", `Host: ${new URL(server.url).host}`]));
    expect((await raw.response()).status).toBe(200);
    const evil = await RawSocket.open(server.url);
    evil.write(requestText(["GET /healthz HTTP/1.1", "Host: evil.example", ...upgrade]));
    expect((await evil.response()).status).toBe(403);
    const elsewhere = await send([
      "GET /rpc HTTP/1.1",
      "Connection: Upgrade",
      "Upgrade: websocket",
      "Sec-WebSocket-Version: 13",
      "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==",
    ]);
    expect((await elsewhere.response()).status).toBe(404);
  });
});

describe("connections that stand still", () => {
  test("silent ones, half a head, half a body, half an upgrade: others are served meanwhile", async () => {
    const { host } = new URL(server.url);
    const halves = [
      "",
      "POST /v1/events HTTP/1.1\r\nHost: ",
      requestText(
        ["POST /v1/events HTTP/1.1", `Host: ${host}`, `Authorization: Bearer ${server.token}`, "Content-Length: 500"],
        "{",
      ),
      requestText(
        ["POST /rpc HTTP/1.1", `Host: ${host}`, `Authorization: Bearer ${server.token}`, "Transfer-Encoding: chunked"],
        "ff\r\n{",
      ),
      `GET /ws HTTP/1.1\r\nHost: ${host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: `,
    ];
    const open = await Promise.all(
      Array.from({ length: 200 }, async (_, n) => {
        const raw = await RawSocket.open(server.url);
        raw.write(halves[n % halves.length] ?? "");
        return raw;
      }),
    );
    const client = await server.connect();
    for (let n = 0; n < 20; n += 1) {
      const { json } = await server.post<{ matches: { notification: { id: string } }[] }>("/v1/events", GOOD);
      await client.pushed("created", json.matches[0]?.notification.id ?? "");
    }
    expect(open.every((raw) => !raw.ended)).toBe(true);
    for (const raw of open) raw.socket.destroy();
  });
});

describe("frames of a WebSocket", () => {
  const call = (pad: number) => {
    const text = '{"id":1,"method":"inbox/counts","pad":""}';
    return text.replace('""', `"${"x".repeat(pad - text.length)}"`);
  };
  /** The answer to the first call, whatever is pushed before it. */
  const answer = async (raw: RawSocket): Promise<{ id: unknown; error?: RpcFailure; result?: object }> => {
    for (;;) {
      const { opcode, payload } = await raw.frame();
      if (opcode !== OPCODE.text) throw new Error(`a frame of the kind ${opcode}: ${payload.toString("latin1")}`);
      const message = JSON.parse(payload.toString()) as { id: unknown; method?: string };
      if (message.method === undefined) return message;
    }
  };
  const closedBy = async (...frames: Buffer[]): Promise<number | undefined> => {
    const raw = await openRawWebSocket(server);
    for (const frame of frames) if (!(await raw.writeAll(frame))) break;
    const code = await raw.closeCode();
    raw.socket.destroy();
    return code;
  };

  test("64 KiB are read, one byte more ends the connection with 1009", async () => {
    const { messageBytes } = SERVER_LIMITS;
    const raw = await openRawWebSocket(server);
    raw.write(frameBytes(OPCODE.text, call(messageBytes)));
    expect(await answer(raw)).toMatchObject({ id: 1, result: { unread: expect.any(Number) } });
    expect(await closedBy(frameBytes(OPCODE.text, call(messageBytes + 1)))).toBe(1009);
    // The length alone is enough.
    const announced = Buffer.from([0x81, 0xff, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0]);
    expect(await closedBy(announced)).toBe(1009);
    expect(
      await closedBy(
        frameBytes(OPCODE.text, "x".repeat(messageBytes / 2), { fin: false }),
        frameBytes(OPCODE.continuation, "x".repeat(messageBytes / 2 + 1)),
      ),
    ).toBe(1009);
  });

  test("a message in pieces is put together, one in thousands of them ends the connection", async () => {
    const text = call(60);
    const pieces = [...text].map((one, n) =>
      frameBytes(n === 0 ? OPCODE.text : OPCODE.continuation, one, { fin: n === text.length - 1 }),
    );
    const raw = await openRawWebSocket(server);
    // A ping between them is answered at once.
    raw.write(Buffer.concat([...pieces.slice(0, 30), frameBytes(OPCODE.ping, "there?"), ...pieces.slice(30)]));
    const seen: number[] = [];
    for (let answered = false; !answered; ) {
      const { opcode, payload } = await raw.frame();
      seen.push(opcode);
      answered = opcode === OPCODE.text && payload.includes('"id":1');
    }
    expect(seen).toContain(OPCODE.pong);
    const more = Buffer.concat(Array<Buffer>(5_000).fill(frameBytes(OPCODE.continuation, "x", { fin: false })));
    expect([1008, 1009]).toContain(await closedBy(frameBytes(OPCODE.text, "x", { fin: false }), more));
    const empty = Buffer.concat(Array<Buffer>(5_000).fill(frameBytes(OPCODE.continuation, "", { fin: false })));
    expect([1008, 1009]).toContain(await closedBy(frameBytes(OPCODE.text, "", { fin: false }), empty));
  });

  test("what is no text, no UTF-8, or no frame at all ends that connection alone", async () => {
    const beside = await server.connect();
    const cases: readonly (readonly [string, Buffer, number])[] = [
      ["binary", frameBytes(OPCODE.binary, "{}"), 1003],
      ["UTF-8 that is none", frameBytes(OPCODE.text, Buffer.from([0xc3, 0x28])), 1007],
      ["half a character", frameBytes(OPCODE.text, Buffer.from([0xe2, 0x82])), 1007],
      ["without a mask", frameBytes(OPCODE.text, "{}", { masked: false }), 1002],
      ["a reserved kind", frameBytes(3, "{}"), 1002],
      ["a reserved kind of control", frameBytes(11, "{}"), 1002],
      ["reserved bits", Buffer.from([0xf1, 0x80, 0, 0, 0, 0]), 1002],
      ["a long ping", frameBytes(OPCODE.ping, "x".repeat(126)), 1002],
      ["a ping in pieces", frameBytes(OPCODE.ping, "x", { fin: false }), 1002],
      ["a piece without a start", frameBytes(OPCODE.continuation, "x"), 1002],
      ["a close of one byte", frameBytes(OPCODE.close, "x"), 1002],
      ["a close with a code that is none", frameBytes(OPCODE.close, Buffer.from([0, 1])), 1002],
      ["words", Buffer.from("GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"), 1002],
      ["noise", Buffer.alloc(1_000, 0xaa), 1002],
    ];
    for (const [name, bytes, code] of cases) expect([name, await closedBy(bytes)]).toEqual([name, code]);
    expect((await beside.rpc("inbox/counts")).error).toBeUndefined();
  });

  test("messages that are no calls are answered as over HTTP", async () => {
    const client = await server.connect();
    for (const [text, code] of [
      ["", PARSE_ERROR],
      ["{", PARSE_ERROR],
      ["[]", INVALID_REQUEST],
      ["null", INVALID_REQUEST],
      ["5", INVALID_REQUEST],
      [`${"[".repeat(30_000)}${"]".repeat(30_000)}`, INVALID_REQUEST],
      [JSON.stringify(Array.from({ length: 101 }, () => ({}))), INVALID_REQUEST],
    ] as const) {
      const before = client.frames.length;
      client.send(text);
      const answered = await client.until((frames) => frames.slice(before).find((frame) => frame.method === undefined));
      expect(JSON.stringify(answered)).toContain(String(code));
    }
    client.send([{ id: "one", method: "inbox/counts" }, { method: "inbox/counts" }, { id: "two", method: "no/such" }]);
    const batch = await client.until((frames) =>
      frames.findLast((frame) => Array.isArray(frame) && frame.length === 2),
    );
    expect((batch as unknown as { id: string }[]).map(({ id }) => id)).toEqual(["one", "two"]);
  });

  test("an upgrade that is none is refused", async () => {
    const upgrade = (lines: readonly string[], first = "GET /ws HTTP/1.1") =>
      reply([first, "Connection: Upgrade", "Upgrade: websocket", ...lines]);
    const key = "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==";
    const version = "Sec-WebSocket-Version: 13";
    expect((await upgrade([version])).status).toBe(400);
    expect((await upgrade([key])).status).toBe(400);
    expect((await upgrade([version, "Sec-WebSocket-Key: short"])).status).toBe(400);
    expect([400, 426]).toContain((await upgrade([key, "Sec-WebSocket-Version: 7"])).status);
    expect((await upgrade([key, version], "POST /ws HTTP/1.1")).status).toBe(405);
    expect((await upgrade([key, version, "Sec-WebSocket-Protocol: other"])).status).toBe(400);
    expect((await upgrade([key, version, "Sec-WebSocket-Protocol: tidings.v1, tidings.v1"])).status).toBe(400);
    expect((await upgrade([key, version])).status).toBe(101);
  });

  test("1,000 calls at once: each is answered, or told to come again", async () => {
    const client = await server.connect();
    const before = client.frames.length;
    for (let id = 0; id < 1_000; id += 1)
      client.send({ id, method: id % 2 === 0 ? "event/emit" : "inbox/counts", params: id % 2 === 0 ? GOOD : {} });
    const answers = await client.until((frames) => {
      const found = frames.slice(before).filter(({ method }) => method === undefined);
      return found.length === 1_000 ? found : undefined;
    });
    expect(new Set(answers.map(({ id }) => id)).size).toBe(1_000);
    for (const { error, result } of answers) {
      if (error === undefined) expect(result).toBeDefined();
      else expect(error).toMatchObject({ code: OVERLOADED, data: { retry_after_ms: expect.any(Number) } });
    }
    expect(answers.filter(({ error }) => error === undefined).length).toBeGreaterThan(60);
  });

  test("a flood of pings is answered while it is read, and ended when it is not (I19)", async () => {
    const reading = await openRawWebSocket(server);
    reading.write(Buffer.concat(Array<Buffer>(2_000).fill(frameBytes(OPCODE.ping, "x"))));
    for (let pongs = 0; pongs < 2_000; ) if ((await reading.frame()).opcode === OPCODE.pong) pongs += 1;
    reading.socket.destroy();

    const before = memory();
    const deaf = await openRawWebSocket(server);
    deaf.socket.pause();
    const flood = Buffer.concat(Array<Buffer>(2_000).fill(frameBytes(OPCODE.ping, "x".repeat(125))));
    let most = 0;
    let sent = 0;
    while (await deaf.writeAll(flood)) {
      sent += flood.length;
      most = Math.max(most, memory() - before);
      if (sent > 1_000_000_000) throw new Error("a client that does not read is never sent away");
    }
    expect(most).toBeLessThan(150);
  });
});

describe("much of it", () => {
  const largest = {
    content: "\u20ac".repeat(LIMITS.contentChars),
    data: { text: "x".repeat(LIMITS.payloadBytes - '{"text":""}'.length) },
  };

  test("the largest item comes whole to the client, the list and the story, and is acknowledged", async () => {
    const { token } = await server.createToken({ user_id: "large", scopes: ["ingest", "read", "ack"] });
    const client = await server.connect({ token });
    const { id } = await server.call<{ id: string }>("notification/notify", { ...largest, target: "user" }, token);
    const { params } = await client.pushed("created", id);
    expect(params?.notification).toMatchObject(largest);
    const again = await server.connect({ token });
    expect((await again.pushed("created", id)).params?.notification).toMatchObject(largest);
    for (const method of ["notification/read", "notification/explain"])
      expect((await client.rpc(method, { id })).error).toBeUndefined();
    const { result } = await client.rpc<{ notifications: object[] }>("notification/list");
    expect(result?.notifications).toMatchObject([largest]);
    expect((await client.rpc("notification/ack", { id, revision: 1, action: "clicked" })).error).toBeUndefined();
    const over = { ...largest, content: `${largest.content}!` };
    expect(await server.rpc("notification/notify", over, token)).toMatchObject({ error: { code: INVALID_PARAMS } });
    const fat = { ...largest, data: { text: `${largest.data.text}!` } };
    expect(await server.rpc("notification/notify", fat, token)).toMatchObject({ error: { code: INVALID_PARAMS } });
  });

  test("lists and batches of large items are cut to size, and go on (I19)", async () => {
    const { token } = await server.createToken({ user_id: "pages", scopes: ["ingest", "read"] });
    const ids: string[] = [];
    for (let n = 0; n < 80; n += 1) {
      const { id } = await server.call<{ id: string }>("notification/notify", { ...largest, target: "user" }, token);
      ids.unshift(id);
    }
    interface Page {
      notifications: { id: string }[];
      next: string | null;
    }
    const read = async (ask: (after: string | undefined) => Promise<Page | undefined>) => {
      const found: string[] = [];
      const sizes: number[] = [];
      for (let after: string | undefined; ; ) {
        const page = await ask(after);
        found.push(...(page?.notifications ?? []).map(({ id }) => id));
        sizes.push(JSON.stringify(page).length);
        if (typeof page?.next !== "string") return { found, most: Math.max(...sizes), pages: sizes.length };
        after = page.next;
      }
    };
    const http = await read((after) => server.call<Page>("notification/list", { limit: 1_000, after }, token));
    expect(http.found).toEqual(ids);
    expect(http.pages).toBeGreaterThan(1);
    expect(http.most).toBeLessThan(SERVER_LIMITS.answerBytes);
    const client = await server.connect({ token });
    await client.welcomed();
    const ws = await read(
      async (after) => (await client.rpc<Page>("notification/list", { limit: 1_000, after })).result,
    );
    expect(ws.found).toEqual(ids);
    expect(ws.most).toBeLessThan(SERVER_LIMITS.messageAnswerBytes);

    const before = memory();
    const lists = Array.from({ length: 100 }, (_, id) => ({
      id,
      method: "notification/list",
      params: { limit: 1_000 },
    }));
    const { status, json, text } = await server.post<{ error?: RpcFailure }[]>("/rpc", lists, token);
    expect(status).toBe(200);
    expect(text.length).toBeLessThan(2 * SERVER_LIMITS.answerBytes);
    expect(json).toHaveLength(100);
    const refused = json.filter(({ error }) => error !== undefined);
    expect(refused.length).toBeGreaterThan(0);
    for (const { error } of refused)
      expect(error).toMatchObject({ code: OVERLOADED, data: { retry_after_ms: expect.any(Number) } });
    expect(memory() - before).toBeLessThan(300);
  });

  test("an answer that is too large for a WebSocket is told so, and the connection stays", async () => {
    const { token } = await server.createToken({ user_id: "merged", scopes: ["ingest", "read"] });
    let id = "";
    for (let n = 0; n < 20; n += 1) {
      const params = { ...largest, content: `words ${n}`, target: "user", dedupe_key: "k", dedupe_window_ms: 60_000 };
      ({ id } = await server.call<{ id: string }>("notification/notify", params, token));
    }
    const client = await server.connect({ token });
    const { error } = await client.rpc("notification/read", { id });
    expect(error).toMatchObject({ data: { code: "too_large" } });
    expect((await client.rpc("inbox/counts")).result).toMatchObject({ unread: 1 });
    expect((await server.call<{ events: object[] }>("notification/read", { id }, token)).events).toHaveLength(20);
  });

  test("of ten thousand unacknowledged items a client is sent the newest 100, oldest first, and the counts", async () => {
    const { token } = await server.createToken({ user_id: "many", scopes: ["ingest", "read"] });
    for (let page = 0; page < 10; page += 1) {
      const events = Array.from({ length: 1_000 }, (_, n) => ({ ...GOOD, subject: `item ${1_000 * page + n}` }));
      expect((await server.post("/v1/events", events, token)).status).toBe(202);
    }
    const client = await server.connect({ token });
    const counts = await client.welcomed();
    expect(counts.params).toMatchObject({ unacknowledged: 1_000, unread: 1_000, cap: 1_000 });
    const welcome = client.frames.slice(0, client.frames.indexOf(counts));
    expect(welcome.map(({ params }) => params?.notification?.subject)).toEqual(
      Array.from({ length: 100 }, (_, n) => `item ${9_900 + n}`),
    );
    expect((await client.rpc("inbox/counts")).result).toMatchObject({ unacknowledged: 1_000 });
    expect(client.pushes).toHaveLength(100);
  });

  test("a client that never reads is sent away; others get everything, in order, and memory stays (I19, T10)", async () => {
    const { token } = await server.createToken({ user_id: "slow", scopes: ["ingest", "read"] });
    const deaf = await openRawWebSocket(server, token);
    deaf.socket.pause();
    const reading = await Promise.all([server.connect({ token }), server.connect({ token })]);
    for (const client of reading) await client.welcomed();
    const before = memory();
    let most = 0;
    const ITEMS = 2_000;
    const BATCH = 40;
    for (let start = 0; start < ITEMS; start += BATCH) {
      const batch = Array.from({ length: BATCH }, (_, n) => ({
        id: n,
        method: "notification/notify",
        params: { content: "x".repeat(LIMITS.contentChars), subject: `item ${start + n}`, target: "user" },
      }));
      expect((await server.post("/rpc", batch, token)).status).toBe(200);
      most = Math.max(most, memory() - before);
    }
    for (const client of reading) {
      const pushes = await client.until(() => (client.pushes.length >= ITEMS ? client.pushes : undefined));
      expect(pushes.map(({ params }) => params?.notification?.subject).sort()).toEqual(
        Array.from({ length: ITEMS }, (_, n) => `item ${n}`).sort(),
      );
      const seqs = pushes.map(({ params }) => params?.seq ?? 0);
      expect(seqs).toEqual([...seqs].sort((one, other) => one - other));
      expect(pushes.slice(1).map(({ params }) => params?.prev_seq)).toEqual(seqs.slice(0, -1));
    }
    expect(most).toBeLessThan(250);
    // What had gone out to the deaf one before was a part of it; then it ended, with the reason or without.
    deaf.socket.resume();
    let seen = 0;
    for (let code: number | undefined; code === undefined && !deaf.ended; ) {
      const frame = await deaf.frame().catch(() => undefined);
      if (frame?.opcode === OPCODE.text) seen += 1;
      if (frame?.opcode === OPCODE.close) code = frame.payload.readUInt16BE(0);
      expect([1013, undefined]).toContain(code);
    }
    expect(seen).toBeLessThan(ITEMS);
    await deaf.closed();
    const { connections } = await server.call<{ connections: number }>("runtime/status");
    expect(connections).toBeGreaterThanOrEqual(2);
  });
});

describe("more than the rate", () => {
  test("is told to wait, and another token is served meanwhile", async () => {
    const slow = await Server.start({ args: ["--events-per-second", "20"] });
    const [one, other] = await Promise.all([
      slow.createToken({ user_id: "one", scopes: ["ingest", "read"] }),
      slow.createToken({ user_id: "other", scopes: ["ingest", "read"] }),
    ]);
    const client = await slow.connect({ token: one.token });
    // So many at once that what refills meanwhile is not enough. They are taken when its stream is paid for.
    await eventually(async () => {
      const flood = await slow.post("/v1/events", Array<object>(1_000).fill(GOOD), one.token);
      return flood.status === 202 ? true : undefined;
    });
    const refused = await slow.post<Refusal & { error: { retry_after_ms: number } }>("/v1/events", GOOD, one.token);
    expect(refused).toMatchObject({ status: 429, json: { error: { code: "overloaded" } } });
    const { retry_after_ms } = refused.json.error;
    expect(retry_after_ms).toBeGreaterThan(1_000);
    expect(Number(refused.headers.get("retry-after"))).toBe(Math.ceil(retry_after_ms / 1_000));
    for (const method of ["event/emit", "inbox/counts", "no/such", "token/list"]) {
      const overloaded = { code: OVERLOADED, data: { retry_after_ms: expect.any(Number) } };
      expect(await slow.rpc(method, {}, one.token)).toMatchObject({ status: 429, error: overloaded });
      expect((await client.rpc(method)).error).toMatchObject(overloaded);
    }
    const again = await slow.post("/rpc", { id: 1, method: "inbox/counts" }, one.token);
    expect(Number(again.headers.get("retry-after"))).toBeGreaterThanOrEqual(1);

    expect((await slow.post("/v1/events", GOOD, other.token)).status).toBe(202);
    expect((await slow.rpc("inbox/counts", {}, other.token)).error).toBeUndefined();
    expect((await slow.get("/healthz")).status).toBe(200);

    const soon = await slow.createToken({ user_id: "soon", scopes: ["ingest"] });
    expect((await slow.post("/v1/events", Array<object>(100).fill(GOOD), soon.token)).status).toBe(202);
    expect((await slow.post("/v1/events", GOOD, soon.token)).status).toBe(429);
    await eventually(async () => ((await slow.post("/v1/events", GOOD, soon.token)).status === 202 ? true : undefined));
    expect(await slow.stop()).toBe(0);
    expect(slow.stderr).toBe("");
  });
});
