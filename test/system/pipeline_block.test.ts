/** The block that an agent is given at the real server: what it is called, how often it came, and that no words are lost in it. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import type { EventInput } from "../../src/domain/event.js";
import {
  type Carrier,
  collect,
  emit,
  emitAll,
  failure,
  newThread,
  onlyMatch,
  sharedServer,
  storyOf,
  writeSubscriber,
} from "../support/pipeline.js";
import type { Server } from "../support/server.js";

let server: Server;

/** Each failure in its own words, whatever tool it is of. */
const DETAIL = `{{ toon({"details": events | pick(error="payload.error_message")}) }}`;

beforeAll(async () => {
  const shared = await sharedServer((folder, data) => {
    writeSubscriber(folder, { id: "detail", types: ["tool.call.failure"], window_ms: 10_000, template: DETAIL });
    writeSubscriber(folder, { id: "empty", types: ["test.empty"], template: "{{ event.payload.mesage }}" });
    writeSubscriber(folder, {
      id: "errors",
      types: ["test.errors"],
      severity_filter: "error",
      template: "error: {{ event.payload.message }}",
    });
    writeSubscriber(folder, { id: "stops", types: ["tool.stopped"], template: "stopped: {{ event.payload.handle }}" });
    writeFileSync(join(data, "tidings.toml"), '[conversation.notifications.kinds]\n"mcp.reconnected" = false\n');
  });
  server = shared.server;
  return shared.end;
});

const mcp = (name: string, of: string, thread_id: string): EventInput => ({
  type: `mcp.${name}`,
  source: "mcp",
  severity: "warning",
  thread_id,
  payload: { server: of },
});

async function block(thread_id: string): Promise<string> {
  const carrier = (await collect(server, thread_id, "turn_start")) as (Carrier & { block: string }) | null;
  if (carrier === null) throw new Error("there was nothing to tell");
  return carrier.block;
}

test("what one subscriber has merged, and another shows, is told by both", async () => {
  const thread_id = newThread();
  const failed = (error_message: string) =>
    failure("git", { thread_id, payload: { error_type: "net", error_message } });
  await emitAll(server, [failed("bad password"), failed("no route to host")]);
  const text = await block(thread_id);
  expect(text).toContain("bad password");
  expect(text).toContain("no route to host");
  expect(text).not.toContain("same event as");
});

test("one event that two take is told once", async () => {
  const thread_id = newThread();
  await emit(server, failure("git", { thread_id, payload: { error_message: "no route to host" } }));
  const text = await block(thread_id);
  expect(text.match(/same event as/g)).toHaveLength(1);
});

test("what is told is called by what it tells, and not by what was held back", async () => {
  const thread_id = newThread();
  await emitAll(server, [
    mcp("reconnected", "alpha", thread_id),
    mcp("reconnected", "beta", thread_id),
    mcp("disconnected", "gamma", thread_id),
  ]);
  const text = await block(thread_id);
  expect(text).toContain("gamma");
  expect(text).toContain("kind=mcp.disconnected");
  expect(text).not.toMatch(/kind=mcp\.reconnected|alpha|beta|×/);
});

test("rows are counted where they stand; a repetition is counted with its id", async () => {
  const rows = newThread();
  await emitAll(
    server,
    ["a", "b", "c"].map((name) => mcp("disconnected", name, rows)),
  );
  expect(await block(rows)).not.toContain("×");
  const again = newThread();
  for (let time = 0; time < 3; time += 1) await emit(server, mcp("disconnected", "a", again));
  expect(await block(again)).toContain("×3");
});

test("a template whose only value is not there says nothing: general words, and the reason", async () => {
  const event = {
    type: "test.empty",
    source: "test",
    thread_id: newThread(),
    payload: { message: "the disk is full" },
  };
  const { notification } = onlyMatch(await emit(server, event));
  expect(notification.content).toContain("the disk is full");
  expect(notification.degraded).toContain("gave no words");
});

test("what a severity filter keeps back names the filter and its file", async () => {
  const event = { type: "test.errors", source: "test", severity: "warning", payload: { message: "hm" } } as const;
  const emitted = await emit(server, event);
  const rule = /warning is below the severity_filter error of \S*errors\.toml/;
  expect(await storyOf(server, emitted.id)).toMatch(rule);
  expect(await storyOf(server, onlyMatch(emitted).notification.id)).toMatch(
    new RegExp(`Kept back: its severity is below the subscriber's filter \\(${rule.source}\\)`),
  );
});

test("handle.stopped is tool.stopped for whoever takes that", async () => {
  const stopped = { type: "handle.stopped", source: "tools", thread_id: newThread(), payload: { handle: "h_1" } };
  const { matches } = await emit(server, stopped);
  expect(matches.map(({ subscriber_id }) => subscriber_id).sort()).toEqual(["stops", "tool_handle"]);
});
