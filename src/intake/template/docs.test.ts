/** The examples of docs/TEMPLATES.md give what it says, and its tables name everything that there is. */
import { readFileSync } from "node:fs";
import { decode } from "@toon-format/toon";
import { describe, expect, it } from "vitest";
import { LIMITS } from "../../domain/limits.js";
import { FILTERS } from "./filters.js";
import { FUNCTIONS } from "./functions.js";
import { SOURCE_LIMITS, TEXT_FACTOR } from "./limits.js";
import { compileTemplate, TEMPLATE_LIMITS } from "./template.js";
import { TESTS } from "./tests.js";

const PAGE = readFileSync(new URL("../../../docs/TEMPLATES.md", import.meta.url), "utf8");
const EXAMPLES = [...PAGE.matchAll(/^```jinja\n(.*?)^```\n```json\n(.*?)^```\n```toon\n(.*?)^```/gms)];

describe("the examples", () => {
  it("are all there", () => {
    expect(EXAMPLES).toHaveLength([...PAGE.matchAll(/^```jinja/gm)].length);
    expect(EXAMPLES.length).toBeGreaterThanOrEqual(5);
  });

  it.each(EXAMPLES.map(([, ...parts]) => parts))("%s", (source = "", json = "", expected = "") => {
    const events = JSON.parse(json);
    const context = { event: events[0], events, count: events.length, subscriber: {}, now: "2026-01-03T15:33:05Z" };
    const text = compileTemplate(source, "example").render(context);
    expect(`${text}\n`).toBe(expected);
    expect(typeof decode(text)).toBe("object");
  });
});

it("the tables name every filter, function and test, and the limits as they are", () => {
  const names = [...FILTERS.keys(), "pick", ...FUNCTIONS.keys(), ...TESTS.keys()];
  expect(names.filter((name) => !new RegExp(`\`${name}[\`(]`).test(PAGE))).toEqual([]);
  const shown = [
    `${TEMPLATE_LIMITS.steps.toLocaleString("en")}: every`,
    `| ${TEMPLATE_LIMITS.depth} |`,
    `| ${TEMPLATE_LIMITS.outputChars.toLocaleString("en")} characters |`,
    `| ${(TEMPLATE_LIMITS.outputChars * TEXT_FACTOR).toLocaleString("en")} characters |`,
    `| ${SOURCE_LIMITS.chars.toLocaleString("en")} characters; ${SOURCE_LIMITS.tagChars.toLocaleString("en")} characters and ${SOURCE_LIMITS.tagTokens.toLocaleString("en")} parts |`,
  ];
  expect(shown.filter((text) => !PAGE.includes(text))).toEqual([]);
  expect(TEMPLATE_LIMITS.outputChars).toBe(LIMITS.contentChars);
});
