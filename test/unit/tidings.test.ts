import { existsSync } from "node:fs";
import { join } from "node:path";
import { setImmediate as turn } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import {
  InvalidInputError,
  isMiss,
  type JournalEntry,
  type JsonObject,
  type OpenOptions,
  Tidings,
  TidingsError,
} from "../../src/index.js";
import { eventually, openTidings, temporaryFolder } from "../support/folder.js";

const FAILURE = {
  type: "tool.call.failure",
  source: "tool executor",
  severity: "error",
  payload: {
    tool_name: "vault_search",
    error_type: "timeout",
    error_message: "Operation timed out after 5000ms",
    retry_count: 2,
    call_id: "tc_abc123",
  },
} as const;

describe("emit", () => {
  it("answers id, seq, outcome and matches after the commit", async () => {
    const tidings = await openTidings();
    const answer = await tidings.emit(FAILURE);
    expect(answer).toMatchObject({ seq: 1, outcome: "accepted" });
    expect(answer.matches).toHaveLength(1);
    expect(answer.matches[0]).toMatchObject({
      subscriber_id: "tool_failure",
      outcome: "batched",
      notification: { state: "PENDING", channel: "context", priority: "high", event_ids: [answer.id] },
    });
    expect(answer.matches[0]?.notification.content).toContain("vault_search");
    expect(await tidings.emit({ type: "nobody.listens", source: "x" })).toMatchObject({
      outcome: "unmatched",
      matches: [],
    });
  });

  it("shows the notification with every field of the contract", async () => {
    const tidings = await openTidings();
    const { id } = await tidings.notify({ content: "Build done", target: "user", data: { build: 7 } });
    const one = await tidings.read(id);
    expect(Object.keys(one).sort()).toEqual(
      [
        "id revision count rows state channel kind severity priority inject_at content data degraded address target handler effective",
        "directive source subject dedupe_key user_id thread_id created_at updated_at deadline open_until lease_epoch attempts action",
        "read_at reason subscriber_id event_ids redrive_of events",
      ]
        .join(" ")
        .split(" ")
        .sort(),
    );
    expect(one).toMatchObject({
      kind: "direct.notify",
      subscriber_id: "direct",
      address: "user",
      target: "user",
      handler: "system",
      channel: "inbox",
      state: "DISPATCHED",
      severity: "info",
      priority: "normal",
      inject_at: "next",
      user_id: "local",
      data: { build: 7 },
      events: [{ type: "direct.notify", payload: { build: 7 } }],
    });
  });

  it("keeps debug from everybody who has not asked for it", async () => {
    const tidings = await openTidings({
      subscribers: [{ id: "curious", types: ["cli.*"], severity_filter: "debug" }],
    });
    const answer = await tidings.emit({ type: "cli.event", source: "x", severity: "debug" });
    expect(answer.matches.map((match) => [match.subscriber_id, match.outcome])).toEqual([
      ["cli_event", "filtered"],
      ["curious", "queued"],
    ]);
    expect(answer.matches[0]?.notification).toMatchObject({ state: "SUPPRESSED", reason: "filtered" });
  });

  it("matches exact types and prefixes, each subscriber once", async () => {
    const tidings = await openTidings({
      subscribers: [
        { id: "exact", types: ["a.b.c", "a.*", "a.b.*"] },
        { id: "deep", types: ["a.b.*"] },
        { id: "other", types: ["a.bc.*", "b.*"] },
      ],
    });
    const who = async (type: string) =>
      (await tidings.emit({ type, source: "x" })).matches.map((match) => match.subscriber_id as string).sort();
    expect(await who("a.b.c")).toEqual(["deep", "exact"]);
    expect(await who("a.b")).toEqual(["exact"]);
    expect(await who("a.bcd.e")).toEqual(["exact"]);
    expect(await who("c.a.b")).toEqual([]);
  });

  it("finds general words where a subscriber has none, or throws", async () => {
    const tidings = await openTidings({
      subscribers: [
        {
          id: "broken",
          types: ["x.y"],
          content: () => {
            throw new Error("no words");
          },
        },
      ],
    });
    const answer = await tidings.emit({ type: "x.y", source: "here", payload: { message: "it rains" } });
    expect(answer.matches[0]?.notification).toMatchObject({
      content: 'notice: "x.y (from here): it rains"',
      degraded: "the words of broken failed: no words",
    });
  });

  it("counts right when a subscriber's words ask for the counts, in the midst of a commit", async () => {
    const asked: Promise<unknown>[] = [];
    const tidings = await openTidings({
      subscribers: [
        {
          id: "asking",
          types: ["x.y"],
          routing: { address: "user", target: "user", handler: "system" },
          dedupe_window_ms: 0,
          content: ({ payload }) => {
            if (payload["n"] === 1) asked.push(tidings.counts("ada"));
            return `${payload["n"]}`;
          },
        },
      ],
    });
    await Promise.all([0, 1].map((n) => tidings.emit({ type: "x.y", source: "here", user_id: "ada", payload: { n } })));
    expect(asked.length).toBeGreaterThan(0);
    await Promise.all(asked);
    const { notifications } = await tidings.list({ user_id: "ada", unread: true });
    expect(await tidings.counts("ada")).toMatchObject({ unacknowledged: 2, unread: notifications.length });
    for (const { id, revision } of notifications) await tidings.ack({ id, revision, action: "clicked" });
    expect(await tidings.counts("ada")).toMatchObject({ unacknowledged: 0, unread: 0 });
  });

  it("takes many; the bad ones are refused by themselves", async () => {
    const tidings = await openTidings();
    const bad = { type: "bad", source: "x" };
    const answers = await tidings.emitMany([FAILURE, bad, ...Array.from({ length: 300 }, () => FAILURE)]);
    expect(answers).toHaveLength(302);
    expect(answers.map((answer) => "error" in answer)).toEqual(answers.map((_, index) => index === 1));
    expect((await tidings.audit()).checked.events).toBe(301);
  });

  it("stores what was checked, even if the caller changes it meanwhile", async () => {
    const tidings = await openTidings();
    const payload: Record<string, string> = { message: "first" };
    const answer = tidings.emit({ type: "cli.event", source: "x", payload });
    payload["message"] = "second";
    const explained = await tidings.explain((await answer).id);
    expect(isMiss(explained) ? undefined : explained.event?.payload).toEqual({ message: "first" });
  });
});

describe("what is stored is the caller's no more", () => {
  it("an object that is used again is taken as it is then", async () => {
    const tidings = await openTidings();
    const payload: Record<string, unknown> = { n: 1 };
    const data: Record<string, unknown> = { a: 1 };
    const ids = [];
    for (const n of [1, 2]) {
      payload["n"] = n;
      ids.push((await tidings.emit({ type: "x.y", source: "x", payload: payload as JsonObject })).id);
    }
    const told = await Promise.all(ids.map((id) => tidings.explain(id)));
    expect(told.map((one) => (isMiss(one) ? undefined : one.event?.payload))).toEqual([{ n: 1 }, { n: 2 }]);
    payload["big"] = "x".repeat(100_000);
    await expect(tidings.emit({ type: "x.y", source: "x", payload: payload as JsonObject })).rejects.toThrow(/limit/);
    const { id } = await tidings.notify({ content: "x", data: data as JsonObject });
    data["a"] = 2;
    const read = await tidings.read(id);
    if (isMiss(read)) throw new Error(read.message);
    expect(read.data).toEqual({ a: 1 });
    (read.data as Record<string, unknown>)["a"] = 3;
    expect(await tidings.read(id)).toMatchObject({ data: { a: 1 } });
  });
});

describe("bad input", () => {
  const deep = (levels: number): JsonObject => (levels === 0 ? {} : { deeper: deep(levels - 1) });
  const bad: [string, unknown, string][] = [
    ["nothing", undefined, ""],
    ["a list", [], ""],
    ["no type", { source: "x" }, "type"],
    ["a type of one segment", { type: "tool", source: "x" }, "type"],
    ["a type of six", { type: "a.b.c.d.e.f", source: "x" }, "type"],
    ["a type with a space", { type: "a.b c", source: "x" }, "type"],
    ["a type that ends in a line break", { type: "a.b\n", source: "x" }, "type"],
    ["no source", { type: "a.b" }, "source"],
    ["an empty source", { type: "a.b", source: "" }, "source"],
    ["a control character", { type: "a.b", source: "a\u0000b" }, "source"],
    ["a lone surrogate", { type: "a.b", source: "\ud800" }, "source"],
    ["an unknown severity", { type: "a.b", source: "x", severity: "fatal" }, "severity"],
    ["an unknown field", { type: "a.b", source: "x", sevrity: "info" }, "sevrity"],
    ["a time without a zone", { type: "a.b", source: "x", timestamp: "2026-01-03T15:30:00" }, "timestamp"],
    ["a payload that is a list", { type: "a.b", source: "x", payload: [] }, "payload"],
    ["a payload too deep", { type: "a.b", source: "x", payload: deep(40) }, "payload"],
    ["a payload too large", { type: "a.b", source: "x", payload: { text: "x".repeat(70_000) } }, "payload"],
    ["a payload with too many keys", { type: "a.b", source: "x", payload: { list: Array(2_000).fill(0) } }, "payload"],
    ["a payload with a date", { type: "a.b", source: "x", payload: { at: new Date(0) } }, "payload"],
    ["a payload with a bigint", { type: "a.b", source: "x", payload: { n: 1n } }, "payload"],
    ["a payload with NaN", { type: "a.b", source: "x", payload: { n: Number.NaN } }, "payload"],
    ["a payload with a lone surrogate", { type: "a.b", source: "x", payload: { "\udc00": 1 } }, "payload"],
    ["__proto__", JSON.parse('{"type":"a.b","source":"x","payload":{"__proto__":{"x":1}}}'), "payload"],
    ["constructor", { type: "a.b", source: "x", payload: { a: { constructor: 1 } } }, "payload"],
    ["a user of 201 characters", { type: "a.b", source: "x", user_id: "u".repeat(201) }, "user_id"],
  ];

  it.each(bad)("%s is refused with its field, and nothing is stored", async (_, input, field) => {
    const tidings = await openTidings();
    const error = await tidings.emit(input as never).then(
      () => undefined,
      (caught: unknown) => caught,
    );
    expect(error).toBeInstanceOf(InvalidInputError);
    expect(error).toMatchObject({ code: "invalid_input", field });
    expect((await tidings.audit()).checked.entries).toBe(0);
    expect(({} as Record<string, unknown>)["x"]).toBeUndefined();
  });

  it("a payload that goes in a circle is refused", async () => {
    const tidings = await openTidings();
    const circle: Record<string, unknown> = {};
    circle["self"] = circle;
    await expect(tidings.emit({ type: "a.b", source: "x", payload: circle as never })).rejects.toThrow(
      InvalidInputError,
    );
  });

  it.each([
    ["no content", {}, "content"],
    ["empty content", { content: "" }, "content"],
    ["immediate without critical", { content: "x", inject_at: "immediate" }, "inject_at"],
    ["a directive that no agent will read", { content: "x", directive: "do it" }, "directive"],
    ["a window over a minute", { content: "x", dedupe_window_ms: 60_001 }, "dedupe_window_ms"],
    ["a ttl of nothing", { content: "x", ttl_ms: 0 }, "ttl_ms"],
    ["a kind of one word", { content: "x", kind: "word" }, "kind"],
  ])("notify with %s is refused", async (_, input, field) => {
    const tidings = await openTidings();
    await expect(tidings.notify(input as never)).rejects.toMatchObject({ code: "invalid_input", field });
  });

  it("an id that is no text is refused", async () => {
    const tidings = await openTidings();
    for (const call of [tidings.closeThread({} as never), tidings.deliveries.renew({} as never)])
      await expect(call).rejects.toThrow(InvalidInputError);
    const undefinedUser = { type: "cli.event", source: "x", user_id: undefined };
    expect((await tidings.as("alice").emit(undefinedUser)).matches[0]?.notification.user_id).toBe("alice");
  });

  it("a bad policy or subscriber is refused before anything is opened", async () => {
    const data = await temporaryFolder();
    await expect(Tidings.open({ data, policy: { leaseMs: 0 } })).rejects.toMatchObject({ field: "leaseMs" });
    await expect(Tidings.open({ data, subscribers: [{ id: "x", types: [] }] })).rejects.toMatchObject({
      field: "types",
    });
    const twice = { id: "x", types: ["a.b"] };
    await expect(Tidings.open({ data, subscribers: [twice, twice] })).rejects.toThrow(/two have the id x/);
  });

  it.each<[options: unknown, field: string, reason: RegExp]>([
    [{ wait_ms: Number.NaN }, "wait_ms", /number/],
    [{ wait_ms: Number.POSITIVE_INFINITY }, "wait_ms", /number/],
    [{ wait_ms: -1 }, "wait_ms", /^must be at least 0$/],
    [{ wait_ms: "5" }, "wait_ms", /number/],
    [{ mode: "zzz" }, "mode", /^must be one of write, read, write_if_free$/],
    [{ mode: null }, "mode", /^must be one of write/],
    [{ data: 5 }, "data", /^must be a path$/],
    [{ data: null }, "data", /^must be a path$/],
    [{ data: "" }, "data", /^must not be empty$/],
    [{ data: "a\u0000b" }, "data", /^must be a path$/],
    [{ subscribers_folder: 5 }, "subscribers_folder", /^must be a path$/],
    [{ config_file: {} }, "config_file", /^must be a path$/],
    [{ subscribers: { id: "x" } }, "subscribers", /^must be a list$/],
    [{ watch: "no" }, "watch", /^must be true or false$/],
    [{ onProblem: "log" }, "onProblem", /^must be a function$/],
    [{ onFailure: {} }, "onFailure", /^must be a function$/],
    [{ policy: 5 }, "policy", /^must be an object$/],
    [{ policy: { leaseMS: 5 } }, "leaseMS", /^is not a known field; did you mean leaseMs\?$/],
    [{ bytes_max: Number.NaN }, "bytes_max", /number/],
    [{ bytes_max: 0 }, "bytes_max", /^must be at least 1$/],
    [{ clock: { wall: 5 } }, "clock", /^must be an object with the functions wall and monotonic$/],
    [{ agent: "rehearsal" }, "agent", /^must be an object, or a function that gives one$/],
    [{ agent: null }, "agent", /^must be an object, or a function that gives one$/],
    [{ wait: 5 }, "wait", /^is not a known field; did you mean wait_ms\?$/],
    [{ dat: "x" }, "dat", /^is not a known field; did you mean data\?$/],
    [null, "options", /^must be an object/],
    ["folder", "options", /^must be an object/],
    [["folder"], "options", /^must be an object/],
  ])("open(%j) is refused by its name, and nothing is made", async (options, field, reason) => {
    const data = join(await temporaryFolder(), "data");
    const isObject = typeof options === "object" && options !== null && !Array.isArray(options);
    const opened = Tidings.open((isObject ? { data, ...options } : options) as never);
    const error = await opened.then(
      (tidings) => tidings.close(),
      (refused: unknown) => refused,
    );
    expect(error).toBeInstanceOf(InvalidInputError);
    expect(error).toMatchObject({ code: "invalid_input", field, reason: expect.stringMatching(reason) });
    expect(existsSync(data)).toBe(false);
  });

  it("every option is taken as it is, and one that is undefined as if it was not said", async () => {
    class OwnClock {
      readonly #start = 5;
      wall() {
        return Date.now() + this.#start;
      }
      monotonic() {
        return performance.now() + this.#start;
      }
    }
    const problems: string[] = [];
    const all: Required<OpenOptions> = {
      data: await temporaryFolder(),
      subscribers: [],
      subscribers_folder: null,
      config_file: null,
      watch: false,
      onProblem: (line) => problems.push(line),
      policy: { leaseMs: 5 },
      mode: "write_if_free",
      wait_ms: 0.5,
      bytes_max: 10_000_000,
      agent: () => ({ provider: "rehearsal" }),
      clock: new OwnClock(),
      onFailure: () => {},
    };
    const tidings = await openTidings(all);
    expect(tidings).toMatchObject({ writable: true, agent: { provider: "rehearsal" } });
    expect(problems).toEqual([]);
    const unsaid = Object.fromEntries(Object.keys(all).map((name) => [name, undefined]));
    expect(await openTidings({ ...unsaid, data: await temporaryFolder() })).toMatchObject({ agent: null });
  });
});

describe("notify", () => {
  it("routes by the axes, with the defaults of the design", async () => {
    const tidings = await openTidings();
    expect(await tidings.notify({ content: "x" })).toMatchObject({ channel: "context", state: "PENDING" });
    const threaded = await tidings.notify({ content: "x", thread_id: "t", target: "user" });
    expect(threaded).toMatchObject({ channel: "floor", state: "DISPATCHED" });
    const priorities = {
      critical: "critical",
      error: "high",
      warning: "normal",
      info: "normal",
      debug: "low",
    } as const;
    for (const [severity, priority] of Object.entries(priorities)) {
      const { id } = await tidings.notify({ content: "x", severity: severity as keyof typeof priorities });
      expect(await tidings.read(id)).toMatchObject({ priority });
    }
  });
});

describe("watch", () => {
  it("gives every entry once, in order, from where it is asked to", async () => {
    const tidings = await openTidings();
    for (let index = 0; index < 5; index += 1) await tidings.emit(FAILURE);
    const stop = new AbortController();
    const seen: JournalEntry[] = [];
    const watching = (async () => {
      for await (const entry of tidings.watch({ after: 2, signal: stop.signal })) {
        seen.push(entry);
        if (entry.seq === 305) stop.abort();
      }
    })();
    await Promise.all(Array.from({ length: 300 }, () => tidings.emit(FAILURE)));
    await watching;
    expect(seen.map((entry) => entry.seq)).toEqual(Array.from({ length: 303 }, (_, index) => index + 3));
  });

  it("starts with what comes next, and ends when Tidings closes", async () => {
    const data = await temporaryFolder();
    const tidings = await Tidings.open({ data });
    await tidings.emit(FAILURE);
    const seen: number[] = [];
    const watching = (async () => {
      for await (const entry of tidings.watch()) seen.push(entry.seq);
    })();
    await turn();
    await tidings.emit(FAILURE);
    await eventually(
      async () => seen,
      (numbers) => numbers.length === 1,
    );
    await tidings.close();
    await watching;
    expect(seen).toEqual([2]);
  });

  it("from now on means from the call, and a pruned cursor is refused, not passed over (I16)", async () => {
    const tidings = await openTidings();
    const watching = tidings.watch();
    const { seq } = await tidings.emit(FAILURE);
    expect((await watching.next()).value?.seq).toBe(seq);
    await watching.return();
    for (let index = 0; index < 5; index += 1) {
      const { matches } = await tidings.emit({ type: "cli.event", source: "x" });
      await tidings.ack({ id: matches[0]?.notification.id ?? "", revision: 1, action: "clicked" });
    }
    await eventually(
      () => tidings.prune({ older_than_ms: 0 }),
      () => true,
    );
    await eventually(
      async () => (await tidings.prune({ older_than_ms: 0 })) && (await tidings.facts()).floor_seq,
      (floor) => floor > 5,
    );
    await expect(tidings.watch({ after: 2 }).next()).rejects.toMatchObject({ reason: "cursor_too_old" });
    expect((await tidings.watch({ after: 0 }).next()).value?.seq).toBe(1);
  });

  it("works for a reader beside the writer", async () => {
    const data = await temporaryFolder();
    const writer = await openTidings({ data });
    await writer.emit(FAILURE);
    const reader = await openTidings({ data, mode: "read" });
    expect(reader.writable).toBe(false);
    const stop = new AbortController();
    const seen: number[] = [];
    const watching = (async () => {
      for await (const entry of reader.watch({ after: 0, signal: stop.signal })) {
        seen.push(entry.seq);
        if (seen.length === 2) stop.abort();
      }
    })();
    const { id } = await writer.notify({ content: "x" });
    await watching;
    expect(seen).toEqual([1, 2]);
    expect(await reader.read(id)).toMatchObject({ id });
    await expect(reader.emit(FAILURE)).rejects.toMatchObject({ code: "read_only" });
  });
});

describe("the life of a delivery, through the library", () => {
  it("is taken to the user by the watchdog when no agent comes, and explained", async () => {
    const tidings = await openTidings();
    const { id } = await tidings.notify({ content: "Tell the user", target: "user", handler: "agent", ttl_ms: 50 });
    const escalated = await eventually(
      () => tidings.read(id),
      (one) => !isMiss(one) && one.state === "ESCALATED",
    );
    expect(escalated).toMatchObject({ channel: "inbox", reason: "deadline", lease_epoch: 1 });
    expect(await tidings.ack({ id, revision: 1, action: "rendered" })).toMatchObject({ state: "DELIVERED" });
    const explained = await tidings.explain(id);
    if (isMiss(explained)) throw new Error(explained.message);
    expect(explained.summary).toContain("DELIVERED");
    expect(explained.story.map((line) => line.text).join("\n")).toMatch(
      /no agent took it before its deadline[\s\S]*Acknowledged by the user \(rendered\)/,
    );
  });

  it("lets a paused holder, whose lease ran out, change nothing (I3)", async () => {
    const tidings = await openTidings();
    const { id } = await tidings.notify({ content: "x", handler: "agent" });
    const { notifications, lease } = await tidings.deliveries.claim({ lease_ms: 50 });
    expect(notifications).toHaveLength(1);
    const [held] = notifications;
    if (held === undefined || lease === null) throw new Error("nothing was claimed");
    await eventually(
      () => tidings.read(id),
      (one) => !isMiss(one) && one.state === "ESCALATED",
    );
    const item = { id, epoch: held.lease_epoch };
    expect(await tidings.deliveries.settle([item])).toMatchObject([{ miss: "stale_lease" }]);
    expect(await tidings.deliveries.release([item])).toMatchObject([{ miss: "stale_lease" }]);
    expect(await tidings.deliveries.promote([item], "late")).toMatchObject([{ miss: "stale_lease" }]);
    expect(await tidings.deliveries.renew(lease.id)).toMatchObject({ miss: "stale_lease" });
    expect(await tidings.read(id)).toMatchObject({ state: "ESCALATED", lease_epoch: 2 });
  });

  it("closes in order: what waits is committed, later calls are refused", async () => {
    const data = await temporaryFolder();
    const tidings = await Tidings.open({ data });
    const waiting = Array.from({ length: 200 }, () => tidings.emit(FAILURE));
    const closing = tidings.close();
    await expect(tidings.emit(FAILURE)).rejects.toThrow(TidingsError);
    await closing;
    const answers = await Promise.allSettled(waiting);
    const reopened = await openTidings({ data });
    const answered = answers.filter((answer) => answer.status === "fulfilled");
    expect(answered).toHaveLength(200);
    expect((await reopened.audit()).checked.events).toBe(200);
  });
});
