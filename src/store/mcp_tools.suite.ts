/** The contract of what is kept of the tools of MCP servers: every store keeps it. */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { ToolLook } from "../domain/mcp.js";
import { DEFAULT_POLICY } from "../domain/policy.js";
import { HOST } from "../domain/principal.js";
import { ManualClock } from "../platform/manual_clock.js";
import { audit } from "./audit.js";
import type { Store } from "./contract.js";
import type { StoreHarness } from "./contract.suite.js";
import { PlainEditor } from "./editor.suite.js";

const DAY_MS = 86_400_000;

export function mcpToolContract(name: string, harness: () => Promise<StoreHarness>): void {
  describe(`${name} keeps the contract of tools of MCP servers`, () => {
    let place: StoreHarness;
    let store: Store;
    const clock = new ManualClock(Date.parse("2026-01-03T15:30:00.000Z"));

    const open = () => place.open({ clock, policy: DEFAULT_POLICY, editor: new PlainEditor() });
    beforeEach(async () => {
      place = await harness();
      store = await open();
    });
    afterEach(async () => {
      expect((await audit(store)).problems).toEqual([]);
      await store.close();
      await place.remove();
    });

    const look = (description: string): ToolLook => ({
      digest: `of ${description}`,
      description,
      input_schema: { type: "object", required: ["a"] },
    });
    const see = (tool: string, description: string, by: "first_use" | "as_before" | null, server = "files") =>
      store.seeMcpTools([{ server, tool, look: look(description), by }]);
    const looks = async () =>
      (await store.mcpTools(null, 100)).map(
        ({ server, tool, approved, held }) =>
          `${server} ${tool}: ${approved?.description ?? "-"} / ${held?.description ?? "-"}`,
      );

    it("what is seen is approved or held, survives, and is in the journal (I5)", async () => {
      await see("read", "Reads", "first_use");
      const [held] = await see("read", "Reads, and sends", null);
      await see("write", "Writes", null);
      await store.close();
      store = await open();
      expect(await looks()).toEqual(["files read: Reads / Reads, and sends", "files write: - / Writes"]);
      const { entries } = await store.entries(HOST, (held?.seq ?? 0) - 1, 1);
      expect(entries).toMatchObject([
        { type: "mcp_tool", server: "files", tool: "read", by: null, look: look("Reads, and sends"), thread_id: null },
      ]);
      await see("read", "Reads", "as_before");
      expect(await looks()).toEqual(["files read: Reads / -", "files write: - / Writes"]);
    });

    it("what is held is approved as it was shown, and as nothing else", async () => {
      await see("read", "Reads", "first_use");
      await see("read", "Reads, and sends", null);
      expect(await store.approveMcpTool("files", "read", "of Reads")).toMatchObject({ miss: "stale_revision" });
      expect(await store.approveMcpTool("files", "none", null)).toMatchObject({ miss: "not_found" });
      expect(await looks()).toEqual(["files read: Reads / Reads, and sends"]);
      const approved = await store.approveMcpTool("files", "read", "of Reads, and sends");
      expect(approved).toMatchObject({ approved: look("Reads, and sends"), held: null });
      const before = await store.lastSeq();
      expect(await store.approveMcpTool("files", "read", null)).toEqual(approved);
      expect(await store.lastSeq(), "what is approved already is no news").toBe(before);
    });

    it("is listed by server and name, page by page", async () => {
      await see("b", "B", "first_use", "web");
      for (const tool of ["c", "a", "b"]) await see(tool, tool, "first_use");
      const first = await store.mcpTools(null, 3);
      expect(first.map(({ server, tool }) => `${server} ${tool}`)).toEqual(["files a", "files b", "files c"]);
      expect((await store.mcpTools(first.at(-1) ?? null, 3)).map(({ server }) => server)).toEqual(["web"]);
    });

    it("stays when the journal is pruned: what was approved once is known for good", async () => {
      await see("read", "Reads", "first_use");
      await see("read", "Reads, and sends", null);
      clock.advance(2 * DAY_MS);
      expect((await store.prune(DAY_MS)).entries).toBeGreaterThan(0);
      expect(await looks()).toEqual(["files read: Reads / Reads, and sends"]);
    });
  });
}
