/** `explain` as programs read it: each line of a story with what the journal has of it. */
import { expect, test } from "vitest";
import { type Explanation, isMiss, type Tidings } from "../../src/index.js";
import { eventually, openTidings } from "../support/folder.js";

async function storyOf(tidings: Tidings, id: string): Promise<Explanation["story"]> {
  const explanation = await tidings.explain(id);
  if (isMiss(explanation)) throw new Error(explanation.message);
  return explanation.story;
}

test("what an agent was told: who held it under which epoch, and the exact text of the request", async () => {
  const tidings = await openTidings();
  await tidings.startThread({ thread_id: "t" });
  const { id } = await tidings.notify({ content: "the build is red", thread_id: "t" });
  const failed = await tidings.thread("t").collect("turn_start", { owner: "first" });
  await failed?.fail("no connection");
  const carrier = await eventually(
    () => tidings.thread("t").collect("turn_start", { owner: "second" }),
    (one) => one !== null,
  );
  await carrier?.settle();
  const story = await storyOf(tidings, id);
  expect(story.map(({ kind }) => kind)).toEqual(
    ["event", "create", "carrier", "collect", "carrier", "release", "carrier", "collect", "carrier", "settle"], //
  );
  expect(story.flatMap(({ path = [] }) => path)).toEqual([
    "PENDING",
    ...["DISPATCHED", "LOCKED"],
    "PENDING",
    ...["DISPATCHED", "LOCKED"],
    "DELIVERED",
  ]);
  const [event, created, opened, collected, voided, released, again, , sent] = story;
  expect(event?.event_id).toBe(created?.event_id);
  expect(created).toMatchObject({ channel: "context", subscriber_id: "direct" });
  expect(opened?.carrier).toEqual({
    id: failed?.id,
    thread_id: "t",
    turn_id: null,
    point: "turn_start",
    state: "open",
    block: failed?.block === undefined ? null : { text: failed.block, form: expect.any(String) },
  });
  expect(collected).toMatchObject({ owner: "first", lease_epoch: 1 });
  expect(voided?.carrier).toMatchObject({ id: failed?.id, state: "void", block: null });
  expect(released).toMatchObject({ owner: null, lease_epoch: 2, attempts: 1 });
  expect(again?.carrier?.block?.text).toBe(carrier?.block);
  expect(carrier?.block).toContain("the build is red");
  expect(sent?.carrier).toMatchObject({ id: carrier?.id, state: "sent" });
});

test("what an agent acknowledged says so: with the carrier that it was told in, or by itself", async () => {
  const tidings = await openTidings();
  await tidings.startThread({ thread_id: "t" });
  const told = await tidings.notify({ content: "tell them", thread_id: "t", target: "user", handler: "agent" });
  const known = await tidings.notify({ content: "know this", thread_id: "t" });
  const carrier = await tidings.thread("t").collect("turn_start");
  await carrier?.settle({ acknowledged_ids: [told.id] });
  expect((await storyOf(tidings, told.id)).at(-1)).toMatchObject({
    kind: "settle",
    text: "Acknowledged by the agent that held it. [DELIVERED]",
    acknowledged: { turn_id: null },
  });
  const last = (await storyOf(tidings, known.id)).at(-1);
  expect(last).toMatchObject({ kind: "settle", text: "Settled by its holder: the agent was told. [DELIVERED]" });
  expect(last).not.toHaveProperty("acknowledged");
});

test("merges, an acknowledgement, and an event's own story with who made what of it", async () => {
  const tidings = await openTidings();
  const { id } = await tidings.notify({ content: "one", target: "user", dedupe_key: "k" });
  await tidings.notify({ content: "two", target: "user", dedupe_key: "k" });
  await tidings.ack({ id, revision: 2, action: "rendered" });
  await tidings.ack({ id, revision: 2, action: "clicked" });
  const story = await storyOf(tidings, id);
  expect(story.filter(({ kind }) => kind !== "event")).toMatchObject([
    { kind: "create", path: ["PENDING", "DISPATCHED"], channel: "inbox" },
    { kind: "merge", path: [], count: 2, revision: 2 },
    { kind: "ack", path: ["LOCKED", "DELIVERED"], action: "rendered", operation: "ack" },
    { kind: "ack", path: [], action: "clicked" },
  ]);
  const merged = story.find(({ kind }) => kind === "merge")?.event_id;
  const [first, match] = await storyOf(tidings, merged ?? "");
  expect(first).toMatchObject({ kind: "event", event_id: merged });
  expect(match).toMatchObject({ kind: "match", outcome: "merged", notification_id: id, subscriber_id: "direct" });
});

test("an escalation says why and who did it; a dead letter and the one that it was sent again as name each other", async () => {
  const tidings = await openTidings({ policy: { agentTtlMs: 50, systemTtlMs: 50 } });
  const { id } = await tidings.notify({ content: "tell them", target: "user", handler: "agent" });
  await eventually(
    () => tidings.read(id),
    (one) => !isMiss(one) && one.state === "FAILED",
  );
  const again = await tidings.redrive(id);
  if (isMiss(again)) throw new Error(again.message);
  const story = await storyOf(tidings, id);
  expect(story.filter(({ kind }) => kind !== "event")).toMatchObject([
    { kind: "create", channel: "agent" },
    {
      kind: "escalate",
      path: ["LOCKED", "ESCALATED"],
      channel: "inbox",
      lease_epoch: 1,
      reason: "deadline",
      operation: "watchdog",
    },
    { kind: "expire", path: ["FAILED"], operation: "watchdog" },
    { kind: "redriven", notification_id: again.id },
  ]);
  const created = (await storyOf(tidings, again.id)).find(({ kind }) => kind === "create");
  expect(created).toMatchObject({ notification_id: id });
});
