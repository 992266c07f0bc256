/**
 * Random and mutated input, at the real doors of a real server: lines in any pieces, messages that are nearly calls, and every
 * method with nearly good parameters. Each gets its answer, with the right code; the server goes on, and keeps nothing of it.
 * `npm run fuzz` does the same for as long as you like, with a fresh seed.
 */
import { readdirSync, readFileSync } from "node:fs";
import fc from "fast-check";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { SERVER_LIMITS } from "../../src/server/limits.js";
import { canonicalName, METHODS } from "../../src/server/methods.js";
import { messageBytes, Pool, paramsOf } from "../support/fuzz.js";
import type { JsonSchema } from "../support/json_schema.js";
import { endKeptServer, startKeptServer } from "../support/kept_server.js";
import { frameBytes, OPCODE, openRawWebSocket, RawSocket } from "../support/raw.js";
import type { Client, Frame, Server } from "../support/server.js";
import { Duplex, type StreamFrame } from "../support/stream.js";
import { eventually } from "./cli.js";

const SEED = Number(process.env["TIDINGS_FUZZ_SEED"] ?? 7);
/** Of each method, and of messages five times as many. */
const RUNS = Number(process.env["TIDINGS_FUZZ_RUNS"] ?? 16);
/** Again and again with other seeds, for so long in all. */
const MINUTES = Number(process.env["TIDINGS_FUZZ_MINUTES"] ?? 0);
/** An answer that takes longer is none. */
const HUNG_MS = 60_000;

const CODE = {
  parse: -32700,
  request: -32600,
  method: -32601,
  params: -32602,
  overloaded: -32001,
  forbidden: -32003,
  missing: -32004,
  conflict: -32009,
} as const;
/** What a call that was understood may be refused with. */
const TYPED: readonly number[] = [CODE.params, CODE.overloaded, CODE.forbidden, CODE.missing, CODE.conflict];

let server: Server;
let token: string;
let token_id: string;
beforeAll(async () => {
  const args = ["--provider", "rehearsal", "--events-per-second", "1000000"];
  server = await startKeptServer(args);
  const scopes = ["ingest", "critical", "directive", "read", "ack", "agent"] as const;
  ({ token, id: token_id } = await server.createToken({ user_id: "ada", scopes }));
});
afterEach(async () => {
  expect((await server.get("/healthz")).status).toBe(200);
  expect(server.stderr).toBe("");
});
afterAll(async () => {
  await endKeptServer(server);
});

/** Runs it with the seed; in the long form with the next ones too, until its share of the time is over. */
async function again(share: number, property: (seed: number) => Promise<void>): Promise<void> {
  const until = Date.now() + MINUTES * 60_000 * share;
  for (let seed = SEED; seed === SEED || Date.now() < until; seed += 1) await property(seed);
}

async function within<Value>(promise: Promise<Value>, what: () => string): Promise<Value> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer to ${what()}`)), HUNG_MS);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

/** Of one answer: its id, and the code of its error; null where it may be a result, or an error that a method has. */
interface Expected {
  readonly id: unknown;
  readonly code: number | null;
}

/** What is to be answered to these bytes; undefined: nothing. */
function expectedOf(bytes: Buffer): Expected | Expected[] | undefined {
  let message: unknown;
  try {
    message = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch {
    return { id: null, code: CODE.parse };
  }
  if (depthOf(message) > SERVER_LIMITS.jsonDepth) return { id: idOf(message), code: CODE.request };
  if (!Array.isArray(message)) return expectedOfOne(message);
  if (message.length === 0 || message.length > SERVER_LIMITS.callsPerBatch) return { id: null, code: CODE.request };
  const answers = message.flatMap((one) => expectedOfOne(one) ?? []);
  return answers.length === 0 ? undefined : answers;
}

function idOf(message: unknown): unknown {
  const { id = null } = (message ?? {}) as { id?: unknown };
  return typeof id === "string" || typeof id === "number" ? id : null;
}

function depthOf(value: unknown): number {
  if (typeof value !== "object" || value === null) return 0;
  return 1 + Object.values(value).reduce<number>((most, one) => Math.max(most, depthOf(one)), 0);
}

function expectedOfOne(message: unknown): Expected | undefined {
  if (typeof message !== "object" || message === null || Array.isArray(message))
    return { id: null, code: CODE.request };
  const { jsonrpc = "2.0", id = null, method, params } = message as Record<string, unknown>;
  if (id !== null && typeof id !== "string" && typeof id !== "number") return { id: null, code: CODE.request };
  if (jsonrpc !== "2.0" || typeof method !== "string") return { id, code: CODE.request };
  if (!Object.hasOwn(message, "id")) return undefined;
  if (!METHODS.some(({ name }) => name === canonicalName(method))) return { id, code: CODE.method };
  const isObject = params === undefined || (typeof params === "object" && !Array.isArray(params));
  return { id, code: isObject ? null : CODE.params };
}

function check(answer: StreamFrame, { id, code }: Expected): void {
  expect(JSON.stringify(answer.id)).toBe(JSON.stringify(id));
  expect(answer.jsonrpc).toBe("2.0");
  expect("result" in answer).not.toBe("error" in answer);
  if (code !== null) expect(answer.error?.code).toBe(code);
  else if (answer.error !== undefined) expect(TYPED).toContain(answer.error.code);
  if (answer.error !== undefined) expect(answer.error.data["code"]).toBeTypeOf("string");
}

function checkAll(answer: unknown, expected: Expected | Expected[]): void {
  if (!Array.isArray(expected)) {
    check(answer as StreamFrame, expected);
    return;
  }
  expect(answer).toHaveLength(expected.length);
  for (const [n, one] of expected.entries()) check((answer as StreamFrame[])[n] as StreamFrame, one);
}

/** A stream that is sent one message at a time, and a good call after each. */
class Talk {
  readonly #send: (bytes: Buffer) => void;
  readonly #until: (read: (frames: readonly StreamFrame[]) => StreamFrame[] | undefined) => Promise<StreamFrame[]>;
  #calls = 0;
  #seen = 0;

  constructor(
    send: (bytes: Buffer) => void,
    until: (read: (frames: readonly StreamFrame[]) => StreamFrame[] | undefined) => Promise<StreamFrame[]>,
  ) {
    this.#send = send;
    this.#until = until;
  }

  async try(bytes: Buffer, expected: Expected | Expected[] | undefined): Promise<void> {
    this.#calls += 1;
    const own = `after ${this.#calls}`;
    this.#send(bytes);
    this.#send(Buffer.from(JSON.stringify({ id: own, method: "inbox/counts" })));
    const wanted = expected === undefined ? 1 : 2;
    const answers = await within(
      this.#until((frames) => {
        const some = frames.slice(this.#seen).filter(({ method }) => method === undefined);
        return some.length >= wanted ? some : undefined;
      }),
      () => bytes.toString("latin1").slice(0, 300),
    );
    this.#seen = await this.#until((frames) => [{ id: frames.length }]).then(([one]) => Number(one?.id));
    const others = answers.filter(({ id }) => id !== own);
    expect(answers.length - others.length).toBe(1);
    if (expected !== undefined) checkAll(others[0], expected);
  }
}

test("messages that are nearly calls: the same answer over every transport, in whatever pieces they come", async () => {
  const client = await server.connect();
  const socket = new Talk(
    (bytes) => client.send(bytes.toString("utf8")),
    (read) => client.until((frames) => read(frames as readonly StreamFrame[])),
  );
  const stream = new Duplex(`${server.url}/rpc/stream`, { token: server.token });
  let cuts: readonly number[] = [];
  const lines = new Talk(
    (bytes) => {
      const line = Buffer.concat([bytes, Buffer.from("\n")]);
      const places = [...new Set(cuts.map((at) => at % line.length))].sort((one, other) => one - other);
      for (const [n, end] of [...places, line.length].entries())
        stream.request.write(line.subarray(places[n - 1] ?? 0, end));
    },
    (read) => stream.frames.until(read),
  );
  const seen = new Map<string, number>();
  await again(0.15, (seed) =>
    fc.assert(
      fc.asyncProperty(messageBytes, fc.array(fc.nat(), { maxLength: 8 }), async (bytes, places) => {
        const expected = expectedOf(bytes);
        const { status, text } = await within(server.request("/rpc", { method: "POST", body: bytes }), () =>
          String(bytes),
        );
        expect(status).toBeLessThan(500);
        if (expected === undefined) expect([status, text]).toEqual([204, ""]);
        else checkAll(JSON.parse(text), expected);
        const kind = expected === undefined ? "nothing" : Array.isArray(expected) ? "many" : String(expected.code);
        seen.set(kind, (seen.get(kind) ?? 0) + 1);
        if (bytes.length > SERVER_LIMITS.messageBytes) return;
        if (isUtf8(bytes)) await socket.try(bytes, expected);
        cuts = places;
        if (!bytes.includes(0x0a) && /[^ \t\r]/.test(bytes.toString("latin1"))) await lines.try(bytes, expected);
      }),
      { numRuns: 5 * RUNS, seed },
    ),
  );
  for (const kind of ["nothing", "many", "null", ...[CODE.parse, CODE.request, CODE.method].map(String)])
    expect([...seen.keys()], "kinds of answers").toContain(kind);
});

function isUtf8(bytes: Buffer): boolean {
  return Buffer.from(bytes.toString("utf8")).equals(bytes);
}

test("bytes that are no request, and frames that are none: the connection ends, and no other", async () => {
  const good = await server.connect();
  const frames = fc.array(
    fc.oneof(
      fc.uint8Array({ maxLength: 30 }).map((bytes) => Buffer.from(bytes)),
      fc
        .tuple(fc.integer({ min: 0, max: 15 }), fc.uint8Array({ maxLength: 200 }), fc.boolean(), fc.boolean())
        .map(([opcode, payload, fin, masked]) => frameBytes(opcode, Buffer.from(payload), { fin, masked })),
    ),
    { minLength: 1, maxLength: 6 },
  );
  await again(0.15, (seed) =>
    fc.assert(
      fc.asyncProperty(frames, fc.uint8Array({ minLength: 1, maxLength: 200 }), async (some, bytes) => {
        const raw = await openRawWebSocket(server);
        raw.write(Buffer.concat(some));
        // Whatever it was, a good frame after it is answered, or the connection has ended by itself.
        raw.write(frameBytes(OPCODE.text, JSON.stringify({ id: "good", method: "inbox/counts" })));
        raw.socket.end();
        await raw.closed();
        const garbage = await RawSocket.open(server.url);
        garbage.write(Buffer.concat([Buffer.from(bytes), Buffer.from("\r\n\r\n")]));
        garbage.socket.end();
        await garbage.closed();
        expect((await good.rpc("inbox/counts")).error).toBeUndefined();
      }),
      { numRuns: 3 * RUNS, seed },
    ),
  );
});

interface Described {
  readonly methods: readonly {
    readonly name: string;
    readonly params: readonly { readonly name: string; readonly required?: true; readonly schema: JsonSchema }[];
  }[];
}

/** One answer of a call by its id, over a WebSocket that is kept. */
class Caller {
  readonly #client: Client;
  #calls = 0;

  constructor(client: Client) {
    this.#client = client;
  }

  call(method: string, params: unknown): Promise<Frame> {
    this.#calls += 1;
    const id = `call ${this.#calls}`;
    this.#client.send({ jsonrpc: "2.0", id, method, params });
    return this.#client.frame((frame) => frame.id === id, HUNG_MS).finally(() => this.#forget());
  }

  /** What was told meanwhile is not kept here either. */
  #forget(): void {
    if (this.#client.frames.length > 2_000) this.#client.frames.splice(0, 1_000);
  }
}

/** What the process of the server holds; zeros where the system does not tell. */
function held(): { megabytes: number; handles: number } {
  if (process.platform !== "linux") return { megabytes: 0, handles: 0 };
  const [, kilobytes = "0"] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${server.pid}/status`, "utf8")) ?? [];
  return { megabytes: Number(kilobytes) / 1_024, handles: readdirSync(`/proc/${server.pid}/fd`).length };
}

test("every method, with good, nearly good and other parameters: a result, or an error with the right code", async () => {
  const { json } = await server.get<Described>("/openrpc.json", null);
  expect(json.methods.map(({ name }) => name)).toEqual(METHODS.map(({ name }) => name));
  const pool = new Pool([token_id]);
  const clients = [new Caller(await server.connect()), new Caller(await server.connect({ token }))];
  const seen = new Map<string, { done: number; refused: number }>();

  /** The answer of a call over one of the ways, and what is always true of it. */
  const attempt = async (way: "http" | "websocket", who: number, method: string, params: unknown): Promise<void> => {
    const words = () => `${way} ${method} ${JSON.stringify(params)?.slice(0, 400)}`;
    const caller = clients[who];
    const asked =
      way === "http"
        ? server.post<Frame>("/rpc", { jsonrpc: "2.0", id: "http", method, params }, who === 0 ? server.token : token)
        : caller?.call(method, params).then((frame) => ({ status: 200, json: frame }));
    if (asked === undefined) throw new Error("nobody calls");
    const { status, json: answer } = await within(asked, words);
    expect(status, words()).toBeLessThan(500);
    const { error } = answer;
    if (error !== undefined)
      expect([...TYPED, CODE.request], `${words()} ${JSON.stringify(error)}`).toContain(error.code);
    if (error?.code === CODE.params)
      expect(error.data, words()).toMatchObject({ field: expect.any(String), reason: expect.any(String) });
    if (error?.code === CODE.overloaded) expect(error.data?.retry_after_ms, words()).toBeTypeOf("number");
    if (error === undefined) expect(answer, words()).toHaveProperty("result");
    pool.learn(answer.result, method.split("/", 1)[0] ?? "");
    const counts = seen.get(`${way} ${method}`) ?? { done: 0, refused: 0 };
    seen.set(`${way} ${method}`, counts);
    counts[error === undefined ? "done" : "refused"] += 1;
  };

  // Something of everything, so that there is something to name.
  const { thread_id } = await server.call<{ thread_id: string }>("thread/start", { user_id: "ada" });
  for (const [method, params] of [
    ["subscriber/list", {}],
    ["initialize", {}],
    ["turn/start", { thread_id, input: "hello" }],
    ["notification/notify", { content: "words", target: "user", user_id: "ada" }],
    ["notification/notify", { content: "words", target: "agent", user_id: "ada", thread_id }],
    ["agent/collect", { thread_id, point: "turn_start" }],
    ["token/create", { scopes: ["read"] }],
  ] as const)
    await attempt("http", 0, method, params);

  const formOf = ({ params }: Described["methods"][number]): JsonSchema => ({
    type: "object",
    properties: Object.fromEntries(params.map((one) => [one.name, one.schema])),
    required: params.flatMap((one) => (one.required === true ? [one.name] : [])),
    additionalProperties: false,
  });
  const before = held();
  await again(0.7, async (seed) => {
    // All methods at the same time: they do not wait for one another.
    const outcomes = await Promise.allSettled(
      json.methods.map((described, nth) =>
        fc.assert(
          fc.asyncProperty(paramsOf(described.name, formOf(described)), fc.nat(1), async (generated, who) => {
            const params = pool.fill(generated);
            await attempt("http", who, described.name, params);
            if (Buffer.byteLength(JSON.stringify(params)) < 50_000)
              await attempt("websocket", who, described.name, params);
          }),
          { numRuns: RUNS, seed: seed + 1_000_003 * nth },
        ),
      ),
    );
    for (const outcome of outcomes) if (outcome.status === "rejected") throw outcome.reason;
  });
  // Every method was tried over both, and most of them were also done.
  for (const { name } of METHODS)
    for (const way of ["http", "websocket"])
      expect(seen.get(`${way} ${name}`)?.refused, `${way} ${name}`).toBeGreaterThan(0);
  const done = METHODS.filter(({ name }) => (seen.get(`http ${name}`)?.done ?? 0) > 0);
  expect(done.length).toBeGreaterThan(METHODS.length * 0.6);
  for (const client of clients) expect((await client.call("inbox/counts", {})).error).toBeUndefined();
  // The agent rests no longer, and a turn comes to its end.
  await server.call("runtime/resume");
  const { thread_id: last } = await server.call<{ thread_id: string }>("thread/start", { user_id: "ada" });
  await server.call("turn/start", { thread_id: last, input: "hello" });
  await eventually(async () => {
    const { items } = await server.call<{ items: { role?: string }[] }>("thread/read", { thread_id: last });
    return items.some(({ role }) => role === "assistant") ? true : undefined;
  });
  expect(held().megabytes - before.megabytes).toBeLessThan(300);
  // Connections that were kept for a next request, and files of the database, come and go.
  await eventually(async () => (held().handles - before.handles < 60 ? true : undefined));
});
