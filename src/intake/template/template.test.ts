import { decode } from "@toon-format/toon";
import { describe, expect, it } from "vitest";
import type { Json } from "../../domain/json.js";
import { compileTemplate, TEMPLATE_LIMITS, type TemplateContext, TemplateError } from "./template.js";

const EVENT = {
  type: "tool.call.failure",
  severity: "error",
  timestamp: "2026-01-03T15:30:01Z",
  payload: {
    tool_name: "vault_search",
    retry_count: 2,
    ratio: 2.345,
    tags: ["b", "a", "b"],
    empty: [],
    nothing: null,
    yes: true,
    nested: { deep: { er: "x" } },
    rows: [
      { name: "one", n: 3, ok: true },
      { name: "two", n: 1, ok: false },
      { name: "three", n: 2, ok: true },
    ],
  },
};

function contextOf(events: readonly Json[]): TemplateContext {
  return {
    event: events[0] ?? null,
    events,
    count: events.length,
    subscriber: { id: "tool_failure", name: "Tool failures" },
    now: "2026-01-03T15:33:05Z",
  };
}

function render(source: string, events: readonly Json[] = [EVENT]): string {
  const template = compileTemplate(source, "test.j2");
  const text = template.render(contextOf(events));
  // What is known to be plain is read in a shorter way, and says the same.
  expect(template.render(contextOf(events), true)).toBe(text);
  return text;
}

function errorOf(source: string, events?: readonly Json[]): TemplateError {
  try {
    render(source, events);
  } catch (error) {
    if (error instanceof TemplateError) return error;
    throw error;
  }
  throw new Error(`no error: ${source}`);
}

/** What the expression gives, as JSON; undefined as null. */
function given(expression: string): unknown {
  const text = render(`{% set p = event.payload %}{{ ${expression} | tojson | string }}`);
  // Printed alone on its line it is one TOON string, whose quotes and escapes are those of JSON.
  return JSON.parse(text.startsWith('"') ? JSON.parse(text) : text);
}

describe("a name in a loop", () => {
  it("is what this turn has set, else what was set around it", () => {
    const turn = "{% if one == 2 %}{% set a = 9 %}{% endif %}{{ a }}";
    expect(render(`{% set a = 1 %}{% for one in [1, 2, 3] %}{{ a }}${turn} {% endfor %}{{ a }}`)).toBe("11 19 11 1");
  });

  it("is nothing before it is set, and has the value of the innermost loop", () => {
    const inner = "{% for one in [5, 6] if one > 5 %}{{ one }}{{ loop.index }}{% endfor %}";
    expect(render(`{% for one in [1, 2] %}{{ late is defined }}{% set late = 1 %}${inner}{{ one }} {% endfor %}`)).toBe(
      "false611 false612 ",
    );
  });
});

describe("text and blanks", () => {
  it("is written as it stands", () => {
    expect(render("a: b\n  c: [1]\nd: }} %} #}")).toBe("a: b\n  c: [1]\nd: }} %} #}");
  });

  it("loses empty lines before and after it", () => {
    expect(render("\n\n  \na: b\n\nc: d\n\n")).toBe("a: b\n\nc: d");
  });

  it("has no line for a line that holds only a statement or a comment", () => {
    expect(render("a: 1\n  {% if true %}\nb: 2\n  {% endif %}\n{# note #}\nc: 3")).toBe("a: 1\nb: 2\nc: 3");
  });

  it("gives up blanks and newlines beside a dash", () => {
    expect(render("a  \n {{- 1 -}} \n b")).toBe("a1b");
    expect(render("a \n {%- if true -%} \n b \n {%- endif -%} \n c")).toBe("abc");
    expect(render("a \n {#- note -#} \n b")).toBe("ab");
  });

  it("may have been written on another system", () => {
    expect(render("{% if true %}\r\na: 1\r\n{% endif %}\r\nb: 2\r\n")).toBe("a: 1\nb: 2");
  });

  it("may hold borders of tags inside texts and objects", () => {
    expect(render(`{{ "}}" ~ '%}' ~ "#}" }}`)).toBe("}}%}#}");
    expect(render(`{{ {"a": {"b": 1}}.a.b }}`)).toBe("1");
    expect(render(`{% set x = "%}" %}{{ x | length }}`)).toBe("2");
  });
});

describe("statements", () => {
  it("choose", () => {
    const source = "{% if count > 2 %}many{% elif count == 2 %}two{% else %}one{% endif %}";
    expect([1, 2, 3].map((length) => render(source, Array(length).fill(EVENT)))).toEqual(["one", "two", "many"]);
    expect(render("{% if false %}x{% endif %}y")).toBe("y");
  });

  it("go through lists, and know where they are", () => {
    expect(
      render(
        "{% for one in event.payload.rows %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.length }}{{ loop.first }}{{ loop.last }};{% endfor %}",
      ),
    ).toBe("10323truefalse;21213falsefalse;32103falsetrue;");
    expect(render("{% for x in event.payload.empty %}x{% else %}none{% endfor %}")).toBe("none");
    expect(render("{% for x in event.payload.missing %}x{% else %}none{% endfor %}")).toBe("none");
    expect(render("{% for x in event.payload.rows if x.ok %}{{ loop.length }}{{ x.n }} {% endfor %}|")).toBe("23 22 |");
    expect(render("{% for key in event.payload.nested %}{{ key }}{% endfor %}")).toBe("deep");
    expect(render("{% for k, v in event.payload.rows[0] | items %}{{ loop.index }}{{ v }}{% endfor %}")).toBe(
      "1one233true",
    );
    expect(
      render("{% for a in [1, 2] %}{% for b in [3] %}{{ loop.length }}{% endfor %}{{ loop.index }}{% endfor %}"),
    ).toBe("1112");
  });

  it("give names, in the scope that Jinja gives them", () => {
    expect(render("{% set a = 1 %}{% if true %}{% set a = 2 %}{% endif %}{{ a }}")).toBe("2");
    expect(render("{% set a = 1 %}{% for x in [1] %}{% set a = 2 %}{{ a }}{% endfor %}{{ a }}")).toBe("21");
    expect(render("{% for event in events %}{{ event.type }}{% endfor %}")).toBe("tool.call.failure");
  });

  it("keep what a loop gathers in a namespace", () => {
    expect(
      render(
        "{% set ns = namespace(n=0, all=[]) %}{% for x in [1, 2, 3] %}{% set ns.n = ns.n + x %}{% set ns.all = ns.all + [x] %}{% endfor %}{{ ns.n }} {{ ns.all | length }}",
      ),
    ).toBe("6 3");
  });
});

describe("expressions", () => {
  it.each<[string, unknown]>([
    ["1", 1],
    ["1.5", 1.5],
    ["-1", -1],
    ["'a' \"b\"", "ab"],
    ["'a\\n\\'b\\''", "a\n'b'"],
    ["[1, 'a', [true, false, none]]", [1, "a", [true, false, null]]],
    ["{'a': 1, 'b': {'c': []}}", { a: 1, b: { c: [] } }],
    ["[True, False, None, null]", [true, false, null, null]],
    ["p.tool_name", "vault_search"],
    ["p['tool_name']", "vault_search"],
    ["p['tool' ~ '_name']", "vault_search"],
    ["p.tags[0]", "b"],
    ["p.tags.1", "a"],
    ["p.tags[-1]", "b"],
    ["p.tags[9]", null],
    ["p.tags.length", null],
    ["p.missing.deeper[3].still", null],
    ["p.nested.deep.er", "x"],
    ["p.tool_name[0]", "v"],
    ["p.tool_name.length", null],
    ["p.tool_name[:5]", "vault"],
    ["p.tool_name[-6:]", "search"],
    ["'a😀b'[1:]", "😀b"],
    ["[0,1,2,3,4][1:4:2]", [1, 3]],
    ["[0,1,2][::-1]", [2, 1, 0]],
    ["[0,1,2][5:]", []],
    ["[0,1,2][:-1]", [0, 1]],
    ["1 + 2 * 3", 7],
    ["(1 + 2) * 3", 9],
    ["7 // 2", 3],
    ["-7 // 2", -4],
    ["-7 % 3", 2],
    ["7 / 2", 3.5],
    ["2 ** 3", 8],
    ["'a' + 'b'", "ab"],
    ["[1] + [2]", [1, 2]],
    ["'n' ~ 1 ~ true ~ none ~ p.missing ~ [1]", "n1truenull[1]"],
    ["1 < 2", true],
    ["2 >= 3", false],
    ["'a' < 'b'", true],
    ["[1, {'a': 2}] == [1, {'a': 2}]", true],
    ["[1] == [2]", false],
    ["1 == '1'", false],
    ["1 != 2", true],
    ["true and 0", 0],
    ["0 or 'x'", "x"],
    ["not []", true],
    ["not p", false],
    ["not '' and not 0 and not none and not {}", true],
    ["'a' in p.tags", true],
    ["'z' not in p.tags", true],
    ["'search' in p.tool_name", true],
    ["'ratio' in p", true],
    ["'toString' in p", false],
    ["'a' in none", false],
    ["1 if p.yes else 2", 1],
    ["1 if not p.yes else 2 if false else 3", 3],
    ["1 if false", null],
    ["p.missing is defined", false],
    ["p.nothing is defined", true],
    ["p.missing is undefined", true],
    ["p.nothing is none", true],
    ["p.tool_name is string", true],
    ["p.ratio is number", true],
    ["p.ratio is integer", false],
    ["p.yes is boolean and p.yes is true and p.yes is not false", true],
    ["p.tags is sequence and p is mapping and p is not sequence", true],
    ["2 is even and 3 is odd", true],
    ["not p.missing is defined", true],
  ])("%s", (expression, expected) => {
    expect(given(`(${expression})`)).toEqual(expected);
  });
});

describe("filters", () => {
  it.each<[string, unknown]>([
    ["p.missing | default('x')", "x"],
    ["p.missing | d", ""],
    ["p.nothing | default('x')", null],
    ["'' | default('x', true)", "x"],
    ["p.tags | length", 3],
    ["'a😀' | count", 2],
    ["p.rows[0] | length", 3],
    ["p.missing | length", 0],
    ["'aB' | upper", "AB"],
    ["'aB' | lower", "ab"],
    ["'aB c' | capitalize", "Ab c"],
    ["' a ' | trim", "a"],
    ["'a-b-c' | replace('-', '+')", "a+b+c"],
    ["p.tags | join(', ')", "b, a, b"],
    ["p.rows | join('/', attribute='name')", "one/two/three"],
    ["p.tags | first", "b"],
    ["p.empty | first", null],
    ["p.tags | last", "b"],
    ["p.ratio | round", 2],
    ["p.ratio | round(1)", 2.3],
    ["p.ratio | round(precision=2)", 2.35],
    ["'42' | int", 42],
    ["'4.7' | int", 4],
    ["'x' | int", 0],
    ["'x' | int(default=-1)", -1],
    ["'4.5' | float", 4.5],
    ["-3 | abs", 3],
    ["12 | string", "12"],
    ["'abcdef' | truncate(4)", "abc…"],
    ["'abcdef' | truncate(6)", "abcdef"],
    ["'abcdef' | truncate(5, end='...')", "ab..."],
    ["'😀😀😀' | truncate(2)", "😀…"],
    ["[1, 2, 3] | truncate(4)", "[1,…"],
    ["[1, 2, 3] | truncate(7)", "[1,2,3]"],
    ["{'a': 'bcdef'} | truncate(8)", '{"a":"b…'],
    ["{'a': [1]} | tojson", '{"a":[1]}'],
    ["p.tags | unique", ["b", "a"]],
    ["[[1], [1], {'a': 1}, {'a': 1}] | unique", [[1], { a: 1 }]],
    ["p.rows | unique(attribute='ok') | map(attribute='name')", ["one", "two"]],
    ["p.tags | sort", ["a", "b", "b"]],
    ["[2, 'b', none, 1, 'a', true] | sort", [null, true, 1, 2, "a", "b"]],
    ["p.rows | sort(attribute='n') | map(attribute='n')", [1, 2, 3]],
    ["p.rows | sort(reverse=true, attribute='n') | map(attribute='n')", [3, 2, 1]],
    ["p.tags | reverse", ["b", "a", "b"]],
    ["p.nested | list", ["deep"]],
    ["events | map(attribute='payload.rows.1.name')", ["two"]],
    ["[{}] | map(attribute='x', default='-')", ["-"]],
    ["p.tags | map('upper')", ["B", "A", "B"]],
    ["[0, 1, '', 'a'] | select", [1, "a"]],
    ["[0, 1, '', 'a'] | reject", [0, ""]],
    ["[1, 'a'] | select('string')", ["a"]],
    ["[1, 2, 3] | select('>', 1)", [2, 3]],
    ["p.rows | selectattr('ok') | map(attribute='n')", [3, 2]],
    ["p.rows | rejectattr('ok') | map(attribute='n')", [1]],
    ["p.rows | selectattr('n', 'ge', 2) | map(attribute='n')", [3, 2]],
    ["p.rows | selectattr('name', 'equalto', 'two') | map(attribute='n')", [1]],
    ["p.rows | selectattr('name', 'in', ['two', 'one']) | map(attribute='n')", [3, 1]],
    ["p.rows | selectattr('gone', 'defined')", []],
    ["p.rows | sum(attribute='n')", 6],
    ["[3, 1, 2] | min", 1],
    ["p.rows | max(attribute='n') | map('string')", ["name", "n", "ok"]],
    ["[] | max", null],
    ["p.nested | items", [["deep", { er: "x" }]]],
    [
      "p.rows | pick(who='name', gone='x.y')",
      [
        { who: "one", gone: null },
        { who: "two", gone: null },
        { who: "three", gone: null },
      ],
    ],
    ["event.timestamp | time", "15:30:01"],
    ["'2026-01-03T16:30:01+01:00' | time", "15:30:01"],
    ["'soon' | time", null],
  ])("%s", (expression, expected) => {
    expect(given(expression)).toEqual(expected);
  });
});

describe("truncate", () => {
  it.each<[string, Json, string]>([
    ["a text", "x".repeat(60_000), `${"x".repeat(9)}…`],
    ["one of which nothing is seen at first", `${"\u200b".repeat(20)}abc${"x".repeat(60_000)}`, `abc${"x".repeat(6)}…`],
    ["one of which nothing is seen at all", "\u200b".repeat(60_000), "…"],
    ["one of pairs", "🙂".repeat(30_000), `${"🙂".repeat(9)}…`],
    ["a list", Array.from({ length: 1_000 }, () => "long".repeat(10)), '["longlon…'],
    ["an object", { a: "y".repeat(60_000), b: 1 }, '{"a":"yyy…'],
  ])("costs what is kept, and not what there is, of %s", (_what, long, expected) => {
    const limits = { ...TEMPLATE_LIMITS, steps: 200 };
    const template = compileTemplate("k: {{ toon(event.payload.long | truncate(10)) }}", "test.j2", limits);
    const text = template.render(contextOf([{ payload: { long } }]));
    expect(decode(text)).toEqual({ k: expected });
  });
});

describe("functions", () => {
  it.each<[string, unknown]>([
    ["ago(event.timestamp)", "3 min ago"],
    ["ago('2026-01-03T15:33:04.500Z')", "just now"],
    ["ago('2026-01-03T15:32:35Z')", "30 s ago"],
    ["ago('2026-01-03T12:33:05Z')", "3 h ago"],
    ["ago('2026-01-02T15:00:00Z')", "1 day ago"],
    ["ago('2025-12-03T15:00:00Z')", "31 days ago"],
    ["ago('2026-01-03T17:34:00Z')", "in 2 h"],
    ["ago('2026-01-03 16:30:05+01:00')", "3 min ago"],
    ["ago('yesterday')", null],
    ["ago(p.missing)", null],
    ["truncate('abcdef', 4)", "abc…"],
    ["truncate(text='abcdef', length=4, end='')", "abcd"],
    ["truncate(12345, 3)", "12…"],
    ["toon({'a': [1, 2]})", "a[2]: 1,2"],
  ])("%s", (expression, expected) => {
    expect(given(expression)).toEqual(expected);
  });
});

describe("an error", () => {
  it.each<[string, number, RegExp]>([
    ["a\n{{ event.", 2, /never closed with }}/],
    ["a\n\n{% if event", 3, /never closed with %}/],
    ["{# a", 1, /never closed with #}/],
    ["{{ }}", 1, /expression is missing/],
    ["a\n{{ 1 + }}", 2, /ends too early/],
    ["{{ (1 }}", 1, /bracket is never closed/],
    ["{{ 1) }}", 1, /closes nothing/],
    ["{{ [1 2] }}", 1, /something is missing before "2"/],
    ["{{ event event }}", 1, /something is missing before "event"/],
    ["{{ event | }}", 1, /ends too early/],
    ["{{ event = 1 }}", 1, /cannot read/],
    ["{{ 'a }}", 1, /never closed/],
    ["{{ 'a\\q' }}", 1, /escaped character/],
    ["{{ 1 $ 2 }}", 1, /Unexpected character/],
    ["{{ {1: 2} }}", 1, /key of an object is a text/],
    ["{{ *event }}", 1, /cannot read/],
    ["{{ toon(*events) }}", 1, /unpacked/],
    ["a\nb\n{{ evnt }}", 3, /no "evnt" here; there are count, event, events, now, subscriber/],
    ["{{ loop.index }}", 1, /no "loop" here/],
    ["{{ event | shout }}", 1, /no filter "shout"/],
    ["{{ event | upper(1) }}", 1, /at most 0 values/],
    ["{{ event | replace('a') }}", 1, /needs new/],
    ["{{ event | round(places=1) }}", 1, /no parameter "places"/],
    ["{{ event | round(1, precision=1) }}", 1, /precision twice|at most/],
    ["{{ event | default('a').b }}", 1, /a filter is a name/],
    ["{{ event | pick('a') }}", 1, /columns by name/],
    ["{{ event is shiny }}", 1, /no test "shiny"/],
    ["{{ range(3) }}", 1, /no function "range"/],
    ["{{ event.type.upper() }}", 1, /only toon\(\), ago\(\), truncate\(\)/],
    ["{{ toon }}", 1, /is a function/],
    ["{{ toon() }}", 1, /needs value/],
    ["{{ namespace(a=1) }}", 1, /stands only in/],
    ["{% if event %}\n{% for x in events %}\n{% endif %}", 3, /\{% endif %\} stands where .*endfor/],
    ["a\n{% if event %}", 2, /\{% if %\} is never closed/],
    ["{% for x in events %}", 1, /\{% for %\} is never closed/],
    ["a\n{% endif %}", 2, /closes nothing/],
    ["{% if event %}{% else %}{% else %}{% endif %}", 1, /else/],
    ["{% if event %}{% else if %}{% endif %}", 1, /takes nothing/],
    ["{% for x of events %}{% endfor %}", 1, /for name in list/],
    ["{% for in in events %}{% endfor %}", 1, /word of the language/],
    ["{% set loop = 1 %}", 1, /word of the language/],
    ["{% set x %}a{% endset %}", 1, /set name = value/],
    ["{% set a, b = 1 %}", 1, /set name = value/],
    ["{% macro a() %}{% endmacro %}", 1, /no \{% macro %\}/],
    ["{% include 'x' %}", 1, /no \{% include %\}/],
    ["{% import 'x' as y %}", 1, /no \{% import %\}/],
    ["{% extends 'x' %}", 1, /no \{% extends %\}/],
    ["{% block a %}{% endblock %}", 1, /no \{% block %\}/],
    ["{% generation %}", 1, /no \{% generation %\}/],
    ["{{ '{% generation %}' }}", 1, /stands inside a tag/],
    ["{% %}", 1, /templates have no/],
  ])("of syntax in %j", (source, line, reason) => {
    const error = errorOf(source);
    expect([error.kind, error.line, error.template]).toEqual(["syntax", line, "test.j2"]);
    expect(error.message).toMatch(reason);
    expect(error.message).toContain(`test.j2:${line}: `);
  });

  it.each<[string, number, RegExp]>([
    ["a\n{{ 1 / 0 }}", 2, /finite/],
    ["{{ 1 + 'a' }}", 1, /a number \+ a text/],
    ["{{ event - 1 }}", 1, /an object - a number/],
    ["\n{{ event.missing > 1 }}", 2, /nothing and a number cannot be compared/],
    ["{{ -event }}", 1, /needs a number/],
    ["{% for x in event.type %}{% endfor %}", 1, /a text is no list/],
    ["{% for a, b in [1] %}{% endfor %}", 1, /taken apart/],
    ["{{ 'a' | abs }}", 1, /a text is no number/],
    ["{{ 'a' | replace('', 'b') }}", 1, /text to look for/],
    ["{{ 1 | length }}", 1, /no length/],
    ["{{ 1.5 | round(99) }}", 1, /0 to 12/],
    ["{{ truncate('a', 0) }}", 1, /from 1 on/],
    ["{{ events | map('shout') }}", 1, /cannot use the filter/],
    ["{{ events | map }}", 1, /needs an attribute/],
    ["{{ events | select('shiny') }}", 1, /no test "shiny"/],
    ["{{ [1][::0] }}", 1, /steps of 0/],
    ["{{ [1]['a':] }}", 1, /whole numbers/],
    ["{% set ns = namespace() %}{{ ns }}", 1, /is a namespace/],
    ["{% set x = 1 %}{% set x.y = 2 %}", 1, /is no namespace/],
  ])("of a value in %j", (source, line, reason) => {
    const error = errorOf(source);
    expect([error.kind, error.line]).toEqual(["runtime", line]);
    expect(error.message).toMatch(reason);
  });
});
