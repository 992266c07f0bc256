/** When a notification is told: the points of the agent's turn, the end of a window, the files of the operator. */
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { eventually, temporaryFolder } from "../support/folder.js";
import {
  all,
  collect,
  emit,
  emitAll,
  newThread,
  onlyMatch,
  PLAIN_TEMPLATE,
  type Point,
  read,
  rowsOf,
  sharedServer,
  told,
  whenClosed,
  writeSubscriber,
} from "../support/pipeline.js";
import { Server } from "../support/server.js";

let server: Server;

const URGENCIES = ["high", "normal", "low"].flatMap((priority) =>
  ["next", "turn_start", "after_tool", "turn_end"].map((inject_at) => ({ priority, inject_at })),
);
const CELLS = [{ priority: "critical", inject_at: "immediate" }, ...URGENCIES];

function subscribers(folder: string): void {
  for (const { priority, inject_at } of CELLS)
    writeSubscriber(folder, {
      id: `${priority}_${inject_at}`,
      types: [`cell.${priority}.${inject_at}`],
      window_ms: 10_000,
      priority,
      inject_at,
      template: PLAIN_TEMPLATE,
    });
  writeSubscriber(folder, { id: "brief", types: ["brief.*"], window_ms: 200, template: PLAIN_TEMPLATE });
  writeSubscriber(folder, {
    id: "low",
    types: ["low.*"],
    window_ms: 200,
    max_size: 5,
    priority: "low",
    inject_at: "turn_end",
    template: PLAIN_TEMPLATE,
  });
  writeSubscriber(folder, {
    id: "deploys",
    types: ["deploy.*"],
    window_ms: 4_000,
    routing: { address: "user", target: "user", handler: "system" },
    template: PLAIN_TEMPLATE,
  });
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

describe("what each point takes", () => {
  const wanted: Record<Point, (cell: (typeof CELLS)[0]) => boolean> = {
    turn_start: () => true,
    user_message: () => true,
    immediate: () => true,
    after_tool: ({ priority, inject_at }) =>
      priority === "critical" ||
      priority === "high" ||
      (priority === "normal" && (inject_at === "next" || inject_at === "after_tool")),
    turn_end: ({ priority, inject_at }) => inject_at !== "turn_start" || priority === "critical" || priority === "high",
  };

  test.each(Object.keys(wanted) as Point[])(
    "%s: open batches are closed and told, the others stay open",
    async (point) => {
      const thread_id = newThread();
      const sent = await emitAll(
        server,
        CELLS.map(({ priority, inject_at }) => named(`cell.${priority}.${inject_at}`, "x", thread_id)),
      );
      const ids = sent.map((one) => onlyMatch(one).notification.id);
      const takes = ids.filter((_, index) => wanted[point](CELLS[index] as (typeof CELLS)[0]));
      const carrier = await collect(server, thread_id, point, { limit: 100 });
      // By priority, then oldest first: the order in which they were sent.
      expect(carrier?.notifications.map(({ id }) => id)).toEqual(takes);
      for (const id of ids.filter((one) => !takes.includes(one))) {
        const left = await read(server, id);
        expect(left).toMatchObject({ state: "PENDING" });
        expect(left.open_until).not.toBe(null);
      }
      await server.call("agent/settle", { carrier_id: carrier?.id });
      const rest = await collect(server, thread_id, "turn_start", { limit: 100 });
      expect(rest?.notifications.map(({ id }) => id) ?? []).toEqual(ids.filter((id) => !takes.includes(id)));
    },
  );
});

describe("low priority", () => {
  /** Its window has the same length as that of the other, and began later. */
  async function windowOver(): Promise<void> {
    const { notification } = onlyMatch(await emit(server, named("brief.clock", "tick", newThread())));
    await whenClosed(server, notification.id);
  }

  test("is gathered for the end of the turn, however long that takes", async () => {
    const thread_id = newThread();
    const first = onlyMatch(await emit(server, named("low.one", "a", thread_id)));
    expect(await told(server, thread_id, "after_tool")).toEqual([]);
    await windowOver();
    expect((await read(server, first.notification.id)).open_until).not.toBe(null);
    const later = onlyMatch(await emit(server, named("low.one", "b", thread_id)));
    expect(later).toMatchObject({ outcome: "batched", notification: { id: first.notification.id } });
    expect(await told(server, thread_id, "after_tool")).toEqual([]);
    const carried = await told(server, thread_id, "turn_end");
    expect(carried.map(({ content }) => rowsOf(content))).toEqual([
      [
        { name: "a", times: 1 },
        { name: "b", times: 1 },
      ],
    ]);
    expect(await told(server, thread_id, "turn_start")).toEqual([]);
  });

  test("rides with the start of the next turn if the turn is over", async () => {
    const thread_id = newThread();
    await emitAll(server, [named("low.one", "a", thread_id), named("low.one", "b", thread_id)]);
    expect(await told(server, thread_id, "after_tool")).toEqual([]);
    expect(await told(server, thread_id, "turn_start")).toMatchObject([{ count: 2, priority: "low" }]);
  });

  test("is bounded by its size all the same", async () => {
    const thread_id = newThread();
    const names = ["a", "b", "c", "d", "e", "f"];
    await emitAll(
      server,
      names.map((name) => named("low.one", name, thread_id)),
    );
    expect(await told(server, thread_id, "after_tool")).toEqual([]);
    expect((await told(server, thread_id, "turn_end")).map(({ count }) => count)).toEqual([5, 1]);
  });
});

describe("a batch for the user's inbox", () => {
  test("is pushed when its window ends, once, and not before", async () => {
    const user_id = `inbox-${newThread()}`;
    const { token } = await server.createToken({ user_id, scopes: ["read", "ack"] });
    const client = await server.connect({ token });
    await client.welcomed();
    const sent = await emitAll(
      server,
      ["a", "b", "a"].map((name) => ({ ...named("deploy.done", name), user_id })),
    );
    expect(sent.map((one) => onlyMatch(one).outcome)).toEqual(["batched", "batched", "merged"]);
    const { notification } = onlyMatch(sent[0] as (typeof sent)[0]);
    expect(notification).toMatchObject({ state: "PENDING", channel: "inbox" });

    // Something that is not batched comes before it, although it was sent later.
    const unbatched = onlyMatch(await emit(server, { type: "cli.event", source: "test", user_id }));
    expect(unbatched).toMatchObject({ outcome: "queued", notification: { state: "DISPATCHED" } });
    await client.pushed("created", unbatched.notification.id);
    expect(client.pushes.map(({ params }) => params?.notification?.id)).toEqual([unbatched.notification.id]);

    // Nor is it shown to who comes meanwhile, or counted.
    const late = await server.connect({ token });
    expect((await late.welcomed()).params).toMatchObject({ unacknowledged: 1, unread: 1 });
    expect(late.pushes.map(({ params }) => params?.notification?.id)).toEqual([unbatched.notification.id]);

    const { params } = await client.pushed("created", notification.id);
    expect(params?.notification).toMatchObject({ state: "DISPATCHED", channel: "inbox", count: 3, open_until: null });
    expect(rowsOf(params?.notification?.content ?? "")).toEqual([
      { name: "a", times: 2 },
      { name: "b", times: 1 },
    ]);

    const last = onlyMatch(await emit(server, { type: "cli.event", source: "test", user_id, payload: { n: 2 } }));
    await client.pushed("created", last.notification.id);
    expect(client.pushes.map(({ method, params: { notification: shown } = {} }) => [method, shown?.id])).toEqual([
      ["notification/created", unbatched.notification.id],
      ["notification/created", notification.id],
      ["notification/created", last.notification.id],
    ]);
    const acknowledged = await client.rpc("notification/ack", { id: notification.id, revision: 1, action: "clicked" });
    expect(acknowledged.result).toMatchObject({ state: "DELIVERED" });
  });
});

describe("a folder of the operator's", () => {
  test("is watched: an edit changes what the next event becomes, a broken one changes nothing and is told", async () => {
    const data = await temporaryFolder();
    const folder = join(data, "subscribers");
    const write = (template: string, more: object = {}) =>
      writeSubscriber(folder, { id: "notes", types: ["note.*"], window_ms: 0, template, ...more });
    write("first: {{ event.payload.name }}\n");
    const own = await Server.start({ data });
    const thread_id = newThread();
    /** Other names each time, so that none is the same one. */
    let number = 0;
    const words = async () => {
      number += 1;
      const { notification } = onlyMatch(await emit(own, named("note.one", `n${number}`, thread_id)));
      return (await told(own, thread_id, "turn_start")).find(({ id }) => id === notification.id)?.content;
    };
    expect(await words()).toBe("first: n1");
    write("second: {{ event.payload.name }}\n");
    await eventually(words, (text) => text?.startsWith("second: ") ?? false);

    write("second: {{ event.payload.name }}\n", { priority: "urgent" });
    const broken = await eventually(
      async () => (await all(own)).filter(({ kind }) => kind === "config.subscriber_broken"),
      (found) => found.length > 0,
    );
    expect(broken).toMatchObject([{ channel: "inbox", user_id: "local", state: "DISPATCHED" }]);
    expect(broken[0]?.content).toContain("notes.toml");
    expect(await words()).toMatch(/^second: n\d+$/);
    write("third: {{ event.payload.name }}\n");
    await eventually(words, (text) => text?.startsWith("third: ") ?? false);
  });
});
