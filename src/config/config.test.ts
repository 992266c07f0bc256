import { describe, expect, it } from "vitest";
import { ConfigError, parseConfig } from "./config.js";

/** The example of the system notification queue, as it stands there: one table is opened twice. */
const NESTED = `[conversation.tools.cargo_check]
source = "builtin"
stateful = true

# Control which notifications this tool can deliver.
[conversation.tools.cargo_check.notifications]
stopped = true
waiting = false
failed = true

# Source-level filtering: disable all notifications from a source.
[conversation.notifications.kinds.mcp]
enable = false

# Name-level filtering within a source.
[conversation.notifications.kinds.tool]
stopped = true
waiting = true
failed = true

[conversation.notifications.kinds.mcp]
disconnected = true
reconnected = false # don't bother the assistant with reconnects
`;

/** The example of its earlier draft. */
const FLAT = `[conversation.tools.cargo_check]
source = "builtin"
stateful = true
[conversation.tools.cargo_check.notifications]
stopped = true # notify when the tool stops
waiting = false # don't notify for waiting state
[conversation.notifications]
enable = true # master switch (default: true)
[conversation.notifications.kinds]
"handle.stopped" = true
"handle.waiting" = true
"mcp.disconnected" = true
"mcp.reconnected" = false
`;

const plain = (text: string) => {
  const { notifications, tools } = parseConfig(text, "tidings.toml");
  return {
    enable: notifications.enable,
    kinds: Object.fromEntries(
      [...notifications.kinds].map(([source, { enable, names }]) => [source, { enable, ...Object.fromEntries(names) }]),
    ),
    tools: Object.fromEntries(
      [...tools].map(([name, tool]) => [name, { ...tool, notifications: Object.fromEntries(tool.notifications) }]),
    ),
  };
};

describe("tidings.toml", () => {
  it("reads the nested form, with a table that is opened twice as one", () => {
    expect(plain(NESTED)).toEqual({
      enable: true,
      kinds: {
        mcp: { enable: false, disconnected: true, reconnected: false },
        tool: { enable: true, stopped: true, waiting: true, failed: true },
      },
      tools: {
        cargo_check: {
          source: "builtin",
          stateful: true,
          impact: null,
          turn_end: null,
          notifications: { stopped: true, waiting: false, failed: true },
        },
      },
    });
  });

  it("reads the flat form, in which tools were called handles", () => {
    expect(plain(FLAT)).toMatchObject({
      enable: true,
      kinds: { tool: { stopped: true, waiting: true }, mcp: { disconnected: true, reconnected: false } },
      tools: { cargo_check: { notifications: { stopped: true, waiting: false } } },
    });
  });

  it("is all on when it says nothing", () => {
    expect(plain("")).toEqual({ enable: true, kinds: {}, tools: {} });
  });

  it.each([
    [
      "an unknown key",
      "[conversation.notifications]\nenabled = true\n",
      2,
      "conversation.notifications.enabled",
      "did you mean enable?",
    ],
    ["an unknown table", "\n[conversations]\n", 2, "conversations", "did you mean conversation?"],
    [
      "an unknown key of a tool",
      "[conversation.tools.x]\nimpakt = 1\n",
      2,
      "conversation.tools.x.impakt",
      "did you mean impact?",
    ],
    [
      "a source that is no table",
      "[conversation.notifications.kinds]\nmcp = false\n",
      2,
      "conversation.notifications.kinds.mcp",
      "must be a table",
    ],
    [
      "a switch that is no boolean",
      '[conversation.notifications]\nenable = "no"\n',
      2,
      "conversation.notifications.enable",
      'must be true or false, not "no"',
    ],
    [
      "an impact that is none",
      '[conversation.tools.x]\nimpact = "some"\n',
      2,
      "conversation.tools.x.impact",
      'must be one of internal, external, not "some"',
    ],
    ["what is no TOML", "a = 1\nb = = 2\n", 2, null, "is not valid TOML"],
    ["a key that means nothing good", "[conversation.tools.x]\n__proto__ = 1\n", 2, null, "is not valid TOML"],
    ["such a table", "[conversation.tools.__proto__]\nsource = 'x'\n", 1, null, "is not valid TOML"],
    ...["enabled", "disable", "disabled"].map((word): [string, string, number, string, string] => [
      `${word} for a source`,
      `[conversation.notifications.kinds.mcp]\nreconnected = false\n${word} = false\n`,
      3,
      `conversation.notifications.kinds.mcp.${word}`,
      "is not a known key; did you mean enable?",
    ]),
    [
      "a source's switch in one line",
      '[conversation.notifications.kinds]\n"mcp.enable" = false\n',
      2,
      "conversation.notifications.kinds.mcp.enable",
      "is switched by enable in [conversation.notifications.kinds.mcp]",
    ],
    [
      "a switch for all of a tool",
      "[conversation.tools.git.notifications]\nenable = false\n",
      2,
      "conversation.tools.git.notifications.enable",
      "name them, like waiting = false",
    ],
    [
      "a kind of a tool with its source",
      '[conversation.tools.git.notifications]\n"tool.waiting" = false\n',
      2,
      "conversation.tools.git.notifications.tool.waiting",
      "without their source, like waiting = false",
    ],
    [
      "the same without quotes",
      "[conversation.tools.git.notifications]\ntool.waiting = false\n",
      2,
      "conversation.tools.git.notifications.tool",
      "without their source, like waiting = false",
    ],
    [
      "a name with dots without quotes",
      "[conversation.notifications.kinds.tool]\ncall.failure = false\n",
      2,
      "conversation.notifications.kinds.tool.call",
      'stands in quotes, like "call.failure"',
    ],
    [
      "a name that is none",
      '[conversation.notifications.kinds.tool]\n"call failure" = false\n',
      2,
      "conversation.notifications.kinds.tool.call failure",
      "is no name of a kind",
    ],
    [
      "a key of another table",
      "[conversation]\nimpact = 'internal'\n",
      2,
      "conversation.impact",
      "it belongs into [conversation.tools.NAME]",
    ],
    [
      "a tool that is none",
      "[conversation.tools]\ngit = true\n",
      2,
      "conversation.tools.git",
      "must be a table, not true",
    ],
    [
      "kinds that are none",
      "[conversation.tools.git]\nnotifications = false\n",
      2,
      "conversation.tools.git.notifications",
      "must be a table, not false",
    ],
    // Moved up for reading, and still told where it stands.
    [
      "a wrong key of a table that is opened again",
      `${NESTED}broken = 3\n`,
      24,
      "conversation.notifications.kinds.mcp.broken",
      "must be true or false, not 3",
    ],
  ])("refuses %s, with its line and a reason", (_what, text, line, key, reason) => {
    let error: unknown;
    try {
      parseConfig(text, "tidings.toml");
    } catch (caught) {
      error = caught;
    }
    if (!(error instanceof ConfigError)) throw new Error("it was not refused");
    const [problem] = error.problems;
    expect([problem?.line, problem?.key, problem?.reason]).toEqual([line, key, expect.stringContaining(reason)]);
    expect(error.message).toMatch(new RegExp(`^tidings\\.toml:${line}:\\d+: `));
  });

  it("tells everything that is wrong at once", () => {
    const text = "[conversation.notifications]\nenabled = true\n[conversation.tools.x]\nimpakt = 1\n";
    expect(() => parseConfig(text, "t.toml")).toThrow(/^t\.toml:2:1: .*enabled is .*; t\.toml:4:1: .*impakt is /);
  });

  it("may have the line ends of another system", () => {
    expect(plain(NESTED.replaceAll("\n", "\r\n"))).toEqual(plain(NESTED));
    const text = `${NESTED}broken = 3\n`.replaceAll("\n", "\r\n");
    expect(() => parseConfig(text, "t.toml")).toThrow("t.toml:24:1: conversation.notifications.kinds.mcp.broken");
  });

  it("takes no line inside of a text for a table", () => {
    const source = `"""
[conversation.notifications.kinds.mcp]
[conversation.notifications.kinds.mcp]
enable = true
"""`;
    const text = `[conversation.tools.x]\nsource = ${source}\n`;
    const tool = plain(text).tools["x"];
    expect(tool?.source).toContain("[conversation.notifications.kinds.mcp]\nenable");
    // Beside a table that is opened twice, too.
    const both = plain(`${NESTED}${text}`);
    expect(both.tools["x"]).toEqual(tool);
    expect(both.kinds).toEqual(plain(NESTED).kinds);
  });
});
