/** A line of a story as the web app shows it: times and ids by themselves, and how long after the line before. */
import { describe, expect, test } from "vitest";
import { type Line, offsetOf, sentenceOf } from "../../web/src/views/ledger/story_lines.js";

const ID = "01a1e5b9-2661-75ad-94d7-000000000074";
const AT = "2026-01-03T15:30:05.000Z";

function line(more: object): Line {
  return { seq: 1, at: AT, text: "", kind: "event", ...more } as Line;
}

describe("a sentence", () => {
  test("has its times and ids by themselves, and every word as it was", () => {
    const text = `Subscriber s made it (${ID}): deadline ${AT}, again ${ID}`;
    expect(sentenceOf(line({ text }))).toEqual([
      { text: "Subscriber s made it (" },
      { id: ID },
      { text: "): deadline " },
      { at: AT },
      { text: ", again " },
      { id: ID },
    ]);
    expect(sentenceOf(line({ text: "Nothing of the kind." }))).toEqual([{ text: "Nothing of the kind." }]);
  });

  test("does not say again what stands above it, and has the page's word for a thread", () => {
    const text = `Event ${ID}: a.b from c, severity info, for user u, thread ${ID}.`;
    expect(sentenceOf(line({ text }))).toEqual([
      { text: "a.b from c, severity info, for user u, in the conversation " },
      { id: ID },
      { text: " (" },
      { id: ID },
      { text: ")." },
    ]);
    const none = `Event ${ID}: a.b from c, severity info, for user u.`;
    expect(sentenceOf(line({ text: none }))[0]).toEqual({ text: "a.b from c, severity info, for user u (" });
    const closed = line({ kind: "expire", text: "A dead letter: its thread was closed. [FAILED]", path: ["FAILED"] });
    expect(sentenceOf(closed)).toEqual([{ text: "A dead letter: its conversation was closed." }]);
  });

  test("takes no time that there cannot be for one", () => {
    const text = "until 2026-99-99T99:99:99Z";
    expect(sentenceOf(line({ text }))).toEqual([{ text }]);
  });

  test("leaves the states to the badges beside it, and nothing else", () => {
    const path = ["PENDING", "DISPATCHED"] as const;
    expect(sentenceOf(line({ text: "Made. [PENDING, DISPATCHED]", path }))).toEqual([{ text: "Made." }]);
    expect(sentenceOf(line({ text: "Somebody says [PENDING]" }))).toEqual([{ text: "Somebody says [PENDING]" }]);
  });

  test("says in words where an agent was told, and that it holds something", () => {
    const carrier = { id: ID, thread_id: null, turn_id: null, point: "turn_start", state: "open", block: null };
    const text = `Carrier ${ID} (turn_start) was opened for the agent.`;
    expect(sentenceOf(line({ kind: "carrier", text, carrier }))).toEqual([
      { text: "Carrier " },
      { id: ID },
      { text: " (at the start of a turn) was opened for the agent." },
    ]);
    const held = line({ kind: "collect", text: "Collected by hosted under lease epoch 1. [LOCKED]", path: ["LOCKED"] });
    expect(sentenceOf(held)).toEqual([{ text: expect.stringMatching(/^An agent has taken it/) }]);
  });
});

test("how long after the line before it", () => {
  const after = (ms: number) => offsetOf(line({ at: new Date(Date.parse(AT) + ms).toISOString() }), line({ at: AT }));
  expect(offsetOf(line({}), undefined)).toBeNull();
  expect(after(0)).toBeNull();
  expect(after(-5)).toBeNull();
  expect(after(7)).toBe("+7 ms");
  expect(after(1_260)).toBe("+1.2 s");
  expect(after(59_999)).toBe("+59.9 s");
  expect(after(125_000)).toBe("+2 min 5 s");
  expect(after(3_600_000 + 61_000)).toBe("+1 h 1 min");
});
