/**
 * What every store must show. Exported as a function: each store calls it with a way to open itself, and the same
 * sentences must hold for all of them. The numbers in brackets are the invariants of docs/SPEC.md.
 */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Axes } from "../domain/axes.js";
import { ConflictError, InvalidInputError, isMiss, type Miss, NotFoundError } from "../domain/errors.js";
import type { NewEvent } from "../domain/event.js";
import { type EventId, notificationId, subscriberId, threadId, tokenId, userId } from "../domain/ids.js";
import type { JournalEntry } from "../domain/journal.js";
import { DEFAULT_POLICY, type DeliveryPolicy } from "../domain/policy.js";
import { HOST, userPrincipal } from "../domain/principal.js";
import type { Command } from "../domain/reducer.js";
import { STATES } from "../domain/transitions.js";
import { ManualClock } from "../platform/manual_clock.js";
import { audit } from "./audit.js";
import type { Acceptance, Claim, Draft, Editor, Store, Stored, StoreFigures } from "./contract.js";
import { PlainEditor } from "./editor.suite.js";

export interface StoreHarness {
  /** Opens the store, empty at first; the same one again after `close`. */
  open(options: { clock: ManualClock; policy: DeliveryPolicy; editor: Editor }): Promise<Store>;
  /** Removes everything. */
  remove(): Promise<void>;
}

const START_MS = Date.UTC(2026, 0, 3, 15, 30);
const DAY_MS = 86_400_000;

const INBOX: Axes = { address: "user", target: "user", handler: "system" };
const FLOOR: Axes = { address: "session", target: "user", handler: "system" };
const NARRATE: Axes = { address: "session", target: "user", handler: "agent" };
const DECIDE: Axes = { address: "session", target: "agent", handler: "agent" };
const CONTEXT: Axes = { address: "session", target: "agent", handler: "system" };
const OWN_CONTEXT: Axes = { address: "user", target: "agent", handler: "system" };
const OWN_DECIDE: Axes = { address: "user", target: "agent", handler: "agent" };

const ALICE = userId("alice");
const BOB = userId("bob");
const ONE = threadId("one");
const asAlice = userPrincipal(ALICE);
const asBob = userPrincipal(BOB);

export function acceptance(event: Partial<NewEvent> = {}, ...drafts: Partial<Draft>[]): Acceptance {
  return {
    event: {
      producer_id: null,
      type: "tool.call.failure",
      source: "tools",
      severity: "error",
      timestamp: null,
      payload: { tool_name: "vault_search" },
      dedupe_key: null,
      user_id: ALICE,
      thread_id: null,
      subject: null,
      ...event,
    },
    drafts: drafts.map((draft) => ({
      subscriber_id: subscriberId("tool_failure"),
      filtered: false,
      severity: "error",
      priority: "normal",
      inject_at: "next",
      axes: INBOX,
      ttl_ms: null,
      content: "vault_search failed",
      data: null,
      directive: null,
      dedupe_key: event.dedupe_key ?? null,
      dedupe_window_ms: 5_000,
      batch: null,
      note: null,
      wake_ms: null,
      ...draft,
    })),
  };
}

/** What is kept of how much there is, and what is found by counting. */
export async function keptAndCounted(store: Store): Promise<[unknown, unknown]> {
  const sorted = ({ depth, oldest }: Pick<StoreFigures, "depth" | "oldest">) => ({
    depth: depth.map(({ state, channel, count }) => `${state} ${channel} ${count}`).sort(),
    oldest,
  });
  const look = async (from: Store) => ({
    all: sorted(await from.figures()),
    users: await Promise.all(
      [ALICE, BOB].map(async (user_id) => {
        const { depth, oldest, counts } = await from.standing(HOST, user_id);
        return { ...sorted({ depth, oldest }), counts };
      }),
    ),
  });
  return [await look(store), await store.snapshot(look)];
}

export function storeContract(name: string, harness: () => Promise<StoreHarness>): void {
  describe(`${name} keeps the contract`, () => {
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
      await store.figures();
    });

    afterEach(async () => {
      const [kept, counted] = await keptAndCounted(store);
      expect(kept).toEqual(counted);
      const report = await audit(store);
      expect(report.problems).toEqual([]);
      await store.close();
      await place.remove();
    });

    async function reopen(): Promise<void> {
      await store.close();
      store = await place.open({ clock, policy, editor });
    }

    async function put(event: Partial<NewEvent>, draft: Partial<Draft>): Promise<Stored> {
      const { matches } = await store.accept(HOST, acceptance(event, draft));
      return (matches[0] as { stored: Stored }).stored;
    }

    async function run(id: string, command: Command, principal = HOST): Promise<Stored | Miss> {
      return store.command(principal, { id: notificationId(id), command, operation: "ack" });
    }

    const ack = (one: Stored, revision = one.delivery.revision, principal = HOST) =>
      run(one.delivery.id, { column: "ack", revision, action: "rendered" }, principal);

    function claim(ids?: Stored[], options: { thread_id?: typeof ONE; lease_ms?: number } = {}): Promise<Claim> {
      return store.claim(HOST, {
        user_id: ALICE,
        ...(options.thread_id === undefined ? {} : { thread_id: options.thread_id }),
        ...(ids === undefined ? {} : { ids: ids.map((one) => one.delivery.id) }),
        limit: 10,
        owner: "turn",
        lease_ms: options.lease_ms ?? 60_000,
      });
    }

    const stateOf = async (one: Stored) => (await store.get(HOST, one.delivery.id))?.delivery.state;
    const missOf = (answer: Stored | Miss) => (isMiss(answer) ? answer.miss : undefined);

    describe("taking events in", () => {
      it("accepts, and says what each subscriber made of it (I6, I14)", async () => {
        const answer = await store.accept(
          HOST,
          acceptance({}, {}, { subscriber_id: subscriberId("other"), axes: OWN_CONTEXT, filtered: true }),
        );
        expect(answer.outcome).toBe("accepted");
        expect(
          answer.matches.map((match) => [match.subscriber_id, match.outcome, match.stored.delivery.state]),
        ).toEqual([
          ["tool_failure", "queued", "DISPATCHED"],
          ["other", "filtered", "SUPPRESSED"],
        ]);
        await reopen();
        const entry = await store.eventEntry(HOST, answer.event_id);
        expect(entry?.seq).toBe(answer.seq);
        for (const match of answer.matches)
          expect(await store.get(HOST, match.stored.delivery.id)).toEqual(match.stored);
      });

      it("keeps an event that nothing matched", async () => {
        const answer = await store.accept(HOST, acceptance());
        expect(answer).toMatchObject({ outcome: "unmatched", matches: [] });
        expect(await store.events(HOST, [answer.event_id])).toHaveLength(1);
      });

      it("is idempotent by user, source and the producer's id (I12)", async () => {
        const first = await store.accept(HOST, acceptance({ producer_id: "7" }, {}));
        await reopen();
        const again = await store.accept(HOST, acceptance({ producer_id: "7" }, {}));
        expect(again).toMatchObject({ event_id: first.event_id, seq: first.seq, outcome: "duplicate" });
        expect(again.matches.map((match) => match.stored.delivery.id)).toEqual(
          first.matches.map((match) => match.stored.delivery.id),
        );
        await expect(
          store.accept(HOST, acceptance({ producer_id: "7", payload: { other: true } }, {})),
        ).rejects.toThrow(ConflictError);
        for (const other of [{ user_id: BOB }, { source: "elsewhere" }, { producer_id: "8" }])
          expect((await store.accept(HOST, acceptance({ producer_id: "7", ...other }, {}))).outcome).toBe("accepted");
      });

      it("takes two of one id that come together as one", async () => {
        const both = await Promise.all([1, 2].map(() => store.accept(HOST, acceptance({ producer_id: "7" }, {}))));
        expect(both.map((answer) => answer.outcome)).toEqual(["accepted", "duplicate"]);
        expect(both[0]?.event_id).toBe(both[1]?.event_id);
      });

      it("gives seq in the order of commit, without a gap (I16)", async () => {
        const answers = await Promise.all(
          Array.from({ length: 200 }, (_, index) => store.accept(HOST, acceptance({ source: `s${index % 7}` }, {}))),
        );
        const seqs = answers.map((answer) => answer.seq).sort((one, other) => one - other);
        expect(seqs).toEqual(Array.from({ length: 200 }, (_, index) => index + 1));
      });

      it("takes many, refusing one without the others", async () => {
        await store.startThread(HOST, BOB, ONE);
        const outcomes = await store.acceptMany(HOST, [
          acceptance({}, {}),
          acceptance({ thread_id: ONE }, {}),
          acceptance({}, {}),
        ]);
        expect(outcomes.map((outcome) => ("error" in outcome ? "refused" : "accepted"))).toEqual([
          "accepted",
          "refused",
          "accepted",
        ]);
      });
    });

    describe("routing and acknowledgement", () => {
      it("dispatches to the system channels at once, and leaves the agent's pending", async () => {
        const event = { thread_id: ONE };
        for (const [axes, channel, state] of [
          [INBOX, "inbox", "DISPATCHED"],
          [FLOOR, "floor", "DISPATCHED"],
          [NARRATE, "agent", "PENDING"],
          [DECIDE, "agent", "PENDING"],
          [CONTEXT, "context", "PENDING"],
        ] as const)
          expect((await put(event, { axes })).delivery).toMatchObject({ channel, state });
        expect((await put({}, { axes: FLOOR })).delivery).toMatchObject({
          channel: "inbox",
          effective: { address: "user" },
        });
      });

      it("settles once: a second acknowledgement gets the same answer (I10)", async () => {
        const one = await put({}, {});
        const first = await ack(one);
        expect(first).toMatchObject({ delivery: { state: "DELIVERED", lease_epoch: 1, action: "rendered" } });
        const before = await store.lastSeq();
        expect(await ack(one)).toEqual(first);
        expect(await store.lastSeq()).toBe(before);
      });

      it("answers an acknowledgement on the agent's channel wrong_channel, of nothing not_found", async () => {
        expect(missOf(await ack(await put({}, { axes: OWN_CONTEXT })))).toBe("wrong_channel");
        expect(missOf(await run("no such id", { column: "ack", revision: 1, action: "rendered" }))).toBe("not_found");
      });

      it("settles one of many acknowledgements that come together", async () => {
        const one = await put({}, {});
        await Promise.all(Array.from({ length: 50 }, () => ack(one)));
        const story = (await store.story(HOST, one.delivery.id)) ?? [];
        expect(story).toHaveLength(2);
      });
    });

    describe("leases", () => {
      it("lets one of fifty claimers win (I1)", async () => {
        const one = await put({}, { axes: OWN_DECIDE });
        const claims = await Promise.all(Array.from({ length: 50 }, () => claim([one])));
        const winners = claims.filter((answer) => answer.claimed.length === 1);
        expect(winners).toHaveLength(1);
        expect(winners[0]?.claimed[0]?.delivery).toMatchObject({ state: "LOCKED", lease_epoch: 1 });
        const losers = claims.filter((answer) => answer.claimed.length === 0);
        expect(losers.every((answer) => answer.misses[0]?.miss === "stale_lease")).toBe(true);
      });

      it("claims by priority and then age, of the thread and of the user", async () => {
        const low = await put({ thread_id: ONE }, { axes: CONTEXT, priority: "low" });
        const high = await put({}, { axes: OWN_CONTEXT, priority: "high" });
        const elsewhere = await put({ thread_id: threadId("two") }, { axes: CONTEXT });
        const normal = await put({ thread_id: ONE }, { axes: CONTEXT });
        const { claimed } = await claim(undefined, { thread_id: ONE });
        expect(claimed.map((one) => one.delivery.id)).toEqual([high, normal, low].map((one) => one.delivery.id));
        expect(claimed.every((one) => one.delivery.thread_id === ONE)).toBe(true);
        expect(await stateOf(elsewhere)).toBe("PENDING");
      });

      it("finds the most urgent among thousands that wait", async () => {
        await Promise.all(Array.from({ length: 1_500 }, () => put({}, { axes: OWN_CONTEXT, priority: "low" })));
        const urgent = await put({}, { axes: OWN_CONTEXT, priority: "critical" });
        const { claimed } = await claim();
        expect(claimed[0]?.delivery.id).toBe(urgent.delivery.id);
        expect(claimed).toHaveLength(10);
      });

      it("tells nobody anything in a closed thread", async () => {
        await store.startThread(HOST, ALICE, ONE);
        await store.closeThread(HOST, ONE);
        await put({}, { axes: OWN_CONTEXT });
        await expect(claim(undefined, { thread_id: ONE })).rejects.toThrow(ConflictError);
      });

      it("rests a minute at most, however often it was released", async () => {
        const one = await put({}, { axes: OWN_CONTEXT });
        for (let attempt = 0; attempt < 40; attempt += 1) {
          await claim([one]);
          await run(one.delivery.id, { column: "release", epoch: 2 * attempt + 1 });
        }
        const { delivery } = (await store.get(HOST, one.delivery.id)) as Stored;
        expect(delivery).toMatchObject({ state: "PENDING", attempts: 40, not_before: START_MS + 60_000 });
      });

      it("settles under its epoch and no other (I3)", async () => {
        const one = await put({}, { axes: OWN_DECIDE });
        await claim([one]);
        for (const epoch of [0, 2])
          expect(missOf(await run(one.delivery.id, { column: "settle", epoch }))).toBe("stale_lease");
        expect(await run(one.delivery.id, { column: "settle", epoch: 1 })).toMatchObject({
          delivery: { state: "DELIVERED", lease: null },
        });
        expect(missOf(await run(one.delivery.id, { column: "settle", epoch: 1 }))).toBe("terminal");
      });

      it("tells a holder whose lease ran out stale_lease, before and after the takeover (I3)", async () => {
        const one = await put({}, { axes: OWN_DECIDE });
        await claim([one], { lease_ms: 1_000 });
        clock.advance(1_000);
        for (const column of ["settle", "release"] as const)
          expect(missOf(await run(one.delivery.id, { column, epoch: 1 }))).toBe("stale_lease");
        expect(missOf(await run(one.delivery.id, { column: "escalate", reason: "promoted", epoch: 1 }))).toBe(
          "stale_lease",
        );
        expect(await stateOf(one)).toBe("LOCKED");
        await store.sweep(10);
        expect(await store.get(HOST, one.delivery.id)).toMatchObject({
          delivery: { state: "ESCALATED", channel: "inbox", lease_epoch: 2, reason: "lease_expired" },
        });
        for (const column of ["settle", "release"] as const)
          expect(missOf(await run(one.delivery.id, { column, epoch: 1 }))).toBe("stale_lease");
      });

      it("renews a lease that still runs, and no other", async () => {
        const one = await put({}, { axes: OWN_DECIDE });
        const { lease } = await claim([one], { lease_ms: 1_000 });
        if (lease === null) throw new Error("nothing was claimed");
        clock.advance(900);
        const before = await store.lastSeq();
        expect(await store.renew(HOST, lease.id, 1_000)).toMatchObject({ expires_at: START_MS + 1_900 });
        expect(await store.lastSeq()).toBe(before);
        clock.advance(900);
        await store.sweep(10);
        expect(await stateOf(one)).toBe("LOCKED");
        expect(isMiss(await store.renew(asBob, lease.id, 1_000))).toBe(true);
        clock.advance(100);
        expect(await store.renew(HOST, lease.id, 1_000)).toMatchObject({ miss: "stale_lease" });
      });

      it("releases with a pause, and after three attempts takes an agent item to the user", async () => {
        const agent = await put({}, { axes: OWN_DECIDE, ttl_ms: DAY_MS });
        const context = await put({}, { axes: OWN_CONTEXT });
        for (let attempt = 1; attempt <= 3; attempt += 1) {
          const { claimed } = await claim();
          expect(claimed).toHaveLength(2);
          for (const one of claimed) await run(one.delivery.id, { column: "release", epoch: one.delivery.lease_epoch });
          expect((await claim()).claimed).toHaveLength(0);
          clock.advance(60_000);
        }
        expect(await store.get(HOST, agent.delivery.id)).toMatchObject({
          delivery: { state: "ESCALATED", reason: "attempts", attempts: 3, lease_epoch: 7 },
        });
        expect(await store.get(HOST, context.delivery.id)).toMatchObject({
          delivery: { state: "PENDING", attempts: 3 },
        });
        expect((await claim()).claimed.map((one) => one.delivery.id)).toEqual([context.delivery.id]);
      });

      it("promotes what its holder hands to the user, naming why", async () => {
        const one = await put({ thread_id: ONE }, { axes: DECIDE });
        await claim([one], { thread_id: ONE });
        const promoted = await run(one.delivery.id, {
          column: "escalate",
          reason: "promoted",
          epoch: 1,
          note: "tool send_mail",
        });
        expect(promoted).toMatchObject({ delivery: { state: "ESCALATED", channel: "floor", lease_epoch: 2 } });
        expect(missOf(await run(one.delivery.id, { column: "settle", epoch: 1 }))).toBe("stale_lease");
        expect(await ack(promoted as Stored)).toMatchObject({ delivery: { state: "DELIVERED" } });
      });
    });

    describe("the watchdog", () => {
      it("takes to the user what no agent took, and buries what nobody acknowledged (I8)", async () => {
        const one = await put({ thread_id: ONE }, { axes: NARRATE });
        clock.advance(policy.agentTtlMs - 1);
        expect(await store.sweep(10)).toBe(0);
        clock.advance(1);
        expect(await store.sweep(10)).toBe(1);
        expect(await store.get(HOST, one.delivery.id)).toMatchObject({
          delivery: { state: "ESCALATED", channel: "floor", reason: "deadline", lease_epoch: 1 },
        });
        clock.advance(policy.systemTtlMs);
        await store.sweep(10);
        expect(await store.get(HOST, one.delivery.id)).toMatchObject({
          delivery: { state: "FAILED", reason: "unacknowledged" },
        });
      });

      it("never escalates context: it waits, is released when its holder dies, and expires", async () => {
        const one = await put({}, { axes: OWN_CONTEXT });
        await claim([one], { lease_ms: 1_000 });
        clock.advance(2_000);
        await store.sweep(10);
        expect(await store.get(HOST, one.delivery.id)).toMatchObject({
          delivery: { state: "PENDING", attempts: 1, lease_epoch: 2 },
        });
        clock.advance(policy.contextTtlMs);
        await store.sweep(10);
        expect(await store.get(HOST, one.delivery.id)).toMatchObject({
          delivery: { state: "SUPPRESSED", reason: "expired" },
        });
      });

      it("acts on hundreds of overdue ones in slices", async () => {
        await Promise.all(Array.from({ length: 300 }, () => put({}, { axes: OWN_DECIDE, ttl_ms: 1_000 })));
        clock.advance(1_000);
        let acted = 0;
        for (let some = await store.sweep(64); some > 0; some = await store.sweep(64)) {
          expect(some).toBeLessThanOrEqual(64);
          acted += some;
        }
        expect(acted).toBe(300);
      });

      it("acts at the millisecond, not at the second, and after a restart too", async () => {
        const first = await put({}, { ttl_ms: 1_200 });
        const second = await put({}, { ttl_ms: 1_700 });
        clock.advance(1_199);
        expect(await store.sweep(10)).toBe(0);
        clock.advance(1);
        expect(await store.sweep(10)).toBe(1);
        expect([await stateOf(first), await stateOf(second)]).toEqual(["FAILED", "DISPATCHED"]);
        await reopen();
        clock.advance(499);
        expect(await store.sweep(10)).toBe(0);
        clock.advance(1);
        expect(await store.sweep(10)).toBe(1);
        expect(await stateOf(second)).toBe("FAILED");
      });

      it("is not held up by hundreds that were settled in time", async () => {
        for (let round = 0; round < 3; round += 1) {
          clock.advance(500);
          const some = await Promise.all(Array.from({ length: 500 }, () => put({}, { ttl_ms: 5_000 })));
          await Promise.all(some.map((one) => ack(one)));
        }
        const left = await put({}, { ttl_ms: 5_000 });
        clock.advance(4_999);
        expect(await store.sweep(10)).toBe(0);
        clock.advance(1);
        expect(await store.sweep(10)).toBe(1);
        expect(await stateOf(left)).toBe("FAILED");
        expect(await store.sweep(10)).toBe(0);
      });

      it("acts on what its holder lets go after its deadline", async () => {
        const held = await put({}, { axes: OWN_DECIDE, ttl_ms: 1_000 });
        const beside = await put({}, { axes: OWN_DECIDE, ttl_ms: 1_000 });
        await claim([held]);
        clock.advance(5_000);
        expect(await store.sweep(10)).toBe(1);
        expect([await stateOf(held), await stateOf(beside)]).toEqual(["LOCKED", "ESCALATED"]);
        await run(held.delivery.id, { column: "release", epoch: 1 });
        expect(await stateOf(held)).toBe("PENDING");
        expect(await store.sweep(10)).toBe(1);
        expect(await stateOf(held)).toBe("ESCALATED");
      });

      it("gives every lease a moment after time jumped ahead (I20)", async () => {
        const one = await put({}, { axes: OWN_DECIDE, ttl_ms: 30 * DAY_MS });
        const { lease } = await claim([one]);
        if (lease === null) throw new Error("nothing was claimed");
        clock.jump(DAY_MS);
        expect(await run(one.delivery.id, { column: "settle", epoch: 1 })).toMatchObject({
          delivery: { state: "DELIVERED" },
        });
      });

      it("goes on when the wall clock jumps back: time never decreases (I20)", async () => {
        const one = await put({}, { axes: OWN_DECIDE, ttl_ms: 1_000 });
        clock.jump(-DAY_MS);
        clock.advance(1_000);
        await store.sweep(10);
        expect(await stateOf(one)).toBe("ESCALATED");
        await reopen();
        await put({}, {});
        const { entries } = await store.entries(HOST, 0, 100);
        const times = entries.map((entry) => entry.at);
        expect(times).toEqual([...times].sort((first, second) => first - second));
      });
    });

    describe("dedup", () => {
      const key = { dedupe_key: "vault_search" };
      const again = (content: string, event: Partial<NewEvent> = {}) => put({ ...key, ...event }, { content });

      it("adds to what is pending or shown; only a new text is a new revision (I13)", async () => {
        const one = await again("timeout");
        expect(await again("timeout")).toMatchObject({ delivery: { id: one.delivery.id, count: 2, revision: 1 } });
        const third = await again("permission denied");
        expect(third).toMatchObject({
          notification: { content: "permission denied" },
          delivery: { id: one.delivery.id, count: 3, revision: 2 },
        });
        expect(third.event_ids).toHaveLength(3);
        expect(missOf(await ack(one, 1))).toBe("stale_revision");
        expect(await ack(third)).toMatchObject({ delivery: { state: "DELIVERED" } });
      });

      it("counts in the window after delivery, and then begins anew; a merge extends nothing", async () => {
        const one = await again("timeout");
        await ack(one);
        clock.advance(4_999);
        expect(await again("other words")).toMatchObject({
          notification: { content: "timeout" },
          delivery: { id: one.delivery.id, state: "DELIVERED", count: 2, revision: 1 },
        });
        clock.advance(1);
        const fresh = await again("timeout");
        expect(fresh.delivery.id).not.toBe(one.delivery.id);
      });

      it("does not touch what an agent holds: a new one, linked", async () => {
        const one = await put(key, { axes: OWN_DECIDE });
        await claim([one]);
        const other = await put(key, { axes: OWN_DECIDE });
        expect(other).toMatchObject({ notification: { linked_to: one.delivery.id }, delivery: { count: 1 } });
        const third = await put(key, { axes: OWN_DECIDE });
        expect(third.delivery).toMatchObject({ id: other.delivery.id, count: 2 });
      });

      it("is by user, thread and subscriber, and remembered across a restart", async () => {
        const one = await again("timeout");
        await reopen();
        expect((await again("timeout")).delivery).toMatchObject({ id: one.delivery.id, count: 2 });
        const others = [
          await again("timeout", { user_id: BOB }),
          await again("timeout", { thread_id: ONE }),
          await put(key, { subscriber_id: subscriberId("other") }),
          await again("timeout", { dedupe_key: "other" }),
        ];
        expect(new Set([one, ...others].map((stored) => stored.delivery.id)).size).toBe(5);
        expect(others.every((stored) => stored.delivery.count === 1)).toBe(true);
      });

      it("begins anew after a dead letter and after a suppressed one", async () => {
        const dead = await put(key, { ttl_ms: 10 });
        clock.advance(10);
        await store.sweep(10);
        expect(await stateOf(dead)).toBe("FAILED");
        const fresh = await put(key, {});
        expect(fresh.delivery).toMatchObject({ count: 1, state: "DISPATCHED" });
        expect(fresh.delivery.id).not.toBe(dead.delivery.id);
      });

      it("conserves: every event is in exactly one count (I13)", async () => {
        await Promise.all(
          Array.from({ length: 120 }, (_, index) => again(`text ${index % 3}`, { source: `s${index % 5}` })),
        );
        const { stored } = await store.list(HOST, { limit: 1_000 });
        expect(stored.reduce((sum, one) => sum + one.delivery.count, 0)).toBe(120);
      });
    });

    describe("threads", () => {
      it("belong to one user: an event cannot name another's (I18)", async () => {
        await put({ thread_id: ONE }, {});
        await expect(put({ thread_id: ONE, user_id: BOB }, {})).rejects.toThrow(NotFoundError);
        await expect(store.accept(asBob, acceptance({ thread_id: ONE, user_id: BOB }, {}))).rejects.toThrow(
          NotFoundError,
        );
        const unknown = threadId("unknown");
        await expect(store.accept(asBob, acceptance({ thread_id: unknown, user_id: BOB }, {}))).rejects.toThrow(
          NotFoundError,
        );
        await expect(store.startThread(HOST, BOB, ONE)).rejects.toThrow(NotFoundError);
        for (const id of [ONE, unknown]) {
          await expect(store.startThread(asBob, BOB, id)).rejects.toThrow(NotFoundError);
          expect(await store.list(asBob, { thread_id: id, limit: 1 })).toMatchObject({ stored: [], next: null });
        }
        await expect(store.closeThread(asBob, ONE)).rejects.toThrow(NotFoundError);
      });

      it("when closed, move floor items to the inbox, escalate must-narrate, end the rest", async () => {
        const event = { thread_id: ONE };
        const floor = await put(event, { axes: FLOOR });
        const narrate = await put(event, { axes: NARRATE });
        const held = await put(event, { axes: DECIDE });
        await claim([held], { thread_id: ONE });
        const decide = await put(event, { axes: DECIDE });
        const context = await put(event, { axes: CONTEXT });
        const own = await put(event, { axes: OWN_DECIDE });
        expect(await store.closeThread(HOST, ONE)).toMatchObject({ state: "closed" });
        const now = async (one: Stored) => {
          const { state, channel, reason } = (await store.get(HOST, one.delivery.id))?.delivery ?? {};
          return [state, channel, reason];
        };
        expect(await now(floor)).toEqual(["DISPATCHED", "inbox", null]);
        expect(await now(narrate)).toEqual(["ESCALATED", "inbox", "thread_closed"]);
        for (const one of [held, decide]) expect(await now(one)).toEqual(["SUPPRESSED", "agent", "expired"]);
        expect(await now(context)).toEqual(["SUPPRESSED", "context", "expired"]);
        expect(await now(own)).toEqual(["PENDING", "agent", null]);
        expect(missOf(await run(held.delivery.id, { column: "settle", epoch: 1 }))).toBe("terminal");
        const late = await put(event, { axes: FLOOR });
        expect(late.delivery).toMatchObject({ state: "DISPATCHED", channel: "inbox" });
        expect((await put(event, { axes: CONTEXT })).delivery.state).toBe("SUPPRESSED");
        expect((await put(event, { axes: NARRATE })).delivery).toMatchObject({ state: "ESCALATED", channel: "inbox" });
        await expect(store.startThread(HOST, ALICE, ONE)).rejects.toThrow(ConflictError);
      });

      it("with hundreds of items close in slices", async () => {
        await Promise.all(Array.from({ length: 200 }, () => put({ thread_id: ONE }, { axes: CONTEXT })));
        await store.closeThread(HOST, ONE);
        const { stored } = await store.list(HOST, { thread_id: ONE, limit: 1_000 });
        expect(stored).toHaveLength(200);
        expect(stored.every((one) => one.delivery.state === "SUPPRESSED")).toBe(true);
      });
    });

    describe("observation", () => {
      it("withdraws what is pending about the subject, and what is still to come of that generation", async () => {
        const about = (subject: string, axes = CONTEXT) => put({ thread_id: ONE, subject }, { axes });
        const first = await about("h_3#gen-1");
        const second = await about("h_3#gen-2");
        const other = await about("h_4#gen-1");
        const shown = await about("h_3#gen-1", FLOOR);
        const withdrawn = await store.observe(HOST, ONE, "h_3#gen-1");
        expect(withdrawn.map((one) => one.delivery.id)).toEqual([first.delivery.id]);
        expect(withdrawn[0]?.delivery).toMatchObject({ state: "SUPPRESSED", reason: "observed" });
        for (const one of [second, other]) expect(await stateOf(one)).toBe("PENDING");
        expect(await stateOf(shown)).toBe("DISPATCHED");
        expect((await about("h_3#gen-1")).delivery).toMatchObject({ state: "SUPPRESSED", reason: "observed" });
        expect((await about("h_3#gen-1", FLOOR)).delivery.state).toBe("DISPATCHED");
        expect((await about("h_3#gen-3")).delivery.state).toBe("PENDING");
        await expect(store.observe(asBob, ONE, "h_3#gen-3")).rejects.toThrow(NotFoundError);
      });

      it("takes a number in a name for what it is: a part of the name", async () => {
        const seven = await put({ thread_id: ONE, subject: "acme/api#7" }, { axes: CONTEXT });
        expect(await store.observe(HOST, ONE, "acme/api#41")).toEqual([]);
        expect(await stateOf(seven)).toBe("PENDING");
      });

      it("withdraws what was held then, when it is let go", async () => {
        const one = await put({ thread_id: ONE, subject: "h_3" }, { axes: CONTEXT });
        await claim([one], { thread_id: ONE });
        await store.observe(HOST, ONE, "h_3");
        expect(await stateOf(one)).toBe("LOCKED");
        expect(await run(one.delivery.id, { column: "release", epoch: 1 })).toMatchObject({
          delivery: { state: "SUPPRESSED", reason: "observed" },
        });
      });
    });

    describe("dead letters", () => {
      it("are listed, and redriven once as a new one that names them", async () => {
        const dead = await put({}, { ttl_ms: 10 });
        clock.advance(10);
        await store.sweep(10);
        expect((await store.list(HOST, { state: "FAILED", limit: 10 })).stored).toHaveLength(1);
        const fresh = await store.redrive(HOST, dead.delivery.id);
        expect(fresh).toMatchObject({
          notification: { redrive_of: dead.delivery.id, content: "vault_search failed" },
          delivery: { state: "DISPATCHED", count: 1 },
        });
        expect(await stateOf(dead)).toBe("FAILED");
        expect(await store.redrive(HOST, dead.delivery.id)).toMatchObject({ miss: "terminal" });
        expect(await store.redrivenAs(HOST, dead.delivery.id)).toBe((fresh as Stored).delivery.id);
        expect(await store.redrive(HOST, (fresh as Stored).delivery.id)).toMatchObject({
          miss: "wrong_channel",
          message: expect.stringContaining("is DISPATCHED on the channel inbox"),
        });
        await ack(fresh as Stored);
        expect(await store.redrive(HOST, (fresh as Stored).delivery.id)).toMatchObject({
          miss: "terminal",
          message: expect.stringContaining("is DELIVERED"),
        });
        expect(await store.redrive(asBob, dead.delivery.id)).toMatchObject({ miss: "not_found" });
      });
    });

    describe("reading", () => {
      it("lists newest first, in pages that neither miss nor repeat", async () => {
        const all: string[] = [];
        for (let index = 0; index < 30; index += 1)
          all.unshift((await put({ user_id: index % 3 === 0 ? BOB : ALICE }, {})).delivery.id);
        const seen: string[] = [];
        for (let after: string | null = null; ; ) {
          const page: Awaited<ReturnType<Store["list"]>> = await store.list(HOST, {
            limit: 7,
            ...(after === null ? {} : { after }),
          });
          seen.push(...page.stored.map((one) => one.delivery.id));
          if (page.next === null) break;
          after = page.next;
        }
        expect(seen).toEqual(all);
        const alices = await store.list(HOST, { user_id: ALICE, limit: 100 });
        expect(alices.stored).toHaveLength(20);
        await expect(store.list(HOST, { limit: 7, after: "x" })).rejects.toThrow(InvalidInputError);
      });

      it("filters by thread, channel and each state, alone and together", async () => {
        const events = [{}, { thread_id: ONE }, { user_id: BOB }];
        for (const event of events)
          for (const axes of [INBOX, FLOOR, DECIDE, CONTEXT]) {
            const one = await put(event, { axes });
            const two = await put(event, { axes });
            if (one.delivery.channel === "inbox" || one.delivery.channel === "floor") await ack(one);
            else if (event.user_id === undefined) await claim([two]);
          }
        const everything = (await store.list(HOST, { limit: 1_000 })).stored;
        for (const user_id of [undefined, ALICE])
          for (const thread_id of [undefined, ONE])
            for (const channel of [undefined, "inbox", "floor", "agent", "context"] as const)
              for (const state of [undefined, ...STATES]) {
                const filter = { user_id, thread_id, channel, state };
                const given = Object.fromEntries(Object.entries(filter).filter(([, value]) => value !== undefined));
                const { stored } = await store.list(HOST, { ...given, limit: 1_000 });
                const expected = everything.filter(({ delivery }) =>
                  Object.entries(given).every(([name, value]) => delivery[name as keyof typeof delivery] === value),
                );
                expect(stored.map((one) => one.delivery.id)).toEqual(expected.map((one) => one.delivery.id));
              }
      });

      it("filters by several channels, states and severities at once, in pages that neither miss nor repeat", async () => {
        const severities = ["info", "warning", "error"] as const;
        const isAmong = (words: string | readonly string[] | undefined, word: string) =>
          words === undefined || [words].flat().includes(word);
        for (const [index, axes] of [INBOX, FLOOR, OWN_DECIDE, OWN_CONTEXT, INBOX, INBOX].entries())
          for (const severity of severities) {
            const one = await put({ thread_id: axes === FLOOR ? ONE : null }, { axes, severity });
            if (index % 2 === 1 && (axes === INBOX || axes === FLOOR)) await ack(one);
          }
        const everything = (await store.list(HOST, { limit: 1_000 })).stored;
        for (const user_id of [undefined, ALICE])
          for (const channel of [undefined, ["inbox", "floor"], ["agent", "context"]] as const)
            for (const state of [undefined, ["DISPATCHED", "DELIVERED"], ["PENDING", "DISPATCHED"]] as const)
              for (const severity of [undefined, "error", ["info", "error"]] as const) {
                const wanted = everything.filter(
                  ({ delivery, notification }) =>
                    isAmong(channel, delivery.channel) &&
                    isAmong(state, delivery.state) &&
                    isAmong(severity, notification.severity),
                );
                const filter = {
                  ...(user_id === undefined ? {} : { user_id }),
                  ...(channel === undefined ? {} : { channel }),
                  ...(state === undefined ? {} : { state }),
                  ...(severity === undefined ? {} : { severity }),
                };
                const found: string[] = [];
                for (let after: string | null = ""; after !== null; ) {
                  const cursor = after === "" ? {} : { after };
                  const page: Awaited<ReturnType<Store["list"]>> = await store.list(HOST, {
                    ...filter,
                    limit: 4,
                    ...cursor,
                  });
                  found.push(...page.stored.map((one) => one.delivery.id));
                  after = page.next;
                }
                expect(found).toEqual(wanted.map((one) => one.delivery.id));
              }
      });

      it("tells the unread, and counts them up to a cap", async () => {
        const one = await put({}, {});
        const two = await put({}, {});
        await put({}, { axes: OWN_CONTEXT });
        await ack(one);
        const unread = async () =>
          (await store.list(HOST, { user_id: ALICE, unread: true, limit: 10 })).stored.map(
            (stored) => stored.delivery.id,
          );
        expect(await unread()).toEqual([two.delivery.id, one.delivery.id]);
        expect(await store.counts(HOST, ALICE)).toMatchObject({ unacknowledged: 1, unread: 2 });
        for (const stored of [one, two])
          await run(stored.delivery.id, { column: "ack", revision: 1, action: "dismissed" });
        expect(await unread()).toEqual([]);
        expect(await store.counts(HOST, ALICE)).toMatchObject({ unacknowledged: 0, unread: 0 });
        await Promise.all(Array.from({ length: 1_100 }, () => put({}, {})));
        expect(await store.counts(HOST, ALICE)).toMatchObject({ unacknowledged: 1_000, unread: 1_000, cap: 1_000 });
      });

      it("finds the few that are live or unread among thousands that are not", async () => {
        const all = await Promise.all(
          Array.from({ length: 2_100 }, (_, index) =>
            put({ user_id: index % 3 === 0 ? BOB : ALICE }, { axes: index % 7 === 0 ? OWN_DECIDE : INBOX }),
          ),
        );
        const kept = new Set([1, 1_024, 1_025, 2_050, 2_099]);
        const rendered = new Set([1_025, 2_050]);
        await Promise.all(
          all.map((one, index) => {
            if (one.delivery.channel !== "inbox" || (kept.has(index) && !rendered.has(index))) return undefined;
            const action = rendered.has(index) ? "rendered" : "dismissed";
            return run(one.delivery.id, { column: "ack", revision: 1, action });
          }),
        );
        const ids = (indexes: number[]) => indexes.map((index) => all[index]?.delivery.id);
        const found = async (filter: { state?: "DISPATCHED"; unread?: true }, limit: number) => {
          const pages: string[] = [];
          for (let after: string | null = ""; after !== null; ) {
            const cursor = after === "" ? {} : { after };
            const page = await store.list(HOST, { user_id: ALICE, channel: "inbox", ...filter, limit, ...cursor });
            pages.push(...page.stored.map((one) => one.delivery.id));
            after = page.next;
          }
          return pages;
        };
        for (const limit of [1, 100]) {
          expect(await found({ unread: true }, limit)).toEqual(ids([2_099, 2_050, 1_025, 1_024, 1]));
          expect(await found({ state: "DISPATCHED" }, limit)).toEqual(ids([2_099, 1_024, 1]));
        }
        expect(await store.counts(HOST, ALICE)).toMatchObject({ unacknowledged: 3, unread: 5 });
        await reopen();
        for (const one of [1_025, 2_050, 2_099])
          await run(ids([one])[0] as string, { column: "ack", revision: 1, action: "clicked" });
        expect(await found({ unread: true }, 100)).toEqual(ids([1_024, 1]));
        expect(await store.counts(HOST, ALICE)).toMatchObject({ unacknowledged: 2, unread: 2 });
      });

      it("tells the whole story of a notification, oldest first", async () => {
        const one = await put({ dedupe_key: "k" }, { axes: OWN_DECIDE });
        await put({ dedupe_key: "k" }, { axes: OWN_DECIDE });
        await claim([one]);
        clock.advance(60_000);
        await store.sweep(10);
        await ack((await store.get(HOST, one.delivery.id)) as Stored);
        const story = (await store.story(HOST, one.delivery.id)) ?? [];
        const commands = story.flatMap((entry: JournalEntry) => entry.changes.map((change) => change.command));
        expect(commands).toEqual(["create", "merge", "collect", "escalate", "ack"]);
      });

      it("gives the journal in pages, to each principal its own and nothing of another's (I16, I18)", async () => {
        for (let index = 0; index < 40; index += 1) await put({ user_id: index % 4 === 0 ? BOB : ALICE }, {});
        for (const [principal, count] of [
          [HOST, 40],
          [asAlice, 30],
          [asBob, 10],
          [userPrincipal(userId("carol")), 0],
        ] as const) {
          const seen: JournalEntry[] = [];
          for (let after = 0; ; ) {
            const page = await store.entries(principal, after, 7);
            seen.push(...page.entries);
            after = page.after;
            if (page.end) break;
          }
          expect(seen).toHaveLength(count);
          expect(seen.map((entry) => entry.seq)).toEqual(
            [...new Set(seen.map((entry) => entry.seq))].sort((a, b) => a - b),
          );
          if (principal.kind === "user") expect(seen.every((entry) => entry.user_id === principal.user_id)).toBe(true);
        }
      });

      it("tells of each commit after it, in order", async () => {
        const seen: number[] = [];
        const stop = store.onCommit((lastSeq) => seen.push(lastSeq));
        const first = await store.accept(HOST, acceptance({}, {}));
        expect(seen.at(-1)).toBe(first.seq);
        const second = await store.accept(HOST, acceptance({}, {}));
        expect(seen.at(-1)).toBe(second.seq);
        stop();
        await store.accept(HOST, acceptance({}, {}));
        expect(seen.at(-1)).toBe(second.seq);
      });
    });

    describe("isolation (I18)", () => {
      it("answers another user's id exactly as one that does not exist", async () => {
        const one = await put({}, {});
        const held = await put({}, { axes: OWN_DECIDE });
        const { lease } = await claim([held]);
        const entry = (await store.story(HOST, one.delivery.id))?.[0];
        const event = entry?.type === "event" ? entry.event.id : ("" as EventId);
        const nothing = notificationId("0199b4c0-0000-7000-8000-0000000fffff");
        const ofBob = async (id: typeof nothing) => [
          await store.get(asBob, id),
          await store.story(asBob, id),
          await store.redrivenAs(asBob, id),
          missOf(await run(id, { column: "ack", revision: 1, action: "rendered" }, asBob)),
          missOf(await run(id, { column: "settle", epoch: 1 }, asBob)),
          missOf(await store.redrive(asBob, id)),
          (await store.claim(asBob, { user_id: BOB, ids: [id], limit: 1, owner: "x", lease_ms: 1 })).misses.map(
            (miss) => miss.miss,
          ),
        ];
        for (const id of [one.delivery.id, held.delivery.id]) expect(await ofBob(id)).toEqual(await ofBob(nothing));
        expect(await store.eventEntry(asBob, event)).toBeUndefined();
        expect(await store.events(asBob, [event])).toEqual([]);
        expect(isMiss(await store.renew(asBob, lease?.id ?? ("" as never), 1_000))).toBe(true);
        for (const filter of [{}, { user_id: ALICE }, { state: "DISPATCHED" }, { channel: "inbox" }] as const)
          expect((await store.list(asBob, { ...filter, limit: 10 })).stored).toEqual([]);
        expect(await store.counts(asBob, ALICE)).toMatchObject({ unacknowledged: 0, unread: 0 });
        await expect(store.accept(asBob, acceptance({ user_id: ALICE }, {}))).rejects.toThrow(InvalidInputError);
        await expect(store.claim(asBob, { user_id: ALICE, limit: 1, owner: "x", lease_ms: 1 })).rejects.toThrow(
          InvalidInputError,
        );
      });
    });

    describe("tokens", () => {
      const wanted = { name: "ci", scopes: ["ingest", "read"], ttl_ms: null } as const;

      it("are found by their digest, and survive; making one is journaled without it", async () => {
        const token = await store.createToken(HOST, { ...wanted, user_id: ALICE, digest: "digest-1" });
        expect(token).toMatchObject({
          ...{ user_id: ALICE, name: "ci", scopes: ["ingest", "read"] },
          expires_at: null,
        });
        await reopen();
        expect(await store.tokenByDigest("digest-1")).toEqual(token);
        expect(await store.tokenByDigest("digest-2")).toBeUndefined();
        const { entries } = await store.entries(HOST, 0, 10);
        expect(entries).toMatchObject([
          { type: "token", action: "created", token_id: token.id, scopes: token.scopes, user_id: ALICE, changes: [] },
        ]);
        expect(JSON.stringify(entries)).not.toContain("digest-1");
      });

      it("are revoked once, and stay so", async () => {
        const { id } = await store.createToken(HOST, { ...wanted, user_id: ALICE, digest: "digest-1" });
        clock.advance(5);
        const revoked = await store.revokeToken(HOST, id);
        expect(revoked).toMatchObject({ id, revoked_at: START_MS + 5 });
        clock.advance(5);
        expect(await store.revokeToken(HOST, id)).toEqual(revoked);
        await reopen();
        expect(await store.tokenByDigest("digest-1")).toEqual(revoked);
        expect(await store.revokeToken(HOST, tokenId("unknown"))).toBeUndefined();
        expect((await store.entries(HOST, 0, 10)).entries).toHaveLength(2);
      });

      it("are their user's alone, and listed oldest first (I18)", async () => {
        const made = [];
        for (const [index, user_id] of [ALICE, BOB, ALICE].entries()) {
          made.push(await store.createToken(HOST, { ...wanted, user_id, digest: `digest-${index}` }));
          clock.advance(1);
        }
        const [one, bobs, two] = made;
        expect(await store.tokens(HOST, null, 10)).toEqual([one, bobs, two]);
        expect(await store.tokens(HOST, one?.id ?? null, 1)).toEqual([bobs]);
        expect(await store.tokens(asAlice, null, 10)).toEqual([one, two]);
        expect(await store.revokeToken(asAlice, bobs?.id ?? tokenId(""))).toBeUndefined();
        await expect(store.createToken(asBob, { ...wanted, user_id: ALICE, digest: "digest-9" })).rejects.toThrow(
          NotFoundError,
        );
      });

      it("know when they expire, by the store's clock", async () => {
        const token = await store.createToken(HOST, { ...wanted, user_id: ALICE, digest: "d", ttl_ms: 1_000 });
        expect(token.expires_at).toBe(store.now() + 1_000);
      });
    });

    describe("settings of a user", () => {
      const settings = { user_id: ALICE, disabled_subscribers: [subscriberId("rate_limit")] };

      it("are what was said last, survive, and are journaled", async () => {
        expect(await store.settings(asAlice, ALICE)).toEqual({ user_id: ALICE, disabled_subscribers: [] });
        expect(await store.updateSettings(asAlice, settings)).toEqual(settings);
        await store.updateSettings(asAlice, settings);
        await reopen();
        expect(await store.settings(asAlice, ALICE)).toEqual(settings);
        expect((await store.entries(HOST, 0, 10)).entries, "saying the same again is no news").toMatchObject([
          { type: "settings", user_id: ALICE, disabled_subscribers: ["rate_limit"] },
        ]);
      });

      it("are that user's alone (I18)", async () => {
        await store.updateSettings(HOST, settings);
        await expect(store.settings(asBob, ALICE)).rejects.toThrow(NotFoundError);
        await expect(store.updateSettings(asBob, settings)).rejects.toThrow(NotFoundError);
        expect(await store.settings(asBob, BOB)).toEqual({ user_id: BOB, disabled_subscribers: [] });
      });
    });

    describe("what a reader can go on from", () => {
      it("is the newest entry about each notification, and the journal's end when a list was read (I16)", async () => {
        const first = await put({}, {});
        expect(first.seq).toBe(1);
        const second = await put({}, {});
        const settled = await ack(first);
        expect(settled).toMatchObject({ seq: 3 });
        const page = await store.list(HOST, { limit: 10 });
        expect(page.seq).toBe(3);
        expect(page.stored.map((one) => [one.delivery.id, one.seq])).toEqual([
          [second.delivery.id, 2],
          [first.delivery.id, 3],
        ]);
        expect((await store.list(asBob, { limit: 10 })).stored).toEqual([]);
      });

      it("lists what nobody has acknowledged: shown by the system, escalated ones too", async () => {
        const seen = await put({}, {});
        await ack(seen);
        const shown = await put({}, {});
        const floor = await put({ thread_id: ONE }, { axes: FLOOR });
        const late = await put({ thread_id: ONE }, { axes: NARRATE, ttl_ms: 10 });
        await put({ thread_id: ONE }, { axes: CONTEXT });
        await put({ user_id: BOB }, {});
        clock.advance(10);
        await store.sweep(10);
        const ids = async (unread: boolean) =>
          (
            await store.list(asAlice, {
              user_id: ALICE,
              limit: 10,
              ...(unread ? { unread } : { unacknowledged: true }),
            })
          ).stored.map((one) => one.delivery.id);
        const waiting = [late, floor, shown].map((one) => one.delivery.id);
        expect(await ids(false)).toEqual(waiting);
        expect(await ids(true), "what was seen and not clicked is still unread").toEqual([
          ...waiting,
          seen.delivery.id,
        ]);
        await expect(store.list(HOST, { unacknowledged: true, limit: 1 })).rejects.toThrow(InvalidInputError);
      });

      it("keeps a draft's note in the story, with what was made and what was merged", async () => {
        const event = { dedupe_key: "k" };
        const one = await put(event, { note: "first" });
        await put(event, { note: "second", content: "other words" });
        const story = (await store.story(HOST, one.delivery.id)) ?? [];
        expect(story.flatMap(({ changes }) => changes.map(({ command, note }) => [command, note]))).toEqual([
          ["create", "first"],
          ["merge", "second"],
        ]);
      });
    });

    describe("figures", () => {
      const depthOf = async () =>
        Object.fromEntries(
          (await store.figures()).depth.map(({ state, channel, count }) => [`${state} ${channel}`, count]),
        );

      it("say how much there is by state and channel, and since when", async () => {
        const first = await put({}, {});
        clock.advance(5_000);
        await put({}, {});
        await put({ thread_id: ONE }, { axes: CONTEXT });
        expect(await depthOf()).toEqual({ "DISPATCHED inbox": 2, "PENDING context": 1 });
        expect((await store.figures()).oldest).toEqual([
          { channel: "inbox", created_at: START_MS },
          { channel: "context", created_at: START_MS + 5_000 },
        ]);
        await ack(first);
        expect(await depthOf()).toEqual({ "DISPATCHED inbox": 1, "PENDING context": 1 });
        expect((await store.figures()).oldest[0]).toEqual({ channel: "inbox", created_at: START_MS + 5_000 });
        await reopen();
        expect(await depthOf()).toEqual({ "DISPATCHED inbox": 1, "PENDING context": 1 });
      });

      it("say what has happened since it was opened", async () => {
        const event = acceptance({ producer_id: "1" }, {});
        await store.accept(HOST, event);
        await store.accept(HOST, event);
        await store.accept(HOST, { event: acceptance({}, {}).event, drafts: [] });
        const { events, entered, commits } = await store.figures();
        expect(events).toEqual({ accepted: 1, duplicate: 1, unmatched: 1 });
        expect(entered).toMatchObject({ DISPATCHED: 1, DELIVERED: 0, FAILED: 0 });
        expect(commits).toMatchObject({ count: 3, operations: 3 });
        expect(commits.buckets.at(-1)?.count).toBe(3);
        await reopen();
        expect((await store.figures()).events).toEqual({ accepted: 0, duplicate: 0, unmatched: 0 });
      });
    });

    describe("retention", () => {
      it("removes settled history by age, and keeps what lives, dead letters and open threads", async () => {
        const settled = await put({ producer_id: "7" }, {});
        await ack(settled);
        const dead = await put({}, { ttl_ms: 10 });
        const live = await put({}, { ttl_ms: 30 * DAY_MS });
        const inThread = await put({ thread_id: ONE }, { axes: FLOOR });
        await ack(inThread);
        const unmatched = await store.accept(HOST, acceptance());
        clock.advance(1_000);
        await store.sweep(10);
        clock.advance(10 * DAY_MS);
        const recent = await put({}, {});
        await ack(recent);
        const done = await store.prune(5 * DAY_MS);
        expect(done).toMatchObject({ notifications: 1 });
        expect(await store.get(HOST, settled.delivery.id)).toBeUndefined();
        expect(await store.eventEntry(HOST, unmatched.event_id)).toBeUndefined();
        for (const one of [dead, live, inThread, recent]) {
          expect(await store.get(HOST, one.delivery.id)).toBeDefined();
          expect((await store.story(HOST, one.delivery.id))?.length).toBeGreaterThan(0);
        }
        expect((await store.facts()).floor_seq).toBeGreaterThan(1);
        expect((await audit(store)).problems).toEqual([]);
        expect((await store.accept(HOST, acceptance({ producer_id: "7" }, {}))).outcome).toBe("accepted");
        await store.closeThread(HOST, ONE);
        clock.advance(10 * DAY_MS);
        await store.prune(DAY_MS);
        expect(await store.get(HOST, inThread.delivery.id)).toBeUndefined();
        await reopen();
        const after = await store.accept(HOST, acceptance({}, {}));
        expect(after.seq).toBeGreaterThan(unmatched.seq);
      });
    });
  });
}
