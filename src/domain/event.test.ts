import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { InvalidInputError } from "./errors.js";
import { eventSchema, parseEvent } from "./event.js";
import { LIMITS } from "./limits.js";
import { SEVERITIES } from "./severity.js";

const word = fc.oneof(
  fc.constantFrom("", "vault", "a b", "é", "line\nbreak", "\u0000", "\ud800", "x".repeat(LIMITS.idChars + 1)),
  fc.constantFrom<unknown>(undefined, null, 7, ["a"]),
);
const often = <Value>(usual: Value, other: fc.Arbitrary<unknown>) =>
  fc.oneof({ weight: 6, arbitrary: fc.constant<unknown>(usual) }, { weight: 1, arbitrary: other });

const input = fc.record(
  {
    type: often("tool.call.failure", fc.constantFrom("tool", "a..b", "a.b.c.d.e.f", `a.${"b".repeat(200)}`, 1)),
    source: often("executor", word),
    severity: often("error", fc.constantFrom<unknown>(...SEVERITIES, "fatal", null, undefined)),
    payload: often({ a: 1 }, fc.constantFrom<unknown>({}, undefined)),
    user_id: often("alice", word),
    thread_id: often("one", word),
    dedupe_key: often("key", word),
    subject: often("file:a", word),
    id: often("p-1", word),
    timestamp: often(undefined, fc.constantFrom("2026-01-03T15:30:00+01:00", "yesterday")),
    more: fc.constant(1),
  },
  { requiredKeys: ["type", "source"], noNullPrototype: false },
);

/** The first word on what is wrong, or null. */
function refusalOf(one: unknown): string | null {
  try {
    parseEvent(one);
    return null;
  } catch (error) {
    if (error instanceof InvalidInputError) return error.message;
    throw error;
  }
}

describe("an event at the border", () => {
  it("is taken if and only if the schema takes it, with the same fields", () => {
    let taken = 0;
    fc.assert(
      fc.property(input, (one) => {
        const result = eventSchema.safeParse(one);
        expect(refusalOf(one) === null).toBe(result.success);
        if (!result.success) return;
        taken += 1;
        const { id, severity, ...rest } = result.data;
        const { producer_id, ...event } = parseEvent(one);
        expect(producer_id).toBe(id ?? null);
        expect(event.severity).toBe(severity ?? "info");
        expect(event.timestamp).toBe(rest.timestamp ?? null);
        expect(event.user_id).toBe(rest.user_id ?? "local");
        for (const name of ["type", "source"] as const) expect(event[name]).toBe(rest[name]);
        for (const name of ["thread_id", "dedupe_key", "subject"] as const)
          expect(event[name]).toBe(rest[name] ?? null);
      }),
      { numRuns: 2_000 },
    );
    expect(taken).toBeGreaterThan(20);
  });

  it("is refused in the same words, whatever else it has", () => {
    expect(refusalOf({ type: "a.b", source: "s", more: 1 })).toBe("more: is not a known field");
    expect(refusalOf({ source: "s" })).toBe("type: is required");
    expect(refusalOf({ type: "a.b", source: "" })).toBe("source: must not be empty");
    expect(refusalOf({ type: "a.b", source: "s", user_id: "a\u0000" })).toBe(
      "user_id: must be text without control characters",
    );
  });
});
