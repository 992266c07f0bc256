/** What every store must show of batches, switches, overflow and the quota of critical ones. Run with the contract's harness. */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Axes } from "../domain/axes.js";
import type { NewEvent } from "../domain/event.js";
import { type EventId, OVERFLOW_SUBSCRIBER, subscriberId, threadId, userId } from "../domain/ids.js";
import { DEFAULT_POLICY, type DeliveryPolicy } from "../domain/policy.js";
import { HOST, userPrincipal } from "../domain/principal.js";
import { ManualClock } from "../platform/manual_clock.js";
import { audit } from "./audit.js";
import type { Accepted, Draft, Store, Stored } from "./contract.js";
import { acceptance, type StoreHarness } from "./contract.suite.js";
import { lineOf, PlainEditor } from "./editor.suite.js";

const START_MS = Date.UTC(2026, 0, 3, 15, 30);
const ALICE = userId("alice");
const ONE = threadId("one");
const CONTEXT: Axes = { address: "session", target: "agent", handler: "system" };
const DECIDE: Axes = { address: "session", target: "agent", handler: "agent" };
const NARRATE: Axes = { address: "session", target: "user", handler: "agent" };
const FLOOR: Axes = { address: "session", target: "user", handler: "system" };
const BATCH = { window_ms: 2_000, max_size: 10 };
const POLICY: DeliveryPolicy = {
  ...DEFAULT_POLICY,
  pendingPerThread: 20,
  pendingPerSource: 30,
  criticalPerMinute: 3,
};

export function batchesContract(name: string, harness: () => Promise<StoreHarness>): void {
  describe(`${name} keeps batches`, () => {
    let place: StoreHarness;
    let store: Store;
    let clock: ManualClock;
    let editor: PlainEditor;

    beforeEach(async () => {
      clock = new ManualClock(START_MS);
      editor = new PlainEditor();
      place = await harness();
      store = await place.open({ clock, policy: POLICY, editor });
      await store.startThread(HOST, ALICE, ONE);
    });

    afterEach(async () => {
      expect((await audit(store)).problems).toEqual([]);
      await store.close();
      await place.remove();
    });

    function emit(tool: string, draft: Partial<Draft> = {}, event: Partial<NewEvent> = {}): Promise<Accepted> {
      const whole = { thread_id: ONE, payload: { tool }, ...event };
      const asked = { content: null, axes: CONTEXT, batch: BATCH, dedupe_key: `tool:${tool}`, ...draft };
      return store.accept(HOST, acceptance(whole, asked));
    }

    async function only(accepted: Accepted): Promise<Stored> {
      const id = accepted.matches[0]?.stored.delivery.id;
      const stored = id === undefined ? undefined : await store.get(HOST, id);
      if (stored === undefined) throw new Error("the event made nothing");
      return stored;
    }

    const outcomes = (accepted: Accepted) => accepted.matches.map(({ outcome }) => outcome);
    const lines = (stored: Stored) => stored.notification.content.split("\n");
    const since = new Date(START_MS).toISOString();
    const line = (tool: string, count = 1, type = "tool.call.failure") =>
      `${type} ${JSON.stringify({ tool })} ×${count} since ${since}`;

    async function all(): Promise<Stored[]> {
      const { stored } = await store.list(HOST, { user_id: ALICE, limit: 1_000 });
      return [...stored].reverse();
    }

    async function story(stored: Stored): Promise<string[]> {
      const entries = (await store.story(HOST, stored.delivery.id)) ?? [];
      return entries.flatMap(({ changes }) =>
        changes.filter((change) => change.notification_id === stored.delivery.id).map((change) => change.note ?? ""),
      );
    }

    const run = (held: Stored | undefined, column: "release") =>
      held === undefined
        ? Promise.reject(new Error("nothing was claimed"))
        : store.command(HOST, {
            id: held.delivery.id,
            command: { column, epoch: held.delivery.lease_epoch },
            operation: column,
          });

    const claim = () =>
      store.claim(HOST, { user_id: ALICE, thread_id: ONE, limit: 100, owner: "turn", lease_ms: 60_000 });

    it("one event is one notification, worded when its window ends, by the store's own clock (I14)", async () => {
      const accepted = await emit("search");
      expect(outcomes(accepted)).toEqual(["batched"]);
      const open = await only(accepted);
      expect(open.delivery).toMatchObject({ state: "PENDING", open_until: START_MS + 2_000, rows: 1, count: 1 });
      clock.advance(1_999);
      expect(await store.sweep(10)).toBe(0);
      clock.advance(1);
      expect(await store.sweep(10)).toBe(1);
      const closed = await only(accepted);
      expect(closed.delivery).toMatchObject({ state: "PENDING", open_until: null, revision: 1 });
      expect(lines(closed)).toEqual([line("search")]);
    });

    it("whoever comes in the same commit is told what came before it, and no more (I14)", async () => {
      // How much waits is known from now on: no later one makes the store count, and write for it.
      await emit("before");
      await emit("before that", {}, { source: "another" });
      expect((await claim()).claimed).toHaveLength(1);
      const [first, second, claimed, third] = await Promise.all([
        emit("a"),
        emit("b", {}, { source: "another" }),
        claim(),
        emit("c"),
      ]);
      expect(claimed.claimed.map(lines)).toEqual([[line("a"), line("b")]]);
      const [told] = claimed.claimed;
      expect(told?.event_ids).toEqual([first.event_id, second.event_id]);
      expect(await only(first)).toEqual(told);
      expect(first.matches[0]?.stored.delivery).toMatchObject({ state: "PENDING", rows: 1, count: 1 });
      expect(second.matches[0]?.stored.delivery).toMatchObject({ state: "PENDING", rows: 2, count: 2 });
      expect((await only(third)).delivery).toMatchObject({ state: "PENDING", rows: 1, count: 1 });
    });

    it("one that is refused leaves nothing among those of its commit", async () => {
      const refused = store.accept(
        userPrincipal(userId("bob")),
        acceptance({ thread_id: ONE, payload: { tool: "b" } }, { content: null, axes: CONTEXT, batch: BATCH }),
      );
      const [first, answer, last] = await Promise.allSettled([emit("a"), refused, emit("c")]);
      expect([first.status, answer.status, last.status]).toEqual(["fulfilled", "rejected", "fulfilled"]);
      expect((await all()).map(({ delivery: { rows, count } }) => ({ rows, count }))).toEqual([{ rows: 2, count: 2 }]);
    });

    it("the events behind it are told in the order in which they came, whichever row shows them", async () => {
      const came: EventId[] = [];
      let answer: readonly EventId[] = [];
      for (const tool of ["a", "b", "a", "c", "b", "a"]) {
        const accepted = await emit(tool);
        came.push(accepted.event_id);
        answer = accepted.matches[0]?.stored.event_ids ?? [];
        expect(answer).toEqual(came);
      }
      await store.close();
      store = await place.open({ clock, policy: POLICY, editor });
      const [read] = await all();
      expect(read?.event_ids).toEqual(came);
      expect(read?.delivery).toMatchObject({ rows: 3, count: 6 });
    });

    it("events that differ are rows of one, and eleven are ten and one (I14)", async () => {
      const tools = Array.from({ length: 11 }, (_, index) => `t${index}`);
      for (const tool of tools) await emit(tool);
      const [ten, one] = await all();
      expect(ten?.delivery).toMatchObject({ rows: 10, count: 10, open_until: null });
      expect(ten === undefined ? [] : lines(ten)).toEqual(tools.slice(0, 10).map((tool) => line(tool)));
      expect(one?.delivery).toMatchObject({ rows: 1, count: 1, open_until: START_MS + 2_000 });
      expect((await all()).length).toBe(2);
    });

    it("the same key counts to its row, shows the latest event, and says since when (I13)", async () => {
      const key = { dedupe_key: "tool" };
      const first = await emit("a", key);
      await emit("other");
      clock.advance(100);
      const again = await emit("b", key);
      expect(outcomes(again)).toEqual(["merged"]);
      clock.advance(2_000);
      await store.sweep(10);
      const told = await only(first);
      expect(told.delivery).toMatchObject({ rows: 2, count: 3, revision: 1 });
      expect(lines(told)).toEqual([line("b", 2), line("other")]);
      expect(told.event_ids.length).toBe(3);
    });

    it("after it is closed a row still counts: a new revision only if the text says more than another count (I11, I13)", async () => {
      const first = await emit("a", { dedupe_key: "a" });
      await emit("b", { dedupe_key: "b" });
      clock.advance(2_000);
      await store.sweep(10);
      expect(outcomes(await emit("b", { dedupe_key: "b" }))).toEqual(["merged"]);
      expect(await only(first)).toMatchObject({ delivery: { revision: 1, count: 3 } });
      expect(lines(await only(first))).toEqual([line("a"), line("b", 2)]);
      await emit("b2", { dedupe_key: "b" });
      expect(await only(first)).toMatchObject({ delivery: { revision: 2, count: 4 } });
      expect(lines(await only(first))).toEqual([line("a"), line("b2", 3)]);
    });

    it("is by subscriber, user and thread", async () => {
      const two = threadId("two");
      await store.startThread(HOST, ALICE, two);
      await emit("a");
      await emit("b", { subscriber_id: subscriberId("another") });
      await emit("c", {}, { thread_id: two });
      await emit("d", {}, { thread_id: null, user_id: userId("bob") });
      await emit("e");
      const rows = (await all()).map(({ delivery }) => delivery.rows);
      expect(rows).toEqual([2, 1, 1]);
    });

    it("critical is never batched, and closes what it merges into (I15)", async () => {
      const alone = await emit("a", { priority: "critical", dedupe_key: null });
      expect(outcomes(alone)).toEqual(["queued"]);
      const open = await emit("b");
      const raised = await emit("b", { priority: "critical" });
      expect(outcomes(raised)).toEqual(["merged"]);
      expect((await only(open)).delivery).toMatchObject({ open_until: null, priority: "critical", count: 2 });
    });

    it("low ones wait for an agent, not for a window", async () => {
      const open = await emit("a", { priority: "low" });
      clock.advance(10_000);
      await store.sweep(10);
      await emit("b", { priority: "low", dedupe_key: null });
      expect((await only(open)).delivery).toMatchObject({ rows: 2, open_until: START_MS + POLICY.contextTtlMs });
      const { claimed } = await claim();
      expect(claimed.map(({ delivery }) => delivery.rows)).toEqual([2]);
    });

    it("what the system shows is dispatched when it is closed, and not before", async () => {
      const open = await emit("a", { axes: FLOOR });
      await emit("b", { axes: FLOOR });
      expect((await only(open)).delivery.state).toBe("PENDING");
      const waiting = async () => ({
        counts: await store.counts(HOST, ALICE),
        unacknowledged: (await store.list(HOST, { user_id: ALICE, unacknowledged: true, limit: 10 })).stored.length,
        unread: (await store.list(HOST, { user_id: ALICE, unread: true, limit: 10 })).stored.length,
      });
      const counted = { unacknowledged: 0, unread: 0 };
      expect(await waiting()).toMatchObject({ counts: counted, ...counted });
      clock.advance(2_000);
      await store.sweep(10);
      expect(await only(open)).toMatchObject({ delivery: { state: "DISPATCHED", rows: 2, open_until: null } });
      const shown = { unacknowledged: 1, unread: 1 };
      expect(await waiting()).toMatchObject({ counts: shown, ...shown });
    });

    it("an agent that comes for it closes it", async () => {
      await emit("a");
      await emit("b");
      const { claimed } = await claim();
      expect(claimed.map(lines)).toEqual([[line("a"), line("b")]]);
      expect(claimed[0]?.delivery).toMatchObject({ state: "LOCKED", open_until: null, revision: 1 });
    });

    it("an agent that comes leaves alone what is for the user to see", async () => {
      const shown = await emit("a", { axes: FLOOR });
      expect((await claim()).claimed).toEqual([]);
      expect((await only(shown)).delivery).toMatchObject({ state: "PENDING", open_until: START_MS + 2_000 });
    });

    it("what the agent has seen by itself before is no row of a batch: it is withdrawn at once", async () => {
      await store.observe(HOST, ONE, "h_1");
      await emit("a");
      const seen = await only(await emit("b", {}, { subject: "h_1" }));
      expect(seen.delivery).toMatchObject({ state: "SUPPRESSED", reason: "observed", rows: 1 });
    });

    it("the end of the process closes all of them", async () => {
      const open = await emit("a");
      await emit("b");
      await store.close();
      store = await place.open({ clock, policy: POLICY, editor });
      expect(await only(open)).toMatchObject({ delivery: { state: "PENDING", rows: 2, open_until: null } });
    });

    it("the closing of a thread ends it: to the user in full, or expired", async () => {
      const shown = await emit("a", { axes: FLOOR, subscriber_id: subscriberId("shown") });
      await emit("b", { axes: FLOOR, subscriber_id: subscriberId("shown") });
      const context = await emit("c");
      await store.closeThread(HOST, ONE);
      expect(await only(shown)).toMatchObject({ delivery: { state: "DISPATCHED", channel: "inbox", rows: 2 } });
      expect(lines(await only(shown))).toEqual([line("a"), line("b")]);
      expect(await only(context)).toMatchObject({ delivery: { state: "SUPPRESSED", open_until: null } });
      expect(outcomes(await emit("late", { axes: FLOOR }))).toEqual(["queued"]);
    });

    it("what is escalated while it is open is told in full", async () => {
      const open = await emit("a", { axes: NARRATE, ttl_ms: 1_000 });
      await emit("b", { axes: NARRATE, ttl_ms: 1_000 });
      clock.advance(1_000);
      await store.sweep(10);
      const taken = await only(open);
      expect(taken.delivery).toMatchObject({ state: "ESCALATED", open_until: null });
      expect(lines(taken)).toEqual([line("a"), line("b")]);
    });

    it("is told of the rows that pass the switches when it is told, and with none it is muted, with the rule", async () => {
      const mixed = await emit("a");
      await emit("b", {}, { type: "tool.call.timeout" });
      const off = await emit("c", { subscriber_id: subscriberId("another") }, { type: "tool.call.timeout" });
      const shown = await emit(
        "d",
        { axes: FLOOR, subscriber_id: subscriberId("shown") },
        { type: "tool.call.timeout" },
      );
      editor.off.add("tool.call.timeout");
      clock.advance(2_000);
      await store.sweep(10);
      // What is shown is told now; what waits for an agent is told when that one comes, if it is still off then.
      expect((await only(shown)).delivery).toMatchObject({ state: "SUPPRESSED", reason: "muted" });
      expect((await only(off)).delivery.state).toBe("PENDING");
      expect((await claim()).claimed.map(lines)).toEqual([[line("a")]]);
      expect(await story(await only(mixed))).toContain("1 of 2 rows held back: tool.call.timeout is off");
      expect((await only(off)).delivery).toMatchObject({ state: "SUPPRESSED", reason: "muted" });
      expect(await story(await only(off))).toContain("tool.call.timeout is off");
    });

    it("is judged again when it is collected: by then it may be off, or the user may have disabled it", async () => {
      const first = await emit("a");
      await emit("b", {}, { type: "tool.call.timeout" });
      clock.advance(2_000);
      await store.sweep(10);
      editor.off.add("tool.call.timeout");
      const { claimed } = await claim();
      expect(claimed.map(lines)).toEqual([[line("a")]]);
      expect(claimed[0]?.delivery.revision).toBe(2);
      const second = await emit("c", { batch: null, dedupe_key: null });
      await store.updateSettings(HOST, { user_id: ALICE, disabled_subscribers: [subscriberId("tool_failure")] });
      expect((await claim()).claimed).toEqual([]);
      expect(await only(second)).toMatchObject({ delivery: { state: "SUPPRESSED", reason: "muted" } });
      expect((await only(first)).delivery.state).toBe("LOCKED");
    });

    it("what was off while it waited and is on again when an agent comes is told, also at a second try", async () => {
      await emit("a");
      await emit("b", {}, { type: "tool.call.timeout" });
      editor.off.add("tool.call.timeout");
      clock.advance(2_000);
      await store.sweep(10);
      const { claimed } = await claim();
      expect(claimed.map(lines)).toEqual([[line("a")]]);
      const [held] = claimed;
      await run(held, "release");
      editor.off.clear();
      clock.advance(10_000);
      expect((await claim()).claimed.map(lines)).toEqual([[line("a"), line("b", 1, "tool.call.timeout")]]);
    });

    it("what is off is not taken to the user either, by no way", async () => {
      const batched = await emit("a", { axes: NARRATE, ttl_ms: 1_000 });
      const alone = await emit("b", {
        axes: NARRATE,
        ttl_ms: 1_000,
        batch: null,
        subscriber_id: subscriberId("alone"),
      });
      const closing = await emit("c", { axes: NARRATE, batch: null, subscriber_id: subscriberId("closing") });
      const failing = await emit("d", { axes: NARRATE, batch: null, subscriber_id: subscriberId("failing") });
      for (let attempt = 0; attempt < 2; attempt += 1) {
        const { claimed } = await store.claim(HOST, {
          ...{ user_id: ALICE, thread_id: ONE, limit: 1, owner: "turn", lease_ms: 60_000 },
          ids: [(await only(failing)).delivery.id],
        });
        await run(claimed[0], "release");
        clock.advance(100_000);
      }
      const last = await store.claim(HOST, {
        ...{ user_id: ALICE, thread_id: ONE, limit: 1, owner: "turn", lease_ms: 60_000 },
        ids: [(await only(failing)).delivery.id],
      });
      editor.off.add("tool.call.failure");
      await run(last.claimed[0], "release");
      await store.sweep(10);
      await store.closeThread(HOST, ONE);
      const late = await emit("e", { axes: NARRATE, batch: null, subscriber_id: subscriberId("late") });
      for (const one of [batched, alone, closing, failing, late])
        expect((await only(one)).delivery).toMatchObject({ state: "SUPPRESSED", reason: "muted" });
    });

    it("an edit of its subscriber begins a new one: it goes another way, or is more urgent", async () => {
      const low = await emit("a", { priority: "low" });
      const high = await emit("b", { priority: "high" });
      const shown = await emit("c", { priority: "high", axes: FLOOR });
      const ids = new Set([low, high, shown].map((one) => one.matches[0]?.stored.delivery.id));
      expect(ids.size).toBe(3);
      clock.advance(2_000);
      await store.sweep(10);
      expect((await only(high)).delivery.open_until).toBe(null);
      expect((await claim()).claimed.length).toBe(2);
    });

    it("an open one counts a key to its row also when the window of the key is over", async () => {
      const open = await emit("a", { priority: "low" });
      clock.advance(6_000);
      await emit("b", { priority: "low" });
      clock.advance(6_000);
      for (const tool of ["a", "b"]) expect(outcomes(await emit(tool, { priority: "low" }))).toEqual(["merged"]);
      expect((await only(open)).delivery).toMatchObject({ rows: 2, count: 4 });
    });

    it("what the system would show at once is muted at once, also where it would merge", async () => {
      const shown = await emit("a", { axes: FLOOR, batch: null });
      editor.off.add("tool.call.failure");
      const muted = await emit("a", { axes: FLOOR, batch: null });
      expect(outcomes(muted)).toEqual(["muted"]);
      expect((await only(shown)).delivery.count).toBe(1);
    });

    it("rows about what the agent has seen by itself are withdrawn, the others are told", async () => {
      const mixed = await emit("a", {}, { subject: "h_1" });
      await emit("b", {}, { subject: "h_2" });
      const shown = await emit("c", { axes: FLOOR, subscriber_id: subscriberId("shown") }, { subject: "h_1" });
      await store.observe(HOST, ONE, "h_1");
      expect((await only(mixed)).delivery.state).toBe("PENDING");
      clock.advance(2_000);
      await store.sweep(10);
      expect(lines(await only(mixed))).toEqual([line("b")]);
      await store.observe(HOST, ONE, "h_2");
      expect((await only(mixed)).delivery).toMatchObject({ state: "SUPPRESSED", reason: "observed" });
      expect((await only(shown)).delivery.state).toBe("DISPATCHED");
    });

    it("says that the words are general ones, and why", async () => {
      editor.failing.add("tool_failure");
      const accepted = await emit("a", { batch: null });
      expect((await only(accepted)).notification.degraded).toBe("the template failed");
    });

    it("sums up all that came, however it came: every event is in exactly one row (I13, I14)", async () => {
      for (let index = 0; index < 60; index += 1) {
        await emit(`t${index % 7}`, index % 2 === 0 ? {} : { axes: DECIDE, subscriber_id: subscriberId("another") });
        clock.advance(index % 5 === 0 ? 900 : 10);
        await store.sweep(10);
        if (index % 13 === 0) await claim();
      }
      const counts = (await all()).map(({ delivery }) => delivery.count);
      expect(counts.reduce((sum, count) => sum + count, 0)).toBe(60);
    });

    describe("too much", () => {
      const lone = { batch: null, dedupe_key: null } as const;

      it("folds the oldest of the least urgent into one that says how many and of what (I19)", async () => {
        const urgent = await emit("urgent", { ...lone, priority: "high" });
        const low = [];
        for (let index = 0; index < 19; index += 1) low.push(await emit(`t${index}`, { ...lone, priority: "low" }));
        expect((await all()).length).toBe(20);
        await emit("last", lone);
        const summary = (await all()).find(({ notification }) => notification.subscriber_id === OVERFLOW_SUBSCRIBER);
        expect(summary?.notification).toMatchObject({ kind: "tidings.overflow", thread_id: ONE });
        expect(summary?.notification.data).toEqual({
          notifications: 2,
          events: 2,
          kinds: [{ type: "tool.call.failure", source: "tools", notifications: 2, events: 2 }],
        });
        expect(lineOf({ type: "tidings.overflow", payload: summary?.notification.data } as never)).toBe(
          summary?.notification.content.replace(/ ×1 since .*$/, ""),
        );
        for (const [index, one] of low.entries()) {
          const { state, reason } = (await only(one)).delivery;
          expect([state, reason]).toEqual(index < 2 ? ["SUPPRESSED", "folded"] : ["PENDING", null]);
        }
        expect(await story(await only(low[0] as Accepted))).toContain(`into ${summary?.delivery.id}`);
        expect((await only(urgent)).delivery.state).toBe("PENDING");
      });

      it("goes on with the same summary while nobody has taken it, and then with a new one", async () => {
        for (let index = 0; index < 60; index += 1) await emit(`t${index}`, lone);
        const summaries = async () =>
          (await all()).filter(({ notification }) => notification.subscriber_id === OVERFLOW_SUBSCRIBER);
        const [one, ...others] = await summaries();
        expect(others).toEqual([]);
        const pending = (await all()).filter(({ delivery }) => delivery.state === "PENDING").length;
        expect(pending).toBeLessThanOrEqual(21);
        expect(one?.notification.data?.["notifications"]).toBe(60 - (pending - 1));
        await claim();
        for (let index = 0; index < 21; index += 1) await emit(`u${index}`, lone);
        expect((await summaries()).length).toBe(2);
      });

      it("folds the others however many there are that it may not fold", async () => {
        for (let index = 0; index < 80; index += 1) await emit(`n${index}`, { ...lone, axes: NARRATE });
        for (let index = 0; index < 30; index += 1) await emit(`t${index}`, { ...lone, priority: "low" });
        const low = (await all()).filter(({ delivery }) => delivery.priority === "low");
        expect(low.every(({ delivery }) => delivery.reason === "folded")).toBe(true);
      });

      it("never folds what is critical, or what the agent must tell its user", async () => {
        for (let index = 0; index < 3; index += 1) await emit(`c${index}`, { ...lone, priority: "critical" });
        for (let index = 0; index < 30; index += 1) await emit(`n${index}`, { ...lone, axes: NARRATE });
        expect((await all()).every(({ delivery }) => delivery.state === "PENDING")).toBe(true);
      });

      it("counts by source over the threads of a user, after a restart too", async () => {
        const threads = ["x", "y", "z"].map(threadId);
        for (const thread of threads) await store.startThread(HOST, ALICE, thread);
        const fill = async (from: number, to: number) => {
          for (let index = from; index < to; index += 1)
            await emit(`t${index}`, lone, { thread_id: threads[index % 3] as typeof ONE, source: "noisy" });
        };
        await fill(0, 20);
        await store.close();
        store = await place.open({ clock, policy: POLICY, editor });
        await fill(20, 31);
        const noisy = (await all()).filter(({ notification }) => notification.source === "noisy");
        expect(noisy.filter(({ delivery }) => delivery.state === "PENDING").length).toBe(28);
        expect(noisy.filter(({ delivery }) => delivery.reason === "folded").length).toBe(3);
      });

      it("believes so many critical ones of a source in a minute; the rest is high, and marked (I19)", async () => {
        const made = [];
        for (let index = 0; index < 5; index += 1)
          made.push(await emit(`c${index}`, { ...lone, priority: "critical" }));
        const other = await emit("other", { ...lone, priority: "critical" }, { source: "another" });
        const priorities = await Promise.all(made.map(async (one) => (await only(one)).delivery.priority));
        expect(priorities).toEqual(["critical", "critical", "critical", "high", "high"]);
        expect((await only(other)).delivery.priority).toBe("critical");
        expect((await story(await only(made[4] as Accepted)))[0]).toMatch(/^the priority critical was lowered to high/);
        // What only counts to one that is there is none more.
        clock.advance(60_000);
        for (let index = 0; index < 9; index += 1) await emit("same", { batch: null, priority: "critical" });
        expect((await only(await emit("fresh", { ...lone, priority: "critical" }))).delivery.priority).toBe("critical");
        clock.advance(60_000);
        expect((await only(await emit("later", { ...lone, priority: "critical" }))).delivery.priority).toBe("critical");
      });
    });
  });
}
