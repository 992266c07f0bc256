/** Templates and contexts that mean harm: each ends soon, with a `TemplateError`. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Json } from "../../domain/json.js";
import {
  compileTemplate,
  TEMPLATE_LIMITS,
  type TemplateContext,
  TemplateError,
  type TemplateLimits,
} from "./template.js";

const EVENTS = Array.from({ length: 1000 }, (_, index) => ({
  type: "tool.call.failure",
  payload: { tool_name: `tool${index}`, long: index === 0 ? "ab".repeat(15_000) : "", list: [1, "a", null] },
}));

function contextOf(events: readonly Json[]): TemplateContext {
  return {
    event: events[0] ?? null,
    events,
    count: events.length,
    subscriber: { id: "x" },
    now: "2026-01-03T15:33:05Z",
  };
}

function errorOf(source: string, limits?: TemplateLimits, context = contextOf(EVENTS)): TemplateError {
  let text: string;
  try {
    text = compileTemplate(source, "hostile.j2", limits).render(context);
  } catch (error) {
    if (error instanceof TemplateError) return error;
    throw error;
  }
  throw new Error(`it was rendered: ${text.slice(0, 100)}`);
}

const times = (count: number, text: string) => text.repeat(count);
const loop = (body: string) => `{% for one in events %}${body}{% endfor %}`;

describe("a template that leads to JavaScript's own machinery is refused", () => {
  it.each([
    "{{ ''.constructor }}",
    "{{ event.__proto__ }}",
    "{{ event.constructor }}",
    "{{ event['constructor'] }}",
    '{{ event.constructor.constructor("return process")() }}',
    "{{ toon.constructor('return 1')() }}",
    "{{ [].prototype }}",
    "{{ {'__proto__': 1} }}",
    "{% set ns = namespace() %}{% set ns.__proto__ = 1 %}",
    "{{ events | pick(constructor='type') }}",
    "{{ event.type.toString() }}",
    "{{ process }}",
    "{{ globalThis }}",
    "{{ this }}",
    "{{ require('fs') }}",
    "{{ range(10000000) }}",
    "{{ cycler(1) }}",
    "{{ lipsum() }}",
    "{{ self }}",
  ])("%s", (source) => {
    expect(errorOf(source).kind).toBe("syntax");
  });

  it.each([
    "{{ event['__pro' ~ 'to__'] }}",
    "{% set key = 'construct' ~ 'or' %}{{ event[key] }}",
    "{{ events | map(attribute='constructor') | first }}",
    "{{ events | map(attribute='payload.__proto__.x') | first }}",
    "{{ events | selectattr('constructor') | length }}",
    "{{ events | sort(attribute='prototype') | length }}",
    "{{ events | pick(a='constructor.name') | length }}",
  ])("while it runs: %s", (source) => {
    const error = errorOf(source);
    expect(error.kind).toBe("runtime");
    expect(error.reason).toContain("no key that a template may ask for");
  });

  it("names of inherited things are just not there", () => {
    const source =
      "{% for x in [event.toString, event['hasOwnProperty'], [].map, ''.length, ''.__class__] %}{{ x is defined }} {% endfor %}|";
    expect(compileTemplate(source, "x").render(contextOf(EVENTS))).toBe("false false false false false |");
  });

  it("no getter, function or instance of a class is ever touched", () => {
    let calls = 0;
    const touch = () => {
      calls++;
      return "touched";
    };
    const event = Object.defineProperties({} as Record<string, unknown>, {
      getter: { enumerable: true, get: touch },
      method: { enumerable: true, value: touch },
      date: { enumerable: true, value: new Date(0) },
      toJSON: { enumerable: true, value: touch },
      list: { enumerable: true, value: Object.defineProperty([1], 0, { enumerable: true, get: touch }) },
      proxy: { enumerable: true, value: new (class Secret {})() },
    }) as Json;
    const source =
      "{{ event.getter is defined }}{{ event.method is defined }}{{ event.date is defined }}{{ event.proxy is defined }}" +
      "{{ event.list[0] is defined }}{% for x in event.list %}{{ x is defined }}{% endfor %}{{ 'touched' in event.list }}" +
      "{{ event == event }}{{ event.list | tojson }}\n{{ toon(event) }}\n{{ event }}";
    const text = compileTemplate(source, "x").render(contextOf([event]));
    expect(text).not.toContain("touched");
    expect(calls).toBe(0);
  });
});

describe("a template that asks for too much is stopped", () => {
  it.each<[string, string]>([
    ["loops that multiply", loop(loop(loop("")))],
    ["a loop over what a loop made", `{% set ns = namespace(a=events) %}${loop("{% set ns.a = ns.a + ns.a %}")}`],
    ["text that doubles", `{% set ns = namespace(a="xx") %}${loop("{% set ns.a = ns.a ~ ns.a %}")}`],
    ["text that doubles by +", `{% set ns = namespace(a="xx") %}${loop("{% set ns.a = ns.a + ns.a %}")}`],
    ["text that doubles by join", `{% set ns = namespace(a="xx") %}${loop("{% set ns.a = [ns.a, ns.a] | join %}")}`],
    [
      "text that doubles by replace",
      `{% set ns = namespace(a="x") %}${loop("{% set ns.a = ns.a | replace('x', 'xx') %}")}`,
    ],
    ["text that grows by escapes", `{% set ns = namespace(a='"') %}${loop("{% set ns.a = toon(ns.a) ~ '' %}")}`],
    ["text that grows by JSON", `{% set ns = namespace(a='"') %}${loop("{% set ns.a = ns.a | tojson %}")}`],
    [
      "lists that hold lists",
      `{% set ns = namespace(a=[1]) %}${loop("{% set ns.a = [ns.a, ns.a] %}")}{{ toon(ns.a) }}`,
    ],
    [
      "lists that look far larger than they are",
      `{% set ns = namespace(a=[1]) %}{% for x in events[:40] %}{% set ns.a = [ns.a, ns.a] %}{% endfor %}{{ ns.a }}`,
    ],
    [
      "such lists compared",
      `{% set ns = namespace(a=[1], b=[1]) %}{% for x in events[:40] %}{% set ns.a = [ns.a, ns.a] %}{% set ns.b = [ns.b, ns.b] %}{% endfor %}{{ ns.a == ns.b }}`,
    ],
    [
      "such lists made unique",
      `{% set ns = namespace(a=[1]) %}${loop("{% set ns.a = ns.a + [ns.a] %}")}{{ ns.a | unique }}`,
    ],
    ["gigantic output", loop(times(100, "0123456789"))],
    ["gigantic output of values", loop("{{ event.payload.long }}")],
    ["gigantic output of TOON", "{{ toon(events) }}"],
    ["sorting again and again", loop("{% set x = events | sort(attribute='payload.tool_name') %}")],
    ["searching a long text", loop("{% set x = (event.payload.long[:9000] ~ 'c') in event.payload.long %}")],
    ["counting a long text", loop("{% set x = event.payload.long | length %}")],
    [
      "powers of powers",
      `{% set ns = namespace(a=9) %}${loop("{% set ns.a = ns.a * 9 // 8 %}")}${loop(loop("{{ ns.a }}"))}`,
    ],
  ])("%s", (_, source) => {
    expect(errorOf(source).kind).toBe("limit");
  });

  it.each<[string, string]>([
    ["brackets", `{{ ${times(400, "(")}1${times(400, ")")} }}`],
    ["lists", `{{ ${times(400, "[")}${times(400, "]")} }}`],
    ["signs", `{{ ${times(500, "- ")}1 }}`],
    ["not", `{{ ${times(400, "not ")}1 }}`],
    ["sums", `{{ 1${times(400, " + 1")} }}`],
    ["choices", `{{ ${times(100, "1 if 0 else ")}1 }}`],
    ["filters", `{{ 1${times(300, " | abs")} }}`],
    ["members", `{{ event${times(300, ".a")} }}`],
    ["calls", `{{ toon${times(300, "()")} }}`],
    ["ifs", `${times(500, "{% if 1 %}")}${times(500, "{% endif %}")}`],
    ["loops", `${times(300, "{% for x in events %}")}${times(300, "{% endfor %}")}`],
    ["parts of a tag", `{{ [${times(700, "1,")}] }}`],
    ["a tag", `{{ "${times(3000, "x")}" }}`],
    ["blanks in a tag", `{{ ${times(30_000, " ")} }}`],
    ["text", times(40_000, " ")],
  ])("before it runs: too many or too long %s", (what, source) => {
    // What was called is no name, so that is said first.
    expect(errorOf(source).kind).toBe(what === "calls" ? "syntax" : "limit");
  });

  it("a chain of elif is no nesting", () => {
    const source = `{% if count == 0 %}0${Array.from({ length: 300 }, (_, n) => `{% elif count == ${n + 1} %}${n + 1}`).join("")}{% endif %}`;
    expect(compileTemplate(source, "x").render(contextOf(EVENTS.slice(0, 250)))).toBe("250");
  });

  it("nothing can be made to hold itself", () => {
    expect(errorOf("{% set ns = namespace() %}{% set ns.self = ns %}").kind).toBe("runtime");
    expect(errorOf("{% set ns = namespace() %}{% set ns.self = [ns] %}").kind).toBe("runtime");
    expect(errorOf("{% set ns = namespace() %}{% set x = {'a': ns} %}").kind).toBe("runtime");
    // Each list holds the one before it, as it was.
    const source = "{% set a = [1] %}{% set a = [a] %}{% set a = [a] %}{{ a | tojson }}";
    expect(compileTemplate(source, "x").render(contextOf(EVENTS))).toBe('"[[[1]]]"');
  });

  it("says where, and keeps to the limits it was given", () => {
    const tight = { steps: 100, depth: 3, outputChars: 20 };
    expect(errorOf(`a\n${loop("x")}`, tight)).toMatchObject({ kind: "limit", line: 2 });
    expect(errorOf("\n{{ 'x' ~ event.payload.tool_name ~ 'y' ~ 'z' ~ 'u' }}", tight)).toMatchObject({
      kind: "limit",
      line: 2,
    });
    expect(errorOf("0123456789\n0123456789", tight)).toMatchObject({ kind: "limit" });
    expect(compileTemplate("0123456789\n012345678", "x", tight).render(contextOf(EVENTS))).toHaveLength(20);
    // Quotes and escapes are part of the output.
    expect(
      errorOf("{{ '\"' ~ (event.payload.list | length) ~ '\"' ~ '\\n\\n\\n\\n\\n\\n\\n' }}", { ...tight, depth: 9 })
        .kind,
    ).toBe("limit");
  });

  it("a text on the way has its own limit, and so has the depth of a value", () => {
    const loose = { steps: 1_000_000, depth: 30, outputChars: 1_000 };
    const doubled = `{% set ns = namespace(a="x") %}{% for x in events[:15] %}{% set ns.a = ns.a ~ ns.a %}{% endfor %}`;
    expect(errorOf(doubled, loose).reason).toBe("makes a text of more than 4000 characters");
    const nested = (use: string) =>
      `{% set ns = namespace(a=[], b=[]) %}{% for x in events[:40] %}{% set ns.a = [ns.a] %}{% set ns.b = [ns.b] %}{% endfor %}${use}`;
    for (const use of ["{{ toon(ns.a) }}", "{{ ns.a | tojson }}", "{{ ns.a }}", "{{ ns.a == ns.b }}"])
      expect(errorOf(nested(use), loose).reason).toBe("a value is nested deeper than 30 levels");
  });

  it("a render that goes well leaves the limits as they are for the next", () => {
    const template = compileTemplate(loop("{{ loop.index }}"), "x", { ...TEMPLATE_LIMITS, steps: 2_000 });
    const context = contextOf(EVENTS.slice(0, 100));
    const first = template.render(context);
    for (let index = 0; index < 20; index++) expect(template.render(context)).toBe(first);
  });
});

describe("whatever the template is", () => {
  const words = [
    ...["event", "events", "count", "subscriber", "now", "loop", "x", "ns", "payload", "tool_name", "list", "long"],
    ...[
      "true",
      "none",
      "1",
      "0",
      "-1",
      "2.5",
      "99999999999",
      "'a'",
      '"b\\n"',
      "''",
      "and",
      "or",
      "not",
      "in",
      "is",
      "if",
      "else",
    ],
    ...[
      "defined",
      "string",
      "(",
      ")",
      "[",
      "]",
      "{",
      "}",
      ",",
      ".",
      ":",
      "|",
      "+",
      "-",
      "*",
      "/",
      "//",
      "%",
      "**",
      "~",
      "=",
      "==",
    ],
    ...[
      "<",
      ">=",
      "!=",
      "toon",
      "ago",
      "truncate",
      "namespace",
      "range",
      "constructor",
      "__proto__",
      "default",
      "length",
    ],
    ...["join", "sort", "map", "unique", "first", "items", "tojson", "replace", "round", "int", "pick", "selectattr"],
    ...["attribute", "'payload.tool_name'", "'", '"', "\\", "#", "$", "\n", " ", "\u202e", "😀"],
  ];
  const expression = fc.array(fc.constantFrom(...words), { maxLength: 12 }).map((parts) => parts.join(" "));
  const sensible = fc.oneof(
    fc.constantFrom(
      "event.payload.tool_name",
      "events",
      "event.payload",
      "x",
      "count",
      "'a'",
      "[1, 'b']",
      "{'k': events}",
    ),
    fc
      .tuple(
        fc.constantFrom("events", "event", "x", "'text'", "count", "[3, 1]", "event.payload.long"),
        fc.constantFrom(
          "length",
          "upper",
          "first",
          "sort",
          "unique",
          "tojson",
          "items",
          "join('-')",
          "int",
          "round",
          "list",
        ),
        fc.constantFrom("string", "last", "reverse", "truncate(5)", "default(1)", "map('upper')", "sum", "max", "time"),
      )
      .map((parts) => parts.join(" | ")),
    fc
      .tuple(
        fc.constantFrom("event", "count", "x", "'a'", "[1]"),
        fc.constantFrom("+", "~", "in", "<", "and", "*", "=="),
        fc.constantFrom("events", "2", "x", "'b'", "[x]"),
      )
      .map((parts) => parts.join(" ")),
  );
  const tag = fc.oneof(
    expression.map((text) => `{{ ${text} }}`),
    expression.map((text) => `{% ${text} %}`),
    sensible.map((text) => `{{ ${text} }}`),
    sensible.map((text) => `k: {{ toon(${text}) }}\n`),
    sensible.map((text) => `{% set x = ${text} %}`),
    sensible.map((text) => `{% if ${text} %}`),
    sensible.map((text) => `{% for x in ${text} %}`),
    fc.constantFrom(
      "{% else %}",
      "{% endif %}",
      "{% endfor %}",
      "{% set ns = namespace(x=1) %}",
      "{% set ns.x = [ns.x, ns.x] %}",
    ),
    fc.constantFrom("{{", "}}", "{%", "%}", "{#", "#}", "{%-", "-}}", "text ", "\n", "  ", "key: ", "- "),
  );
  const limits: TemplateLimits = { steps: 2_000, depth: 12, outputChars: 500 };
  const context = contextOf(EVENTS.slice(0, 5));

  /** A context that is known to be plain is read in a shorter way. */
  const answerTo = (source: string, plain: boolean) => {
    try {
      return compileTemplate(source, "fuzz.j2", limits).render(context, plain);
    } catch (error) {
      return error;
    }
  };

  function outcomeOf(source: string): "rendered" | TemplateError["kind"] {
    try {
      const text = compileTemplate(source, "fuzz.j2", limits).render(context);
      expect(text.length).toBeLessThanOrEqual(limits.outputChars);
      return "rendered";
    } catch (error) {
      if (!(error instanceof TemplateError)) throw error;
      return error.kind;
    }
  }

  it("it is rendered, or refused with a TemplateError", () => {
    const seen = new Set<string>();
    fc.assert(
      fc.property(fc.array(tag, { maxLength: 8 }), (tags) => {
        seen.add(outcomeOf(tags.join("")));
        expect(answerTo(tags.join(""), true)).toEqual(answerTo(tags.join(""), false));
      }),
      { numRuns: 3_000 },
    );
    expect([...seen].sort()).toEqual(["limit", "rendered", "runtime", "syntax"]);
  });

  it("so is any closed nesting of sensible tags", () => {
    const { node } = fc.letrec<{ node: string }>((tie) => ({
      node: fc.oneof(
        { maxDepth: 4 },
        sensible.map((text) => `{{ ${text} }}\n`),
        fc.array(tie("node"), { maxLength: 3 }).map((inner) => inner.join("")),
        fc
          .tuple(sensible, tie("node"), tie("node"))
          .map(([text, yes, no]) => `{% if ${text} %}${yes}{% else %}${no}{% endif %}`),
        fc.tuple(sensible, tie("node")).map(([text, inner]) => `{% for x in ${text} %}${inner}{% endfor %}`),
        fc.tuple(sensible, tie("node")).map(([text, inner]) => `{% set x = ${text} %}${inner}`),
      ),
    }));
    const seen = new Set<string>();
    fc.assert(
      fc.property(node, (source) => {
        seen.add(outcomeOf(`{% set x = 1 %}${source}`));
      }),
      { numRuns: 2_000 },
    );
    expect([...seen].sort()).toEqual(["limit", "rendered", "runtime"]);
  });

  it("so is any text at all", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 200 }), (source) => {
        outcomeOf(source);
        outcomeOf(`{{ ${source} }}`);
        outcomeOf(`{% set x = ${source} %}`);
      }),
      { numRuns: 500 },
    );
  });
});
