import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { canonicalJson, type Json } from "./json.js";

/** With its keys in another order. */
function turned(value: Json): Json {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(turned);
  return Object.fromEntries(
    Object.entries(value)
      .reverse()
      .map(([key, one]) => [key, turned(one)]),
  );
}

describe("canonical JSON", () => {
  it("is JSON of the same value, and the same text for any order of keys", () => {
    const key = fc.oneof(fc.string(), fc.string({ unit: "binary" }), fc.string({ minLength: 60, maxLength: 70 }));
    const value = fc.letrec<{ json: Json }>((tie) => ({
      json: fc.oneof(
        { maxDepth: 3 },
        fc.jsonValue({ maxDepth: 0 }) as fc.Arbitrary<Json>,
        fc.array(tie("json")),
        fc.dictionary(key, tie("json"), { noNullPrototype: true }),
      ),
    })).json;
    fc.assert(
      fc.property(value, (one) => {
        const text = canonicalJson(one);
        expect(JSON.parse(text)).toEqual(JSON.parse(JSON.stringify(one)));
        expect(canonicalJson(turned(one))).toBe(text);
      }),
      { numRuns: 2_000 },
    );
  });
});
