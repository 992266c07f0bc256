/** The contract of what has happened over time: every store keeps it. */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Axes, CHANNELS } from "../domain/axes.js";
import { isMiss } from "../domain/errors.js";
import { subscriberId, threadId, type UserId, userId } from "../domain/ids.js";
import { DEFAULT_POLICY } from "../domain/policy.js";
import { HOST, userPrincipal } from "../domain/principal.js";
import { addTally, newTally, RESOLUTIONS, type Resolution, type Tally, tokensIn } from "../domain/series.js";
import { ManualClock } from "../platform/manual_clock.js";
import { audit } from "./audit.js";
import type { BeginTurn, Collected, CollectRequest, Draft, Store, Stored } from "./contract.js";
import { acceptance, type StoreHarness } from "./contract.suite.js";
import { PlainEditor, plainCompose } from "./editor.suite.js";

const NOON_MS = Date.parse("2026-01-03T12:00:00.000Z");
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const ALICE = userId("alice");
const BOB = userId("bob");
const ONE = threadId("one");
const INBOX: Axes = { address: "user", target: "user", handler: "system" };
const FLOOR: Axes = { address: "session", target: "user", handler: "system" };
const NARRATE: Axes = { address: "session", target: "user", handler: "agent" };
const DECIDE: Axes = { address: "session", target: "agent", handler: "agent" };
const CONTEXT: Axes = { address: "session", target: "agent", handler: "system" };
const [FINE, MINUTES, HOURS] = RESOLUTIONS;

/** All steps of a user, or of all users, added up. */
export async function summed(
  store: Store,
  user_id: UserId | null = null,
  resolution: Resolution = HOURS,
): Promise<Tally> {
  const sum = newTally();
  const { points } = await store.series(HOST, user_id, resolution, 0, Number.MAX_SAFE_INTEGER);
  for (const { tally } of points) addTally(sum, tally);
  return sum;
}

/** Counts the rest of the journal, a slice of this size at a time. */
export async function addUpAll(store: Store, slice = 256): Promise<void> {
  while (!(await store.addUp(slice)).end);
}

/**
 * What was added up from the journal, and what the store has counted as it happened and has in its ledger; of one that was
 * never opened again and has forgotten nothing.
 */
export async function addedUpAndCounted(store: Store, slice: number): Promise<[Tally, Tally]> {
  await addUpAll(store, slice);
  const { events, entered, blocks_told, tokens_told } = await store.figures();
  const expected = newTally();
  for (let after = 0; ; ) {
    const page = await store.ledger(after, 500);
    for (const { delivery, number } of page) {
      after = number;
      expected.notifications += 1;
      if (delivery.state === "DELIVERED") expected.delivered[delivery.channel] += 1;
    }
    if (page.length < 500) break;
  }
  expected.events = events.accepted + events.unmatched;
  expected.escalated = entered.ESCALATED;
  expected.failed = entered.FAILED;
  expected.suppressed = entered.SUPPRESSED;
  expected.blocks_injected = blocks_told;
  expected.tokens_injected = tokens_told;
  const sums = await summed(store);
  // What nothing else has counted is as the journal says.
  return [sums, { ...expected, merged: sums.merged, wakes: sums.wakes }];
}

export function seriesContract(name: string, harness: () => Promise<StoreHarness>): void {
  describe(`${name} keeps the contract of the series`, () => {
    let place: StoreHarness;
    let store: Store;
    let clock: ManualClock;

    beforeEach(async () => {
      clock = new ManualClock(NOON_MS);
      place = await harness();
      store = await open();
      await store.startThread(HOST, ALICE, ONE);
    });

    afterEach(async () => {
      expect((await audit(store)).problems).toEqual([]);
      await store.close();
      await place.remove();
    });

    function open(): Promise<Store> {
      return place.open({ clock, policy: DEFAULT_POLICY, editor: new PlainEditor() });
    }

    async function put(axes: Axes, event: Parameters<typeof acceptance>[0] = {}, draft: Partial<Draft> = {}) {
      const thread_id = axes.address === "session" ? ONE : null;
      const { matches } = await store.accept(HOST, acceptance({ thread_id, ...event }, { axes, ...draft }));
      return (matches[0] as { stored: Stored }).stored;
    }

    async function ack({ delivery: { id, revision } }: Stored): Promise<void> {
      const command = { column: "ack", revision, action: "rendered" } as const;
      expect(isMiss(await store.command(HOST, { id, command, operation: "ack" }))).toBe(false);
    }

    async function collect(more: Partial<CollectRequest> = {}): Promise<Collected> {
      const carrier = await store.collect(HOST, {
        user_id: ALICE,
        thread_id: ONE,
        point: "turn_start",
        limit: 10,
        owner: "agent",
        lease_ms: 60_000,
        auto_settle: false,
        awareness_alone: false,
        compose: plainCompose,
        ...more,
      });
      if (carrier === null) throw new Error("nothing was collected");
      return carrier;
    }

    const begin: BeginTurn = {
      thread_id: ONE,
      turn_id: null,
      source: "system",
      content: "look",
      point: "turn_start",
      limit: 10,
      compose: plainCompose,
      owner: "hosted",
      lease_ms: 60_000,
      succeeds: null,
    };

    it("counts events, what is made of them and what becomes of that, each on its own", async () => {
      await store.accept(HOST, acceptance());
      await put(INBOX, { producer_id: "p" });
      await store.accept(HOST, acceptance({ producer_id: "p" }, { axes: INBOX }));
      await ack(await put(INBOX, { dedupe_key: "k" }));
      await store.accept(HOST, acceptance({ dedupe_key: "k" }, { axes: INBOX }));
      await put(INBOX, {}, { filtered: true });
      await ack(await put(FLOOR));
      const { lease_epoch: epoch, id } = (await put(NARRATE)).delivery;
      await store.command(HOST, {
        id,
        command: { column: "escalate", reason: "promoted", epoch },
        operation: "escalate",
      });
      await addUpAll(store);
      expect(await summed(store)).toEqual({
        ...newTally(),
        events: 7,
        notifications: 5,
        merged: 1,
        suppressed: 1,
        escalated: 1,
        delivered: { inbox: 1, floor: 1, agent: 0, context: 0 },
      });
      clock.advance(8 * DAY_MS);
      while ((await store.sweep(64)) > 0);
      await addUpAll(store);
      expect((await summed(store)).failed, "the one that was shown, and the escalated one").toBe(2);
    });

    it("counts a block once, when the agent was told, by its length, and not if it was not", async () => {
      const blocks: string[] = [];
      await put(CONTEXT);
      const failed = await collect();
      await store.failCarrier(HOST, failed.id, null);
      await addUpAll(store);
      expect(await summed(store)).toMatchObject({ blocks_injected: 0, tokens_injected: 0 });
      clock.advance(60_000);
      const settled = await collect();
      blocks.push(settled.block.text);
      await store.settleCarrier(HOST, settled.id, new Set());
      // At once, and goes on: what must be narrated is held.
      await put(NARRATE);
      const atOnce = await collect({ auto_settle: true });
      blocks.push(atOnce.block.text);
      await store.settleCarrier(HOST, atOnce.id, new Set(atOnce.items.map(({ delivery }) => delivery.id)));
      // Sent, in another form, and ended with its turn.
      await put(DECIDE, {}, { wake_ms: 0 });
      await put(CONTEXT);
      const begun = await store.beginTurn(HOST, begin);
      if (begun?.carrier == null) throw new Error("it did not begin");
      blocks.push(begun.carrier.block.text);
      await store.sendCarrier(HOST, begun.carrier.id, "developer");
      await store.endTurn(HOST, { turn_id: begun.turn.id, state: "completed", items: [], note: null });
      await addUpAll(store, 1);
      const sums = await summed(store, ALICE);
      expect(sums).toMatchObject({
        blocks_injected: 3,
        tokens_injected: blocks.reduce((sum, text) => sum + tokensIn(text.length), 0),
        wakes: 1,
        delivered: { inbox: 0, floor: 0, agent: 2, context: 2 },
      });
      const [added, counted] = await addedUpAndCounted(store, 1);
      expect(added).toEqual(counted);
    });

    it("has steps of each length, of each user and of all", async () => {
      await put(INBOX);
      clock.advance(15_000);
      await put(INBOX);
      await put(INBOX, { user_id: BOB });
      clock.advance(HOUR_MS);
      await put(INBOX, { user_id: BOB });
      await addUpAll(store);
      const steps = async (user_id: UserId | null, resolution: Resolution) =>
        (await store.series(HOST, user_id, resolution, 0, Number.MAX_SAFE_INTEGER)).points.map(({ at, tally }) => [
          (at - NOON_MS) / 1_000,
          tally.events,
        ]);
      expect(await steps(ALICE, FINE)).toEqual([
        [0, 1],
        [10, 1],
      ]);
      expect(await steps(ALICE, MINUTES)).toEqual([[0, 2]]);
      expect(await steps(BOB, HOURS)).toEqual([
        [0, 1],
        [3_600, 1],
      ]);
      expect(await steps(null, FINE)).toEqual([
        [0, 1],
        [10, 2],
        [3_610, 1],
      ]);
      const { points } = await store.series(HOST, null, FINE, NOON_MS + 10_000, NOON_MS + 3_610_000);
      expect(points.map(({ tally }) => tally.events)).toEqual([2]);
    });

    it("counts each entry once: in slices of any size, asked at the same time, and over a restart", async () => {
      for (let index = 0; index < 20; index += 1) await put(INBOX);
      await store.addUp(7);
      await store.close();
      store = await open();
      const steps = await Promise.all([store.addUp(3), store.addUp(3), store.addUp(300), store.addUp(3)]);
      expect(steps.reduce((sum, { counted }) => sum + counted, 7)).toBe(21);
      const seq = await store.lastSeq();
      expect(await store.addUp(5)).toEqual({ counted: 0, seq, end: true });
      await store.close();
      store = await open();
      expect(await store.addUp(5)).toEqual({ counted: 0, seq, end: true });
      for (const resolution of RESOLUTIONS) expect((await summed(store, ALICE, resolution)).events).toBe(20);
      expect((await store.series(HOST, ALICE, HOURS, 0, 1)).seq).toBe(seq);
    });

    it("says nothing of what is not counted yet", async () => {
      await put(INBOX);
      expect(await store.series(HOST, null, HOURS, 0, Number.MAX_SAFE_INTEGER)).toEqual({ points: [], seq: 0 });
    });

    it("has counted what retention removes", async () => {
      await ack(await put(INBOX));
      clock.advance(DAY_MS);
      expect((await store.prune(HOUR_MS)).notifications).toBe(1);
      expect(await summed(store, ALICE)).toMatchObject({ events: 1, delivered: { inbox: 1 } });
    });

    it("forgets short steps sooner than long ones", async () => {
      await put(INBOX);
      await addUpAll(store);
      const kept = async () => {
        clock.advance(1);
        await put(INBOX, { user_id: BOB });
        await addUpAll(store);
        const sums = await Promise.all(RESOLUTIONS.map((resolution) => summed(store, ALICE, resolution)));
        return sums.map(({ events }) => events);
      };
      clock.advance(FINE.kept_ms);
      expect(await kept()).toEqual([1, 1, 1]);
      clock.advance(2 * FINE.step_ms);
      expect(await kept()).toEqual([0, 1, 1]);
      clock.advance(MINUTES.kept_ms);
      expect(await kept()).toEqual([0, 0, 1]);
      clock.advance(HOURS.kept_ms + HOUR_MS);
      expect(await kept()).toEqual([0, 0, 0]);
    });

    it("keeps which events a subscriber took last, for each user", async () => {
      const other = subscriberId("other");
      const tool_failure = subscriberId("tool_failure");
      const seqs: number[] = [];
      for (let index = 0; index < 25; index += 1) {
        const { seq } = await store.accept(HOST, acceptance({ dedupe_key: "k" }, { axes: INBOX }));
        seqs.push(seq);
        if (index === 12) await store.addUp(5);
      }
      await put(INBOX, { user_id: BOB }, { subscriber_id: other });
      expect(await store.lastMatches(HOST, BOB, other, 5)).toEqual([]);
      await addUpAll(store, 3);
      const last = async (limit: number) =>
        (await store.lastMatches(HOST, ALICE, tool_failure, limit)).map(({ seq }) => seq);
      expect(await last(4)).toEqual(seqs.slice(-4).reverse());
      expect(await last(100)).toEqual(seqs.slice(-10).reverse());
      expect(await store.lastMatches(HOST, BOB, other, 5)).toHaveLength(1);
      expect(await store.lastMatches(HOST, ALICE, other, 5)).toEqual([]);
      await expect(store.lastMatches(userPrincipal(ALICE), BOB, other, 5)).rejects.toThrow("user_id");
    });

    it("is a user's own, and the host's", async () => {
      const asAlice = userPrincipal(ALICE);
      await put(INBOX);
      await addUpAll(store);
      const asked = (user_id: UserId | null) => store.series(asAlice, user_id, HOURS, 0, Number.MAX_SAFE_INTEGER);
      expect((await asked(ALICE)).points).toHaveLength(1);
      for (const other of [BOB, null]) {
        await expect(asked(other)).rejects.toThrow("user_id");
        await expect(store.standing(asAlice, other)).rejects.toThrow("user_id");
      }
      expect((await store.standing(asAlice, ALICE)).counts).toMatchObject({ unread: 1 });
    });

    it("says how it stands now, of one and of all, as it is kept and as it is counted", async () => {
      const look = async (from: Store) =>
        Promise.all(
          [ALICE, BOB, null].map(async (user_id) => {
            const { depth, oldest, counts } = await from.standing(HOST, user_id);
            return {
              depth: depth.map(({ state, channel, count }) => `${state} ${channel} ${count}`).sort(),
              oldest,
              counts,
            };
          }),
        );
      expect((await look(store))[2]).toMatchObject({ depth: [], oldest: [] });
      const shown = await put(INBOX);
      clock.advance(1_000);
      await put(INBOX);
      await put(INBOX, { user_id: BOB });
      await put(CONTEXT);
      await put(DECIDE, {}, { subscriber_id: subscriberId("other") });
      await put(FLOOR);
      await ack(shown);
      await collect();
      const [alice, bob, all] = await look(store);
      expect(alice).toMatchObject({
        depth: ["DISPATCHED floor 1", "DISPATCHED inbox 1", "LOCKED agent 1", "LOCKED context 1"],
        oldest: CHANNELS.map((channel) => ({ channel, created_at: NOON_MS + 1_000 })),
        counts: { unacknowledged: 2, unread: 3 },
      });
      expect(bob).toMatchObject({ depth: ["DISPATCHED inbox 1"], counts: { unacknowledged: 1, unread: 1 } });
      expect(all).toMatchObject({ counts: { unacknowledged: 3, unread: 4 } });
      expect(all?.depth).toContain("DISPATCHED inbox 2");
      expect(await store.snapshot(look)).toEqual([alice, bob, all]);
      clock.advance(8 * DAY_MS);
      while ((await store.sweep(64)) > 0);
      const after = await look(store);
      expect(after[1]).toMatchObject({ depth: ["FAILED inbox 1"], oldest: [] });
      expect(await store.snapshot(look)).toEqual(after);
    });
  });
}
