import fc from "fast-check";
import { parse, stringify } from "smol-toml";
import { describe, expect, it } from "vitest";
import { KeyLocator, type KeyPath } from "./locate.js";

const TEXT = `# a comment with = and [brackets]
title = "x # no comment" # comment
[subscriber]
id = "a"
"quoted key" = '''
fake = 1
[fake]
'''
dotted.inner.key = 1

  [events]   # indented
  types = [ # one
    "tool.call.failure", # [not a table]
    { name = "x", deep = { er = [1, 2] } },
    """multi
line""",
  ]
point = { x = 1, "y.z" = 2, }

[[many]]
id = 1
[[many]]
id = 2
[many.sub]
key = 3
[[many.list]]
a = 1
[ spaced . "out" ]
key = 2026-01-03T15:30:00Z
"\\u0061b" = ""
`;

const at = (path: KeyPath) => {
  const { line, column } = new KeyLocator(TEXT).find(path);
  return `${line}:${column}`;
};

describe("the place of a key", () => {
  it.each<[KeyPath, string]>([
    [["title"], "2:1"],
    [["subscriber"], "3:2"],
    [["subscriber", "id"], "4:1"],
    [["subscriber", "quoted key"], "5:1"],
    [["subscriber", "dotted"], "9:1"],
    [["subscriber", "dotted", "inner", "key"], "9:14"],
    [["events"], "11:4"],
    [["events", "types"], "12:3"],
    [["events", "types", 0], "13:5"],
    [["events", "types", 1], "14:5"],
    [["events", "types", 1, "deep", "er", 1], "14:37"],
    [["events", "types", 2], "15:5"],
    [["events", "point", "y.z"], "18:18"],
    [["many", 0, "id"], "21:1"],
    [["many", 1, "id"], "23:1"],
    [["many", 1, "sub", "key"], "25:1"],
    [["many", 1, "list", 0, "a"], "27:1"],
    [["spaced", "out"], "28:3"],
    [["spaced", "out", "key"], "29:1"],
    [["spaced", "out", "ab"], "30:1"],
  ])("%j is at %s", (path, place) => {
    expect(at(path)).toBe(place);
  });

  it("of a key that is not there is that of the table around it, else the beginning", () => {
    expect(at(["subscriber", "version"])).toBe("3:2");
    expect(at(["events", "types", 9, "x"])).toBe("12:3");
    expect(at(["output", "template"])).toBe("1:1");
    expect(at(["fake"])).toBe("1:1");
  });

  it("is found for every key of any document", () => {
    const key = fc.oneof(fc.constantFrom("a", "b-1", "_c", "payload.x", "with space", 'q"uote', "ö"), fc.string());
    const value = fc.letrec((tie) => ({
      any: fc.oneof(
        { depthSize: "small" },
        fc.string(),
        fc.integer(),
        fc.boolean(),
        fc.array(tie("scalar"), { maxLength: 4 }),
        fc.array(fc.dictionary(key, tie("scalar"), { maxKeys: 3 }), { minLength: 1, maxLength: 3 }),
        fc.dictionary(key, tie("any"), { maxKeys: 4 }),
      ),
      scalar: fc.oneof(fc.string(), fc.integer(), fc.boolean()),
    })).any;
    fc.assert(
      fc.property(fc.dictionary(key, value, { maxKeys: 5 }), (document) => {
        const text = stringify(document);
        const locator = new KeyLocator(text);
        const lines = text.split("\n");
        const check = (node: unknown, path: KeyPath) => {
          if (typeof node !== "object" || node === null) return;
          for (const [name, child] of Object.entries(node)) {
            const here = [...path, Array.isArray(node) ? Number(name) : name];
            if (!locator.has(here)) throw new Error(`${JSON.stringify(here)} is not found in\n${text}`);
            if (!Array.isArray(node) && (typeof child !== "object" || child === null)) {
              const { line, column } = locator.find(here);
              const rest = lines[line - 1]?.slice(column - 1) ?? "";
              // What stands there is that key: with a table of its own it says the same.
              const written = /^(?:"(?:[^"\\]|\\.)*"|'[^']*'|[A-Za-z0-9_-]+)/.exec(rest)?.[0] ?? "";
              expect(Object.keys(parse(`${written} = 1`))).toEqual([name]);
            }
            check(child, here);
          }
        };
        check(parse(text), []);
      }),
      { numRuns: 300 },
    );
  });

  it("reads any text to its end, TOML or not", () => {
    const pieces = fc.constantFrom("[", "]", "[[", "{", "}", '"', "'", '"""', "=", ".", ",", "\n", "#", "a", "\\", " ");
    fc.assert(fc.property(fc.array(pieces, { maxLength: 40 }), (some) => void new KeyLocator(some.join(""))));
  });
});
