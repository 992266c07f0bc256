import { describe, expect, it } from "vitest";
import type { Json } from "../domain/json.js";
import { ConfigError, changedKeys, parseConfig } from "./config.js";
import { HookText } from "./hook_text.js";

function hook(lines: string) {
  return parseConfig(`[hooks.ci]\nscheme = "standard"\nsecret_env = "SECRET"\n${lines}`, "tidings.toml").hooks.get(
    "ci",
  );
}

function problems(toml: string): string[] {
  try {
    parseConfig(toml, "tidings.toml");
  } catch (error) {
    if (error instanceof ConfigError) return error.problems.map(({ line, key, reason }) => `${line} ${key} ${reason}`);
    throw error;
  }
  return [];
}

const wrong = (lines: string) => problems(`[hooks.ci]\nscheme = "standard"\nsecret_env = "SECRET"\n${lines}`)[0];

describe("a hook in tidings.toml", () => {
  it("has a name, a scheme and where its secret is; the rest has defaults", () => {
    const { hooks } = parseConfig(
      '[hooks.gh]\nscheme = "github"\nsecret_env = ["NEW", "OLD"]\n[hooks.pay]\nscheme = "standard"\nsecret_env = "S"\n',
      "tidings.toml",
    );
    expect(JSON.parse(JSON.stringify([...hooks]))).toEqual([
      [
        "gh",
        expect.objectContaining({
          ...{ scheme: "github", secret_env: ["NEW", "OLD"], tolerance_secs: null, user_id: "local", critical: false },
          ...{ type: "github.{header.x-github-event}", source: "gh", severity: null, payload: null },
        }),
      ],
      [
        "pay",
        expect.objectContaining({
          ...{ scheme: "standard", secret_env: ["S"], tolerance_secs: 300, type: "webhook.pay.{body.type}" },
        }),
      ],
    ]);
  });

  it.each([
    ['[hooks.ci]\nsecret_env = "S"\n', "1 hooks.ci.scheme is required"],
    ['[hooks.ci]\nscheme = "standard"\n', "1 hooks.ci.secret_env is required"],
    ['[hooks."a b"]\nscheme = "github"\nsecret_env = "S"\n', "must be named by 1 to 64 letters"],
  ])("is refused as %j", (toml, reason) => {
    expect(problems(toml).join("\n")).toContain(reason);
  });

  it.each([
    ['secret = "whsec_abc"', "is not a known key; did you mean secret_env?"],
    ['user_id = "{body.user}"', "nothing that comes from outside says whose it is"],
    ['source = "{header.x-repo}"', "no signature covers those"],
    ['source = ""', "must not be empty"],
    ['type = "build"', "must be an event type like github.push"],
    ['type = "a.{body.x"', "has a brace"],
    ['type = "a.{query.x}"', "is neither {body.PATH}"],
    ['subject = "{header.Authorization}"', "must name a header in lower case"],
    ['subject = "{header.authorization}"', "is a secret"],
    ['subject = "{header.webhook-signature}"', "is a secret"],
    ['subject = "{body.__proto__}"', "names __proto__"],
    ['subject = "{body.}"', "has an empty key"],
    [`subject = "${"x".repeat(501)}"`, "is longer than 500 characters"],
    [`subject = "${"{body.a}".repeat(17)}"`, "has more than 16 references"],
    ['severity = "loud"', "must be one of debug, info, warning, error, critical"],
    ["tolerance_secs = 0", "tolerance_secs"],
    ["payload.a = []", "must be text, a number, true or false"],
  ])("may not say %s", (line, reason) => {
    expect(wrong(line)).toContain(reason);
  });

  it("has no tolerance where nothing says a time", () => {
    const toml = '[hooks.gh]\nscheme = "github"\nsecret_env = "S"\ntolerance_secs = 5\n';
    expect(problems(toml)).toEqual([expect.stringContaining("4 hooks.gh.tolerance_secs has no effect")]);
  });

  it("names the secret's variable, never the secret", () => {
    expect(wrong("")).toBeUndefined();
    expect(problems('[hooks.ci]\nscheme = "standard"\nsecret_env = "whsec_MfKQ9r8G+Y="\n')[0]).toContain(
      "must be the name of an environment variable",
    );
  });

  it("is told by its keys when it changes", () => {
    const config = (more: string) => parseConfig(`[hooks.ci]\nscheme = "standard"\nsecret_env = "S"\n${more}`, "f");
    expect(changedKeys(config(""), config(""))).toEqual([]);
    expect(changedKeys(config(""), config('subject = "{body.a}"'))).toEqual(["hooks.ci.subject"]);
  });
});

describe("what a hook reads of a request", () => {
  const request = (body: Json) => ({ body, header: (name: string) => (name === "x-event" ? "push" : undefined) });
  const text = (source: string) => {
    const parsed = HookText.parse(source);
    if (!(parsed instanceof HookText)) throw new Error(parsed.reason);
    return parsed;
  };
  const body = { a: { b: ["x", { c: 5 }] }, no: null, on: true, text: "t" };

  it("is text with what stands there", () => {
    const read = (source: string) => text(source).read(request(body));
    expect(read("plain")).toBe("plain");
    expect(read("{header.x-event} of {body.text}!")).toBe("push of t!");
    expect(read("{body.a.b.0}{body.a.b.1.c}{body.on}")).toBe("x5true");
    expect(read("[{body.a.b.7}{body.missing.deep}{body.no}{header.x-other}{body.toString}]")).toBe("[]");
    expect(read("{body.a.b.1}")).toBe('{"c":5}');
  });

  it("is the value itself where nothing stands beside it", () => {
    const value = (source: string) => text(source).value(request(body));
    expect(value("{body.a.b}")).toEqual(["x", { c: 5 }]);
    expect(value("{body.on}")).toBe(true);
    expect(value("{body.no}")).toBe(null);
    expect(value("{body.missing}")).toBeUndefined();
    expect(value("{body}")).toEqual(body);
    expect(value("n{body.on}")).toBe("ntrue");
    expect(value("")).toBe("");
  });

  it("is kept as it was written", () => {
    expect(hook('subject = "{body.a}"')?.subject?.text).toBe("{body.a}");
  });
});
