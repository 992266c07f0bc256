/** A conversation read in pages is the conversation read at once: nothing lost, shown twice, or shown that is not to be seen. */
import { afterEach, expect, it } from "vitest";
import { z } from "zod";
import { type ThreadItem, Tidings } from "../../src/index.js";
import { eventually, temporaryFolder } from "../support/folder.js";

let tidings: Tidings | undefined;
afterEach(() => tidings?.close());

const look = {
  name: "look",
  description: "Looks out of the window.",
  input: z.object({}),
  impact: "internal" as const,
  run: () => "rain",
};

it("in pages of any size", async () => {
  tidings = await Tidings.open({
    data: await temporaryFolder(),
    agent: { provider: "rehearsal", tools: [look] },
  });
  const { thread_id } = await tidings.startThread();
  const thread = tidings.thread(thread_id);
  const { turns } = tidings;
  const say = async (text: string) => turns.ended((await thread.say(text)).turn_id);
  await say("call look {}");
  const inner = await tidings.notify({
    thread_id,
    content: "it rains",
    target: "agent",
    handler: "agent",
    directive: "call look {}",
  });
  const plane = tidings;
  const stateOf = async (id: string) => {
    const found = await plane.read(id);
    return "miss" in found ? "lost" : found.state;
  };
  await eventually(
    () => stateOf(inner.id),
    (state) => state === "DELIVERED",
  );
  await thread.pause();
  const owed: string[] = [];
  for (let count = 0; count < 5; count += 1) {
    const { id } = await tidings.notify({ thread_id, content: `news ${count}`, target: "user", handler: "agent" });
    owed.push(id);
  }
  await thread.say("stay silent");
  await thread.resume();
  for (const id of owed)
    await eventually(
      () => stateOf(id),
      (state) => state === "ESCALATED",
    );
  await eventually(
    () => thread.turns(),
    (live) => live.length === 0,
  );

  const whole = await thread.read();
  expect(whole.next).toBeNull();
  expect(whole.items.filter(({ type }) => type === "notice")).toHaveLength(5);
  expect(whole.items.filter(({ internal }) => internal === true)).toEqual([]);
  expect(JSON.stringify(whole.items)).not.toContain("for you alone");
  expect(whole.items.find(({ type }) => type === "tool_call")).toMatchObject({
    status: "completed",
    content: { output: "rain" },
  });
  expect(JSON.stringify((await thread.read({ internal: true })).items)).toContain("for you alone");
  for (const limit of [1, 2, 3, 4, 7]) {
    const items: ThreadItem[] = [];
    for (let after: number | null = 0; after !== null; ) {
      const page = await thread.read({ after, limit });
      items.push(...page.items);
      after = page.next;
    }
    expect(items, `pages of ${limit}`).toEqual(whole.items);
  }
});

it("whoever waits for a turn is told that it was taken out of the queue, or that its thread is closed", async () => {
  tidings = await Tidings.open({ data: await temporaryFolder(), agent: { provider: "rehearsal" } });
  const { thread_id } = await tidings.startThread();
  const thread = tidings.thread(thread_id);
  await thread.pause();
  const [first, second] = [await thread.say("one"), await thread.say("two")];
  const ends = [tidings.turns.ended(first.turn_id), tidings.turns.ended(second.turn_id)];
  await tidings.turns.remove(first.turn_id);
  expect(await ends[0]).toMatchObject({ turn_id: first.turn_id, state: "removed" });
  await thread.close();
  expect(await ends[1]).toMatchObject({ turn_id: second.turn_id, state: "removed" });
});
