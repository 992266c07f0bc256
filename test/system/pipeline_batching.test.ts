/** From `POST /v1/events` of the real server to what its agent collects: batches, rows and counts. */
import { beforeAll, describe, expect, test } from "vitest";
import {
  all,
  changesOf,
  collect,
  decoded,
  emit,
  emitAll,
  failure,
  newThread,
  onlyMatch,
  PLAIN_TEMPLATE,
  read,
  rowsOf,
  sharedServer,
  storyOf,
  told,
  whenClosed,
  writeSubscriber,
} from "../support/pipeline.js";
import type { Server } from "../support/server.js";

let server: Server;

function subscribers(folder: string): void {
  // A short window and a long memory.
  writeSubscriber(folder, {
    id: "brief",
    types: ["brief.*"],
    window_ms: 200,
    dedupe_key: "type:payload.name",
    dedupe_window_ms: 60_000,
    template: PLAIN_TEMPLATE,
  });
  writeSubscriber(folder, { id: "steady", types: ["steady.*"], window_ms: 4_000, template: PLAIN_TEMPLATE });
  // As long as a window may be: what closes it is not the clock.
  writeSubscriber(folder, { id: "patient", types: ["patient.*"], window_ms: 10_000, template: PLAIN_TEMPLATE });
}

beforeAll(async () => {
  const shared = await sharedServer(subscribers);
  server = shared.server;
  return shared.end;
});

const named = (type: string, name: string, thread_id?: string) => ({
  type,
  source: "test",
  payload: { name },
  ...(thread_id === undefined ? {} : { thread_id }),
});

describe("one tool failure", () => {
  test("is exactly one notification at the next collect", async () => {
    const thread_id = newThread();
    const sent = onlyMatch(await emit(server, failure("vault_search", { thread_id })));
    expect(sent).toMatchObject({
      subscriber_id: "tool_failure",
      outcome: "batched",
      notification: { state: "PENDING", channel: "context", priority: "high", count: 1, revision: 1 },
    });
    expect(sent.notification.open_until).toEqual(expect.any(String));

    const carrier = await collect(server, thread_id, "after_tool");
    expect(carrier).toMatchObject({ thread_id, point: "after_tool", state: "open", more: 0 });
    expect(carrier?.notifications).toMatchObject([
      {
        id: sent.notification.id,
        content: "tool_fail: vault_search timeout after 5000ms",
        count: 1,
        revision: 1,
        priority: "high",
        inject_at: "after_tool",
        kind: "tool.call.failure",
        severity: "error",
        subscriber_id: "tool_failure",
        must_narrate: false,
        degraded: null,
      },
    ]);
    expect(await read(server, sent.notification.id)).toMatchObject({ state: "LOCKED", open_until: null });
    await server.call("agent/settle", { carrier_id: carrier?.id });
    expect(await read(server, sent.notification.id)).toMatchObject({ state: "DELIVERED" });
    expect(await collect(server, thread_id, "turn_start")).toBe(null);
    expect(await all(server, { thread_id })).toHaveLength(1);
  });

  test("is one without any collect, when its window ends, and its words are in the journal", async () => {
    const thread_id = newThread();
    const { notification } = onlyMatch(await emit(server, failure("vault_search", { thread_id })));
    const closed = await whenClosed(server, notification.id);
    expect(closed).toMatchObject({
      state: "PENDING",
      content: "tool_fail: vault_search timeout after 5000ms",
      count: 1,
      revision: 1,
      degraded: null,
    });
    const changes = await changesOf(server.data, notification.id);
    expect(changes.map(({ command }) => command)).toEqual(["create", "flush"]);
    const [made, flushed] = changes;
    expect(flushed?.set).toMatchObject({ open_until: null });
    // As it was worded when it was made, if one event is all there is to say.
    expect(flushed?.words?.content ?? made?.notification?.content).toBe(closed.content);
    expect(await storyOf(server, notification.id)).toMatch(/batch/i);

    // And the agent is told the same, once.
    const carried = await told(server, thread_id, "after_tool");
    expect(carried).toMatchObject([{ id: notification.id, content: closed.content }]);
    expect(await told(server, thread_id, "turn_start")).toEqual([]);
  });

  test("wakes an agent that waits for it, when its window ends", async () => {
    const thread_id = newThread();
    await server.call("thread/start", { thread_id });
    const waiting = collect(server, thread_id, "turn_start", { wait_ms: 30_000 });
    const { notification } = onlyMatch(await emit(server, failure("vault_search", { thread_id })));
    expect((await waiting)?.notifications.map(({ id }) => id)).toEqual([notification.id]);
  });
});

describe("several failures", () => {
  const tools = (number: number) => Array.from({ length: number }, (_, index) => `tool_${index + 1}`);

  test("of nine tools are one notification with nine rows", async () => {
    const thread_id = newThread();
    const sent = await emitAll(
      server,
      tools(9).map((tool) => failure(tool, { thread_id })),
    );
    expect(new Set(sent.map((one) => onlyMatch(one).notification.id)).size).toBe(1);
    expect(sent.map((one) => onlyMatch(one).outcome)).toEqual(Array(9).fill("batched"));

    const [carried, ...others] = await told(server, thread_id, "after_tool");
    expect(others).toEqual([]);
    expect(carried).toMatchObject({ count: 9, revision: 1 });
    expect(carried?.content).toMatch(/^tool_fails\[9\]\{tool,error,ts\}:\n/);
    expect(rowsOf(carried?.content ?? "").map(({ tool, error }) => [tool, error])).toEqual(
      tools(9).map((tool) => [tool, "timeout"]),
    );
    const { events, event_ids } = await read(server, carried?.id ?? "");
    expect(event_ids).toEqual(sent.map(({ id }) => id));
    expect(events.map(({ id }) => id)).toEqual(event_ids);
    expect(await told(server, thread_id, "turn_start")).toEqual([]);
  });

  test("of nine tools, one after the other, are one when the window ends", async () => {
    const thread_id = newThread();
    const ids = new Set<string>();
    for (const tool of tools(9)) {
      const { notification } = onlyMatch(await emit(server, named("steady.failure", tool, thread_id)));
      ids.add(notification.id);
    }
    const [id = ""] = ids;
    expect(ids.size).toBe(1);
    const closed = await whenClosed(server, id);
    expect(rowsOf(closed.content)).toEqual(tools(9).map((name) => ({ name, times: 1 })));
  });

  test("of eleven tools are one of ten, closed by its size, and one of one", async () => {
    const thread_id = newThread();
    const sent = await emitAll(
      server,
      tools(11).map((tool) => named("patient.failure", tool, thread_id)),
    );
    const ids = sent.map((one) => onlyMatch(one).notification.id);
    expect(new Set(ids.slice(0, 10)).size).toBe(1);
    expect(ids[10]).not.toBe(ids[0]);
    // The full one does not wait for its window.
    const full = await read(server, ids[0] ?? "");
    expect(full).toMatchObject({ state: "PENDING", open_until: null, count: 10 });
    expect(rowsOf(full.content)).toHaveLength(10);
    expect((await read(server, ids[10] ?? "")).open_until).not.toBe(null);

    const carried = await told(server, thread_id, "turn_start");
    expect(carried.map(({ id }) => id)).toEqual([ids[0], ids[10]]);
    expect(rowsOf(carried[0]?.content ?? "").map(({ name }) => name)).toEqual(tools(10));
    expect(decoded(carried[1]?.content ?? "")).toEqual({ told: "tool_11", times: 1 });
    expect(await told(server, thread_id, "turn_start")).toEqual([]);
  });

  test("of eleven tools of the built-in subscriber too", async () => {
    const thread_id = newThread();
    await emitAll(
      server,
      tools(11).map((tool) => failure(tool, { thread_id })),
    );
    const carried = await told(server, thread_id, "after_tool");
    expect(carried.map(({ count }) => count)).toEqual([10, 1]);
    expect(rowsOf(carried[0]?.content ?? "")).toHaveLength(10);
    expect(carried[1]?.content).toBe("tool_fail: tool_11 timeout after 5000ms");
  });

  test("nine of the same tool are one row with the count 9", async () => {
    const thread_id = newThread();
    const sent = await emitAll(
      server,
      Array.from({ length: 9 }, () => failure("vault_search", { thread_id })),
    );
    expect(sent.map((one) => onlyMatch(one).outcome)).toEqual(["batched", ...Array(8).fill("merged")]);
    const carried = await told(server, thread_id, "after_tool");
    expect(carried).toMatchObject([{ count: 9, revision: 1 }]);
    expect(carried[0]?.content).toMatch(
      /^tool_fail: "?vault_search timeout after 5000ms \(9 times since \d\d:\d\d:\d\d\)"?$/,
    );
    expect((await read(server, carried[0]?.id ?? "")).event_ids).toEqual(sent.map(({ id }) => id));
  });

  test("rows and repeats of rows are counted apart, and shown", async () => {
    const thread_id = newThread();
    await emitAll(
      server,
      ["a", "b", "a", "c", "a", "b"].map((tool) => failure(tool, { thread_id })),
    );
    const carried = await told(server, thread_id, "after_tool");
    expect(carried).toMatchObject([{ count: 6 }]);
    expect(carried[0]?.content).toMatch(/^tool_fails\[3\]\{tool,error,ts,times\}:\n/);
    expect(rowsOf(carried[0]?.content ?? "").map(({ tool, times }) => [tool, times])).toEqual([
      ["a", 3],
      ["b", 2],
      ["c", 1],
    ]);
  });
});

describe("which event is the same one", () => {
  const dropped = (reason: string, thread_id: string, more: object = {}) => ({
    type: "mcp.disconnected",
    source: "mcp",
    severity: "error" as const,
    thread_id,
    payload: { server: "github", reason },
    ...more,
  });

  test("two different failures of one source without a key are two rows", async () => {
    const thread_id = newThread();
    const sent = await emitAll(server, [dropped("reset", thread_id), dropped("timeout", thread_id)]);
    expect(sent.map((one) => onlyMatch(one).outcome)).toEqual(["batched", "batched"]);
    const [carried] = await told(server, thread_id, "turn_start");
    expect(rowsOf(carried?.content ?? "").map(({ detail }) => detail)).toEqual(["reset", "timeout"]);
  });

  test("the same one repeated is counted, and the count is shown", async () => {
    const thread_id = newThread();
    await emitAll(
      server,
      Array.from({ length: 3 }, () => dropped("reset", thread_id)),
    );
    const carried = await told(server, thread_id, "turn_start");
    expect(carried).toMatchObject([{ count: 3 }]);
    expect(carried[0]?.content).toContain("MCP server github has disconnected");
    expect(carried[0]?.content).toContain("3 times");
  });

  test("an event's own key comes before everything else", async () => {
    const thread_id = newThread();
    const key = { dedupe_key: "the network" };
    await emitAll(server, [
      dropped("reset", thread_id, key),
      dropped("timeout", thread_id, key),
      dropped("timeout", thread_id),
    ]);
    const carried = await told(server, thread_id, "turn_start");
    expect(carried).toMatchObject([{ count: 3 }]);
    // Of what is the same one the latest is shown.
    expect(rowsOf(carried[0]?.content ?? "").map(({ detail, times }) => [detail, times])).toEqual([
      ["timeout", 2],
      ["timeout", 1],
    ]);
  });

  test("it counts to a closed one that waits, which is told once with the count, at its first revision", async () => {
    const thread_id = newThread();
    const first = onlyMatch(await emit(server, named("brief.one", "x", thread_id)));
    await whenClosed(server, first.notification.id);
    const again = onlyMatch(await emit(server, named("brief.one", "x", thread_id)));
    expect(again).toMatchObject({ outcome: "merged", notification: { id: first.notification.id, count: 2 } });
    const other = onlyMatch(await emit(server, named("brief.one", "y", thread_id)));
    expect(other.outcome).toBe("batched");
    expect(other.notification.id).not.toBe(first.notification.id);
    const carried = await told(server, thread_id, "turn_start");
    expect(carried.map(({ content }) => decoded(content))).toEqual([
      { told: "x", times: 2 },
      { told: "y", times: 1 },
    ]);
    expect(carried.map(({ revision }) => revision)).toEqual([1, 1]);

    // Told already: counted, and not told again.
    const late = onlyMatch(await emit(server, named("brief.one", "x", thread_id)));
    expect(late).toMatchObject({ outcome: "merged", notification: { state: "DELIVERED", count: 3 } });
    expect(await told(server, thread_id, "turn_start")).toEqual([]);
  });

  test("an event that is sent again by its producer counts once", async () => {
    const thread_id = newThread();
    const event = { ...named("patient.one", "x", thread_id), id: `producer-${thread_id}` };
    const first = await emit(server, event);
    const second = await emit(server, event);
    expect(second).toMatchObject({ id: first.id, outcome: "duplicate" });
    expect(await told(server, thread_id, "turn_start")).toMatchObject([{ count: 1 }]);
  });
});

describe("a batch is of one subscriber, user and thread", () => {
  test("two threads have one each, and each collect takes its own", async () => {
    const [one, other] = [newThread(), newThread()];
    await emitAll(server, [
      named("patient.one", "a", one),
      named("patient.one", "b", other),
      named("patient.one", "c", one),
    ]);
    expect((await told(server, one, "turn_start")).map(({ content }) => rowsOf(content))).toEqual([
      [
        { name: "a", times: 1 },
        { name: "c", times: 1 },
      ],
    ]);
    const left = await all(server, { thread_id: other });
    expect(left).toMatchObject([{ state: "PENDING" }]);
    expect(left[0]?.open_until).not.toBe(null);
    expect((await told(server, other, "turn_start")).map(({ content }) => decoded(content))).toEqual([
      { told: "b", times: 1 },
    ]);
  });

  test("what a user has without a thread rides with the thread that collects first", async () => {
    const thread_id = newThread();
    const user_id = `user-of-${thread_id}`;
    await emit(server, { ...named("patient.one", "mine", thread_id), user_id });
    await emit(server, { ...named("patient.one", "anywhere"), user_id });
    const carried = await told(server, thread_id, "turn_start");
    expect(carried.map(({ content }) => decoded(content)["told"])).toEqual(["mine", "anywhere"]);
    expect(await all(server, { user_id })).toHaveLength(2);
  });

  test("two users never share one", async () => {
    const [ada, ben] = [`ada-${newThread()}`, `ben-${newThread()}`];
    const sent = await emitAll(server, [
      { ...named("patient.one", "same"), user_id: ada },
      { ...named("patient.one", "same"), user_id: ben },
    ]);
    expect(sent.map((one) => onlyMatch(one).outcome)).toEqual(["batched", "batched"]);
    for (const user_id of [ada, ben]) expect(await all(server, { user_id })).toMatchObject([{ count: 1 }]);
  });
});
