/**
 * What a client wants to hear may stand in the query, or be said by `initialize` when it has come back already. Either way
 * it has been told every entry of its view once, in order, or that something is missing (I17).
 */
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { WebSocket } from "ws";
import { endKeptServer, startKeptServer } from "../support/kept_server.js";
import type { Server } from "../support/server.js";
import { Duplex, Frames, type StreamFrame } from "../support/stream.js";

let server: Server;
beforeAll(async () => {
  server = await startKeptServer(["--provider", "rehearsal"]);
});
afterAll(async () => {
  await endKeptServer(server);
});

let people = 0;
/** Somebody with a conversation whose agent rests, and where they stand. */
async function person() {
  people += 1;
  const scopes = ["read", "ack", "ingest", "agent"] as const;
  const { token } = await server.createToken({ user_id: `viewer ${people}`, scopes });
  const call = <Result = Record<string, string>>(method: string, params: object = {}) =>
    server.call<Result>(method, params, token);
  const { thread_id = "" } = await call("thread/start");
  await call("thread/pause", { thread_id });
  const { journal_id, seq: after_seq } = await call<{ journal_id: string; seq: number }>("initialize");
  return { token, call, thread_id, cursor: { journal_id, after_seq } };
}
type Person = Awaited<ReturnType<typeof person>>;

const LAST = "the last word";
const say = ({ call }: Person, content: string) => call("notification/notify", { content, target: "user" });

/** What may be missed: each is told in another part of the view. */
const HAPPENINGS = {
  notification: (me: Person) => say(me, "said"),
  /** One entry that is told twice. */
  pill: ({ call, thread_id }: Person) => call("notification/notify", { content: "pill", target: "user", thread_id }),
  thread: ({ call }: Person) => call("thread/start"),
  queued: async ({ call, thread_id }: Person) => {
    const { turn_id } = await call("turn/start", { thread_id, input: "later" });
    await call("queue/remove", { turn_id });
  },
  observation: async ({ call, thread_id }: Person) => {
    await call("notification/notify", { content: "for the agent", thread_id });
    const asked = { thread_id, point: "after_tool", wait_ms: 20_000 };
    const { carrier } = await call<{ carrier: { id: string } }>("agent/collect", asked);
    await call("agent/settle", { carrier_id: carrier.id });
  },
} as const;
type Happening = keyof typeof HAPPENINGS;
const happenings = Object.keys(HAPPENINGS) as Happening[];

const VIEWS = {
  inbox: { conversation: false },
  whole: {},
  observing: { observe: true },
  "without threads": { opt_out: ["thread/started", "item/deleted"] },
} as const;
type View = keyof typeof VIEWS;
/** Those that have no more than `inbox`, or than what a stream tells that nobody has asked for anything. */
const NARROWER: Readonly<Record<View, readonly (View | null)[]>> = {
  inbox: ["inbox"],
  whole: ["inbox", "without threads", null],
  observing: ["inbox", "without threads", "whole", null],
  "without threads": ["inbox"],
};

const TRANSPORTS = ["/ws", "/rpc/stream"] as const;
type Transport = (typeof TRANSPORTS)[number];

function open(transport: Transport, { token }: Person, query: URLSearchParams) {
  if (transport === "/rpc/stream") {
    const stream = new Duplex(`${server.url}/rpc/stream?${query}`, { token });
    return { frames: stream.frames, say: (line: object) => stream.say(line) };
  }
  const frames = new Frames();
  const socket = new WebSocket(`${server.url.replace("http", "ws")}/ws?${query}`, {
    headers: { authorization: `Bearer ${token}` },
  });
  onTestFinished(() => socket.terminate());
  const opened = new Promise((resolve) => socket.once("open", resolve));
  socket.on("message", (data) => frames.take(Buffer.from(`${data}\n`)));
  socket.on("close", () => frames.end());
  return { frames, say: (line: object) => void opened.then(() => socket.send(JSON.stringify(line))) };
}

function queryOf(view: View | null, cursor: Person["cursor"] | null): URLSearchParams {
  const {
    conversation,
    observe,
    opt_out = [],
  } = (view === null ? {} : { conversation: true, ...VIEWS[view] }) as {
    conversation?: boolean;
    observe?: boolean;
    opt_out?: readonly string[];
  };
  return new URLSearchParams({
    ...(conversation === undefined ? {} : { conversation: String(conversation) }),
    ...(observe === undefined ? {} : { observe: String(observe) }),
    ...(opt_out.length === 0 ? {} : { opt_out: opt_out.join(",") }),
    ...(cursor === null ? {} : { journal_id: cursor.journal_id, after_seq: String(cursor.after_seq) }),
  });
}

const isLast = ({ method, params }: StreamFrame) =>
  method === "notification/created" && params.notification.content === LAST;
const isChained = ({ params }: StreamFrame) => params?.prev_seq !== undefined;
const inShort = (frames: readonly StreamFrame[]) =>
  frames.filter(isChained).map(({ method, params }) => {
    const { prev_seq: _, part: __, ...rest } = params;
    return { method, params: rest };
  });

/** What was told, as a client has it that follows the documentation: after the last reset, and from where on. */
function followed(frames: readonly StreamFrame[], after_seq: number) {
  let previous: number | null = after_seq;
  let from = after_seq;
  let told: StreamFrame[] = [];
  let resets = 0;
  for (const frame of frames) {
    const { method, params } = frame;
    if (method === "stream/reset") {
      [previous, from, told] = [null, params.newest_seq, []];
      resets += 1;
    } else if (isChained(frame)) {
      expect(params.prev_seq, `${method} ${params.seq}`).toBe(previous);
      previous = params.seq;
      told.push(frame);
    }
  }
  return { told: inShort(told), from, resets };
}

/** All of a view since the cursor, by one who has asked for it in the query. */
async function whole(me: Person, view: View) {
  const { frames } = open("/rpc/stream", me, queryOf(view, me.cursor));
  await frames.frame(isLast);
  expect(frames.all.some(({ method }) => method === "stream/reset")).toBe(false);
  return inShort(frames.all);
}

/** How a client that comes back says what it wants to hear. */
const WAYS = ["in the query", "by initialize", "by initialize, later", "stream/resume, then initialize"] as const;

interface Case {
  readonly transport: Transport;
  readonly way: (typeof WAYS)[number];
  readonly view: View;
  /** What it says of its view before, in the query. */
  readonly before: View | null;
  readonly missed: readonly Happening[];
  readonly meanwhile: readonly Happening[];
}

async function comesBack({ transport, way, view, before, missed, meanwhile }: Case) {
  const me = await person();
  for (const what of missed) await HAPPENINGS[what](me);
  const atOnce = way !== "stream/resume, then initialize";
  const first = way === "in the query" ? view : before;
  const { frames, say: ask } = open(transport, me, queryOf(first, atOnce ? me.cursor : null));
  const initialize = { id: "initialize", method: "initialize", params: VIEWS[view] };
  if (!atOnce) {
    await frames.told("inbox/counts");
    ask({ id: "resume", method: "stream/resume", params: me.cursor });
    await frames.answer("resume");
  }
  if (way === "by initialize, later") await frames.told("inbox/counts");
  const happening = (async () => {
    for (const what of meanwhile) await HAPPENINGS[what](me);
  })();
  ask(initialize);
  await frames.answer("initialize");
  await happening;
  await say(me, LAST);
  await frames.frame(isLast);
  // What was pushed before the answer to `stream/resume` does not count.
  const start = atOnce ? 0 : frames.all.findIndex(({ id }) => id === "resume");
  const { told, from, resets } = followed(frames.all.slice(start), me.cursor.after_seq);
  const expected = (await whole(me, view)).filter(({ params }) => params.seq > from);
  expect(told).toEqual(expected);
  return { resets, told, frames: frames.all };
}

const methods = (told: readonly { method?: string | undefined }[]) => told.map(({ method }) => method);

describe("a view that initialize widens when a stream has come back", () => {
  test.each(TRANSPORTS)("%s: what was missed of it is told in its place", async (transport) => {
    const before = "inbox";
    const told = await comesBack({
      ...{ transport, way: "by initialize, later", view: "whole", before },
      ...{ missed: ["thread", "queued"], meanwhile: [] },
    });
    expect(told.resets).toBe(0);
    expect(methods(told.told)).toEqual([...["thread/started", "item/created", "item/deleted", "notification/created"]]);
  });

  test.each(TRANSPORTS)(
    "%s: where something later was told already, it is told that something is missing",
    async (transport) => {
      const before = "inbox";
      const told = await comesBack({
        ...{ transport, way: "by initialize, later", view: "whole", before },
        ...{ missed: ["thread", "notification"], meanwhile: [] },
      });
      expect(told.resets).toBe(1);
      expect(told.frames.find(({ method }) => method === "stream/reset")?.params.reason).toBe("view_widened");
      // Nothing of the wider view was passed over: nothing is missing.
      const fine = await comesBack({
        ...{ transport, way: "by initialize, later", view: "whole", before },
        ...{ missed: ["notification", "pill", "thread"], meanwhile: [] },
      });
      expect(fine.resets).toBe(0);
      expect(methods(fine.told)).toEqual([
        ...["notification/created", "notification/created", "item/created", "thread/started", "notification/created"],
      ]);
    },
  );

  test("whichever way, whatever was missed: every entry of the view once, in order, or a reset", async () => {
    const some = fc.array(fc.constantFrom(...happenings), { maxLength: 4 });
    const cases = fc.constantFrom<View>("inbox", "whole", "observing", "without threads").chain((view) =>
      fc.record<Case>({
        transport: fc.constantFrom(...TRANSPORTS),
        way: fc.constantFrom(...WAYS),
        view: fc.constant(view),
        before: fc.constantFrom(...NARROWER[view]),
        missed: some,
        meanwhile: some,
      }),
    );
    let [anew, whole] = [0, 0];
    // Some at once: most of their time they wait.
    await fc.assert(
      fc.asyncProperty(fc.array(cases, { minLength: 15, maxLength: 15 }), (many) =>
        Promise.all(
          many.map(async (one) => {
            const { resets } = await comesBack(one);
            if (one.way === "in the query") expect(resets).toBe(0);
            if (resets > 0) anew += 1;
            else whole += 1;
          }),
        ).then(() => {}),
      ),
      { numRuns: 4, endOnFailure: true },
    );
    expect(anew).toBeGreaterThan(0);
    expect(whole).toBeGreaterThan(anew);
  });
});
