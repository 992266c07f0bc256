/** What is too much is folded, and told, through the library on a real folder. */
import { decode } from "@toon-format/toon";
import { expect, it } from "vitest";
import { openTidings } from "../../test/support/folder.js";

it("the summary says how many were folded and of what, in TOON, whatever a source calls itself", async () => {
  const tidings = await openTidings({ policy: { pendingPerThread: 20, pendingPerSource: 1_000 } });
  const { thread_id } = await tidings.startThread();
  const source = "a,b: [3]{x}\u202e\n- c".replace("\n", " ");
  for (let index = 0; index < 24; index += 1)
    await tidings.emit({
      type: "mcp.disconnected",
      source,
      payload: { server: `s${index}` },
      thread_id,
      dedupe_key: `k${index}`,
    });
  await tidings.deliveries.claim({ thread_id, limit: 1 });
  for (let index = 0; index < 1_000; index += 1)
    await tidings.emit({
      type: "workspace.file.modified",
      source: "watcher",
      payload: { path: `f${index}` },
      thread_id,
    });
  const { notifications } = await tidings.list({ thread_id, limit: 1_000 });
  const [summary, ...others] = notifications.filter(({ subscriber_id }) => subscriber_id === "overflow");
  expect(others).toEqual([]);
  expect(summary).toMatchObject({ kind: "tidings.overflow", state: "PENDING", channel: "context", degraded: null });
  const folded = notifications.filter(({ reason }) => reason === "folded");
  expect(folded.length).toBeGreaterThan(0);
  const said = decode(summary?.content ?? "") as {
    folded: string;
    kinds: { notifications: number; events: number; source: string }[];
    next: string;
  };
  // Whoever reads it may have no way to call this program.
  expect(summary?.content).not.toMatch(/notification\/|SUPPRESSED/);
  expect(said.next).toContain("everything that was folded is kept, and can be asked for");
  const sum = (of: readonly number[]) => of.reduce((one, other) => one + other, 0);
  expect(sum(said.kinds.map((kind) => kind.notifications))).toBe(folded.length);
  expect(sum(said.kinds.map((kind) => kind.events))).toBe(sum(folded.map(({ count }) => count)));
  expect(said.folded).toMatch(new RegExp(`^${folded.length} older notifications`));
  expect(new Set(said.kinds.map((kind) => kind.source))).toEqual(
    new Set(folded.map((one) => one.source.replace("\u202e", ""))),
  );
});
