/** The contract of handles: every store keeps it. */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { NotFoundError } from "../domain/errors.js";
import { type HandleRecord, handleSubject, type NewHandleRecord } from "../domain/handle.js";
import { threadId, userId } from "../domain/ids.js";
import { DEFAULT_POLICY } from "../domain/policy.js";
import { HOST, userPrincipal } from "../domain/principal.js";
import { ManualClock } from "../platform/manual_clock.js";
import { audit } from "./audit.js";
import type { BeginTurn, BegunTurn, Store } from "./contract.js";
import { acceptance, type StoreHarness } from "./contract.suite.js";
import { PlainEditor, plainCompose } from "./editor.suite.js";

const ALICE = userId("alice");
const ONE = threadId("one");
const TWO = threadId("two");
const CONTEXT = { address: "session", target: "agent", handler: "system" } as const;
const MANY = { retention_ms: 1_000, kept: 100, chars: 100_000 };

export function handleContract(name: string, harness: () => Promise<StoreHarness>): void {
  describe(`${name} keeps the contract of handles`, () => {
    let place: StoreHarness;
    let store: Store;
    const clock = new ManualClock(Date.parse("2026-01-03T15:30:00.000Z"));

    const open = () => place.open({ clock, policy: DEFAULT_POLICY, editor: new PlainEditor() });
    beforeEach(async () => {
      place = await harness();
      store = await open();
      for (const id of [ONE, TWO]) await store.startThread(HOST, ALICE, id);
    });
    afterEach(async () => {
      expect((await audit(store)).problems).toEqual([]);
      await store.close();
      await place.remove();
    });

    const record = (id: string, more: Partial<NewHandleRecord> = {}): Promise<HandleRecord> =>
      store.recordHandle(HOST, { thread_id: ONE, id, tool: "shell", state: "running", detail: {}, ...more });
    const ids = async () => (await store.handles(null, 100)).map(({ id }) => id);

    it("is what was recorded last, survives, and is in the journal (I5)", async () => {
      const first = await record("build");
      const error = { message: "no room", transient: true };
      const second = await record("build", {
        state: "failed",
        detail: { error, output: "half", data: { exit_code: 3 } },
      });
      expect(second.generation).toBeGreaterThan(first.generation);
      await store.close();
      store = await open();
      expect(await store.handle(HOST, ONE, "build")).toEqual(second);
      expect(await store.handle(HOST, TWO, "build")).toBeUndefined();
      const { entries } = await store.entries(HOST, first.generation - 1, 10);
      expect(entries).toMatchObject([
        { seq: first.generation, type: "handle", handle: "build", state: "running" },
        { seq: second.generation, type: "handle", handle: "build", state: "failed", detail: { error } },
      ]);
    });

    it("is of its thread, and its thread's user alone (I18)", async () => {
      await record("build");
      const bob = userPrincipal(userId("bob"));
      await expect(store.handle(bob, ONE, "build")).rejects.toThrow(NotFoundError);
      await expect(store.forgetHandles(bob, ONE, MANY)).rejects.toThrow(NotFoundError);
      await expect(
        store.recordHandle(bob, { thread_id: ONE, id: "x", tool: "t", state: "running", detail: {} }),
      ).rejects.toThrow(NotFoundError);
    });

    it("is listed by thread and name, page by page", async () => {
      await record("b", { thread_id: TWO });
      for (const id of ["c", "a", "b"]) await record(id);
      const first = await store.handles(null, 3);
      expect(first.map(({ thread_id, id }) => `${thread_id} ${id}`)).toEqual(["one a", "one b", "one c"]);
      expect((await store.handles(first.at(-1) ?? null, 3)).map(({ id }) => id)).toEqual(["b"]);
    });

    it("is forgotten when it is old, when there are too many, and when they are too large: what was read first", async () => {
      for (const id of ["a", "b", "c", "d"]) await record(id, { state: "stopped", detail: { result: id } });
      await record("at work");
      const read = await store.handle(HOST, ONE, "d");
      await store.observe(HOST, ONE, handleSubject("d", read?.generation ?? 0));
      expect(await store.forgetHandles(HOST, ONE, MANY)).toBe(0);
      expect(await store.forgetHandles(HOST, ONE, { ...MANY, kept: 3 })).toBe(1);
      expect(await ids()).toEqual(["a", "at work", "b", "c"]);
      await store.forgetHandles(HOST, ONE, { ...MANY, chars: 20 });
      expect(await ids()).toEqual(["at work", "c"]);
      clock.advance(1_000);
      await store.forgetHandles(HOST, ONE, MANY);
      expect(await ids()).toEqual(["at work"]);
    });

    const begin = async (succeeds: BeginTurn["succeeds"] = null) =>
      (await store.beginTurn(HOST, {
        thread_id: ONE,
        turn_id: null,
        source: "user",
        content: "hello",
        point: "turn_start",
        limit: 30,
        compose: plainCompose,
        owner: "hosted",
        lease_ms: 60_000,
        succeeds,
      })) as BegunTurn;

    it("what the agent sees with a step is observed in the same commit, and not told with it", async () => {
      const { turn } = await begin();
      const { generation } = await record("build", { state: "stopped" });
      const subject = handleSubject("build", generation);
      const { matches } = await store.accept(HOST, acceptance({ thread_id: ONE, subject }, { axes: CONTEXT }));
      const before = await store.lastSeq();
      const collect = { point: "after_tool", limit: 30, compose: plainCompose } as const;
      expect(await store.stepTurn(HOST, { turn_id: turn.id, items: [], collect, observed: [subject] })).toMatchObject({
        carrier: null,
      });
      const told = await store.get(HOST, matches[0]?.stored.delivery.id as never);
      expect(told?.delivery).toMatchObject({ state: "SUPPRESSED", reason: "observed" });
      const { entries } = await store.entries(HOST, before, 10);
      expect(entries[0]).toMatchObject({ type: "observation", subject: "handle:build", generation });
    });

    it.each(["succeeded", "ended", "lost"] as const)("what it sees last, in a turn that is %s", async (how) => {
      const { turn } = await begin();
      const { generation } = await record("build", { state: "stopped" });
      const subject = handleSubject("build", generation);
      const { matches } = await store.accept(HOST, acceptance({ thread_id: ONE, subject }, { axes: CONTEXT }));
      const seen = { turn_id: turn.id, items: [], note: null, observed: [subject] };
      if (how === "lost") clock.advance(60_001);
      if (how === "succeeded") expect((await begin(seen)).carrier).toBeNull();
      else await store.endTurn(HOST, { ...seen, state: "stopped" });
      const told = await store.get(HOST, matches[0]?.stored.delivery.id as never);
      expect(told?.delivery.state).toBe(how === "lost" ? "PENDING" : "SUPPRESSED");
    });
  });
}
