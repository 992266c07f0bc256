/** Three axes, one owner: who is told, who knows, which states it goes through, and what the user's stream shows. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { Channel, Notification, Tidings } from "../../../src/index.js";
import {
  type Agent,
  blockOf,
  CHAT,
  latch,
  openAgent,
  recordedRehearsal,
  scripted,
  speaking,
  told,
  tool,
} from "../../support/agent.js";
import { eventually, temporaryFolder } from "../../support/folder.js";

type Axes = Pick<Notification, "address" | "target" | "handler">;

const AXES = (["user", "session"] as const).flatMap((address) =>
  (["user", "agent"] as const).flatMap((target) =>
    (["system", "agent"] as const).flatMap((handler) => ({ address, target, handler })),
  ),
);

/** Section by section: which channel, once it is known whether there is a thread. */
function channelOf({ address, target, handler }: Axes, thread: boolean): Channel {
  if (handler === "agent") return "agent";
  if (target === "agent") return "context";
  return address === "session" && thread ? "floor" : "inbox";
}

const ROWS = AXES.flatMap((axes) => [true, false].map((thread) => ({ ...axes, thread })));

describe.each(ROWS)("address $address, target $target, handler $handler, thread $thread", (row) => {
  const { thread, ...axes } = row;
  const channel = channelOf(axes, thread);
  const narrated = channel === "agent" && axes.target === "user";

  test("is told to its one owner, and the other side knows", async () => {
    const model = await recordedRehearsal();
    const agent = await openAgent({ agent: { model } });
    const user = follow(agent);
    const { id } = await agent.tidings.notify({ content: "the news", ...axes, ...(thread ? { thread_id: CHAT } : {}) });
    const declared = await agent.read(id);
    expect(declared).toMatchObject({ ...axes, channel });
    expect(declared.effective.address).toBe(thread ? axes.address : "user");
    if (channel === "agent") await agent.becomes(id, "DELIVERED");
    await agent.turnsOver(channel === "agent" ? 1 : 0);
    await agent.lullaby();

    const before = model.requests.filter(({ messages }) => messages.some((one) => blockOf(one).includes(id)));
    expect(before.length > 0, "the agent was told by itself").toBe(channel === "agent");
    const turns = await agent.turns();
    expect(turns.map(({ source, internal }) => ({ source, internal }))).toEqual(
      channel === "agent" ? [{ source: "system", internal: !narrated }] : [],
    );

    // What the user saw until now.
    const words = "You should know: the news.";
    switch (channel) {
      case "inbox":
      case "floor":
        expect(await user()).toEqual([`created ${channel} DISPATCHED the news`]);
        expect(await agent.shown()).toEqual(["the news"]);
        expect(await agent.seen()).toEqual(channel === "floor" ? ["notice: the news"] : []);
        break;
      case "agent":
        expect(await user()).toEqual([]);
        expect(await agent.shown()).toEqual([]);
        if (narrated) expect((await agent.seen()).join("\n")).toContain(words);
        else expect(await agent.seen()).toEqual([]);
        break;
      case "context":
        expect(await user()).toEqual([]);
        expect(await agent.seen()).toEqual([]);
        expect(await agent.state(id)).toBe("PENDING");
    }

    // What the agent knows with the user's next message.
    await agent.converse("What is new?");
    const block = blockOf(model.last().findLast(({ role }) => role === "user"));
    switch (channel) {
      case "inbox":
        expect(block).toMatch(/The user's inbox has 1 unread notification, the newest: <data id=[\w-]+>the news</);
        expect(block).not.toContain(id);
        break;
      case "floor":
        expect(block).toMatch(/- \[SEEN\] \(shown, not yet seen\) <data id=[\w-]+ kind=direct.notify>the news</);
        expect(block).not.toContain(id);
        break;
      case "agent":
        expect(block).toBe("");
        expect(told(model).split(id)).toHaveLength(2);
        break;
      case "context":
        expect(block).toContain(id);
        expect(await agent.state(id)).toBe("DELIVERED");
    }

    // Nothing that was the agent's alone came to the user but in the agent's own words; all of it can be inspected.
    expect((await user()).length).toBe(channel === "inbox" || channel === "floor" ? 1 : 0);
    const observed = (await agent.chat.read({ observe: true, internal: true })).items.flatMap((item) =>
      item.type === "observation" ? [`${item.status} ${item.content.notification_id}`] : [],
    );
    expect(observed).toEqual(channel === "agent" || channel === "context" ? [`sent ${id}`] : []);
    if (channel === "inbox" || channel === "floor") await agent.tidings.ack({ id, revision: 1, action: "rendered" });
    expect(await agent.path(id)).toEqual(["PENDING", "DISPATCHED", "LOCKED", "DELIVERED"]);
    expect(await agent.story(id)).toContain(channel === "inbox" || channel === "floor" ? "rendered" : "Carrier");
    expect(await agent.problems()).toEqual([]);
  });
});

describe("what the agent must narrate", () => {
  test("is said, then acknowledged, in one visible turn", async () => {
    const model = await recordedRehearsal();
    const agent = await openAgent({ agent: { model } });
    const id = await agent.mustNarrate("the card was refused");
    await agent.becomes(id, "DELIVERED");
    const [turn] = await agent.turnsOver(1);
    expect(turn).toMatchObject({ source: "system", internal: false, state: "completed" });
    const { items } = await agent.chat.read();
    expect(items.map(({ type }) => type)).toEqual(["message", "message", "tool_call"]);
    expect(items.at(-1)?.content).toMatchObject({
      name: "acknowledge_notifications",
      input: { acknowledged_ids: [id] },
      output: `acknowledged: ${id}`,
    });
    // It was its own after the words, before the turn's end.
    const journal = await agent.journal();
    const settled = journal.find(({ changes }) => changes.some(({ command }) => command === "settle"));
    expect(settled).toMatchObject({ type: "delivery", operation: "settle" });
    expect(model.requests).toHaveLength(2);
  });

  test.each(["session", "user"] as const)(
    "and does not: one reminder, then the user is told at once (address %s)",
    async (address) => {
      const model = await recordedRehearsal();
      const agent = await openAgent({ agent: { model } });
      await agent.converse("stay silent");
      const user = follow(agent);
      const id = await agent.mustNarrate("the card was refused", { address });
      await agent.becomes(id, "ESCALATED unacknowledged");
      await agent.turnsOver(2);
      expect(model.requests).toHaveLength(3);
      const reminders = model
        .last()
        .filter(({ role, ...rest }) => role === "user" && JSON.stringify(rest).includes("not acknowledged"));
      expect(reminders).toEqual([{ role: "user", text: expect.stringContaining(`\`${id}\``) }]);
      expect(await user()).toEqual([
        `created ${address === "user" ? "inbox" : "floor"} ESCALATED the card was refused`,
      ]);
      expect(await agent.read(id)).toMatchObject({
        target: "user",
        handler: "agent",
        effective: { handler: "system" },
      });
      expect(await agent.path(id)).toEqual(["PENDING", "DISPATCHED", "LOCKED", "LOCKED", "ESCALATED"]);
      await agent.tidings.ack({ id, revision: 1, action: "clicked" });
      expect(await agent.state(id)).toContain("DELIVERED");
      expect(await agent.problems()).toEqual([]);
    },
  );
});

describe("what the agent decides about", () => {
  test("is settled when its turn ends, and the user saw nothing", async () => {
    const model = await recordedRehearsal();
    const agent = await openAgent({ agent: { model } });
    const user = follow(agent);
    const heard: string[] = [];
    const audited: string[] = [];
    agent.tidings.onProgress(({ type }) => heard.push(type));
    agent.tidings.onProgress(({ type }) => audited.push(type), { internal: true });
    const id = await agent.decides("a new version is there");
    await agent.becomes(id, "DELIVERED");
    const [turn] = await agent.turnsOver(1);
    expect(turn).toMatchObject({ source: "system", internal: true, state: "completed" });
    expect(await user()).toEqual([]);
    expect(await agent.seen()).toEqual([]);
    expect(heard).toEqual([]);
    expect(audited).toContain("text");
    const { items } = await agent.chat.read({ internal: true });
    expect(items.map((item) => [item.type, item.internal])).toEqual([
      ["message", true],
      ["message", true],
    ]);
  });

  test("is held until then", async () => {
    const end = latch();
    const model = scripted([{ text: "Let me see.", until: end.opened }]);
    const agent = await openAgent({ agent: { model } });
    const heard = speaking(agent.tidings, { internal: true });
    const id = await agent.decides("a new version is there");
    const passive = await agent.notify("passive, riding along");
    await heard;
    expect(await agent.state(id)).toBe("LOCKED");
    expect(await agent.state(passive)).toBe("DELIVERED");
    end.open();
    const [turn] = await agent.turnsOver(1);
    expect(turn).toMatchObject({ internal: true, state: "completed" });
    expect(await agent.state(id)).toBe("DELIVERED");
  });

  test("it may say to the user in its own words", async () => {
    const agent = await openAgent();
    const user = follow(agent);
    const id = await agent.decides("disk 98 %", { directive: 'call tell_user {"text":"Your disk is nearly full."}' });
    await agent.becomes(id, "ESCALATED promoted");
    const [turn] = await agent.turnsOver(1);
    expect(turn).toMatchObject({ internal: true, state: "completed" });
    expect(await user()).toEqual(["created floor ESCALATED Your disk is nearly full."]);
    // Said once, shown once.
    const seen = await agent.seen();
    expect(seen.map((line) => line.slice(line.indexOf(": ") + 2))).toEqual(["Your disk is nearly full."]);

    expect(await agent.path(id)).toEqual(["PENDING", "DISPATCHED", "LOCKED", "LOCKED", "ESCALATED"]);
    expect(await agent.story(id)).toContain("tell_user");
  });

  test("an external tool: the promotion is in the journal before it runs, and names it; a further one adds to it", async () => {
    const found: { seq: number; content: string; state: string }[] = [];
    const act = async () => {
      const now = agent();
      const { content, state } = await now.read(id);
      found.push({ seq: (await now.tidings.facts()).last_seq, content, state });
      return "done";
    };
    const model = scripted([
      { text: "I deploy.", calls: [{ name: "deploy" }] },
      { calls: [{ name: "mail" }] },
      { text: "Done." },
    ]);
    const tools = [tool("deploy", act), tool("mail", act, { impact: "external" })];
    const opened = await openAgent({ agent: { model, tools } });
    const agent = () => opened;
    const user = follow(opened);
    const id = await opened.decides("a new version is there");
    await opened.turnsOver(1);
    const first = "a new version is there\n\nThe agent acts on it: `deploy`.";
    const second = `${first}\n\nThe agent acts on it: \`mail\`.`;
    expect(found.map(({ content, state }) => ({ content, state }))).toEqual([
      { content: first, state: "ESCALATED" },
      { content: second, state: "ESCALATED" },
    ]);
    const changes = (await opened.journal()).flatMap((entry) =>
      entry.changes.flatMap(({ notification_id, command, note, set }) =>
        notification_id === id && note !== undefined ? [{ seq: entry.seq, command, note, set }] : [],
      ),
    );
    expect(changes).toMatchObject([
      { command: "escalate", note: "deploy", set: { channel: "floor", reason: "promoted", revision: 2 } },
      { command: "dispatch", note: "mail", set: { revision: 3 } },
    ]);
    for (const [index, { seq }] of changes.entries()) expect(seq).toBeLessThanOrEqual(found[index]?.seq ?? 0);
    // The call came after the promotion of it in the journal.
    const epochs = (await opened.read(id)).lease_epoch;
    expect(epochs).toBeGreaterThan(1);
    expect(await user()).toEqual([`created floor ESCALATED ${first}`, `updated floor ESCALATED ${second}`]);
    expect(await opened.seen()).toEqual([`notice: ${second}`]);
    expect(await opened.problems()).toEqual([]);
  });

  test("a tool of internal impact promotes nothing", async () => {
    let runs = 0;
    const model = scripted([{ calls: [{ name: "note" }] }]);
    const tools = [tool("note", () => String(++runs), { impact: "internal" })];
    const agent = await openAgent({ agent: { model, tools } });
    const user = follow(agent);
    const id = await agent.decides("a new version is there");
    await agent.becomes(id, "DELIVERED");
    expect(runs).toBe(1);
    expect(await user()).toEqual([]);
    expect(await agent.seen()).toEqual([]);
  });

  test("the operator's word on a tool's impact goes before the tool's own", async () => {
    const data = await temporaryFolder();
    await writeFile(
      join(data, "tidings.toml"),
      '[conversation.tools.note]\nimpact = "external"\n\n[conversation.tools.deploy]\nimpact = "internal"\n',
    );
    const model = scripted([{ calls: [{ name: "deploy" }] }, { text: "Done." }, { calls: [{ name: "note" }] }]);
    const tools = [tool("note", () => "noted", { impact: "internal" }), tool("deploy", () => "deployed")];
    const agent = await openAgent({ data, agent: { model, tools } });
    const one = await agent.decides("one");
    await agent.becomes(one, "DELIVERED");
    const two = await agent.decides("two");
    await agent.becomes(two, "ESCALATED promoted");
    expect((await agent.read(two)).content).toBe("two\n\nThe agent acts on it: `note`.");
  });

  test("and something that must be narrated: the visible turn goes first, and is told all", async () => {
    const model = await recordedRehearsal();
    const agent = await openAgent({ agent: { model } });
    await agent.chat.pause();
    const decided = await agent.decides("yours");
    const narrated = await agent.mustNarrate("the user's");
    const passive = await agent.notify("passive");
    await agent.chat.resume();
    for (const id of [decided, narrated, passive]) await agent.becomes(id, "DELIVERED");
    const [turn] = await agent.turnsOver(1);
    expect(turn).toMatchObject({ internal: false });
    expect(await agent.turns()).toHaveLength(1);
  });
});

/** What the user's screen is pushed from now on; asking waits until all of it is there. */
function follow({ tidings }: Agent): () => Promise<string[]> {
  const pushed: string[] = [];
  let seq = 0;
  const end = new AbortController();
  const reading = (async (plane: Tidings) => {
    for await (const batch of plane.feed((user_id) => user_id === "local", end.signal)) {
      for (const { kind, notification } of batch.pushes)
        pushed.push(`${kind} ${notification.channel} ${notification.state} ${notification.content}`);
      seq = batch.seq;
    }
  })(tidings);
  reading.catch(() => undefined);
  const started = tidings.facts();
  return async () => {
    const { last_seq } = await tidings.facts();
    // Nothing was written since: then nothing is read.
    if (last_seq > (await started).last_seq)
      await eventually(
        async () => seq,
        (now) => now >= last_seq,
      );
    return [...pushed];
  };
}
