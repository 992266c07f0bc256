/** An event of a known type whose payload does not fit is never lost: it is told, and its story says what is wrong. */
import { decode } from "@toon-format/toon";
import { expect, test } from "vitest";
import { matchesType } from "../../src/domain/event.js";
import { PAYLOADS } from "../../src/domain/payloads.js";
import { type EventInput, isMiss } from "../../src/index.js";
import { openTidings } from "../support/folder.js";

const NONSENSE: NonNullable<EventInput["payload"]>[] = [
  {},
  { tool_name: 7, handle: [], budget_type: {}, current: "many", limit: null, pattern: 3, repetitions: "x" },
  { server: false, path: { a: 1 }, file: 0, changed: "all", provider: [], remaining: "few", name: null, message: [1] },
];
/** Of these nothing is required. */
const FREE = ["agent.turn.start", "agent.turn.end", "subagent.complete", "subagent.failed", "cli.event"];

test.each(Object.keys(PAYLOADS))("%s", async (type) => {
  const tidings = await openTidings();
  for (const payload of NONSENSE) {
    const event = { type, source: "test", severity: "error", thread_id: "chat", payload } as const;
    const { outcome, matches } = await tidings.emit(event);
    // Of what is switched off nobody is told anyway.
    if (["tool.call.pending", "tool.call.success"].includes(type)) expect(outcome).toBe("unmatched");
    else expect(matches).toHaveLength(1);
    await tidings.thread("chat").collect("turn_start");
    for (const { notification } of matches) {
      const now = await tidings.read(notification.id);
      const story = await tidings.explain(notification.id);
      if (isMiss(now) || isMiss(story)) throw new Error("it is lost");
      expect(now.events.at(-1)?.payload).toEqual(payload);
      expect(now.degraded).toBeNull();
      expect(now.content).not.toBe("");
      decode(now.content);
      const text = story.story.map((line) => line.text).join("\n");
      if (!FREE.includes(type)) expect(text).toMatch(new RegExp(`its payload is not as ${type} has it: payload\\.`));
    }
  }
});

test("every known type has one built-in subscriber that tells it, beside the digest", async () => {
  const { subscribers } = await (await openTidings()).subscribers();
  const tellers = subscribers.filter(({ id }) => id !== "turn_digest");
  for (const type of Object.keys(PAYLOADS)) {
    const taking = tellers.filter(({ types }) => types?.some((pattern) => matchesType(pattern, type)) === true);
    expect(
      taking.map(({ id }) => id),
      type,
    ).toHaveLength(1);
  }
});
