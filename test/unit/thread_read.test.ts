/** A conversation read in pages is the conversation read at once: nothing lost, shown twice, or shown that is not to be seen. */
import { afterEach, expect, it } from "vitest";
import { z } from "zod";
import { type ThreadItem, type ThreadPage, Tidings } from "../../src/index.js";
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
  for (const observe of [false, true]) {
    const { items: all } = await thread.read({ observe });
    for (const limit of [1, 2, 3, 4, 7]) {
      const items: ThreadItem[] = [];
      for (let before: number | null = Number.MAX_SAFE_INTEGER; before !== null; ) {
        const page: ThreadPage = await thread.read({ before, limit, observe });
        items.unshift(...page.items);
        before = page.previous;
      }
      expect(items, `pages of ${limit}, from the end`).toEqual(all);
    }
  }
  const middle = await thread.read({ before: whole.items.at(-1)?.seq ?? 0, limit: 3 });
  const rest = await thread.read({ after: middle.next ?? 0 });
  expect([...middle.items, ...rest.items]).toEqual(whole.items.slice(-middle.items.length - rest.items.length));
  expect(rest.items.length).toBeGreaterThan(0);
});

it("says of the turns how they ended, and keeps to itself those that the user does not see", async () => {
  tidings = await Tidings.open({ data: await temporaryFolder(), agent: { provider: "rehearsal" } });
  const { thread_id } = await tidings.startThread();
  const thread = tidings.thread(thread_id);
  const first = await thread.say("say slowly 1000");
  expect((await thread.read()).turns).toMatchObject([{ turn_id: first.turn_id, state: "active", note: null }]);
  await thread.say("later");
  const { successor } = await tidings.turns.interrupt(first.turn_id, { content: "hello" });
  await tidings.turns.ended(successor?.turn_id ?? "");
  const plane = tidings;
  await eventually(
    () => thread.turns(),
    (live) => live.length === 0,
  );
  const { turns, items } = await thread.read({ before: Number.MAX_SAFE_INTEGER });
  expect(turns).toMatchObject([
    { turn_id: first.turn_id, state: "interrupted", continued_by: successor?.turn_id, note: "the user spoke" },
    { state: "completed", source: "user" },
    { turn_id: successor?.turn_id, state: "completed" },
  ]);
  expect(turns.some((turn) => "content" in turn)).toBe(false);
  expect(items.filter(({ type }) => type === "queued")).toEqual([]);
  await plane.notify({ thread_id, content: "for you", target: "agent", handler: "agent" });
  const hidden = await eventually(
    async () => (await thread.read({ internal: true })).turns,
    (all) => all.some(({ internal }) => internal),
  );
  expect(hidden).toHaveLength(4);
  expect((await thread.read()).turns).toEqual(turns);
});

it("words that a turn was stopped without are gone, read as well as pushed; those that it took up say so", async () => {
  tidings = await Tidings.open({ data: await temporaryFolder(), agent: { provider: "rehearsal" } });
  const { thread_id } = await tidings.startThread();
  const thread = tidings.thread(thread_id);
  const first = await thread.say("say slowly 1000");
  await thread.steer("unheard");
  expect((await thread.read()).items).toMatchObject([{ type: "message" }, { type: "steer", status: "pending" }]);
  expect((await tidings.turns.interrupt(first.turn_id)).unconsumed).toEqual(["unheard"]);
  const second = await thread.say("say slowly 40");
  await thread.steer("heard");
  await tidings.turns.ended(second.turn_id);
  for (const options of [{}, { limit: 1 }]) {
    const items: ThreadItem[] = [];
    for (let after: number | null = 0; after !== null; ) {
      const page: ThreadPage = await thread.read({ after, ...options });
      items.push(...page.items);
      after = page.next;
    }
    expect(items.filter(({ type }) => type !== "message")).toEqual([]);
    const said = items.flatMap((item) => (item.type === "message" && item.role === "user" ? [item.content] : []));
    expect(said).toEqual([{ text: "say slowly 1000" }, { text: "say slowly 40" }, { text: "heard", steered: true }]);
  }
});

it("what is being said is read as far as it is said, and follows without a gap", async () => {
  tidings = await Tidings.open({ data: await temporaryFolder(), agent: { provider: "rehearsal" } });
  const { thread_id } = await tidings.startThread();
  const thread = tidings.thread(thread_id);
  const pieces: { readonly offset: number; readonly delta: string }[] = [];
  let page: Promise<ThreadPage> | undefined;
  tidings.onProgress((progress) => {
    if (progress.type !== "text") return;
    pieces.push(progress);
    if (progress.delta === "word-3 ") page = thread.read();
  });
  const { turn_id } = await thread.say("say slowly 20");
  await tidings.turns.ended(turn_id);
  const read = await page;
  expect(read?.saying?.turn_id).toBe(turn_id);
  const said = read?.saying?.text ?? "";
  expect(said).toMatch(/^word-1 word-2 word-3 /);
  let text = "";
  for (const { offset, delta } of pieces) {
    expect(offset).toBe(text.length);
    text += delta;
  }
  expect(text.startsWith(said)).toBe(true);
  expect(text).toContain("word-20 ");
  const after = await thread.read();
  expect(after.saying).toBeNull();
  expect(after.seq).toBeGreaterThan(read?.seq ?? Number.POSITIVE_INFINITY);
});

it("a list says of each what it is about, when it was last active, what runs, waits and is unread", async () => {
  tidings = await Tidings.open({ data: await temporaryFolder(), agent: { provider: "rehearsal" } });
  const one = await tidings.startThread();
  const two = await tidings.startThread();
  const of = async ({ thread_id }: { thread_id: string }) =>
    (await tidings?.threads())?.find((thread) => thread.thread_id === thread_id);
  expect(await of(one)).toEqual({
    ...one,
    active_at: one.created_at,
    title: null,
    active_turn_id: null,
    queued: 0,
    unread: 0,
  });
  const thread = tidings.thread(one.thread_id);
  const turn = await thread.say(`say slowly 1000\n  and ${"on ".repeat(50)}`);
  await thread.say("later");
  const running = await of(one);
  expect(running).toMatchObject({ active_turn_id: turn.turn_id, queued: 1 });
  expect(running?.title).toMatch(/^say slowly 1000 and on on .*…$/);
  expect(running?.title).toHaveLength(80);
  expect(Date.parse(running?.active_at ?? "")).toBeGreaterThanOrEqual(Date.parse(one.created_at));
  const shown: string[] = [];
  for (const content of ["first", "second", "third"]) {
    const { id } = await tidings.notify({ thread_id: one.thread_id, content, target: "user" });
    shown.push(id);
  }
  await tidings.notify({ content: "to the inbox", target: "user" });
  expect(await of(one)).toMatchObject({ unread: 3 });
  const [first = "", second = ""] = shown;
  await tidings.ack({ id: first, revision: 1, action: "rendered" });
  expect(await of(one)).toMatchObject({ unread: 3 });
  await tidings.ack({ id: first, revision: 1, action: "clicked" });
  await tidings.ack({ id: second, revision: 1, action: "dismissed" });
  expect(await of(one)).toMatchObject({ unread: 1 });
  expect(await of(two)).toMatchObject({ unread: 0, title: null });
  expect((await tidings.threads()).map(({ thread_id }) => thread_id)).toEqual([one.thread_id, two.thread_id]);
  expect(await tidings.as("somebody").threads()).toEqual([]);
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
