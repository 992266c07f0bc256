/** Open batches when the process ends: killed, nothing is lost and nothing doubled; told to end, all is worded. */
import { join } from "node:path";
import { expect, test } from "vitest";
import { openTidings, temporaryFolder } from "../support/folder.js";
import {
  all,
  changesOf,
  emit,
  emitAll,
  newThread,
  onlyMatch,
  PLAIN_TEMPLATE,
  read,
  rowsOf,
  told,
  whenClosed,
  writeSubscriber,
} from "../support/pipeline.js";
import { Server } from "../support/server.js";

/** A folder with a batch for the agent and one for the inbox, both open for so long. */
async function folderWith(window_ms: number): Promise<string> {
  const data = await temporaryFolder();
  const folder = join(data, "subscribers");
  const shape = { window_ms, dedupe_window_ms: 60_000, template: PLAIN_TEMPLATE };
  writeSubscriber(folder, { ...shape, id: "agents", types: ["agents.*"] });
  writeSubscriber(folder, {
    ...shape,
    id: "users",
    types: ["users.*"],
    routing: { address: "user", target: "user", handler: "system" },
  });
  return data;
}

const named = (type: string, name: string, thread_id: string) => ({
  id: `${type} ${name}`,
  type,
  source: "test",
  thread_id,
  payload: { name },
});

const THREE = [
  { name: "a", times: 1 },
  { name: "b", times: 1 },
  { name: "c", times: 1 },
];

test("killed mid-window: the batch is open again after the start, takes further rows, and is told once", async () => {
  const data = await folderWith(10_000);
  const thread_id = newThread();
  const first = await Server.start({ data });
  const events = ["a", "b"].map((name) => named("agents.one", name, thread_id));
  const sent = await emitAll(first, events);
  const { notification } = onlyMatch(sent[0] as (typeof sent)[0]);
  await first.kill();

  const second = await Server.start({ data });
  const again = await emitAll(second, events);
  expect(again.map(({ id, outcome }) => [id, outcome])).toEqual(sent.map(({ id }) => [id, "duplicate"]));
  expect(await read(second, notification.id)).toMatchObject({
    state: "PENDING",
    count: 2,
    open_until: notification.open_until,
  });
  const further = onlyMatch(await emit(second, named("agents.one", "c", thread_id)));
  expect(further).toMatchObject({ outcome: "batched", notification: { id: notification.id, count: 3 } });
  // One that was there before the kill is the same one after it.
  const same = onlyMatch(await emit(second, { ...named("agents.one", "a", thread_id), id: "again" }));
  expect(same).toMatchObject({ outcome: "merged", notification: { id: notification.id, count: 4 } });
  const carried = await told(second, thread_id, "turn_start");
  expect(carried.map(({ id, count }) => [id, count])).toEqual([[notification.id, 4]]);
  expect(rowsOf(carried[0]?.content ?? "")).toEqual([{ name: "a", times: 2 }, ...THREE.slice(1)]);
  expect(await told(second, thread_id, "turn_start")).toEqual([]);
  expect(await all(second)).toHaveLength(1);
  await second.kill();
  expect(await (await openTidings({ data })).audit()).toMatchObject({ ok: true, problems: [] });
});

test("killed mid-window, and started when it is over: it is closed then, and the inbox's is shown once", async () => {
  const data = await folderWith(1_500);
  const thread_id = newThread();
  const first = await Server.start({ data });
  const sent = await emitAll(
    first,
    ["agents.one", "users.one"].flatMap((type) => ["a", "b", "c"].map((name) => named(type, name, thread_id))),
  );
  await first.kill();
  const [agents = "", users = ""] = [...new Set(sent.map((one) => onlyMatch(one).notification.id))];

  const second = await Server.start({ data });
  const client = await second.connect();
  const { params } = await client.pushed("created", users);
  expect(rowsOf(params?.notification?.content ?? "")).toEqual(THREE);
  const closed = await whenClosed(second, agents);
  expect(closed).toMatchObject({ state: "PENDING", count: 3 });
  expect(rowsOf(closed.content)).toEqual(THREE);
  for (const id of [agents, users]) {
    const commands = (await changesOf(data, id)).map(({ command }) => command);
    expect(commands.filter((command) => command === "flush")).toHaveLength(1);
  }
  expect(await told(second, thread_id, "turn_start")).toMatchObject([{ id: agents, count: 3 }]);
  // The next push of anything shows that there was no second one.
  const last = onlyMatch(await emit(second, { type: "cli.event", source: "test" }));
  await client.pushed("created", last.notification.id);
  expect(client.pushes.map(({ params: pushed }) => pushed?.notification?.id)).toEqual([users, last.notification.id]);
  expect(await second.stop()).toBe(0);
  expect(await (await openTidings({ data })).audit()).toMatchObject({ ok: true, problems: [] });
});

test("told to end mid-window: every open batch is worded before the process is gone, and told after the next start", async () => {
  const data = await folderWith(10_000);
  const thread_id = newThread();
  const first = await Server.start({ data });
  const sent = await emitAll(
    first,
    ["agents.one", "users.one"].flatMap((type) => ["a", "b", "c"].map((name) => named(type, name, thread_id))),
  );
  const [agents = "", users = ""] = [...new Set(sent.map((one) => onlyMatch(one).notification.id))];
  expect(await first.stop()).toBe(0);

  const reader = await openTidings({ data, mode: "read" });
  const { notifications } = await reader.list();
  expect(notifications.map(({ id, open_until, state }) => [id, open_until, state]).sort()).toEqual(
    [
      [agents, null, "PENDING"],
      [users, null, "DISPATCHED"],
    ].sort(),
  );
  for (const { content } of notifications) expect(rowsOf(content)).toEqual(THREE);
  expect(await reader.audit()).toMatchObject({ ok: true, problems: [] });
  await reader.close();

  const second = await Server.start({ data });
  const client = await second.connect();
  await client.pushed("created", users);
  expect(await told(second, thread_id, "turn_start")).toMatchObject([{ id: agents, count: 3 }]);
  expect(await all(second)).toHaveLength(2);
  expect(await second.stop()).toBe(0);
});
