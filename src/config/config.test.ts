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
      "boolean",
    ],
    [
      "an impact that is none",
      '[conversation.tools.x]\nimpact = "some"\n',
      2,
      "conversation.tools.x.impact",
      "internal",
    ],
    ["what is no TOML", "a = 1\nb = = 2\n", 2, "", "is not valid TOML"],
    // Moved up for reading, and still told where it stands.
    [
      "a wrong key of a table that is opened again",
      `${NESTED}broken = 3\n`,
      24,
      "conversation.notifications.kinds.mcp.broken",
      "must be true or false",
    ],
  ])("refuses %s, with its line and a reason", (_what, text, line, key, reason) => {
    let error: unknown;
    try {
      parseConfig(text, "tidings.toml");
    } catch (caught) {
      error = caught;
    }
    if (!(error instanceof ConfigError)) throw new Error("it was not refused");
    expect([error.line, error.message]).toEqual([line, expect.stringContaining(reason)]);
    expect(error.key.startsWith(key)).toBe(true);
    expect(error.message).toContain(`tidings.toml:${line}: `);
  });
});
