import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { canonicalJson, type Json, type JsonObject } from "../../domain/json.js";
import { LIMITS } from "../../domain/limits.js";
import { DedupeExpression, derivedKey, type KeyedEvent } from "./dedupe.js";

const EVENT: KeyedEvent = {
  type: "tool.call.failure",
  source: "tool executor",
  severity: "error",
  subject: null,
  payload: { tool_name: "vault_search" },
};

const of = (payload: JsonObject, more: Partial<KeyedEvent> = {}): KeyedEvent => ({ ...EVENT, ...more, payload });

function expression(text: string): DedupeExpression {
  const parsed = DedupeExpression.parse(text);
  if (parsed instanceof DedupeExpression) return parsed;
  throw new Error(parsed.reason);
}

const keys = (text: string, ...events: KeyedEvent[]) =>
  new Set(events.map((event) => expression(text).keyOf(event))).size;

describe("a dedupe expression", () => {
  it("tells events apart by its parts and by nothing else", () => {
    const text = "type:payload.tool_name";
    expect(
      keys(text, of({ tool_name: "a", n: 1 }), of({ n: 2, tool_name: "a" }, { source: "x", severity: "info" })),
    ).toBe(1);
    expect(keys(text, of({ tool_name: "a" }), of({ tool_name: "b" }))).toBe(2);
    expect(keys(text, of({ tool_name: "a" }), of({ tool_name: "a" }, { type: "tool.call.timeout" }))).toBe(2);
    expect(keys("source:severity:subject", of({}), of({}, { severity: "info" }), of({}, { subject: "h_1" }))).toBe(3);
  });

  it("keeps what is missing, empty, and of another type apart", () => {
    const values: JsonObject[] = [{}, { a: "" }, { a: null }, { a: 0 }, { a: "0" }, { a: false }, { a: [] }, { a: {} }];
    values.push({ a: "~" }, { a: "null" }, { a: [null] }, { a: ["~"] });
    expect(keys("payload.a", ...values.map((payload) => of(payload)))).toBe(values.length);
    expect(keys("subject:type", of({}, { subject: null }), of({}, { subject: "~" }), of({}, { subject: "null" }))).toBe(
      3,
    );
  });

  it("keeps the seam between two parts", () => {
    const by = "payload.a:payload.b";
    expect(keys(by, of({ a: 1, b: 23 }), of({ a: 12, b: 3 }), of({ a: 123 }), of({ b: 123 }))).toBe(4);
    expect(keys(by, of({ a: "x,y" }), of({ a: "x", b: "y" }), of({ a: ["x", "y"] }))).toBe(3);
  });

  it("goes by own keys, and into arrays by index", () => {
    expect(keys("payload.a.1.b", of({ a: [0, { b: "x" }] }), of({ a: [{ b: "x" }, { b: "x" }] }))).toBe(1);
    // Nothing of these is the producer's word: all are missing.
    const payloads = [{}, { a: "text" }, { a: [1, 2] }, { a: Object.create({ length: 2 }) }] as JsonObject[];
    expect(keys("payload.a.length", ...payloads.map((payload) => of(payload)))).toBe(1);
    expect(keys("payload.toString", of({}), of({ a: 1 }))).toBe(1);
    expect(keys("payload.a.01", of({ a: [1, 2] }), of({ a: [1, 3] }))).toBe(1);
  });

  it.each([
    ["", /"" is not a part/],
    ["type:", /"" is not a part/],
    ["types", /did you mean type/],
    ["type : source", /is not a part/],
    ["payload", /name a key/],
    ["payload.", /empty key/],
    ["payload.a..b", /empty key/],
    ["payload.a b", /space/],
    ["payload.__proto__", /no payload has/],
    ["payload.a.constructor.name", /no payload has/],
    ["user_id", /is not a part/],
    ["event.type", /is not a part/],
    ["{{ type }}", /is not a part/],
    [Array.from({ length: 17 }, () => "type").join(":"), /more than 16 parts/],
    [`payload.${"x".repeat(500)}`, /longer than 500/],
    [`payload${".x".repeat(33)}`, /deeper than 32/],
  ])("%j is refused with the reason", (text, reason) => {
    const parsed = DedupeExpression.parse(text);
    expect(parsed).not.toBeInstanceOf(DedupeExpression);
    expect((parsed as { reason: string }).reason).toMatch(reason);
  });

  it("gives different lists of parts different keys, of bounded length", () => {
    const value = fc.option(fc.jsonValue({ maxDepth: 2 }) as fc.Arbitrary<Json>, { nil: undefined });
    // Texts that look like the seams of a key.
    const tricky = fc.constantFrom<Json>(
      "~",
      ",",
      '"',
      '","',
      "~,~",
      '~","~',
      ":",
      "",
      "expression#",
      null,
      [],
      ["~"],
      [null],
    );
    const part = fc.oneof(value, tricky, fc.string({ minLength: 480, maxLength: 600 }));
    const parts = fc.tuple(part, part, part);
    const by = expression("payload.a:payload.b:payload.c");
    const payloadOf = (list: readonly (Json | undefined)[]): JsonObject =>
      Object.fromEntries(list.flatMap((one, index) => (one === undefined ? [] : [["abc".charAt(index), one]])));
    const identity = (list: readonly (Json | undefined)[]) =>
      JSON.stringify(list.map((one) => (one === undefined ? [] : [canonicalJson(one)])));
    fc.assert(
      fc.property(parts, parts, (one, other) => {
        const first = by.keyOf(of(payloadOf(one)));
        const second = by.keyOf(of(payloadOf(other)));
        expect(first.length).toBeLessThanOrEqual(LIMITS.dedupeKeyChars);
        expect(first === second).toBe(identity(one) === identity(other));
      }),
      { numRuns: 2_000 },
    );
  });
});

describe("the derived key", () => {
  it("holds all that tells what happened, whatever the order of the payload's keys", () => {
    const key = derivedKey(of({ a: 1, b: { c: 2, d: 3 } }));
    expect(derivedKey(of({ b: { d: 3, c: 2 }, a: 1 }))).toBe(key);
    const others = [
      of({ a: 1, b: { c: 2, d: 4 } }),
      of({ a: "1", b: { c: 2, d: 3 } }),
      of({ a: 1, b: { c: 2, d: 3 } }, { type: "tool.call.timeout" }),
      of({ a: 1, b: { c: 2, d: 3 } }, { source: "another" }),
      of({ a: 1, b: { c: 2, d: 3 } }, { subject: "h_1" }),
      of({ a: 1, b: { c: 2, d: 3 } }, { severity: "critical" }),
    ];
    expect(new Set([key, ...others.map(derivedKey)]).size).toBe(others.length + 1);
  });

  it("is bounded, also for a payload that is long, and is never an expression's", () => {
    const long = (end: string) => of({ text: `${"x".repeat(50_000)}${end}` });
    expect(derivedKey(long("a")).length).toBeLessThanOrEqual(LIMITS.dedupeKeyChars);
    expect(derivedKey(long("a"))).not.toBe(derivedKey(long("b")));
    expect(derivedKey(EVENT).split(/[:#]/)[0]).not.toBe(expression("type").keyOf(EVENT).split(/[:#]/)[0]);
  });
});
