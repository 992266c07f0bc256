import { describe, expect, it, onTestFinished } from "vitest";
import { type EventInput, parseEvent } from "../domain/event.js";
import { parseNotify } from "../domain/notification.js";
import { ALL_GRANTS } from "../domain/token.js";
import { Catalogue } from "./catalogue.js";
import { Intake } from "./intake.js";
import type { SubscriberInput } from "./subscriber.js";
import { DedupeExpression, derivedKey } from "./subscribers/dedupe.js";

const EVENT = { type: "my.event", source: "here", payload: { name: "one", n: 1 } };

async function intakeOf(...subscribers: SubscriberInput[]): Promise<Intake> {
  const catalogue = await Catalogue.open({ subscribers, folder: null, config_file: null, watch: false });
  onTestFinished(() => catalogue.close());
  return new Intake(catalogue);
}

async function draftOf(subscriber: Partial<SubscriberInput>, event: Partial<EventInput> = {}, grants = ALL_GRANTS) {
  const intake = await intakeOf({ id: "mine", types: ["my.event"], ...subscriber });
  const [draft, ...more] = intake.forEvent(parseEvent({ ...EVENT, ...event }), grants).drafts;
  expect(more).toEqual([]);
  if (draft === undefined) throw new Error("nothing matched");
  return draft;
}

describe("the draft of an event", () => {
  it("has no words yet: they are its subscriber's, at delivery", async () => {
    expect(await draftOf({ content: () => "said too early" })).toMatchObject({ subscriber_id: "mine", content: null });
  });

  it("has the event's own key, else its subscriber's expression's, else a derived one", async () => {
    const event = parseEvent(EVENT);
    const expression = DedupeExpression.parse("type:payload.name") as DedupeExpression;
    expect((await draftOf({}, { dedupe_key: "own" })).dedupe_key).toBe("own");
    expect((await draftOf({ dedupe_key: "type:payload.name" }, { dedupe_key: "own" })).dedupe_key).toBe("own");
    expect((await draftOf({ dedupe_key: "type:payload.name" })).dedupe_key).toBe(expression.keyOf(event));
    expect((await draftOf({})).dedupe_key).toBe(derivedKey(event));
  });

  it("has no key of ours where nothing is to merge", async () => {
    expect((await draftOf({ dedupe_window_ms: 0 })).dedupe_key).toBeNull();
    expect((await draftOf({ dedupe_window_ms: 0 }, { dedupe_key: "own" })).dedupe_key).toBe("own");
  });

  it("has a short key, however much the event says", async () => {
    const long = { payload: { name: "x".repeat(60_000) } };
    expect((await draftOf({}, long)).dedupe_key?.length).toBeLessThanOrEqual(80);
    expect((await draftOf({ dedupe_key: "payload.name" }, long)).dedupe_key?.length).toBeLessThanOrEqual(80);
  });

  it("is batched only if its subscriber says so", async () => {
    expect((await draftOf({})).batch).toBeNull();
    expect((await draftOf({ batch_window_ms: 500, max_batch_size: 1 })).batch).toBeNull();
    expect((await draftOf({ batch_window_ms: 500 })).batch).toEqual({ window_ms: 500, max_size: 10 });
  });

  it("is filtered below its subscriber's severity", async () => {
    expect((await draftOf({ severity_filter: "error" }, { severity: "warning" })).filtered).toBe(true);
    expect((await draftOf({ severity_filter: "error" }, { severity: "error" })).filtered).toBe(false);
  });

  it("is critical only for a sender that may", async () => {
    const critical = { priority: "critical", inject_at: "immediate" } as const;
    expect(await draftOf(critical)).toMatchObject({ ...critical, note: null });
    const lowered = await draftOf(critical, {}, { critical: false, directive: false });
    expect(lowered).toMatchObject({ priority: "high", inject_at: "next", note: expect.stringContaining("scope") });
  });
});

describe("the draft of a direct notification", () => {
  it("has its own words, is by itself, and has no key that nobody gave", async () => {
    const intake = await intakeOf();
    const draft = (input: object) =>
      intake.forNotify(parseNotify({ content: "hello", ...input }), ALL_GRANTS).drafts[0];
    expect(draft({})).toMatchObject({ subscriber_id: "direct", content: "hello", batch: null, dedupe_key: null });
    expect(draft({ dedupe_key: "mine" })).toMatchObject({ dedupe_key: "mine" });
  });
});
