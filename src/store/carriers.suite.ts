/**
 * What every store must show of carriers: what an agent is told at which point, and what becomes of it. The numbers in
 * brackets are the invariants of docs/SPEC.md.
 */
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Axes, mustNarrate } from "../domain/axes.js";
import { ConflictError, isMiss, type Miss, NotFoundError } from "../domain/errors.js";
import type { NewEvent } from "../domain/event.js";
import { type CarrierId, type NotificationId, subscriberId, threadId, userId } from "../domain/ids.js";
import type { JournalEntry } from "../domain/journal.js";
import { POINTS, takes } from "../domain/points.js";
import { DEFAULT_POLICY, type DeliveryPolicy } from "../domain/policy.js";
import { HOST, userPrincipal } from "../domain/principal.js";
import { INJECTION_POINTS, PRIORITIES, priorityRank } from "../domain/priority.js";
import { ManualClock } from "../platform/manual_clock.js";
import { audit } from "./audit.js";
import type { CarrierOutcome, Collected, CollectRequest, Draft, Store, Stored } from "./contract.js";
import { acceptance, type StoreHarness } from "./contract.suite.js";
import { PlainEditor, plainCompose } from "./editor.suite.js";

const START_MS = Date.UTC(2026, 0, 3, 15, 30);
const DAY_MS = 86_400_000;

const INBOX: Axes = { address: "user", target: "user", handler: "system" };
const NARRATE: Axes = { address: "session", target: "user", handler: "agent" };
const DECIDE: Axes = { address: "session", target: "agent", handler: "agent" };
const CONTEXT: Axes = { address: "session", target: "agent", handler: "system" };
const OWN_CONTEXT: Axes = { address: "user", target: "agent", handler: "system" };

const ALICE = userId("alice");
const BOB = userId("bob");
const ONE = threadId("one");
const TWO = threadId("two");

export function carrierContract(name: string, harness: () => Promise<StoreHarness>): void {
  describe(`${name} keeps the contract of carriers`, () => {
    let place: StoreHarness;
    let store: Store;
    let clock: ManualClock;
    let editor: PlainEditor;
    const policy: DeliveryPolicy = { ...DEFAULT_POLICY, backoffMs: 1_000 };

    beforeEach(async () => {
      clock = new ManualClock(START_MS);
      editor = new PlainEditor();
      place = await harness();
      store = await place.open({ clock, policy, editor });
      await store.startThread(HOST, ALICE, ONE);
    });

    afterEach(async () => {
      expect((await audit(store)).problems).toEqual([]);
      await store.close();
      await place.remove();
    });

    async function put(draft: Partial<Draft>, event: Partial<NewEvent> = {}): Promise<Stored> {
      const { matches } = await store.accept(HOST, acceptance({ thread_id: ONE, ...event }, draft));
      return (matches[0] as { stored: Stored }).stored;
    }

    function collect(request: Partial<CollectRequest> = {}, principal = HOST): Promise<Collected | null> {
      return store.collect(principal, {
        user_id: ALICE,
        thread_id: ONE,
        point: "turn_start",
        limit: 10,
        owner: "agent",
        lease_ms: 60_000,
        auto_settle: false,
        awareness_alone: false,
        compose: plainCompose,
        ...request,
      });
    }

    async function collected(request: Partial<CollectRequest> = {}): Promise<Collected> {
      const carrier = await collect(request);
      if (carrier === null) throw new Error("nothing was collected");
      return carrier;
    }

    const settle = (id: CarrierId, acknowledged: readonly NotificationId[] = [], principal = HOST) =>
      store.settleCarrier(principal, id, new Set(acknowledged));
    const fail = (id: CarrierId, principal = HOST) => store.failCarrier(principal, id, null);
    const idOf = ({ delivery }: Stored) => delivery.id;
    const now = async (one: Stored) => (await store.get(HOST, idOf(one)))?.delivery;
    const statesOf = (outcome: CarrierOutcome | Miss) =>
      isMiss(outcome) ? outcome.miss : outcome.items.map(({ state, lost }) => (lost ? `lost ${state}` : state)).join();
    const entries = async () => (await store.entries(HOST, 0, 1_000)).entries;
    const carrierEntries = async () =>
      (await entries()).filter(
        (entry): entry is Extract<JournalEntry, { type: "carrier" }> => entry.type === "carrier",
      );

    describe("collecting", () => {
      it("opens one carrier, in one entry, under one lease (I1, I5)", async () => {
        const items = [await put({ axes: CONTEXT }), await put({ axes: DECIDE }), await put({ axes: OWN_CONTEXT })];
        const before = await store.lastSeq();
        const carrier = await collected({ owner: "turn 7", lease_ms: 5_000 });
        expect(carrier).toMatchObject({
          thread_id: ONE,
          point: "turn_start",
          state: "open",
          lease: { owner: "turn 7", expires_at: START_MS + 5_000 },
          more: 0,
        });
        expect(carrier.items.map(idOf)).toEqual(items.map(idOf));
        expect(carrier.items.map(({ delivery }) => delivery.state)).toEqual(["LOCKED", "LOCKED", "LOCKED"]);
        expect(new Set(carrier.items.map(({ delivery }) => delivery.lease?.id))).toEqual(new Set([carrier.lease?.id]));
        // The user's own is bound to the thread now.
        expect(carrier.items.map(({ delivery }) => delivery.thread_id)).toEqual([ONE, ONE, ONE]);
        expect(await store.lastSeq()).toBe(before + 1);
        const [entry] = await carrierEntries();
        expect(entry).toMatchObject({
          seq: before + 1,
          carrier_id: carrier.id,
          state: "open",
          point: "turn_start",
          ended: null,
          user_id: ALICE,
          thread_id: ONE,
        });
        expect(entry?.changes.map(({ command, path }) => `${command} ${path.join()}`)).toEqual(
          Array(3).fill("collect DISPATCHED,LOCKED"),
        );
        expect(await collect({ owner: "turn 7" })).toBeNull();
      });

      it("takes what the point takes, by priority and then age, up to the limit, and says how many more", async () => {
        const item = fc.record({
          priority: fc.constantFrom(...PRIORITIES),
          inject_at: fc.constantFrom(...INJECTION_POINTS),
          axes: fc.constantFrom(CONTEXT, DECIDE, NARRATE, OWN_CONTEXT, INBOX),
        });
        let run = 0;
        await fc.assert(
          fc.asyncProperty(
            fc.array(item, { maxLength: 30, size: "max" }),
            fc.constantFrom(...POINTS),
            fc.integer({ min: 1, max: 12 }),
            fc.boolean(),
            async (drafts, point, limit, auto_settle) => {
              run += 1;
              const [user_id, thread_id] = [userId(`user ${run}`), threadId(`thread ${run}`)];
              await store.startThread(HOST, user_id, thread_id);
              const items: Stored[] = [];
              for (const draft of drafts) items.push(await put(draft, { user_id, thread_id }));
              const taken = items
                .filter(({ notification }) => notification.axes !== INBOX)
                .filter(({ notification, delivery }) => takes(point, delivery.priority, notification.inject_at))
                .sort((one, other) => priorityRank(one.delivery.priority) - priorityRank(other.delivery.priority));
              const carrier = await collect({ user_id, thread_id, point, limit, auto_settle });
              if (taken.length === 0) {
                expect(carrier).toBeNull();
                return;
              }
              expect(carrier?.items.map(idOf)).toEqual(taken.slice(0, limit).map(idOf));
              expect(carrier?.more).toBe(Math.max(0, taken.length - limit));
              const acknowledged = (carrier?.items ?? []).filter((_, index) => index % 2 === 0).map(idOf);
              const outcome = await settle((carrier as Collected).id, acknowledged);
              expect(statesOf(outcome)).toBe(
                (carrier?.items ?? [])
                  .map(({ delivery: { id, effective } }) =>
                    mustNarrate(effective) && !acknowledged.includes(id) ? "ESCALATED" : "DELIVERED",
                  )
                  .join(),
              );
              expect(await settle((carrier as Collected).id)).toEqual(outcome);
            },
          ),
          { numRuns: 40, seed: 20_260_103 },
        );
      });

      it("puts in as much as fits, and one in any case", async () => {
        for (let count = 0; count < 4; count += 1) await put({ axes: CONTEXT, content: "x".repeat(4_000) });
        const first = await collected({ bytes_max: 11_000 });
        expect(first.items).toHaveLength(2);
        expect(first.more).toBe(2);
        expect((await collected({ bytes_max: 1 })).items).toHaveLength(1);
      });

      it("closes the open batches that the point takes, and words them", async () => {
        const batch = { window_ms: 5_000, max_size: 10 };
        const row = (payload: object, draft: Partial<Draft> = {}) =>
          put({ axes: CONTEXT, batch, content: null, ...draft }, { payload: payload as never });
        const first = await row({ row: 1 });
        await row({ row: 2 });
        const beyond = await row({ row: 1 }, { subscriber_id: subscriberId("beyond") });
        const waits = await row({ row: 3 }, { subscriber_id: subscriberId("other"), priority: "low" });
        expect((await now(first))?.open_until).not.toBeNull();
        const carrier = await collected({ point: "after_tool", limit: 1 });
        expect(carrier.items.map(idOf)).toEqual([idOf(first)]);
        // Also of those that the limit left.
        expect(await now(beyond)).toMatchObject({ state: "PENDING", open_until: null });
        expect(carrier.items[0]?.notification.content.split("\n")).toHaveLength(2);
        expect(await now(waits)).toMatchObject({ state: "PENDING", open_until: expect.any(Number) });
        expect((await collected({ point: "turn_end" })).items.map(idOf)).toEqual([idOf(beyond), idOf(waits)]);
      });

      it("closes a batch of the user's own that another thread's event opened", async () => {
        await store.startThread(HOST, ALICE, TWO);
        const batch = { window_ms: 5_000, max_size: 10 };
        const opened = await put({ axes: OWN_CONTEXT, batch, content: null }, { thread_id: TWO });
        const carrier = await collected();
        expect(carrier.items.map(({ delivery }) => [delivery.id, delivery.open_until])).toEqual([[idOf(opened), null]]);
      });

      it("leaves out what is switched off by now, with an entry of its own", async () => {
        const off = await put({ axes: CONTEXT }, { type: "tool.off" });
        const on = await put({ axes: CONTEXT });
        editor.off.add("tool.off");
        const carrier = await collected({ limit: 1 });
        expect(carrier.items.map(idOf)).toEqual([idOf(on)]);
        expect(await now(off)).toMatchObject({ state: "SUPPRESSED", reason: "muted" });
        const only = await put({ axes: CONTEXT }, { type: "tool.off" });
        expect(await collect()).toBeNull();
        expect((await now(only))?.state).toBe("SUPPRESSED");
      });

      it("claims close and judge everything, too", async () => {
        const batch = { window_ms: 5_000, max_size: 10 };
        const open = await put({ axes: CONTEXT, batch, content: null }, { payload: { row: 1 } });
        await put({ axes: CONTEXT, batch, content: null }, { payload: { row: 2 } });
        const off = await put({ axes: DECIDE }, { type: "tool.off" });
        editor.off.add("tool.off");
        const request = { user_id: ALICE, thread_id: ONE, limit: 10, owner: "agent", lease_ms: 1_000 };
        const { claimed } = await store.claim(HOST, request);
        expect(claimed.map(idOf)).toEqual([idOf(open)]);
        expect(claimed[0]?.notification.content.split("\n")).toHaveLength(2);
        expect((await now(off))?.state).toBe("SUPPRESSED");
        const named = await put({ axes: DECIDE }, { type: "tool.off" });
        const opened = await put({ axes: DECIDE, batch, content: null }, { payload: { row: 3 } });
        const answer = await store.claim(HOST, { ...request, ids: [idOf(named), idOf(opened)] });
        expect(answer.misses).toMatchObject([{ miss: "terminal", id: idOf(named) }]);
        expect(answer.claimed).toMatchObject([{ delivery: { id: idOf(opened), open_until: null } }]);
      });

      it("is refused to another owner while one has a carrier open (I1)", async () => {
        const [first] = [await put({ axes: CONTEXT }), await put({ axes: CONTEXT })];
        const carrier = await collected({ limit: 1, lease_ms: 5_000 });
        await expect(collect({ owner: "other" })).rejects.toMatchObject({ code: "conflict", reason: "thread_held" });
        expect((await collected({ limit: 1 })).items).toHaveLength(1);
        await settle(carrier.id);
        await expect(collect({ owner: "other" })).rejects.toThrow(ConflictError);
        // Another thread is another matter, and so is a lease that is over.
        await store.startThread(HOST, ALICE, TWO);
        expect(await collect({ owner: "other", thread_id: TWO })).toBeNull();
        clock.advance(60_000);
        expect(await collect({ owner: "other" })).toBeNull();
        expect((await now(first))?.state).toBe("DELIVERED");
      });

      it("needs a thread that is the caller's and open; the host opens one by naming it", async () => {
        await put({ axes: OWN_CONTEXT }, { thread_id: null });
        const fresh = threadId("fresh");
        await expect(collect({ thread_id: fresh, user_id: null })).rejects.toThrow(NotFoundError);
        await expect(collect({ thread_id: fresh }, userPrincipal(ALICE))).rejects.toThrow(NotFoundError);
        await expect(collect({}, userPrincipal(BOB))).rejects.toThrow(NotFoundError);
        expect((await collected({ thread_id: fresh })).items).toMatchObject([{ delivery: { thread_id: fresh } }]);
        expect(await store.thread(userPrincipal(ALICE), fresh)).toMatchObject({ state: "open", user_id: ALICE });
        await store.closeThread(HOST, fresh);
        await expect(collect({ thread_id: fresh })).rejects.toMatchObject({ reason: "thread_closed" });
        await expect(store.isReady(HOST, fresh, "turn_start")).rejects.toMatchObject({ reason: "thread_closed" });
      });

      it("two at once never get the same (I1)", async () => {
        for (let count = 0; count < 20; count += 1) await put({ axes: CONTEXT });
        const carriers = await Promise.all(Array.from({ length: 6 }, () => collect({ limit: 4 })));
        const got = carriers.flatMap((carrier) => carrier?.items.map(idOf) ?? []);
        expect(got).toHaveLength(20);
        expect(new Set(got).size).toBe(20);
        expect(carriers.at(-1)).toBeNull();
      });

      it("tells what is ready: not a batch that is open, not what rests", async () => {
        const ready = (point: (typeof POINTS)[number] = "turn_start") => store.isReady(HOST, ONE, point);
        expect(await ready()).toBe(false);
        const batch = { window_ms: 5_000, max_size: 10 };
        await put({ axes: CONTEXT, batch, content: null });
        expect(await ready()).toBe(false);
        clock.advance(5_000);
        expect(await ready()).toBe(true);
        const { id } = await collected();
        expect(await ready()).toBe(false);
        await fail(id);
        expect(await ready()).toBe(false);
        clock.advance(1_000);
        expect(await ready()).toBe(true);
        await settle((await collected()).id);
        await put({ axes: CONTEXT, inject_at: "turn_end" });
        expect([await ready("after_tool"), await ready("turn_end")]).toEqual([false, true]);
        await put({ axes: INBOX, batch, content: null });
        expect(await ready("after_tool")).toBe(false);
      });
    });

    describe("settling", () => {
      it("delivers, and takes to the user at once what the agent did not acknowledge (I10)", async () => {
        const [told, untold, decides, passive] = [
          await put({ axes: NARRATE }),
          await put({ axes: NARRATE }),
          await put({ axes: DECIDE }),
          await put({ axes: CONTEXT }),
        ];
        const carrier = await collected();
        const outcome = await settle(carrier.id, [idOf(told)]);
        expect(outcome).toMatchObject({ id: carrier.id, state: "sent" });
        expect(statesOf(outcome)).toBe("DELIVERED,ESCALATED,DELIVERED,DELIVERED");
        expect(await now(untold)).toMatchObject({ channel: "floor", reason: "unacknowledged", state: "ESCALATED" });
        const before = await store.lastSeq();
        // Again, and with other words: the same answer, and nothing is written.
        expect(await settle(carrier.id, [idOf(untold)])).toEqual(outcome);
        expect(await store.lastSeq()).toBe(before);
        const seen = { column: "ack", revision: 1, action: "clicked" } as const;
        await store.command(HOST, { id: idOf(untold), command: seen, operation: "ack" });
        expect(await settle(carrier.id)).toEqual(outcome);
        expect(await fail(carrier.id)).toMatchObject({ miss: "terminal" });
        expect(await store.renewCarrier(HOST, carrier.id, 1_000)).toMatchObject({ miss: "stale_lease" });
        for (const one of [decides, passive]) expect((await now(one))?.state).toBe("DELIVERED");
      });

      it("at once on request, all but what must be acknowledged", async () => {
        const [passive, told, untold] = [
          await put({ axes: CONTEXT }),
          await put({ axes: NARRATE }),
          await put({ axes: NARRATE }),
        ];
        const carrier = await collected({ auto_settle: true });
        expect(carrier).toMatchObject({ state: "sent", lease: { owner: "agent" } });
        expect((await now(passive))?.state).toBe("DELIVERED");
        expect((await now(told))?.state).toBe("LOCKED");
        expect(await carrierEntries()).toMatchObject([{ state: "sent", ended: null }]);
        expect(await fail(carrier.id)).toMatchObject({ miss: "terminal" });
        expect(await store.renewCarrier(HOST, carrier.id, 120_000)).toMatchObject({ expires_at: START_MS + 120_000 });
        const outcome = await settle(carrier.id, [idOf(told)]);
        expect(statesOf(outcome)).toBe("DELIVERED,DELIVERED,ESCALATED");
        expect(await settle(carrier.id)).toEqual(outcome);
        expect((await now(untold))?.reason).toBe("unacknowledged");

        await put({ axes: CONTEXT });
        const plain = await collected({ auto_settle: true });
        expect(plain).toMatchObject({ state: "sent", lease: null });
        expect(statesOf(await settle(plain.id))).toBe("DELIVERED");
      });

      it("at once on request, and then nobody comes: what must be acknowledged goes to the user", async () => {
        const [passive, narrate] = [await put({ axes: CONTEXT }), await put({ axes: NARRATE })];
        const carrier = await collected({ auto_settle: true, lease_ms: 1_000 });
        clock.advance(1_000);
        expect(await settle(carrier.id, [idOf(narrate)])).toMatchObject({ miss: "stale_lease" });
        expect(await store.sweep(64)).toBe(1);
        expect(await now(narrate)).toMatchObject({ state: "ESCALATED", reason: "lease_expired" });
        expect((await now(passive))?.state).toBe("DELIVERED");
        expect(await settle(carrier.id, [idOf(narrate)])).toMatchObject({ miss: "stale_lease" });
        expect((await carrierEntries()).at(-1)).toMatchObject({ state: "sent", ended: "lease_expired" });
      });

      it("touches nothing that was lost before, and says so (I3)", async () => {
        const [promoted, released, kept] = [
          await put({ axes: DECIDE }),
          await put({ axes: CONTEXT }),
          await put({ axes: CONTEXT }),
        ];
        const carrier = await collected();
        const epoch = carrier.items[0]?.delivery.lease_epoch ?? 0;
        await store.command(HOST, {
          id: idOf(promoted),
          command: { column: "escalate", reason: "promoted", epoch, note: "mail" },
          operation: "escalate",
        });
        await store.command(HOST, {
          id: idOf(released),
          command: { column: "release", epoch: carrier.items[1]?.delivery.lease_epoch ?? 0 },
          operation: "release",
        });
        clock.advance(2_000);
        const again = await collected();
        expect(again.items.map(idOf)).toEqual([idOf(released)]);
        expect(statesOf(await settle(carrier.id))).toBe("lost ESCALATED,lost LOCKED,DELIVERED");
        expect((await now(released))?.lease_epoch).toBe(again.items[0]?.delivery.lease_epoch);
        expect((await now(kept))?.state).toBe("DELIVERED");
        expect(statesOf(await settle(again.id))).toBe("DELIVERED");
      });

      it("a carrier that has lost everything still ends (I8)", async () => {
        const item = await put({ axes: CONTEXT });
        const lose = async (carrier: Collected) => {
          const epoch = carrier.items[0]?.delivery.lease_epoch ?? 0;
          await store.command(HOST, { id: idOf(item), command: { column: "release", epoch }, operation: "release" });
          clock.advance(5_000);
        };
        const settled = await collected();
        await lose(settled);
        expect(await store.renewCarrier(HOST, settled.id, 1_000)).toMatchObject({ owner: "agent" });
        expect(statesOf(await settle(settled.id))).toBe("lost PENDING");
        const expired = await collected({ lease_ms: 5_000 });
        await lose(expired);
        expect(await store.sweep(64)).toBe(1);
        expect((await carrierEntries()).at(-1)).toMatchObject({ carrier_id: expired.id, ended: "lease_expired" });
        expect(await store.sweep(64)).toBe(0);
      });

      it("an event with the key of what is held makes another one, linked to it", async () => {
        const first = await put({ axes: CONTEXT }, { dedupe_key: "k" });
        const carrier = await collected();
        const second = await put({ axes: CONTEXT, content: "again" }, { dedupe_key: "k" });
        expect(second.notification.linked_to).toBe(idOf(first));
        expect((await now(first))?.count).toBe(1);
        expect(statesOf(await settle(carrier.id))).toBe("DELIVERED");
        expect((await collected()).items.map(idOf)).toEqual([idOf(second)]);
      });
    });

    describe("failing", () => {
      it("lets go, with a rest that grows; after three the agent's items go to the user, context waits on", async () => {
        const [narrate, decides, passive] = [
          await put({ axes: NARRATE, ttl_ms: DAY_MS }),
          await put({ axes: DECIDE, ttl_ms: DAY_MS }),
          await put({ axes: CONTEXT }),
        ];
        for (const rest of [1_000, 4_000]) {
          const carrier = await collected();
          const outcome = await store.failCarrier(HOST, carrier.id, "the model is overloaded");
          expect(statesOf(outcome)).toBe("PENDING,PENDING,PENDING");
          expect(await fail(carrier.id)).toEqual(outcome);
          expect(await settle(carrier.id)).toMatchObject({ miss: "stale_lease" });
          clock.advance(rest - 1);
          expect(await collect()).toBeNull();
          clock.advance(1);
        }
        expect((await carrierEntries()).at(-1)).toMatchObject({ state: "void", note: "the model is overloaded" });
        expect(statesOf(await fail((await collected()).id))).toBe("ESCALATED,ESCALATED,PENDING");
        expect(await now(narrate)).toMatchObject({ reason: "attempts", attempts: 3 });
        expect(await now(decides)).toMatchObject({ reason: "attempts" });
        for (let time = 4; time <= 6; time += 1) {
          clock.advance(60_000);
          expect(statesOf(await fail((await collected()).id))).toBe("PENDING");
          expect((await now(passive))?.attempts).toBe(time);
        }
      });
    });

    describe("a lease that ran out", () => {
      it("settles, fails and renews nothing, before the watchdog as after it (I3)", async () => {
        const [narrate, passive] = [await put({ axes: NARRATE }), await put({ axes: CONTEXT })];
        const carrier = await collected({ lease_ms: 1_000 });
        clock.advance(999);
        expect(await store.renewCarrier(HOST, carrier.id, 1_000)).toMatchObject({ expires_at: START_MS + 1_999 });
        clock.advance(1_000);
        const late = async () => {
          for (const answer of [await settle(carrier.id, [idOf(narrate)]), await fail(carrier.id)])
            expect(answer).toMatchObject({ miss: "stale_lease", id: carrier.id });
          expect(await store.renewCarrier(HOST, carrier.id, 1_000)).toMatchObject({ miss: "stale_lease" });
        };
        const before = await store.lastSeq();
        await late();
        expect(await store.lastSeq()).toBe(before);
        expect((await now(passive))?.state).toBe("LOCKED");
        expect(await store.sweep(64)).toBe(1);
        // One entry voids the carrier and says what became of all that was in it.
        expect(await store.lastSeq()).toBe(before + 1);
        const entry = (await carrierEntries()).at(-1);
        expect(entry).toMatchObject({ state: "void", ended: "lease_expired" });
        expect(entry?.changes.map(({ command }) => command)).toEqual(["escalate", "release"]);
        expect(await now(narrate)).toMatchObject({ state: "ESCALATED", reason: "lease_expired" });
        expect(await now(passive)).toMatchObject({ state: "PENDING", attempts: 1 });
        await late();
      });

      it("of many carriers: all are ended, however many there are (I8)", async () => {
        const items: Stored[] = [];
        for (let count = 0; count < 30; count += 1) {
          items.push(await put({ axes: count % 2 === 0 ? CONTEXT : NARRATE }));
          await collected({ lease_ms: 1_000, limit: 1 });
        }
        clock.advance(1_000);
        while ((await store.sweep(64)) > 0);
        for (const one of items) expect(["PENDING", "ESCALATED"]).toContain((await now(one))?.state);
        expect((await carrierEntries()).filter(({ state }) => state === "void")).toHaveLength(30);
      });
    });

    describe("its thread", () => {
      it("closes: every carrier of it ends, also many, and what was in them is moved (I8)", async () => {
        const carriers: Collected[] = [];
        for (let count = 0; count < 10; count += 1) {
          await put({ axes: NARRATE });
          await put({ axes: count % 2 === 0 ? OWN_CONTEXT : CONTEXT });
          carriers.push(await collected({ auto_settle: count === 9 }));
        }
        await store.closeThread(HOST, ONE);
        for (const { id, items, state } of carriers) {
          const [narrate, passive] = await Promise.all(items.map((one) => now(one)));
          expect(narrate).toMatchObject({ state: "ESCALATED", channel: "inbox", reason: "thread_closed" });
          const own = passive?.effective.address === "user" ? "PENDING" : "SUPPRESSED";
          expect(passive?.state).toBe(state === "sent" ? "DELIVERED" : own);
          expect(await settle(id)).toMatchObject({ miss: "stale_lease" });
          expect(await fail(id)).toMatchObject({ miss: state === "sent" ? "terminal" : "stale_lease" });
        }
        const ended = (await carrierEntries()).filter((entry) => entry.ended === "thread_closed");
        expect(ended.map(({ state }) => state)).toEqual([...Array(9).fill("void"), "sent"]);
      });
    });

    describe("others", () => {
      it("cannot tell another's carrier from none, and change nothing (I18)", async () => {
        const item = await put({ axes: NARRATE });
        const carrier = await collected();
        const before = await store.lastSeq();
        const none = carrier.id.replace(/^........-..../, "00000000-0000") as CarrierId;
        const asBob = userPrincipal(BOB);
        const answers = async (id: CarrierId) =>
          JSON.stringify([
            await settle(id, [idOf(item)], asBob),
            await fail(id, asBob),
            await store.renewCarrier(asBob, id, 1_000),
          ]).replaceAll(id, "ID");
        expect(await answers(carrier.id)).toBe(await answers(none));
        expect(await answers(none)).toBe(await answers("no id at all" as CarrierId));
        expect(await answers(none)).toContain('"miss":"not_found"');
        expect(await store.lastSeq()).toBe(before);
        expect(statesOf(await settle(carrier.id, [idOf(item)], userPrincipal(ALICE)))).toBe("DELIVERED");
      });
    });

    describe("the store", () => {
      it("tells whom a commit was about", async () => {
        const told: (readonly string[] | undefined)[] = [];
        const stop = store.onCommit((_seq, users) => told.push(users === undefined ? undefined : [...users].sort()));
        await store.accept(HOST, acceptance({ user_id: BOB }, { axes: INBOX }));
        await Promise.all([put({ axes: CONTEXT }), store.accept(HOST, acceptance({ user_id: BOB }, {}))]);
        expect(await collect({ point: "after_tool", limit: 1 })).not.toBeNull();
        expect(await collect()).toBeNull();
        stop();
        expect(told).toEqual([["bob"], ["alice", "bob"], ["alice"], []]);
      });

      it("keeps a carrier when it is closed and opened again", async () => {
        const item = await put({ axes: NARRATE });
        const carrier = await collected();
        await store.close();
        store = await place.open({ clock, policy, editor });
        await expect(collect({ owner: "other" })).rejects.toMatchObject({ reason: "thread_held" });
        expect(statesOf(await settle(carrier.id, [idOf(item)]))).toBe("DELIVERED");
      });

      it("prunes carriers with their history, and not before", async () => {
        await put({ axes: CONTEXT });
        const old = await collected();
        await settle(old.id);
        await put({ axes: NARRATE });
        const live = await collected();
        await settle(live.id);
        clock.advance(2 * DAY_MS);
        await store.prune(DAY_MS);
        // The thread goes on: nothing of it is removed.
        expect(statesOf(await settle(old.id))).toBe("DELIVERED");
        await store.closeThread(HOST, ONE);
        clock.advance(2 * DAY_MS);
        await store.prune(DAY_MS);
        expect(await settle(old.id)).toMatchObject({ miss: "not_found" });
        // What it took to the user is still there, and so is its story.
        expect(statesOf(await settle(live.id))).toBe("ESCALATED");
        expect((await store.carriers(0, 10)).map(({ id }) => id)).toEqual([live.id]);
      });
    });
  });
}
