import { expect, test } from "vitest";
import type { Axes } from "../domain/axes.js";
import { eventId, notificationId, subscriberId, userId } from "../domain/ids.js";
import type { Priority } from "../domain/priority.js";
import type { Aware, Stored } from "../store/contract.js";
import { composerFor } from "./compose.js";

const BUDGET = { items: 10, tokens: 1_000, lines: 20 };
const NOBODY: Aware = { seen: [], seen_more: 0, inbox: null };
const CONTEXT: Axes = { address: "user", target: "agent", handler: "system" };
const NARRATE: Axes = { address: "user", target: "user", handler: "agent" };

function stored(
  id: string,
  content: string,
  more: { events?: string[]; axes?: Axes; priority?: Priority; seen?: boolean } = {},
): Stored {
  const axes = more.axes ?? CONTEXT;
  return {
    notification: {
      id: notificationId(id),
      user_id: userId("ada"),
      thread_id: null,
      subscriber_id: subscriberId("direct"),
      kind: "build.ended",
      source: "ci",
      subject: null,
      severity: "info",
      inject_at: "next",
      content,
      data: null,
      directive: null,
      degraded: null,
      axes,
      dedupe_key: null,
      dedupe_until: 0,
      wake_ms: null,
      created_at: 1_000,
      event_id: eventId(more.events?.[0] ?? id),
      redrive_of: null,
      linked_to: null,
    },
    delivery: {
      id: notificationId(id),
      user_id: userId("ada"),
      thread_id: null,
      state: more.seen === true ? "DELIVERED" : "PENDING",
      channel: "context",
      effective: axes,
      priority: more.priority ?? "normal",
      revision: 1,
      count: more.events?.length ?? 1,
      rows: 1,
      lease_epoch: 0,
      lease: null,
      deadline: 0,
      open_until: null,
      not_before: 0,
      attempts: 0,
      quiet: false,
      updated_at: 0,
      action: null,
      read_at: null,
      reason: null,
    },
    event_ids: (more.events ?? [`event-of-${id}`]).map(eventId),
    seq: 1,
  };
}

test("what is told is embedded as it was told, in the model's form", () => {
  const compose = composerFor({ ...BUDGET, items: 1 }, () => "developer");
  const { told, text, form } = compose([stored("n1", "the build ended"), stored("n2", "two\nlines")], 0, NOBODY, 2_000);
  expect(form).toBe("developer");
  expect(told.map(({ id, form, content }) => [id, form, content])).toEqual([
    ["n1", "full", "the build ended"],
    ["n2", "line", "two lines"],
  ]);
  expect(text).toContain("the build ended");
  expect(text).toContain("two lines");
});

test("nothing to tell is no text", () => {
  expect(composerFor(BUDGET, () => "text")([], 0, NOBODY, 0)).toEqual({ told: [], text: "", form: "text" });
});

test("the form is asked for each time", () => {
  let form: "developer" | "text" = "developer";
  const compose = composerFor(BUDGET, () => form);
  expect(compose([], 0, NOBODY, 0).form).toBe("developer");
  form = "text";
  expect(compose([], 0, NOBODY, 0).form).toBe("text");
});

test("an event that two share is shown once; the other is told by its id", () => {
  const compose = composerFor(BUDGET, () => "text");
  const { told, text } = compose(
    [
      stored("n1", "the disk is full", { events: ["e1"] }),
      stored("n2", "disk: no room is left", { events: ["e1"] }),
      stored("n3", "something of e1 and e2", { events: ["e1", "e2"] }),
    ],
    0,
    NOBODY,
    2_000,
  );
  expect(told.map(({ id }) => id)).toEqual(["n1", "n2", "n3"]);
  expect(text).toContain("the disk is full");
  expect(text).not.toContain("no room is left");
  expect(text).toMatch(/- `n2`[^\n]*same event as n1/);
  expect(text).toContain("something of e1 and e2");
});

test("of several events each may show what the other does not: both are told", () => {
  const compose = composerFor(BUDGET, () => "text");
  const shared = { events: ["e1", "e2"] };
  const { text } = compose(
    [stored("n1", "the newest", shared), stored("n2", "each of them", shared)],
    0,
    NOBODY,
    2_000,
  );
  expect(text).toContain("the newest");
  expect(text).toContain("each of them");
});

test("of two that share an event, the one that the user must be told keeps its words", () => {
  const compose = composerFor(BUDGET, () => "text");
  const { text } = compose(
    [
      stored("n1", "for the agent", { events: ["e1"] }),
      stored("n2", "for the user", { events: ["e1"], axes: NARRATE }),
    ],
    0,
    NOBODY,
    2_000,
  );
  expect(text).toContain("for the user");
  expect(text).toMatch(/- `n1`[^\n]*same event as n2/);
});

test("a line never names one that is left waiting", () => {
  const compose = composerFor({ items: 1, tokens: 1_000, lines: 0 }, () => "text");
  const { told, text } = compose(
    [
      stored("n1", "for the agent", { events: ["e1"] }),
      stored("n2", "in between"),
      stored("n3", "for the user", { events: ["e1"], axes: NARRATE }),
    ],
    0,
    NOBODY,
    2_000,
  );
  expect(told.map(({ id }) => id)).toEqual(["n1"]);
  expect(text).toContain("for the agent");
});

test("what the system showed the user rides along", () => {
  const aware: Aware = {
    seen: [stored("n8", "shown and seen", { seen: true }), stored("n9", "shown only")],
    seen_more: 2,
    inbox: { unread: 3, newest: stored("n7", "the newest of the inbox") },
  };
  const { told, text } = composerFor(BUDGET, () => "text")([], 0, aware, 2_000);
  expect(told).toEqual([]);
  expect(text).toMatch(/- \[SEEN\] <data[^\n]*shown and seen/);
  expect(text).toMatch(/- \[SEEN\] \(shown, not yet seen\) <data[^\n]*shown only/);
  expect(text).toContain("[SEEN] 2 more");
  expect(text).toMatch(/inbox has 3 unread notifications, the newest: <data[^\n]*the newest of the inbox/);
});
