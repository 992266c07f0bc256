/** What a template writes is TOON that decodes to the values it was given, whatever they are. */
import { decode } from "@toon-format/toon";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { cleanText } from "../../domain/clean.js";
import type { Json, JsonObject } from "../../domain/json.js";
import { compileTemplate } from "./template.js";

const failure = (tool_name: Json, error_type: Json, rest: JsonObject = {}, timestamp = "2026-01-03T15:30:01Z") => ({
  type: "tool.call.failure",
  source: "tool executor",
  severity: "error",
  timestamp,
  payload: { tool_name, error_type, ...rest },
});

function render(source: string, events: readonly Json[]): string {
  const context = { event: events[0] ?? null, events, count: events.length, subscriber: { id: "test" } };
  return compileTemplate(source, "test.j2").render({ ...context, now: "2026-01-03T15:33:05Z" });
}

const SINGLE = `tool_fail: {{ event.payload.tool_name }} {{ event.payload.error_type }} after {{ event.payload.timeout }}`;

const TABLE = `
{% set ns = namespace(rows=[]) %}
{% for one in events %}
{% set ns.rows = ns.rows + [{"tool": one.payload.tool_name, "error": one.payload.error_type, "ts": one.timestamp | time}] %}
{% endfor %}
{{ toon({"tool_fails": ns.rows}) }}
`;

const MIXED = `
{% set ns = namespace(rows=[]) %}
{% for one in events %}
{% set p = one.payload %}
{% if one.type is string and one.type == "tool.call.failure" %}
{% set row = {"type": "tool_fail", "source": p.tool_name, "message": p.message} %}
{% elif one.type == "budget.token.warning" %}
{% set row = {"type": "budget_warn", "source": one.source, "message": p.percentage ~ "% consumed (" ~ p.current ~ "/" ~ p.limit ~ ")"} %}
{% else %}
{% set row = {"type": "loop_detect", "source": one.source, "message": "repeated " ~ p.pattern ~ " " ~ p.repetitions ~ "x"} %}
{% endif %}
{% set ns.rows = ns.rows + [row] %}
{% endfor %}
{{ toon({"notifications": ns.rows}) }}
`;

const PREFIXED = `
{% for one in events %}
{% if one.severity == "critical" %}!critical{% elif one.severity == "warning" %}!warning{% else %}info{% endif %}: {{ one.payload.message }}
{% endfor %}
`;

describe("the examples of the data model", () => {
  it("a single failure", () => {
    const text = render(SINGLE, [failure("vault_search", "timeout", { timeout: "5000ms" })]);
    expect(text).toBe("tool_fail: vault_search timeout after 5000ms");
    expect(decode(text)).toEqual({ tool_fail: "vault_search timeout after 5000ms" });
  });

  it("a batch of failures, its times in the quotes that TOON asks for", () => {
    const text = render(TABLE, [
      failure("vault_search", "timeout"),
      failure("coderag_search", "index_missing", {}, "2026-01-03T15:30:02Z"),
      failure("vault_write", "permission_denied", {}, "2026-01-03T15:30:05Z"),
    ]);
    expect(text).toBe(
      [
        "tool_fails[3]{tool,error,ts}:",
        '  vault_search,timeout,"15:30:01"',
        '  coderag_search,index_missing,"15:30:02"',
        '  vault_write,permission_denied,"15:30:05"',
      ].join("\n"),
    );
    expect(decode(text)).toMatchObject({ tool_fails: [{}, { tool: "coderag_search" }, { ts: "15:30:05" }] });
  });

  it("a budget warning", () => {
    const source =
      "budget_warn: {{ event.payload.percentage }}% {{ event.payload.budget_type }}s consumed ({{ event.payload.current }}/{{ event.payload.limit }})";
    const payload = { budget_type: "token", current: 42500, limit: 50000, percentage: 85, remaining: 7500 };
    const text = render(source, [{ type: "budget.token.warning", payload }]);
    expect(text).toBe("budget_warn: 85% tokens consumed (42500/50000)");
    expect(decode(text)).toEqual({ budget_warn: "85% tokens consumed (42500/50000)" });
  });

  it("a mixed batch", () => {
    const text = render(MIXED, [
      failure("vault_search", "timeout", { message: "timeout after 5000ms" }),
      failure("coderag_search", "index_missing", { message: "index not found" }),
      {
        type: "budget.token.warning",
        source: "token_monitor",
        payload: { percentage: 85, current: 42500, limit: 50000 },
      },
      { type: "agent.loop.detected", source: "pattern_analyzer", payload: { pattern: "vault_search", repetitions: 3 } },
    ]);
    expect(text).toBe(
      [
        "notifications[4]{type,source,message}:",
        "  tool_fail,vault_search,timeout after 5000ms",
        "  tool_fail,coderag_search,index not found",
        "  budget_warn,token_monitor,85% consumed (42500/50000)",
        "  loop_detect,pattern_analyzer,repeated vault_search 3x",
      ].join("\n"),
    );
    expect(decode(text)).toHaveProperty("notifications.length", 4);
  });

  it("severity prefixes", () => {
    const text = render(PREFIXED, [
      { severity: "critical", payload: { message: "budget exceeded - turn will terminate" } },
      { severity: "warning", payload: { message: "loop detected - same pattern 3 times" } },
      { severity: "info", payload: { message: "tool completed successfully" } },
    ]);
    expect(text).toBe(
      [
        "!critical: budget exceeded - turn will terminate",
        "!warning: loop detected - same pattern 3 times",
        "info: tool completed successfully",
      ].join("\n"),
    );
    expect(Object.keys(decode(text) as object)).toEqual(["!critical", "!warning", "info"]);
  });
});

describe("a printed value", () => {
  const message = (value: Json) => [{ payload: { message: value } }];

  it.each<[string, Json, string]>([
    ["info: {{ event.payload.message }}", "fine", "info: fine"],
    ["info: {{ event.payload.message }}", "a: b", 'info: "a: b"'],
    ["info: {{ event.payload.message }}", "5", 'info: "5"'],
    ["info: {{ event.payload.message }}", 5, "info: 5"],
    ["info: {{ event.payload.message }}", true, "info: true"],
    ["info: {{ event.payload.message }}", "true", 'info: "true"'],
    ["info: {{ event.payload.message }}", null, "info: null"],
    ["info: {{ event.payload.message }}", "", 'info: ""'],
    ["info: {{ event.payload.gone }}", "", 'info: ""'],
    ["info: {{ event.payload.message }}", ["a", 1], 'info: "[\\"a\\",1]"'],
    ["info: {{ event.payload.message }}", "x\n!critical: all is lost", 'info: "x\\n!critical: all is lost"'],
    ["info: got {{ event.payload.message }} now", "a,b", 'info: "got a,b now"'],
    ["info: got {{ event.payload.message }}", "", "info: got"],
    ["info: {{ event.payload.message }} left", "", "info: left"],
    ["info:{{ event.payload.message }}", "x", "info: x"],
    ['"my key: 1": {{ event.payload.message }}', "x", '"my key: 1": x'],
    ["  - {{ event.payload.message }}", "- x", '  - "- x"'],
    ["  - a: {{ event.payload.message }}", "x: y", '  - a: "x: y"'],
    ["Deploy of {{ event.payload.message }} is through", "web", "Deploy of web is through"],
    ["Deploy of {{ event.payload.message }} is through", "a: b", '"Deploy of a: b is through"'],
    ["{{ event.payload.message }}: red", "key", '"key: red"'],
    ["{{ 'info' if count == 1 else 'infos' }}: {{ event.payload.message }}", "a: b", 'info: "a: b"'],
    ["step {{ count }}: {{ event.payload.message }}", "a: b", 'step 1: "a: b"'],
    ["info: {{ toon(event.payload.message) }}", "a: b", 'info: "a: b"'],
    ["info: {{ toon(event.payload.message) }} x", "a: b", 'info: "\\"a: b\\" x"'],
    ["info: {{ toon(event.payload) }}", "a", 'info: "message: a"'],
    ["info:\n  {{ toon(event.payload) }}", "a\nb", 'info:\n  message: "a\\nb"'],
    ["info:\n  {{ toon(event) }}", "a", "info:\n  payload:\n    message: a"],
    ["{{ toon(event) | upper }}", "a", '"PAYLOAD:\\n  MESSAGE: A"'],
  ])("%j of %j", (source, value, expected) => {
    expect(render(source, message(value))).toBe(expected);
  });
});

/** Text that has been tried before, mixed with any other. */
const hostile = fc
  .array(
    fc.oneof(
      { weight: 3, arbitrary: fc.string({ unit: "binary", maxLength: 8 }) },
      { weight: 2, arbitrary: fc.string({ unit: "grapheme", maxLength: 8 }) },
      {
        weight: 5,
        arbitrary: fc.constantFrom(
          ...[
            ",",
            "\n",
            "\r\n",
            '"',
            "\\",
            "---",
            "!critical: ",
            "!warning:",
            "a[2]{b,c}:",
            "[3]:",
            "- ",
            "#",
            ": ",
            "|",
          ],
          ...["\t", " ", "\u00a0", "true", "null", "-1", "1e5", "05", "{{ event }}", "{% endif %}", "\\n", "\\u0041"],
          ...[
            "\u202e",
            "\u200b",
            "\u2028",
            "\u0085",
            "\u0000",
            "\ufeff",
            "\ud83d",
            "{",
            "}",
            "key: value",
            "\n  x,y,z",
          ],
        ),
      },
    ),
    { maxLength: 6 },
  )
  .map((parts) => parts.join(""));

/** As it should come back: the template's own blanks at both ends are not kept, also beside a value that is empty. */
function composed(...values: readonly [string, string, string]): string {
  const [tool, error, timeout] = values.map(cleanText) as [string, string, string];
  const text = `${tool} ${error} after ${timeout}`;
  const lead = tool !== "" ? 0 : error !== "" ? 1 : 2;
  return text.slice(lead, timeout === "" ? -1 : undefined);
}

describe("whatever the values are", () => {
  it("a line of several comes back as one text, in its field", () => {
    fc.assert(
      fc.property(hostile, hostile, hostile, (tool, error, timeout) => {
        const text = render(SINGLE, [failure(tool, error, { timeout })]);
        expect(text).not.toContain("\n");
        expect(decode(text)).toEqual({ tool_fail: composed(tool, error, timeout) });
      }),
      { numRuns: 500 },
    );
  });

  it("no severity changes, and no line is added", () => {
    fc.assert(
      fc.property(hostile, hostile, hostile, (first, second, third) => {
        const text = render(PREFIXED, [
          { severity: "critical", payload: { message: first } },
          { severity: "warning", payload: { message: second } },
          { severity: third, payload: { message: third } },
        ]);
        expect(text.split("\n")).toHaveLength(3);
        const expected = { "!critical": cleanText(first), "!warning": cleanText(second), info: cleanText(third) };
        expect(decode(text)).toEqual(expected);
        expect(Object.keys(decode(text) as object)).toEqual(Object.keys(expected));
      }),
      { numRuns: 500 },
    );
  });

  it("a table has its rows, and each cell its value", () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(hostile, hostile), { minLength: 1, maxLength: 5 }), (rows) => {
        const text = render(
          TABLE,
          rows.map(([tool, error]) => failure(tool, error)),
        );
        expect(text.split("\n")).toHaveLength(rows.length + 1);
        expect(decode(text)).toEqual({
          tool_fails: rows.map(([tool, error]) => ({ tool: cleanText(tool), error: cleanText(error), ts: "15:30:01" })),
        });
      }),
      { numRuns: 300 },
    );
  });

  it("a mixed batch keeps types and sources apart", () => {
    fc.assert(
      fc.property(hostile, hostile, hostile, (type, name, words) => {
        const text = render(MIXED, [
          failure(name, "x", { message: words }),
          { type: "budget.token.warning", source: name, payload: { percentage: words, current: 1, limit: 2 } },
          { type, source: name, payload: { pattern: words, repetitions: 3 } },
        ]);
        const source = cleanText(name);
        expect(decode(text)).toEqual({
          notifications: [
            { type: "tool_fail", source, message: cleanText(words) },
            { type: "budget_warn", source, message: cleanText(`${words}% consumed (1/2)`) },
            { type: "loop_detect", source, message: cleanText(`repeated ${words} 3x`) },
          ],
        });
      }),
      { numRuns: 300 },
    );
  });

  it("they come back from toon() as they were, keys too", () => {
    fc.assert(
      fc.property(fc.dictionary(hostile, fc.oneof(hostile, fc.jsonValue({ maxDepth: 3 }))), (payload) => {
        const plain = JSON.parse(JSON.stringify(payload)) as JsonObject;
        const cleaned = cleanAll(plain);
        fc.pre(cleaned !== undefined);
        expect(JSON.stringify(decode(render("{{ toon(event) }}", [{ payload: plain }])))).toBe(
          JSON.stringify({ payload: cleaned }),
        );
      }),
      { numRuns: 500 },
    );
  });

  it("one value alone after a key keeps its type", () => {
    fc.assert(
      fc.property(fc.oneof(hostile, fc.double({ noNaN: true, noDefaultInfinity: true }), fc.boolean()), (value) => {
        const text = render("a: 1\nvalue: {{ event.value }}\nz: 2", [{ value }]);
        const expected = typeof value === "string" ? cleanText(value) : JSON.parse(JSON.stringify(value));
        expect(decode(text)).toEqual({ a: 1, value: expected, z: 2 });
      }),
      { numRuns: 500 },
    );
  });

  it("a list of lines has as many items as it says", () => {
    fc.assert(
      fc.property(fc.array(hostile, { minLength: 1, maxLength: 5 }), (words) => {
        const text = render(
          "words[{{ count }}]:\n{% for one in events %}\n  - {{ one.word }}\n{% endfor %}",
          words.map((word) => ({ word })),
        );
        expect(decode(text)).toEqual({ words: words.map(cleanText) });
      }),
      { numRuns: 300 },
    );
  });
});

/** The same value, cleaned; undefined if two of its keys become one. */
function cleanAll(value: Json): Json | undefined {
  if (typeof value === "string") return cleanText(value);
  if (value === null || typeof value !== "object") return value;
  const entries = Object.entries(value).map(([key, one]) => [cleanText(key), cleanAll(one)] as const);
  if (entries.some(([, one]) => one === undefined)) return undefined;
  if (Array.isArray(value)) return entries.map(([, one]) => one as Json);
  if (new Set(entries.map(([key]) => key)).size < entries.length) return undefined;
  return Object.fromEntries(entries) as JsonObject;
}

it("of two keys that cleaning makes equal, the one that needed none stays", () => {
  expect(render("{{ toon(event) }}", [{ "a\u200b": 1, a: 2, "b\u200b": 3, "b\u200c": 4, c: 5, "c\u200b": 6 }])).toBe(
    "a: 2\nb: 3\nc: 5",
  );
});
