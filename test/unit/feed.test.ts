import { setImmediate } from "node:timers/promises";
import { describe, expect, it, onTestFinished } from "vitest";
import type { FeedBatch, Push } from "../../src/delivery/feed.js";
import { isMiss } from "../../src/domain/errors.js";
import type { Tidings } from "../../src/tidings.js";
import { openTidings } from "../support/folder.js";

/** Everything that the feed says, in order, and a way to wait for it. */
function follow(tidings: Tidings, users: readonly string[]) {
  const pushes: Push[] = [];
  const batches: FeedBatch[] = [];
  const stop = new AbortController();
  const running = (async () => {
    for await (const batch of tidings.feed((user_id) => users.includes(user_id), stop.signal)) {
      batches.push(batch);
      pushes.push(...batch.pushes);
    }
  })();
  onTestFinished(async () => {
    stop.abort();
    await running;
  });
  const reached = async (seq: number) => {
    while ((batches.at(-1)?.seq ?? 0) < seq) await setImmediate();
  };
  return { pushes, batches, reached };
}

const told = ({ kind, seq, notification }: Push) => [kind, seq, notification.state, notification.revision];

describe("the feed", () => {
  it("pushes what a system channel shows, as each entry left it, in the order of the journal (I16)", async () => {
    const tidings = await openTidings();
    const { pushes, reached } = follow(tidings, ["local"]);
    const shown = { content: "one", target: "user", dedupe_key: "k" } as const;
    // All in one commit: each push still shows its own moment.
    const [first] = await Promise.all([
      tidings.notify(shown),
      tidings.notify(shown),
      tidings.notify({ ...shown, content: "two" }),
    ]);
    const settled = await tidings.ack({ id: first.id, revision: 2, action: "rendered" });
    expect(isMiss(settled)).toBe(false);
    await tidings.ack({ id: first.id, revision: 2, action: "dismissed" });
    await reached(5);
    expect(pushes.map(told)).toEqual([
      ["created", 1, "DISPATCHED", 1],
      ["updated", 2, "DISPATCHED", 1],
      ["updated", 3, "DISPATCHED", 2],
      ["updated", 4, "DELIVERED", 2],
      ["updated", 5, "DELIVERED", 2],
    ]);
    expect(pushes.map(({ notification }) => [notification.content, notification.count])).toEqual([
      ["one", 1],
      ["one", 2],
      ["two", 3],
      ["two", 3],
      ["two", 3],
    ]);
    expect(pushes.map(({ notification }) => notification.event_ids.length)).toEqual([1, 2, 3, 3, 3]);
    const now = await tidings.read(first.id);
    if (isMiss(now)) throw new Error(now.message);
    const { events, ...view } = now;
    expect(pushes.at(-1)?.notification).toEqual(view);
  });

  it("shows a thousand repeats as the ledger does, with the first and the latest of their events", async () => {
    const tidings = await openTidings();
    const { pushes, reached } = follow(tidings, ["local"]);
    const repeat = { content: "again", target: "user", dedupe_key: "k", dedupe_window_ms: 60_000 } as const;
    const [first] = await Promise.all(Array.from({ length: 1_000 }, () => tidings.notify(repeat)));
    await reached(1_000);
    expect(pushes.map(({ notification }) => notification.count)).toEqual(
      Array.from({ length: 1_000 }, (_, n) => n + 1),
    );
    const now = await tidings.read(first?.id ?? "");
    if (isMiss(now)) throw new Error(now.message);
    const { events, ...view } = now;
    expect(events).toHaveLength(100);
    expect(pushes.at(-1)?.notification).toEqual(view);
  });

  it("does not push what is the agent's, until it escalates; then as new", async () => {
    const tidings = await openTidings({ policy: { agentTtlMs: 1, attemptsMax: 1, backoffMs: 0 } });
    const { pushes, reached } = follow(tidings, ["local"]);
    const { id } = await tidings.notify({ content: "tell them", target: "user", handler: "agent", ttl_ms: 60_000 });
    await tidings.notify({ content: "context" });
    const { notifications } = await tidings.deliveries.claim({ ids: [id] });
    await tidings.deliveries.release([{ id, epoch: notifications[0]?.lease_epoch ?? 0 }]);
    await reached((await tidings.facts()).last_seq);
    expect(pushes.map(told)).toEqual([["created", 4, "ESCALATED", 1]]);
    expect(pushes[0]?.notification).toMatchObject({ id, channel: "inbox", reason: "attempts" });
  });

  it("says nothing of users that nobody asked for (I18)", async () => {
    const tidings = await openTidings();
    const { pushes, reached } = follow(tidings, ["ada"]);
    await tidings.notify({ content: "x", target: "user", user_id: "ben" });
    const { id } = await tidings.notify({ content: "y", target: "user", user_id: "ada" });
    await reached(2);
    expect(pushes.map(({ user_id, notification }) => [user_id, notification.id])).toEqual([["ada", id]]);
  });

  it("tells of a floor item that moves to the inbox, and of a revoked token", async () => {
    const tidings = await openTidings();
    const { pushes, batches, reached } = follow(tidings, ["local"]);
    await tidings.notify({ content: "in the thread", target: "user", thread_id: "t" });
    await tidings.closeThread("t");
    const token = await tidings.tokens.create({ scopes: ["read"] });
    await tidings.tokens.revoke(token.id);
    await reached((await tidings.facts()).last_seq);
    expect(pushes.map(({ kind, notification }) => [kind, notification.channel])).toEqual([
      ["created", "floor"],
      ["updated", "inbox"],
    ]);
    expect(batches.flatMap(({ revoked }) => revoked)).toEqual([token.id]);
  });

  it("keeps back what is suppressed from the start", async () => {
    const tidings = await openTidings({
      subscribers: [
        { id: "loud", types: ["load.x"], severity_filter: "error", routing: { address: "user", target: "user" } },
      ],
    });
    const { pushes, reached } = follow(tidings, ["local"]);
    const { matches } = await tidings.emit({ type: "load.x", source: "s", severity: "info" });
    expect(matches).toMatchObject([{ outcome: "filtered" }]);
    await reached(1);
    expect(pushes).toEqual([]);
  });
});
