/** The contract of known files: every store keeps it. */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { NotFoundError } from "../domain/errors.js";
import { threadId, userId } from "../domain/ids.js";
import type { KnownFile } from "../domain/known_file.js";
import { DEFAULT_POLICY } from "../domain/policy.js";
import { HOST, userPrincipal } from "../domain/principal.js";
import { ManualClock } from "../platform/manual_clock.js";
import { audit } from "./audit.js";
import type { Store } from "./contract.js";
import { acceptance, type StoreHarness } from "./contract.suite.js";
import { PlainEditor } from "./editor.suite.js";

const [ONE, TWO] = [threadId("one"), threadId("two")];
const [ADA, BOB] = [userId("ada"), userId("bob")];
const STATE = { size: 3, mtime_ms: 1_700_000_000_000.5, hash: "abc" };
const CONTEXT = { address: "session", target: "agent", handler: "system" } as const;

export function knownFilesContract(name: string, harness: () => Promise<StoreHarness>): void {
  describe(`${name} keeps the contract of known files`, () => {
    let store: Store;
    let home: StoreHarness;

    const open = () =>
      home.open({ clock: new ManualClock(Date.UTC(2026, 0, 1)), policy: DEFAULT_POLICY, editor: new PlainEditor() });

    beforeEach(async () => {
      home = await harness();
      store = await open();
      await store.startThread(HOST, ADA, ONE);
      await store.startThread(HOST, BOB, TWO);
    });

    afterEach(async () => {
      expect((await audit(store)).problems).toEqual([]);
      await store.close();
      await home.remove();
    });

    const file = (path: string, more: Partial<KnownFile> = {}): KnownFile => ({
      thread_id: ONE,
      user_id: ADA,
      folder: "/work",
      path,
      seen: STATE,
      announced: null,
      generation: 1,
      at: 1,
      ...more,
    });
    const paths = async () => (await store.knownFiles(null, 100)).map((one) => `${one.thread_id} ${one.path}`);

    it("the newest word counts, after a restart too; what need not be known is gone", async () => {
      const announced = { state: null, change: "deleted", generation: 7 } as const;
      await store.recordFiles(HOST, ONE, [file("b"), file("a"), file("c")], []);
      await store.recordFiles(HOST, ONE, [file("a", { seen: null, announced, generation: 7, at: 9 })], ["c", "none"]);
      await store.recordFiles(HOST, TWO, [file("a", { thread_id: TWO, user_id: BOB })], []);
      await store.close();
      store = await open();
      const all = await store.knownFiles(null, 2);
      expect(all).toEqual([file("a", { seen: null, announced, generation: 7, at: 9 }), file("b")]);
      expect(await store.knownFiles(all.at(-1) ?? null, 2)).toEqual([file("a", { thread_id: TWO, user_id: BOB })]);
    });

    it("another's thread does not exist; of one that is closed nothing is kept", async () => {
      const bob = userPrincipal(BOB);
      await expect(store.recordFiles(bob, ONE, [file("a")], [])).rejects.toThrow(NotFoundError);
      await expect(store.isPendingAbout(bob, ONE, "file:a#gen-1")).rejects.toThrow(NotFoundError);
      await store.recordFiles(HOST, ONE, [file("a")], []);
      await store.recordFiles(HOST, TWO, [file("a", { thread_id: TWO, user_id: BOB })], []);
      await store.closeThread(HOST, ONE);
      await store.recordFiles(HOST, ONE, [file("b")], []);
      expect(await paths()).toEqual(["two a"]);
    });

    it("says whether something is pending about a subject: by itself, in a batch, in this generation", async () => {
      const subject = (generation: number) => `file:a#gen-${generation}`;
      const asked = (generation: number) => store.isPendingAbout(HOST, ONE, subject(generation));
      const batch = { window_ms: 10_000, max_size: 10 };
      const put = (about: string, more = {}) =>
        store.accept(
          HOST,
          acceptance(
            { user_id: ADA, thread_id: ONE, subject: about, dedupe_key: about },
            { axes: CONTEXT, content: null, ...more },
          ),
        );
      await put(subject(1));
      await put("file:b#gen-1", { batch });
      expect([await asked(1), await asked(2)]).toEqual([true, false]);
      await put(subject(2), { batch });
      expect([await asked(1), await asked(2)]).toEqual([true, true]);
      await store.observe(HOST, ONE, subject(1));
      expect([await asked(1), await asked(2)]).toEqual([false, true]);
    });
  });
}
