/** The contract of turns: every store keeps it. */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Item } from "../domain/conversation.js";
import { isMiss } from "../domain/errors.js";
import type { NewEvent } from "../domain/event.js";
import { threadId, turnId, userId } from "../domain/ids.js";
import { DEFAULT_POLICY, type DeliveryPolicy } from "../domain/policy.js";
import { HOST, userPrincipal } from "../domain/principal.js";
import type { State } from "../domain/transitions.js";
import type { Turn } from "../domain/turn.js";
import { ManualClock } from "../platform/manual_clock.js";
import { audit } from "./audit.js";
import type { BeginTurn, BegunTurn, Collected, Draft, EndTurn, Store, Stored } from "./contract.js";
import { acceptance, type StoreHarness } from "./contract.suite.js";
import { PlainEditor, plainCompose } from "./editor.suite.js";

const START_MS = Date.parse("2026-01-03T15:30:00.000Z");
const ALICE = userId("alice");
const BOB = userId("bob");
const ONE = threadId("one");

const NARRATE = { address: "session", target: "user", handler: "agent" } as const;
const DECIDE = { address: "session", target: "agent", handler: "agent" } as const;
const CONTEXT = { address: "session", target: "agent", handler: "system" } as const;
const FLOOR = { address: "session", target: "user", handler: "system" } as const;
const INBOX = { address: "user", target: "user", handler: "system" } as const;

const SAID: Item = { type: "chat_response", content: "well" };

export function turnContract(name: string, harness: () => Promise<StoreHarness>): void {
  describe(`${name} keeps the contract of turns`, () => {
    let place: StoreHarness;
    let store: Store;
    let clock: ManualClock;
    const policy: DeliveryPolicy = { ...DEFAULT_POLICY, backoffMs: 1_000 };

    beforeEach(async () => {
      clock = new ManualClock(START_MS);
      place = await harness();
      store = await place.open({ clock, policy, editor: new PlainEditor() });
      await store.startThread(HOST, ALICE, ONE);
    });

    afterEach(async () => {
      expect((await audit(store)).problems).toEqual([]);
      await store.close();
      await place.remove();
    });

    async function put(
      axes: Draft["axes"],
      draft: Partial<Draft> = {},
      event: Partial<NewEvent> = {},
    ): Promise<Stored> {
      const { matches } = await store.accept(HOST, acceptance({ thread_id: ONE, ...event }, { axes, ...draft }));
      return (matches[0] as { stored: Stored }).stored;
    }

    function begin(request: Partial<BeginTurn> = {}): Promise<BegunTurn | null> {
      return store.beginTurn(HOST, {
        thread_id: ONE,
        turn_id: null,
        source: "user",
        content: "hello",
        point: "turn_start",
        limit: 30,
        compose: plainCompose,
        owner: "hosted",
        lease_ms: 60_000,
        succeeds: null,
        ...request,
      });
    }

    async function begun(request: Partial<BeginTurn> = {}): Promise<BegunTurn & { carrier: Collected }> {
      const turn = await begin(request);
      if (turn?.carrier == null) throw new Error("nothing was told");
      return { ...turn, carrier: turn.carrier };
    }

    async function stateOf({ delivery }: Stored): Promise<State | undefined> {
      return (await store.get(HOST, delivery.id))?.delivery.state;
    }

    async function end({ turn }: { turn: Turn }, state: EndTurn["state"], items: readonly Item[] = [SAID]) {
      const ended = await store.endTurn(HOST, { turn_id: turn.id, state, items, note: null });
      if (isMiss(ended)) throw new Error(ended.message);
      return ended;
    }

    describe("beginning", () => {
      it("is one commit: the turn, its message, and what is told with it (I5)", async () => {
        const context = await put(CONTEXT);
        const before = await store.lastSeq();
        let commits = 0;
        const stop = store.onCommit(() => {
          commits += 1;
        });
        const { turn, carrier, items } = await begun();
        stop();
        expect(commits).toBe(1);
        expect(turn).toMatchObject({
          state: "active",
          source: "user",
          internal: false,
          content: "hello",
          thread_id: ONE,
        });
        expect(items).toEqual([{ type: "chat_request", content: "hello", source: "user" }]);
        expect(carrier.items.map(({ delivery }) => delivery.id)).toEqual([context.delivery.id]);
        expect(await stateOf(context)).toBe("LOCKED");
        const entries = await store.conversation(HOST, ONE, before, 10);
        expect(entries).toMatchObject([
          { type: "turn", turn_id: turn.id, state: "active", source: "user", items: [] },
          { type: "carrier", carrier_id: carrier.id, turn_id: turn.id, state: "open", items, block: carrier.block },
        ]);
        await end({ turn }, "failed");
      });

      it("is refused where another is active, the thread is paused, closed, or somebody else's", async () => {
        const first = await begin();
        await expect(begin()).rejects.toMatchObject({ reason: "turn_active" });
        await end(first as BegunTurn, "completed");
        await store.pauseThread(HOST, ONE);
        await expect(begin()).rejects.toMatchObject({ reason: "thread_paused" });
        await store.resumeThread(HOST, ONE);
        await put(DECIDE);
        const other = { user_id: null, thread_id: ONE, point: "turn_start", limit: 9, owner: "other" } as const;
        const held = {
          ...other,
          lease_ms: 60_000,
          auto_settle: false,
          awareness_alone: false,
          compose: plainCompose,
        } as const;
        const carrier = await store.collect(HOST, held);
        await expect(begin()).rejects.toMatchObject({ reason: "thread_held" });
        await store.settleCarrier(HOST, (carrier as Collected).id, new Set());
        const second = await begin();
        await expect(store.collect(HOST, held)).rejects.toMatchObject({ reason: "thread_held" });
        await end(second as BegunTurn, "completed");
        await store.closeThread(HOST, ONE);
        await expect(begin()).rejects.toMatchObject({ reason: "thread_closed" });
      });

      it("is nobody else's business", async () => {
        const turn = (await begin()) as BegunTurn;
        const bob = userPrincipal(BOB);
        await expect(store.conversation(bob, ONE, 0, 10)).rejects.toThrow(/no thread/);
        await expect(store.liveTurns(bob, ONE)).rejects.toThrow(/no thread/);
        expect(await store.liveTurns(bob, null)).toEqual([]);
        expect(await store.turn(bob, turn.turn.id)).toBeUndefined();
        expect(await store.threadsOf(bob, ALICE, null, 10)).toEqual([]);
        const step = { turn_id: turn.turn.id, items: [], collect: null };
        expect(await store.stepTurn(bob, step)).toMatchObject({ miss: "not_found" });
        expect(await store.endTurn(bob, { ...step, state: "completed", note: null })).toMatchObject({
          miss: "not_found",
        });
        await end(turn, "completed");
      });

      it("of the system's own accord needs a reason", async () => {
        expect(await begin({ source: "system", content: "news" })).toBeNull();
        await put(CONTEXT);
        expect(await begin({ source: "system", content: "news" })).toBeNull();
        expect(await store.liveTurns(HOST, ONE)).toEqual([]);
        await put(CONTEXT, { wake_ms: 2_000 });
        const { turn, items } = await begun({ source: "system", content: (told) => `${told.length} news` });
        expect(items).toEqual([{ type: "chat_request", content: "2 news", source: "system" }]);
        await end({ turn }, "completed");
      });

      const HOLDS: [string, [Draft["axes"], Partial<Draft>][], boolean][] = [
        ["agent-decides alone", [[DECIDE, {}]], true],
        [
          "agent-decides and passive context",
          [
            [DECIDE, {}],
            [CONTEXT, {}],
          ],
          true,
        ],
        [
          "must-narrate beside it",
          [
            [DECIDE, {}],
            [NARRATE, {}],
          ],
          false,
        ],
        [
          "context that wakes beside it",
          [
            [DECIDE, {}],
            [CONTEXT, { wake_ms: 10 }],
          ],
          false,
        ],
        ["a critical one", [[DECIDE, { priority: "critical" }]], false],
        ["critical context", [[CONTEXT, { priority: "critical" }]], false],
      ];
      it.each(HOLDS)("is internal or not by what it holds: %s", async (_, drafts, internal) => {
        for (const [axes, draft] of drafts) await put(axes, draft);
        const turn = await begun({ source: "system" });
        expect(turn.turn.internal).toBe(internal);
        await end(turn, "completed");
        expect(await store.turn(HOST, turn.turn.id)).toMatchObject({ internal, state: "completed" });
      });

      it("comes after what the system shows the user: a batch is shown first", async () => {
        const batch = { window_ms: 5_000, max_size: 10 };
        const [pill, letter] = [await put(FLOOR, { batch }), await put(INBOX, { batch }, { thread_id: null })];
        expect([await stateOf(pill), await stateOf(letter)]).toEqual(["PENDING", "PENDING"]);
        const turn = (await begin()) as BegunTurn;
        expect([await stateOf(pill), await stateOf(letter)]).toEqual(["DISPATCHED", "DISPATCHED"]);
        const [started] = await store.conversation(HOST, ONE, 0, 1);
        for (const { delivery } of [pill, letter]) {
          const shown = (await store.get(HOST, delivery.id))?.seq ?? Number.POSITIVE_INFINITY;
          expect(shown).toBeLessThan(started?.seq ?? 0);
        }
        await end(turn, "completed");
      });

      it("succeeds another in one commit, and takes over what it holds", async () => {
        const narrate = await put(NARRATE);
        const first = await begun();
        await store.sendCarrier(HOST, first.carrier.id, null);
        const held = await store.get(HOST, narrate.delivery.id);
        const items: Item[] = [{ type: "chat_response", content: "I was", truncated: true }];
        const succeeds = { turn_id: first.turn.id, items, note: "a critical notification came" };
        const critical = await put(CONTEXT, { priority: "critical" });
        let commits = 0;
        const stop = store.onCommit(() => {
          commits += 1;
        });
        const second = await begun({ source: "system", point: "immediate", content: "listen", succeeds });
        stop();
        expect(commits).toBe(1);
        const interrupted = { state: "interrupted", note: succeeds.note, continued_by: second.turn.id };
        expect(await store.turn(HOST, first.turn.id)).toMatchObject(interrupted);
        expect(second.lease.id).toBe(first.lease.id);
        const passed = await store.get(HOST, narrate.delivery.id);
        expect(passed?.delivery).toEqual(held?.delivery);
        expect(second.carrier.items.map(({ delivery }) => delivery.id)).toEqual([critical.delivery.id]);
        expect(await store.stepTurn(HOST, { turn_id: first.turn.id, items: [], collect: null })).toMatchObject({
          miss: "stale_lease",
        });
        await store.sendCarrier(HOST, second.carrier.id, null);
        await end(second, "completed");
        expect([await stateOf(narrate), await stateOf(critical)]).toEqual(["ESCALATED", "DELIVERED"]);
      });
    });

    describe("sending", () => {
      it("delivers what is passive, and holds what the agent handles", async () => {
        const [context, decide, narrate] = [await put(CONTEXT), await put(DECIDE), await put(NARRATE)];
        const turn = await begun();
        expect(await store.sendCarrier(HOST, turn.carrier.id, null)).toMatchObject({ state: "sent" });
        const states = async () => Promise.all([context, decide, narrate].map(stateOf));
        expect(await states()).toEqual(["DELIVERED", "LOCKED", "LOCKED"]);
        expect(await store.sendCarrier(HOST, turn.carrier.id, null)).toMatchObject({ state: "sent" });
        expect(await store.failCarrier(HOST, turn.carrier.id, null)).toMatchObject({ miss: "terminal" });
        await end(turn, "completed");
        expect(await states()).toEqual(["DELIVERED", "DELIVERED", "ESCALATED"]);
      });

      it("records the form in which it went out", async () => {
        await put(CONTEXT);
        const turn = await begun();
        await store.sendCarrier(HOST, turn.carrier.id, "developer");
        const entries = await store.conversation(HOST, ONE, 0, 10);
        expect(entries.at(-1)).toMatchObject({ state: "sent", block: { ...turn.carrier.block, form: "developer" } });
        await end(turn, "completed");
      });

      it("that failed lets go, and the turn goes on", async () => {
        const decide = await put(DECIDE);
        const turn = await begun();
        await store.failCarrier(HOST, turn.carrier.id, "no answer");
        expect((await store.get(HOST, decide.delivery.id))?.delivery).toMatchObject({ state: "PENDING", attempts: 1 });
        clock.advance(1_000);
        const step = {
          turn_id: turn.turn.id,
          items: [],
          collect: { point: "turn_start", limit: 9, compose: plainCompose },
        };
        const again = await store.stepTurn(HOST, step as never);
        expect(again).toMatchObject({ carrier: { state: "open", items: [{ delivery: { attempts: 1 } }] } });
        await end(turn, "failed");
        expect(await stateOf(decide)).toBe("PENDING");
      });
    });

    describe("the end (I23)", () => {
      const RULES: [EndTurn["state"], boolean, State, State, State][] = [
        ["completed", true, "DELIVERED", "DELIVERED", "ESCALATED"],
        ["completed", false, "PENDING", "PENDING", "PENDING"],
        ["failed", true, "DELIVERED", "PENDING", "PENDING"],
        ["failed", false, "PENDING", "PENDING", "PENDING"],
        ["stopped", true, "DELIVERED", "PENDING", "ESCALATED"],
        ["stopped", false, "PENDING", "PENDING", "ESCALATED"],
      ];
      it.each(RULES)("%s, sent %s: context %s, agent-decides %s, must-narrate %s", async (state, sent, ...expected) => {
        const items = [await put(CONTEXT), await put(DECIDE), await put(NARRATE)];
        const turn = await begun();
        if (sent) await store.sendCarrier(HOST, turn.carrier.id, null);
        expect(await end(turn, state)).toMatchObject({ state });
        expect(await Promise.all(items.map(stateOf))).toEqual(expected);
        expect(await store.turn(HOST, turn.turn.id)).toMatchObject({ state });
        expect(await store.liveTurns(HOST, ONE)).toEqual([]);
        const step = { turn_id: turn.turn.id, items: [], collect: null };
        expect(await store.stepTurn(HOST, step)).toMatchObject({ miss: "stale_lease" });
        expect(await store.renewTurn(HOST, turn.turn.id, 1_000)).toMatchObject({ miss: "stale_lease" });
      });

      it("does not touch what was acknowledged", async () => {
        const narrate = await put(NARRATE);
        const turn = await begun();
        await store.sendCarrier(HOST, turn.carrier.id, null);
        const epoch = turn.carrier.items[0]?.delivery.lease_epoch ?? 0;
        const command = { column: "settle", epoch } as const;
        await store.commandMany(HOST, [{ id: narrate.delivery.id, command, operation: "settle" }]);
        await end(turn, "completed");
        expect(await stateOf(narrate)).toBe("DELIVERED");
      });

      it("by the user leaves what waits without a wake; failures of context do so in the end", async () => {
        const decide = await put(DECIDE);
        const stopped = await begun();
        expect(await store.waiting(HOST, ALICE)).toEqual([]);
        await end(stopped, "stopped");
        expect((await store.get(HOST, decide.delivery.id))?.delivery.quiet).toBe(true);
        expect(await store.waiting(HOST, null)).toEqual([]);
        const context = await put(CONTEXT, { wake_ms: 2_000 });
        for (let attempt = 0; attempt < policy.attemptsMax; attempt += 1) {
          expect((await store.waiting(HOST, ALICE)).map(({ id }) => id)).toEqual([context.delivery.id]);
          clock.advance(60_000);
          await end((await begin()) as BegunTurn, "failed");
        }
        expect(await store.waiting(HOST, ALICE)).toEqual([]);
        expect((await store.get(HOST, context.delivery.id))?.delivery).toMatchObject({ state: "PENDING", quiet: true });
        clock.advance(60_000);
        const last = await begun();
        expect(last.carrier.items.map(({ delivery }) => delivery.id)).toContain(context.delivery.id);
        await end(last, "completed");
      });

      it("comes by itself when the lease runs out, unless it is renewed", async () => {
        const [context, decide] = [await put(CONTEXT), await put(DECIDE)];
        const turn = await begun({ lease_ms: 10_000 });
        clock.advance(9_000);
        expect(await store.renewTurn(HOST, turn.turn.id, 10_000)).toMatchObject({ id: turn.lease.id });
        clock.advance(9_000);
        while ((await store.sweep(64)) > 0);
        expect(await store.turn(HOST, turn.turn.id)).toMatchObject({ state: "active" });
        clock.advance(2_000);
        const step = { turn_id: turn.turn.id, items: [], collect: null };
        expect(await store.stepTurn(HOST, step)).toMatchObject({ miss: "stale_lease" });
        while ((await store.sweep(64)) > 0);
        expect(await store.turn(HOST, turn.turn.id)).toMatchObject({ state: "failed", note: "its lease ran out" });
        expect([await stateOf(context), await stateOf(decide)]).toEqual(["PENDING", "ESCALATED"]);
      });

      it("comes with the end of the thread, also for what is queued", async () => {
        const narrate = await put(NARRATE);
        const turn = await begun();
        const queued = await store.queueTurn(HOST, ONE, "and then?");
        await store.closeThread(HOST, ONE);
        expect(await store.turn(HOST, turn.turn.id)).toMatchObject({ state: "failed", note: "its thread was closed" });
        expect(await store.turn(HOST, queued.id)).toMatchObject({ state: "removed" });
        expect((await store.get(HOST, narrate.delivery.id))?.delivery).toMatchObject({
          state: "ESCALATED",
          channel: "inbox",
        });
      });
    });

    describe("the queue", () => {
      it("keeps messages for later, which can be changed and taken out", async () => {
        const [one, two, three] = [
          await store.queueTurn(HOST, ONE, "one"),
          await store.queueTurn(HOST, ONE, "two"),
          await store.queueTurn(HOST, ONE, "three"),
        ];
        expect(await store.editQueued(HOST, two.id, "TWO")).toMatchObject({ content: "TWO", state: "queued" });
        expect(await store.editQueued(HOST, one.id, null)).toMatchObject({ state: "removed" });
        expect(await store.editQueued(HOST, one.id, "again")).toMatchObject({ miss: "terminal" });
        expect(await store.editQueued(userPrincipal(BOB), two.id, "x")).toMatchObject({ miss: "not_found" });
        expect(await store.editQueued(HOST, turnId("nobody"), "x")).toMatchObject({ miss: "not_found" });
        expect((await store.liveTurns(HOST, ONE)).map(({ content }) => content)).toEqual(["TWO", "three"]);
        const turn = (await begin({ turn_id: two.id, content: "ignored" })) as BegunTurn;
        expect(turn.turn).toMatchObject({ id: two.id, state: "active", content: "TWO" });
        expect(turn.items).toEqual([{ type: "chat_request", content: "TWO", source: "user" }]);
        await end(turn, "completed");
        await expect(begin({ turn_id: two.id })).rejects.toMatchObject({ reason: "turn_not_active" });
        expect((await store.liveTurns(HOST, null)).map(({ id }) => id)).toEqual([three.id]);
      });
    });

    describe("steps", () => {
      it("are one commit each, and fenced by the lease", async () => {
        const turn = (await begin()) as BegunTurn;
        const call: Item = { type: "tool_call_request", id: "c1", name: "ls", input: {} };
        const result: Item = { type: "tool_call_response", id: "c1", name: "ls", output: "a b", is_error: false };
        await store.stepTurn(HOST, { turn_id: turn.turn.id, items: [SAID, call], collect: null });
        const high = await put(CONTEXT, { priority: "high" });
        const waits = await put(CONTEXT, { inject_at: "turn_start" });
        const collect = { point: "after_tool", limit: 9, compose: plainCompose } as const;
        const step = await store.stepTurn(HOST, { turn_id: turn.turn.id, items: [result], collect });
        if (isMiss(step) || step.carrier === null) throw new Error("nothing was told");
        expect(step.carrier.items.map(({ delivery }) => delivery.id)).toEqual([high.delivery.id]);
        await store.sendCarrier(HOST, step.carrier.id, null);
        await end(turn, "completed", []);
        expect([await stateOf(high), await stateOf(waits)]).toEqual(["DELIVERED", "PENDING"]);
        const said = (await store.conversation(HOST, ONE, 0, 100)).flatMap((entry) =>
          "items" in entry ? entry.items : [],
        );
        expect(said.map(({ type }) => type)).toEqual([
          "chat_request",
          "chat_response",
          "tool_call_request",
          "tool_call_response",
        ]);
      });
    });

    describe("awareness", () => {
      it("tells once what the system has shown, when a carrier is sent", async () => {
        const [pill, letter] = [await put(FLOOR), await put(INBOX, {}, { thread_id: null })];
        const told = `seen ${pill.delivery.id}\ninbox 1 ${letter.delivery.id}`;
        const first = await begun();
        expect(first.carrier).toMatchObject({ items: [], block: { text: told } });
        await store.failCarrier(HOST, first.carrier.id, null);
        await end(first, "failed");
        const second = await begun();
        expect(second.carrier.block.text).toBe(told);
        await store.sendCarrier(HOST, second.carrier.id, null);
        await end(second, "completed");
        expect((await begin())?.carrier).toBeNull();
        const [turn] = await store.liveTurns(HOST, ONE);
        await end({ turn: turn as Turn }, "completed");
        const later = await put(FLOOR);
        expect((await store.floor(HOST, ONE, 0, 10)).map(({ stored }) => stored.delivery.id)).toEqual([
          pill.delivery.id,
          later.delivery.id,
        ]);
        const third = await begun();
        expect(third.carrier.block.text).toBe(`seen ${later.delivery.id}`);
        await end(third, "completed");
      });

      it("includes what was taken from an agent", async () => {
        const narrate = await put(NARRATE);
        const first = await begun();
        await store.sendCarrier(HOST, first.carrier.id, null);
        await end(first, "completed");
        const second = await begun();
        expect(second.carrier.block.text).toBe(`seen ${narrate.delivery.id}`);
        await end(second, "completed");
      });
    });

    describe("a pause", () => {
      it("lets deadlines stand still, of what was there and of what comes", async () => {
        const before = await put(DECIDE, { ttl_ms: 10_000 });
        clock.advance(6_000);
        expect(await store.pauseThread(HOST, ONE)).toMatchObject({ paused_at: clock.wall() });
        const again = await store.pauseThread(HOST, ONE);
        expect(again.paused_at).toBe(clock.wall());
        clock.advance(30_000);
        const during = await put(DECIDE, { ttl_ms: 10_000 });
        clock.advance(30_000);
        while ((await store.sweep(64)) > 0);
        expect([await stateOf(before), await stateOf(during)]).toEqual(["PENDING", "PENDING"]);
        await store.resumeThread(HOST, ONE);
        await store.resumeThread(HOST, ONE);
        expect(await store.thread(HOST, ONE)).toMatchObject({ paused_at: null, state: "open" });
        clock.advance(3_000);
        while ((await store.sweep(64)) > 0);
        expect([await stateOf(before), await stateOf(during)]).toEqual(["PENDING", "PENDING"]);
        clock.advance(2_000);
        while ((await store.sweep(64)) > 0);
        expect([await stateOf(before), await stateOf(during)]).toEqual(["ESCALATED", "PENDING"]);
        clock.advance(6_000);
        while ((await store.sweep(64)) > 0);
        expect(await stateOf(during)).toBe("ESCALATED");
      });
    });

    describe("who is woken", () => {
      it("is told by place, the most urgent first; nobody hides behind a thousand", async () => {
        await put(CONTEXT);
        await put(FLOOR, { priority: "critical" });
        const decide = await put(DECIDE);
        const idle = await put(CONTEXT, { wake_ms: 500 });
        const critical = await put(CONTEXT, { priority: "critical" });
        const anywhere = await put({ ...NARRATE, address: "user" }, {}, { thread_id: null });
        const waiting = await store.waiting(HOST, ALICE);
        // Of each place the most urgent first, and what is bound to no thread before all.
        expect(waiting).toMatchObject([
          { id: anywhere.delivery.id, thread_id: null, must_narrate: true },
          { id: critical.delivery.id, priority: "critical" },
          { id: decide.delivery.id, thread_id: ONE, channel: "agent", must_narrate: false, wait_ms: 2_000 },
          { id: idle.delivery.id, thread_id: ONE, channel: "context", wait_ms: 500 },
        ]);
        expect(await store.waiting(HOST, null)).toEqual(waiting);
        expect(await store.waiting(userPrincipal(BOB), ALICE)).toEqual([]);
        for (let count = 0; count < 200; count += 1) await put(DECIDE);
        const many = await store.waiting(HOST, null);
        expect(many.length).toBeLessThan(200);
        for (const { delivery } of [anywhere, critical]) expect(many.map(({ id }) => id)).toContain(delivery.id);
      });

      it("is somebody again when a quiet one says something new, or is more urgent", async () => {
        const one = await put(CONTEXT, { wake_ms: 2_000, content: "one" }, { dedupe_key: "k" });
        const turn = await begun();
        await end(turn, "stopped");
        expect(await store.waiting(HOST, ALICE)).toEqual([]);
        await put(CONTEXT, { wake_ms: 2_000, content: "one", priority: "critical" }, { dedupe_key: "k" });
        expect(await store.waiting(HOST, ALICE)).toMatchObject([{ id: one.delivery.id, priority: "critical" }]);
      });

      it("is told what was stopped, or failed too often, with the next message, however soon", async () => {
        const [decide, context] = [await put(DECIDE), await put(CONTEXT)];
        await end(await begun(), "stopped");
        const next = await begun();
        expect(next.carrier.items.map(({ delivery }) => delivery.id).sort()).toEqual(
          [decide.delivery.id, context.delivery.id].sort(),
        );
        await store.sendCarrier(HOST, next.carrier.id, null);
        await end(next, "completed");
      });
    });

    it("lists a user's threads, the most recently active first", async () => {
      const [two, three] = [threadId("two"), threadId("three")];
      clock.advance(1_000);
      await store.startThread(HOST, ALICE, two);
      clock.advance(1_000);
      await store.startThread(HOST, ALICE, three);
      clock.advance(1_000);
      await end((await begin()) as BegunTurn, "completed");
      const ids = async (after: typeof two | null, limit: number) =>
        (await store.threadsOf(HOST, ALICE, after, limit)).map(({ id }) => id);
      expect(await ids(null, 10)).toEqual([ONE, three, two]);
      expect(await ids(null, 1)).toEqual([ONE]);
      expect(await ids(ONE, 1)).toEqual([three]);
      expect(await ids(three, 10)).toEqual([two]);
    });

    it("shows a thread at a glance, and its conversation from its end", async () => {
      const shown = [await put(FLOOR), await put(FLOOR)];
      const first = (await begin({ content: "hello there" })) as BegunTurn;
      await store.queueTurn(HOST, ONE, "later");
      const glance = async () => (await store.threadSummaries(HOST, ALICE, null, 10))[0];
      expect(await glance()).toMatchObject({
        thread: { id: ONE },
        first_words: "hello there",
        active_turn: first.turn.id,
        queued: 1,
        unread: 2,
      });
      await end(first, "completed");
      expect(await glance()).toMatchObject({ active_turn: null, queued: 1 });
      expect(await store.threadSummaries(userPrincipal(BOB), ALICE, null, 10)).toEqual([]);
      const all = await store.conversation(HOST, ONE, 0, 100);
      const last = all.at(-1)?.seq ?? 0;
      expect(await store.conversationBefore(HOST, ONE, last + 1, 100)).toEqual(all);
      expect(await store.conversationBefore(HOST, ONE, last, 2)).toEqual(all.slice(-3, -1));
      const floor = await store.floorBefore(HOST, ONE, last, 100);
      expect(floor.map(({ stored }) => stored.delivery.id)).toEqual(shown.map(({ delivery }) => delivery.id));
      expect(await store.floorBefore(HOST, ONE, floor[1]?.seq ?? 0, 100)).toEqual(floor.slice(0, 1));
      const bob = userPrincipal(BOB);
      await expect(store.conversationBefore(bob, ONE, last, 10)).rejects.toThrow(/no thread/);
      await expect(store.floorBefore(bob, ONE, last, 10)).rejects.toThrow(/no thread/);
    });
  });
}
