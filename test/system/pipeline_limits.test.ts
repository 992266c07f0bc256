/** What does not become words as usual: filtered, urgent, too many, and templates that go wrong. */
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import type { EventInput } from "../../src/domain/event.js";
import type { NotificationView } from "../../src/domain/notification.js";
import { temporaryFolder } from "../support/folder.js";
import { Host } from "../support/host.js";
import {
  type Emitted,
  emit,
  emitAll,
  failure,
  newThread,
  onlyMatch,
  PLAIN_TEMPLATE,
  read,
  sharedServer,
  storyOf,
  told,
  whenClosed,
  writeSubscriber,
} from "../support/pipeline.js";
import type { Server } from "../support/server.js";

let server: Server;

/** Each turn of a loop goes through the whole list again: more turns than anybody could wait for. */
const FOREVER = `{% for a in event.payload.list %}{% for b in event.payload.list %}{% for c in event.payload.list %}{% for d in event.payload.list %}
{% set x = d %}
{% endfor %}{% endfor %}{% endfor %}{% endfor %}
`;
const THROWS = "sum: {{ event.payload.name + 1 }}\n";
const GIGANTIC = `{% for a in event.payload.list %}
line: {{ event.payload.text }}
{% endfor %}
`;

beforeAll(async () => {
  const shared = await sharedServer((folder) => {
    const shape = { window_ms: 300, dedupe_window_ms: 0 };
    writeSubscriber(folder, { ...shape, id: "forever", types: ["forever.*"], template: FOREVER });
    writeSubscriber(folder, { ...shape, id: "throws", types: ["throws.*"], template: THROWS });
    writeSubscriber(folder, { ...shape, id: "gigantic", types: ["gigantic.*"], template: GIGANTIC });
    writeSubscriber(folder, {
      ...shape,
      id: "shown",
      types: ["shown.*"],
      window_ms: 0,
      template: THROWS,
      routing: { address: "user", target: "user", handler: "system" },
    });
    writeSubscriber(folder, {
      id: "alarm",
      types: ["alarm.*"],
      window_ms: 10_000,
      priority: "critical",
      inject_at: "immediate",
      template: PLAIN_TEMPLATE,
    });
  });
  server = shared.server;
  return shared.end;
});

const named = (type: string, name: string, thread_id: string): EventInput => ({
  type,
  source: "test",
  thread_id,
  payload: { name },
});

describe("the severity filter", () => {
  test("keeps a failure back that is only for information, and explain says so", async () => {
    const thread_id = newThread();
    const sent = await emit(server, failure("vault_search", { thread_id, severity: "info" }));
    const { outcome, notification } = onlyMatch(sent);
    expect(outcome).toBe("filtered");
    expect(notification).toMatchObject({ state: "SUPPRESSED", reason: "filtered", subscriber_id: "tool_failure" });
    expect(await told(server, thread_id, "turn_start")).toEqual([]);
    expect(await storyOf(server, sent.id)).toMatch(/severity/);
    expect(await storyOf(server, notification.id)).toMatch(/severity/);
  });

  test.each(["warning", "error", "critical"] as const)("lets %s through", async (severity) => {
    const thread_id = newThread();
    expect(onlyMatch(await emit(server, failure("vault_search", { thread_id, severity }))).outcome).toBe("batched");
    expect(await told(server, thread_id, "after_tool")).toMatchObject([{ severity }]);
  });

  test("a filtered event is no row of the batch that is open beside it", async () => {
    const thread_id = newThread();
    const [first, second] = await emitAll(server, [
      failure("a", { thread_id }),
      failure("b", { thread_id, severity: "debug" }),
    ]);
    expect(onlyMatch(second as Emitted).notification.id).not.toBe(onlyMatch(first as Emitted).notification.id);
    expect(await told(server, thread_id, "after_tool")).toMatchObject([{ count: 1 }]);
  });
});

describe("priority critical", () => {
  test("is never batched: each is a notification, worded at once", async () => {
    const thread_id = newThread();
    const sent = await emitAll(server, [named("alarm.one", "a", thread_id), named("alarm.one", "b", thread_id)]);
    const matches = sent.map(onlyMatch);
    expect(matches).toMatchObject([
      { outcome: "queued", notification: { priority: "critical", open_until: null, content: "told: a\ntimes: 1" } },
      { outcome: "queued", notification: { priority: "critical", open_until: null, content: "told: b\ntimes: 1" } },
    ]);
    const carried = await told(server, thread_id, "after_tool");
    expect(carried.map(({ id }) => id)).toEqual(matches.map(({ notification }) => notification.id));
  });

  test("comes before what is older and less urgent", async () => {
    const thread_id = newThread();
    await emit(server, failure("vault_search", { thread_id }));
    await emit(server, named("alarm.one", "a", thread_id));
    const carried = await told(server, thread_id, "immediate");
    expect(carried.map(({ priority }) => priority)).toEqual(["critical", "high"]);
  });

  test("a sender without the scope gets high, which is marked", async () => {
    const thread_id = newThread();
    await server.call("thread/start", { thread_id, user_id: "ada" });
    const { token } = await server.createToken({ user_id: "ada", scopes: ["ingest"] });
    const event = { ...named("alarm.one", "a", thread_id), user_id: "ada" };
    const { json } = await server.post<Emitted>("/v1/events", event, token);
    const { notification } = onlyMatch(json);
    expect(notification.priority).toBe("high");
    expect(await storyOf(server, notification.id)).toContain("lacks the scope critical");
  });
});

/** A process of its own with the library in it: these bounds are options of a program. */
async function hosted(policy: object): Promise<Host> {
  const data = await temporaryFolder();
  writeSubscriber(join(data, "subscribers"), {
    id: "alarm",
    types: ["alarm.*"],
    priority: "critical",
    inject_at: "next",
    template: PLAIN_TEMPLATE,
  });
  for (const priority of ["low", "normal"])
    writeSubscriber(join(data, "subscribers"), {
      id: priority,
      types: [`${priority}.*`],
      window_ms: 0,
      priority,
      template: PLAIN_TEMPLATE,
    });
  writeSubscriber(join(data, "subscribers"), {
    id: "narrate",
    types: ["narrate.*"],
    window_ms: 0,
    priority: "low",
    routing: { address: "session", target: "user", handler: "agent" },
    template: PLAIN_TEMPLATE,
  });
  const host = await Host.start();
  await host.open({ data, policy });
  return host;
}

async function listed(host: Host): Promise<NotificationView[]> {
  const { notifications } = await host.call<{ notifications: NotificationView[] }>("list", { limit: 1_000 });
  return notifications.reverse();
}

async function story(host: Host, id: string): Promise<string> {
  const { story: lines } = await host.call<{ story: { text: string }[] }>("explain", id);
  return lines.map(({ text }) => text).join("\n");
}

describe("the quota of critical ones", () => {
  test("beyond it they are high and marked, per source and user", async () => {
    const host = await hosted({ criticalPerMinute: 3 });
    const send = async (name: string, more: object = {}) => {
      const sent = await host.call<Emitted>("emit", { ...named("alarm.one", name, "t1"), ...more });
      return onlyMatch(sent).notification;
    };
    const sent = [];
    for (const name of ["a", "b", "c", "d", "e"]) sent.push(await send(name));
    expect(sent.map(({ priority }) => priority)).toEqual(["critical", "critical", "critical", "high", "high"]);
    expect(await story(host, sent[3]?.id ?? "")).toMatch(/critical.*high|high.*critical/);
    expect((await send("f", { source: "another" })).priority).toBe("critical");
    expect((await send("g", { user_id: "ben", thread_id: "t2" })).priority).toBe("critical");
    expect(await host.call("audit")).toMatchObject({ ok: true });
  });
});

describe("too many that wait", () => {
  test("of a thread: the oldest of the least urgent are folded into one that says how many and of what", async () => {
    const host = await hosted({ pendingPerThread: 10 });
    const names = (prefix: string, number: number) => Array.from({ length: number }, (_, index) => `${prefix}${index}`);
    for (const name of names("n", 4)) await host.call("emit", named("normal.one", name, "t1"));
    for (const name of names("l", 12)) await host.call("emit", named("low.one", name, "t1"));
    for (const name of names("c", 2)) await host.call("emit", named("alarm.one", name, "t1"));
    await host.call("emit", named("narrate.one", "m", "t1"));

    const found = await listed(host);
    const overflow = found.filter(({ subscriber_id }) => subscriber_id === "overflow");
    const folded = found.filter(({ reason }) => reason === "folded");
    const waiting = found.filter(({ state }) => state === "PENDING");
    expect(overflow).toMatchObject([
      { kind: "tidings.overflow", source: "tidings", state: "PENDING", thread_id: "t1" },
    ]);
    // Everything is accounted for: it waits, or it is folded.
    expect(waiting.length + folded.length).toBe(4 + 12 + 2 + 1 + overflow.length);
    expect(waiting.length).toBeLessThanOrEqual(10 + overflow.length);
    expect(folded.length).toBeGreaterThanOrEqual(9);
    expect(folded.every(({ state, subscriber_id }) => state === "SUPPRESSED" && subscriber_id === "low")).toBe(true);
    // The oldest go first.
    expect(folded.map(({ content }) => content)).toEqual(
      names("l", folded.length).map((name) => `told: ${name}\ntimes: 1`),
    );
    const [summary] = overflow;
    expect(summary?.content).toContain(String(folded.length));
    expect(summary?.content).toContain("low.one");
    expect(await story(host, folded[0]?.id ?? "")).toMatch(/folded/);
    expect(await host.call("audit")).toMatchObject({ ok: true });
  });

  test("of a source: others are not concerned", async () => {
    const host = await hosted({ pendingPerSource: 5 });
    for (let number = 0; number < 9; number += 1)
      await host.call("emit", { ...named("low.one", `noisy${number}`, "t1"), source: "noisy" });
    await host.call("emit", { ...named("low.one", "quiet", "t1"), source: "quiet" });
    const found = await listed(host);
    const folded = found.filter(({ reason }) => reason === "folded");
    expect(folded.length).toBeGreaterThanOrEqual(4);
    expect(folded.every(({ source }) => source === "noisy")).toBe(true);
    expect(found.filter(({ source }) => source === "quiet")).toMatchObject([{ state: "PENDING" }]);
    expect(found.filter(({ subscriber_id }) => subscriber_id === "overflow")).toHaveLength(1);
    expect(await host.call("audit")).toMatchObject({ ok: true });
  });
});

describe("a template that goes wrong", () => {
  const LIST = Array.from({ length: 300 }, (_, index) => index);

  test.each([
    ["runs on and on", "forever.one", { list: LIST }, /steps|limit/i],
    ["throws", "throws.one", { name: "text" }, /throws\.j2/],
    ["says too much", "gigantic.one", { list: LIST, text: "x".repeat(1_000) }, /characters|limit|output/i],
  ])("one that %s: the event is told in general words, and explain says why", async (_, type, payload, why) => {
    const thread_id = newThread();
    const { outcome, notification } = onlyMatch(await emit(server, { type, source: "test", thread_id, payload }));
    expect(outcome).toBe("batched");
    const closed = await whenClosed(server, notification.id);
    expect(closed.degraded).toMatch(why);
    expect(closed.content).toContain(type);
    expect(closed.content.length).toBeLessThanOrEqual(16_384);
    expect(await storyOf(server, notification.id)).toContain(closed.degraded);
    const carried = await told(server, thread_id, "turn_start");
    expect(carried).toMatchObject([{ id: notification.id, degraded: closed.degraded, content: closed.content }]);
  });

  test("at the collect, and where no window is, too", async () => {
    const thread_id = newThread();
    await emitAll(server, [named("throws.one", "a", thread_id), named("throws.one", "b", thread_id)]);
    const carried = await told(server, thread_id, "turn_start");
    expect(carried).toMatchObject([{ count: 2, degraded: expect.any(String) }]);
    const shown = onlyMatch(await emit(server, { ...named("shown.one", "a", thread_id) }));
    expect(shown).toMatchObject({ outcome: "queued", notification: { state: "DISPATCHED" } });
    expect(shown.notification.degraded).toMatch(/shown\.j2/);
    expect(shown.notification.content).toContain("shown.one");
  });

  test("others are answered meanwhile", async () => {
    const [hostile, other] = [newThread(), newThread()];
    // Many at once, each a notification of its own: a hundred templates that run into their bound.
    const storm = Promise.all(
      Array.from({ length: 20 }, (_, index) =>
        emitAll(
          server,
          Array.from({ length: 5 }, (_unused, number) => ({
            ...named("forever.one", `${index}.${number}`, hostile),
            payload: { list: LIST, name: `${index}.${number}` },
          })),
        ),
      ),
    );
    let over = false;
    const ended = storm.finally(() => {
      over = true;
    });
    let answered = 0;
    for (let number = 0; number < 10 || !over; number += 1) {
      expect((await server.get("/healthz", null)).status).toBe(200);
      expect(onlyMatch(await emit(server, failure(`tool_${number % 5}`, { thread_id: other }))).subscriber_id).toBe(
        "tool_failure",
      );
      answered += 1;
    }
    await ended;
    expect(answered).toBeGreaterThanOrEqual(10);
    const carried = [];
    for (;;) {
      const more = await told(server, hostile, "turn_start");
      if (more.length === 0) break;
      carried.push(...more);
    }
    expect(carried.every(({ degraded }) => degraded !== null)).toBe(true);
    expect(carried.reduce((sum, { count }) => sum + count, 0)).toBe(100);
    for (const { id } of carried) expect(await read(server, id)).toMatchObject({ state: "DELIVERED" });
  });
});
