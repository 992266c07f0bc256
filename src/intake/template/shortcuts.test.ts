/** Where a short way is taken for speed, it leads where the long one does. */
import { decode, encode } from "@toon-format/toon";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Json } from "../../domain/json.js";
import { compileTemplate, TEMPLATE_LIMITS, type Template, type TemplateContext } from "./template.js";
import { isoMs } from "./time.js";
import { isPlain, toonScalar } from "./toon.js";

function contextOf(payload: Json): TemplateContext {
  const event = { payload };
  return { event, events: [event], count: 1, subscriber: {}, now: "2026-01-03T15:33:05Z" };
}

function render(source: string, payload: Json): string {
  return compileTemplate(source, "test.j2").render(contextOf(payload));
}

/** What is said, or why nothing is. */
function outcome(template: Template, payload: Json, plain: boolean): string {
  try {
    return template.render(contextOf(payload), plain);
  } catch (error) {
    return String(error);
  }
}

describe("a text that is written as it is", () => {
  const alphabet = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 _./()%+=!?-";
  const words = [
    "true",
    "false",
    "null",
    "NaN",
    "Infinity",
    "e10",
    "x-1",
    "- a",
    "a - b",
    " ",
    "  ",
    "tool_fail",
    "5ms",
  ];
  const text = fc
    .array(fc.oneof(fc.constantFrom(...alphabet), fc.constantFrom(...words)), { minLength: 1, maxLength: 20 })
    .map((parts) => parts.join(""));

  it("is one that the encoder would write so", () => {
    fc.assert(
      fc.property(text, (one) => {
        fc.pre(isPlain(one));
        expect(encode(one)).toBe(one);
        expect(encode({ k: one })).toBe(`k: ${one}`);
      }),
      { numRuns: 5_000 },
    );
  });

  it.each([
    "",
    "true",
    "false",
    "null",
    " a",
    "a ",
    "-",
    "- a",
    "5",
    "05",
    "1e5",
    "-1",
    "a:b",
    "a,b",
    'a"b',
    "a\\b",
    "[a",
    "a\nb",
    "a\tb",
    "#a",
  ])("is not %j", (one) => {
    expect(isPlain(one)).toBe(false);
  });

  it("comes back from the line that it is printed into, and so does any other", () => {
    const template = "k: {{ event.payload }}";
    fc.assert(
      fc.property(fc.oneof(text, fc.string()), (one) => {
        fc.pre(!/[^\n\t\x20-\x7e]/.test(one));
        expect(decode(render(template, one))).toEqual({ k: one });
      }),
      { numRuns: 500 },
    );
  });
});

describe("a table that is written without the encoder", () => {
  const odd = fc.constantFrom(
    "",
    "true",
    "-",
    "5",
    "1e5",
    "a:b",
    "a,b",
    "[a",
    "a}",
    'a"b',
    "a\\b",
    "a\nb",
    " a",
    "a ",
    "#a",
    "é:",
  );
  const scalar = fc.oneof(
    odd,
    fc.string(),
    fc.integer(),
    fc.double({ noNaN: true, noDefaultInfinity: true }),
    fc.boolean(),
    fc.constant(null),
  );
  const key = fc.constantFrom("a", "b", "tool_name", "_", "T1", "a.b", "a b", "1", "");
  const row = fc.oneof(
    { weight: 4, arbitrary: fc.record({ a: scalar, b: scalar }) },
    fc.dictionary(key, scalar, { noNullPrototype: true }),
    fc.record({ b: scalar, a: scalar }),
    fc.record({ a: fc.oneof(scalar, fc.record({ c: scalar }), fc.array(scalar)), b: scalar }),
    scalar,
  );
  const rows = fc.oneof(
    fc.array(fc.record({ a: scalar, tool_name: scalar })),
    fc.array(row),
    fc.array(fc.array(row)),
    scalar,
  );

  const value = fc.oneof(rows, fc.dictionary(key, rows, { maxKeys: 2, noNullPrototype: true }));
  const unseen = fc.constantFrom("\u200b", "\u202ea", "a\u0000b", "\ud800", "é\u2028", "\u{e0041}");

  it("is as the encoder writes it, and so is whatever is none", () => {
    const template = compileTemplate("{{ toon(event.payload) }}", "test.j2");
    fc.assert(
      fc.property(value, (one) => {
        expect(template.render(contextOf(one), true)).toBe(encode(one));
      }),
      { numRuns: 5_000 },
    );
  });

  it("is the one of a copy, as is what stops it, whatever is to be cleaned and wherever a limit is", () => {
    const cell = fc.oneof(scalar, unseen, fc.string({ unit: fc.oneof(unseen, fc.constantFrom(..."ab :,")) }));
    const table = fc.record({ rows: fc.array(fc.record({ a: cell, b: cell })) });
    const limits = fc.record({
      steps: fc.integer({ min: 0, max: 400 }),
      depth: fc.integer({ min: 2, max: 8 }),
      outputChars: fc.integer({ min: 0, max: 120 }),
    });
    fc.assert(
      fc.property(fc.oneof(table, value), limits, (one, tight) => {
        for (const bounds of [TEMPLATE_LIMITS, tight]) {
          const template = compileTemplate("k:\n  {{ toon(event.payload) }}", "test.j2", bounds);
          expect(outcome(template, one, true)).toBe(outcome(template, one, false));
        }
      }),
      { numRuns: 3_000 },
    );
  });

  it("and so is a text alone", () => {
    fc.assert(
      fc.property(fc.oneof(odd, fc.string(), fc.string({ unit: fc.constantFrom(...'a:,"\\[]{} -#5') })), (text) => {
        expect(toonScalar(text)).toBe(encode(text));
      }),
      { numRuns: 5_000 },
    );
  });
});

describe("the time of day", () => {
  const two = (max: number) => fc.integer({ min: 0, max }).map((number) => `${number}`.padStart(2, "0"));
  const iso = fc
    .tuple(
      fc.integer({ min: 0, max: 9_999 }).map((year) => `${year}`.padStart(4, "0")),
      two(13),
      two(32),
      fc.constantFrom("T", "t", " "),
      two(25),
      two(61),
      two(61),
      fc.constantFrom("", ".1", ".000", ".999", ".123456789"),
      fc.constantFrom("Z", "z", "", "+01:00", "-0530"),
    )
    .map(([year, month, day, t, hour, minute, second, fraction, zone]) => {
      return `${year}-${month}-${day}${t}${hour}:${minute}:${second}${fraction}${zone}`;
    });

  it("is that of the time, however it is written", () => {
    const template = compileTemplate('k: {{ toon(event.payload | time | default("none")) }}', "test.j2");
    fc.assert(
      fc.property(iso, (one) => {
        const ms = isoMs(one);
        const expected = ms === undefined ? "none" : new Date(ms).toISOString().slice(-13, -5);
        expect(decode(template.render(contextOf(one)))).toEqual({ k: expected });
      }),
      { numRuns: 5_000 },
    );
  });
});
