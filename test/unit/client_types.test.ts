/** The client's tables are those of the server: whoever adds a method or a notification there adds it here. */
import { describe, expect, expectTypeOf, it } from "vitest";
import type { z } from "zod";
import { IS_READ, type MethodName, type ParamsOf } from "../../src/client/methods.js";
import type { ToldName, ToldParams } from "../../src/client/told.js";
import { METHODS } from "../../src/server/methods.js";
import type { NOTIFICATIONS, NotificationName } from "../../src/server/notifications.js";

describe("methods", () => {
  it("are all of the server's, in their order", () => {
    expect(Object.keys(IS_READ)).toEqual(METHODS.map(({ name }) => name));
  });

  it("that only read are those of the scope read, and what admin looks at", () => {
    const reads = METHODS.filter(({ scope }) => scope === "read").map(({ name }) => name);
    const looks = ["mcp/list", "token/list", "runtime/logStream"];
    const known = Object.entries(IS_READ).flatMap(([name, isRead]) => (isRead ? [name] : []));
    expect(known.toSorted()).toEqual([...reads, ...looks].toSorted());
  });

  it("take what the server takes", () => {
    const samples: { [Name in MethodName]?: ParamsOf<Name> } = {
      initialize: { observe: true, conversation: false, opt_out: ["turn/progress"] },
      "stream/resume": { journal_id: "j", after_seq: 3, after_part: 1 },
      "event/emit": { type: "cli.a.b", source: "s", payload: { message: "m" } },
      "notification/notify": { content: "c", target: "user", data: { a: 1 } },
      "notification/changed": { after: "3", limit: 3, wait_ms: 3 },
      "notification/list": { unread: true, channel: "inbox", limit: 3 },
      "notification/read": { id: "i", user_id: "u" },
      "notification/ack": { id: "i", revision: 1, action: "clicked", user_id: "u" },
      "notification/explain": { id: "i" },
      "notification/redrive": { id: "i" },
      "inbox/counts": { user_id: "u" },
      "thread/start": { user_id: "u", thread_id: "t" },
      "thread/list": { user_id: "u", after: "t", limit: 3 },
      "thread/read": { thread_id: "t", after: 3, limit: 3, observe: true, internal: true },
      "thread/pause": { thread_id: "t" },
      "thread/resume": { thread_id: "t" },
      "thread/close": { thread_id: "t", user_id: "u" },
      "turn/start": { thread_id: "t", input: "words" },
      "turn/steer": { turn_id: "t", expected_turn_id: "t", input: "words" },
      "turn/deliver": {
        thread_id: "t",
        input: [{ type: "message", role: "user", content: [{ type: "input_text", text: "words" }] }],
      },
      "turn/interrupt": { turn_id: "t", input: "words" },
      "queue/list": { thread_id: "t" },
      "queue/update": { turn_id: "t", input: "words" },
      "queue/remove": { turn_id: "t" },
      "agent/collect": { thread_id: "t", point: "immediate", wait_ms: 3, owner: "o", auto_settle: true },
      "agent/renew": { carrier_id: "c", lease_ms: 3 },
      "agent/settle": { carrier_id: "c", acknowledged_ids: ["n"] },
      "agent/fail": { carrier_id: "c", reason: "r" },
      "subscriber/list": { user_id: "u" },
      "subscriber/preview": { subscriber_id: "s", count: 2 },
      "stats/series": { user_id: "u", step_ms: 60_000 },
      "settings/get": { user_id: "u" },
      "settings/update": { disabled_subscribers: ["s"], user_id: "u" },
      "mcp/list": {},
      "mcp/approve": { server: "s", tool: "t", digest: "d" },
      "token/create": { scopes: ["read"], user_id: "u", name: "n", ttl_ms: 3 },
      "token/list": { user_id: "u" },
      "token/revoke": { id: "i" },
      "runtime/status": {},
      "runtime/pause": { timeout_seconds: 3 },
      "runtime/resume": {},
      "runtime/logStream": { follow: true, limit: 3 },
      "runtime/prune": { older_than_ms: 3 },
    } satisfies Required<{ [Name in MethodName]?: ParamsOf<Name> }>;
    for (const { name, params } of METHODS)
      expect(params.safeParse(samples[name as MethodName]).error, name).toBeUndefined();
  });
});

describe("what is told", () => {
  it("is all of the server's but the heartbeat, which is the client's own", () => {
    expectTypeOf<ToldName>().toEqualTypeOf<Exclude<NotificationName, "stream/heartbeat">>();
  });

  it("has the form that the server's schemas say", () => {
    type Stated = { [Name in ToldName]: z.output<(typeof NOTIFICATIONS)[Name]["params"]> };
    // What the schemas leave open (the fields of a notification, the content of an item) is said in the types.
    type Open = "notification" | "content";
    expectTypeOf<{ [Name in ToldName]: Omit<ToldParams[Name], Open> }>().toExtend<{
      [Name in ToldName]: Omit<Stated[Name], Open>;
    }>();
  });
});
