/** Where a short way is taken for speed, it leads where the long one does. */
import { decode, encode } from "@toon-format/toon";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Json } from "../../domain/json.js";
import { isPlain } from "./output.js";
import { compileTemplate } from "./template.js";
import { isoMs } from "./time.js";

function render(source: string, payload: Json): string {
  const event = { payload };
  const context = { event, events: [event], count: 1, subscriber: {}, now: "2026-01-03T15:33:05Z" };
  return compileTemplate(source, "test.j2").render(context);
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
        const event = { payload: one };
        const context = { event, events: [event], count: 1, subscriber: {}, now: "2026-01-03T15:33:05Z" };
        expect(decode(template.render(context))).toEqual({ k: expected });
      }),
      { numRuns: 5_000 },
    );
  });
});
