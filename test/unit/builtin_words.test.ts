/** The built-in subscribers on a real folder, with events as large as events may be. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { decode } from "@toon-format/toon";
import { describe, expect, it } from "vitest";
import { isMiss } from "../../src/index.js";
import { BUILT_IN_FOLDER } from "../../src/intake/subscribers/load.js";
import { openTidings, temporaryFolder } from "../support/folder.js";

const LONG = "Operation timed out, it says. ".repeat(2_000);

describe("the words of the built-in subscribers", () => {
  it("are the template's own for batches as large as they get, of events as long as they may be", async () => {
    const data = await temporaryFolder();
    mkdirSync(join(data, "subscribers"));
    for (const id of ["tool_call", "turn_digest"]) {
      const text = readFileSync(join(BUILT_IN_FOLDER, `${id}.toml`), "utf8").replace("enabled = false\n", "");
      writeFileSync(join(data, "subscribers", `${id}.toml`), text);
    }
    const tidings = await openTidings({ data });
    const { subscribers } = await tidings.subscribers();
    expect(subscribers.map(({ state }) => state)).toEqual(subscribers.map(() => "active"));
    const fields = ["error_message", "message", "reason", "path", "tool_name", "handle", "pattern", "name", "changed"];
    const seen = new Set<string>();
    // Each in a thread of its own: their commits are shared.
    for (const { id, types, max_batch_size } of subscribers)
      await Promise.all(
        fields.map(async (field) => {
          for (let index = 0; index < (max_batch_size ?? 0); index += 1) {
            const { matches } = await tidings.emit({
              type: (types?.[0] ?? "").replace("*", "any"),
              source: `source ${index}`,
              severity: "error",
              thread_id: `${id} ${field}`,
              dedupe_key: `${index}`,
              payload: { [field]: LONG },
            });
            for (const { notification } of matches) seen.add(notification.id);
          }
        }),
      );
    // What is full is worded; the rest is worded when it is told.
    for (const { id } of subscribers)
      for (const field of fields) {
        const carrier = await tidings.thread(`${id} ${field}`).collect("turn_start", { limit: 100 });
        for (const one of carrier?.notifications ?? []) expect(one.degraded, one.subscriber_id).toBeNull();
      }
    const found = await Promise.all([...seen].map((id) => tidings.read(id)));
    const worded = found.flatMap((one) => (isMiss(one) ? [] : [one]));
    expect(worded).toHaveLength(seen.size);
    for (const { degraded, content, subscriber_id } of worded) {
      expect(degraded, subscriber_id).toBeNull();
      decode(content);
    }
    expect(new Set(worded.map(({ subscriber_id }) => subscriber_id)).size).toBe(subscribers.length);
    expect(worded.filter(({ rows }) => rows === 10).length).toBeGreaterThan(50);
    expect(worded.some(({ rows, subscriber_id }) => subscriber_id === "turn_digest" && rows === 40)).toBe(true);
  }, 120_000);
});
