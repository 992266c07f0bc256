/** The contract of usage: every store keeps it. */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { isMiss } from "../domain/errors.js";
import { threadId, userId } from "../domain/ids.js";
import { DEFAULT_POLICY } from "../domain/policy.js";
import { HOST, userPrincipal } from "../domain/principal.js";
import type { Turn } from "../domain/turn.js";
import { dateOf, NOTHING, type Spent } from "../domain/usage.js";
import { ManualClock } from "../platform/manual_clock.js";
import { audit } from "./audit.js";
import type { BeginTurn, Store } from "./contract.js";
import { acceptance, type StoreHarness } from "./contract.suite.js";
import { PlainEditor, plainCompose } from "./editor.suite.js";

const NOON_MS = Date.parse("2026-01-03T12:00:00.000Z");
const HOUR_MS = 3_600_000;
const ALICE = userId("alice");
const BOB = userId("bob");
const ONE = threadId("one");
const TWO = threadId("two");
const CONTEXT = { address: "session", target: "agent", handler: "system" } as const;

function spent(tokens: number, calls = 1, time_ms = 100): Spent {
  return { input: tokens, output: 1, calls, time_ms };
}

export function usageContract(name: string, harness: () => Promise<StoreHarness>): void {
  describe(`${name} keeps the contract of usage`, () => {
    let place: StoreHarness;
    let store: Store;
    let clock: ManualClock;

    beforeEach(async () => {
      clock = new ManualClock(NOON_MS);
      place = await harness();
      store = await open();
      await store.startThread(HOST, ALICE, ONE);
      await store.startThread(HOST, ALICE, TWO);
    });

    afterEach(async () => {
      expect((await audit(store)).problems).toEqual([]);
      await store.close();
      await place.remove();
    });

    function open(): Promise<Store> {
      return place.open({ clock, policy: DEFAULT_POLICY, editor: new PlainEditor() });
    }

    async function begin(thread_id = ONE, succeeds: BeginTurn["succeeds"] = null): Promise<Turn> {
      const begun = await store.beginTurn(HOST, {
        thread_id,
        turn_id: null,
        source: "user",
        content: "hello",
        point: "turn_start",
        limit: 30,
        compose: plainCompose,
        owner: "hosted",
        lease_ms: 60_000,
        succeeds,
      });
      if (begun === null) throw new Error("it did not begin");
      return begun.turn;
    }

    async function whole(thread_id: typeof ONE, used: Spent): Promise<void> {
      const { id } = await begin(thread_id);
      const ended = await store.endTurn(HOST, { turn_id: id, state: "completed", items: [], note: null, spent: used });
      if (isMiss(ended)) throw new Error(ended.message);
    }

    it("is the sum of what the entries of turns say, with what is told and without", async () => {
      const { id } = await begin();
      const response = { type: "chat_response", content: "well" } as const;
      await store.stepTurn(HOST, { turn_id: id, items: [response], collect: null, spent: spent(10) });
      // Nothing is said: it is recorded all the same.
      await store.stepTurn(HOST, { turn_id: id, items: [], collect: null, spent: spent(20) });
      await store.accept(HOST, acceptance({ thread_id: ONE }, { axes: CONTEXT }));
      const collect = { point: "after_tool", limit: 9, compose: plainCompose } as const;
      const answer = await store.stepTurn(HOST, { turn_id: id, items: [], collect, spent: spent(30) });
      expect(isMiss(answer) ? null : answer.carrier?.items).toHaveLength(1);
      const next = await begin(ONE, { turn_id: id, items: [], note: null, spent: spent(40) });
      await store.endTurn(HOST, { turn_id: next.id, state: "failed", items: [], note: null, spent: spent(50) });
      const all = { input: 150, output: 5, calls: 5, time_ms: 500 };
      expect(await store.usage(HOST, ONE)).toEqual({ thread: all, day: { ...all, day: 20456 } });
      expect(dateOf(20456)).toBe("2026-01-03");
    });

    it("is in what the journal says, which a step that says nothing of it leaves as it was", async () => {
      const { id } = await begin();
      const before = await store.lastSeq();
      await store.stepTurn(HOST, { turn_id: id, items: [], collect: null });
      expect(await store.lastSeq()).toBe(before);
      await store.stepTurn(HOST, { turn_id: id, items: [], collect: null, spent: spent(10) });
      const { entries } = await store.entries(HOST, before, 10);
      expect(entries).toMatchObject([{ type: "turn", turn_id: id, spent: spent(10) }]);
    });

    it("is a thread's own, and a day's of all threads of its user; nobody else's", async () => {
      await store.startThread(HOST, BOB, threadId("bobs"));
      await whole(ONE, spent(10));
      await whole(TWO, spent(20));
      await whole(threadId("bobs"), spent(40));
      expect((await store.usage(HOST, ONE)).thread.input).toBe(10);
      expect((await store.usage(userPrincipal(ALICE), TWO)).thread.input).toBe(20);
      expect((await store.usage(HOST, TWO)).day.input).toBe(30);
      expect((await store.usageToday(HOST, BOB)).input).toBe(40);
      expect(await store.usageToday(userPrincipal(ALICE), BOB)).toMatchObject(NOTHING);
      await expect(store.usage(userPrincipal(BOB), ONE)).rejects.toThrow("no thread");
    });

    it("of a day begins again at midnight (UTC), and a thread's goes on", async () => {
      await whole(ONE, spent(10));
      clock.advance(12 * HOUR_MS - 1);
      await whole(ONE, spent(20));
      expect((await store.usage(HOST, ONE)).day.input).toBe(30);
      clock.advance(1);
      expect((await store.usage(HOST, ONE)).day).toEqual({ ...NOTHING, day: 20457 });
      await whole(ONE, spent(40));
      const { thread, day } = await store.usage(HOST, ONE);
      expect([thread.input, day.input]).toEqual([70, 40]);
    });

    it("is not forgotten by a restart", async () => {
      await whole(ONE, spent(10));
      await store.close();
      store = await open();
      expect((await store.usage(HOST, ONE)).thread).toEqual(spent(10));
      expect((await store.usageToday(HOST, ALICE)).input).toBe(10);
    });

    it("of today is not forgotten when the journal is pruned; that of days long gone is", async () => {
      await whole(ONE, spent(10));
      clock.advance(30 * HOUR_MS);
      await whole(TWO, spent(20));
      await store.closeThread(HOST, ONE);
      await store.closeThread(HOST, TWO);
      clock.advance(1_000);
      const { entries } = await store.prune(0);
      expect(entries).toBeGreaterThan(0);
      expect((await store.usageToday(HOST, ALICE)).input).toBe(20);
      expect(await store.dayUsage(null, 10)).toHaveLength(1);
      expect(await store.threadUsage(null, 10)).toEqual([]);
    });
  });
}
