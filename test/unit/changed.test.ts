/** What has changed in the ledger since somebody last asked: nothing missed, each as it is now, whoever owns it. */
import { expect, test } from "vitest";
import type { Changed, TidingsView } from "../../src/index.js";
import { openTidings } from "../support/folder.js";

/** Asks on until there is no more, and answers all of it. */
async function all(view: TidingsView, after: string, limit = 100, bytes_max = 1_000_000) {
  const notifications: Changed["notifications"] = [];
  for (let next = after; ; ) {
    const page = await view.changed({ after: next, limit }, { bytes_max });
    expect(page.notifications.length).toBeLessThanOrEqual(limit);
    notifications.push(...page.notifications);
    next = page.next;
    if (!page.more) return { notifications, next, reset: page.reset };
  }
}

const now = async (view: TidingsView) => (await view.changed()).next;

test("what an agent alone is concerned with is told too, each once and as it is now", async () => {
  const tidings = await openTidings();
  await tidings.startThread({ thread_id: "t" });
  const start = await now(tidings);
  expect(await tidings.changed({ after: start })).toEqual({
    notifications: [],
    next: start,
    more: false,
    reset: false,
  });
  const shown = await tidings.notify({ content: "shown", target: "user" });
  const context = await tidings.notify({ content: "context", thread_id: "t" });
  const carrier = await tidings.thread("t").collect("turn_start");
  await carrier?.settle();
  const { notifications, next } = await all(tidings, start);
  expect(notifications.map(({ id, state, channel }) => ({ id, state, channel }))).toEqual([
    { id: shown.id, state: "DISPATCHED", channel: "inbox" },
    { id: context.id, state: "DELIVERED", channel: "context" },
  ]);
  await tidings.ack({ id: shown.id, revision: 1, action: "clicked" });
  expect((await all(tidings, next)).notifications).toMatchObject([{ id: shown.id, action: "clicked" }]);
});

test("page by page, also in the middle of an entry that is about many, nothing is missed", async () => {
  const tidings = await openTidings();
  await tidings.startThread({ thread_id: "t" });
  const start = await now(tidings);
  const ids: string[] = [];
  for (let index = 0; index < 9; index += 1)
    ids.push((await tidings.notify({ content: `item ${index}`, thread_id: "t", dedupe_key: `${index}` })).id);
  const between = await now(tidings);
  const carrier = await tidings.thread("t").collect("turn_start");
  await carrier?.settle();
  for (const limit of [1, 2, 4, 100])
    for (const after of [start, between]) {
      const { notifications } = await all(tidings, after, limit);
      expect(new Set(notifications.map(({ id }) => id))).toEqual(new Set(ids));
      expect(notifications.every(({ state }) => state === "DELIVERED")).toBe(true);
    }
  // However small an answer has to be, one goes in.
  expect(new Set((await all(tidings, between, 100, 1)).notifications.map(({ id }) => id))).toEqual(new Set(ids));
});

test("a user is told of their own, the host of everybody's", async () => {
  const tidings = await openTidings();
  const start = await now(tidings);
  const mine = await tidings.notify({ content: "ada's", target: "user", user_id: "ada" });
  const other = await tidings.notify({ content: "bob's", target: "user", user_id: "bob" });
  const told = async (view: TidingsView) => (await all(view, start)).notifications.map(({ id }) => id);
  expect(await told(tidings.as("ada"))).toEqual([mine.id]);
  expect(await told(tidings.as("cyd"))).toEqual([]);
  expect(await told(tidings)).toEqual([mine.id, other.id]);
});

test("whoever waits is told when something changes, and not of what is another's", { timeout: 30_000 }, async () => {
  const tidings = await openTidings();
  const ada = tidings.as("ada");
  const waiting = ada.changed({ after: await now(ada), wait_ms: 60_000 });
  // It has looked, and waits.
  for (let index = 0; index < 10; index += 1) await now(ada);
  await tidings.notify({ content: "bob's", target: "user", user_id: "bob" });
  const { id } = await tidings.notify({ content: "ada's", thread_id: undefined, user_id: "ada" });
  const answer = await waiting;
  expect(answer.notifications.map((one) => one.id)).toEqual([id]);
  // In vain: it ends when nobody wants it any more, or when the time is over.
  const gone = new AbortController();
  const vain = ada.changed({ after: answer.next, wait_ms: 60_000 }, { signal: gone.signal });
  gone.abort();
  expect(await vain).toEqual({ notifications: [], next: answer.next, more: false, reset: false });
  expect((await ada.changed({ after: answer.next, wait_ms: 20 })).notifications).toEqual([]);
});

test("a cursor that retention has passed, or of another journal, is told to begin anew", async () => {
  const tidings = await openTidings();
  const start = await now(tidings);
  for (let index = 0; index < 5; index += 1) {
    const { id } = await tidings.notify({ content: `${index}`, target: "user", dedupe_key: `${index}` });
    await tidings.ack({ id, revision: 1, action: "dismissed" });
  }
  const end = await now(tidings);
  expect(await tidings.changed({ after: "999999999" })).toMatchObject({ reset: true, next: end, notifications: [] });
  await tidings.prune({ older_than_ms: 0 });
  const late = await tidings.changed({ after: start });
  expect(late).toMatchObject({ reset: true, notifications: [] });
  expect((await tidings.changed({ after: late.next })).reset).toBe(false);
  await expect(tidings.changed({ after: "soon" })).rejects.toMatchObject({ code: "invalid_input" });
});
