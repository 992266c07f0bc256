import { describe, expect, it } from "vitest";
import { ConfigError, changedKeys, EMPTY_CONFIG, parseConfig } from "./config.js";
import type { Switch } from "./kind_switches.js";
import { limitKey, SERVER_LIMITS } from "./server_limits.js";

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

const onOrOff = (names: ReadonlyMap<string, Switch>) =>
  Object.fromEntries([...names].map(([name, { on }]) => [name, on]));

const plain = (text: string) => {
  const { notifications, tools } = parseConfig(text, "tidings.toml");
  return {
    enable: notifications.enable,
    kinds: Object.fromEntries(
      [...notifications.kinds].map(([source, { enable, names }]) => [
        source,
        { enable: enable?.on ?? true, ...onOrOff(names) },
      ]),
    ),
    tools: Object.fromEntries(
      [...tools].map(([name, tool]) => [name, { ...tool, notifications: onOrOff(tool.notifications) }]),
    ),
  };
};

const presetOf = (key: string) =>
  Object.entries(SERVER_LIMITS).find(([name]) => limitKey(name) === key)?.[1] ?? Number.NaN;

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

  it("says what the hosted agent may run; nothing unless it is enabled", () => {
    const shell = 'enable = true\nfolder = "/srv"\nenvironment = ["PATH"]\ntime_limit_secs = 5\n';
    expect(parseConfig(`[agent.shell]\n${shell}`, "t").agent.shell).toEqual({
      folder: "/srv",
      environment: ["PATH"],
      time_limit_secs: 5,
    });
    expect(parseConfig("[agent.shell]\nenable = false\ncommand_lines = true\n", "t").agent.shell).toBeNull();
    expect(parseConfig("", "t").agent.shell).toBeNull();
    const wrong = () => parseConfig("[agent.shell]\nenable = true\ncomand_lines = true\n", "t");
    expect(wrong).toThrow(/comand_lines is not a known key; did you mean command_lines/);
    expect(() => parseConfig("[agent.shell]\nfolder = 'x'\n", "t")).toThrow(/agent\.shell\.enable/);
  });

  it("says whether the rehearsal model has its props", () => {
    const config = parseConfig("[agent]\nprops = false\n", "t");
    expect([config.agent.props, parseConfig("", "t").agent.props]).toEqual([false, null]);
    expect(changedKeys(EMPTY_CONFIG, config)).toEqual(["agent.props"]);
    expect(() => parseConfig('[agent]\nprops = "no"\n', "t")).toThrow(/agent\.props/);
    expect(() => parseConfig("[agent]\nprop = false\n", "t")).toThrow(/did you mean props/);
  });

  it("says where the hosted agent may read and write files; nowhere unless it is enabled", () => {
    const workspace = 'enable = true\nfolder = "/srv"\nread_only = true\nfiles_max = 5\n';
    const config = parseConfig(`[agent.workspace]\n${workspace}`, "t");
    expect(config.agent.workspace).toEqual({ folder: "/srv", read_only: true, files_max: 5 });
    expect(changedKeys(EMPTY_CONFIG, config)).toEqual([
      "agent.workspace.enable",
      "agent.workspace.files_max",
      "agent.workspace.folder",
      "agent.workspace.read_only",
    ]);
    expect(parseConfig("[agent.workspace]\nenable = false\n", "t").agent.workspace).toBeNull();
    expect(() => parseConfig("[agent.workspace]\nenable = true\nfoldr = 'x'\n", "t")).toThrow(/did you mean folder/);
    expect(() => parseConfig("[agent.workspace]\nenable = true\nfiles_max = 0\n", "t")).toThrow(/files_max/);
  });

  it("reads budgets and loops; what is not said is left open", () => {
    const text = `[agent.budgets.turn]
iterations = 10
[agent.budgets.thread]
tokens = 500000
[agent.budgets.day]
tokens = 2000000
time_secs = 3600
[agent.loops]
repetitions = 4
window_secs = 30
`;
    const { agent } = parseConfig(text, "t");
    expect(agent.budgets).toEqual({
      turn: { iterations: 10 },
      thread: { tokens: 500_000 },
      day: { tokens: 2_000_000, time_secs: 3_600 },
    });
    expect(agent.loops).toEqual({ repetitions: 4, window_secs: 30 });
    const none = parseConfig("", "t");
    expect([none.agent.budgets, none.agent.loops]).toEqual([{ turn: {}, thread: {}, day: {} }, {}]);
    expect(changedKeys(none, parseConfig(text, "t"))).toEqual([
      "agent.budgets.day.time_secs",
      "agent.budgets.day.tokens",
      "agent.budgets.thread.tokens",
      "agent.budgets.turn.iterations",
      "agent.loops.repetitions",
      "agent.loops.window_secs",
    ]);
  });

  it.each([
    ["[agent.budgets.day]\ntoken = 1\n", "t:2:1: agent.budgets.day.token is not a known key; did you mean tokens?"],
    ["[agent.budgets.week]\ntokens = 1\n", "agent.budgets.week is not a known key"],
    ["[agent.budgets]\ntokens = 1\n", "it belongs into [agent.budgets.turn]"],
    ["[agent.budgets.day]\ntokens = 0\n", "t:2:1: agent.budgets.day.tokens"],
    ["[agent.budgets.day]\ntokens = 1.5\n", "agent.budgets.day.tokens"],
    ["[agent.budgets.turn]\niterations = -3\n", "agent.budgets.turn.iterations"],
    ['[agent.budgets.turn]\ntime_secs = "1h"\n', "agent.budgets.turn.time_secs"],
    ["[agent.loops]\nrepetitions = 1\n", "agent.loops.repetitions"],
    ["[agent.loops]\nenabled = false\n", "agent.loops.enabled is not a known key; did you mean enable?"],
  ])("refuses %j", (text, says) => {
    expect(() => parseConfig(text, "t")).toThrow(says);
  });

  it("reads MCP servers, and says where one is wrong", () => {
    const text = `[mcp.servers.files]
command = "npx"
args = ["server-files", "."]
ping_secs = 0.5

[mcp.servers.web]
url = "http://localhost:3001/mcp"
headers_env = { Authorization = "WEB_TOKEN" }
`;
    const { mcp } = parseConfig(text, "t");
    expect(Object.fromEntries(mcp)).toEqual({
      files: { command: "npx", args: ["server-files", "."], ping_secs: 0.5 },
      web: { url: "http://localhost:3001/mcp", headers_env: { Authorization: "WEB_TOKEN" } },
    });
    const wrong = (body: string) => () => parseConfig(`[mcp.servers.files]\n${body}\n`, "t");
    expect(wrong("comand = 'x'")).toThrow(
      /^t:2:1: mcp\.servers\.files\.comand is not a known key; did you mean command/,
    );
    expect(wrong("enable = true")).toThrow("mcp.servers.files needs a command or an url");
    expect(wrong("command = 'x'\nurl = 'http://a/'")).toThrow(/^t:3:1: .*give one of them/);
    expect(wrong("url = 'http://a/'\nargs = []")).toThrow(/goes with command/);
    expect(wrong("url = 'file:///etc'")).toThrow(/must be an address/);
    expect(wrong("command = 'x'\nenvironment = ['A=b']")).toThrow(/the name of an environment variable/);
    expect(() => parseConfig("[mcp.servers.my_files]\ncommand = 'x'\n", "t")).toThrow(/letters, digits and -/);
    expect(() => parseConfig("[mcp.server.a]\ncommand = 'x'\n", "t")).toThrow(/did you mean servers/);
    const before = parseConfig(text, "t");
    expect(changedKeys(before, parseConfig(text.replace("0.5", "9"), "t"))).toEqual(["mcp.servers.files.ping_secs"]);
    expect(changedKeys(before, parseConfig("", "t"))).toContain("mcp.servers.web.url");
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
    [
      "a kind of a source with that source",
      '[conversation.notifications.kinds.tool]\n"tool.stopped" = false\n',
      2,
      "conversation.notifications.kinds.tool.tool.stopped",
      "the kinds of a source stand without it, like stopped = false",
    ],
    [
      "the same by its old name",
      '[conversation.notifications.kinds.tool]\n"handle.stopped" = false\n',
      2,
      "conversation.notifications.kinds.tool.handle.stopped",
      "the kinds of a source stand without it, like stopped = false",
    ],
    [
      "the same of another source, without quotes",
      "[conversation.notifications.kinds.mcp]\nmcp.reconnected = false\n",
      2,
      "conversation.notifications.kinds.mcp.mcp",
      "the kinds of a source stand without it, like reconnected = false",
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

  const KINDS = "conversation.notifications.kinds";
  it.each([
    [
      "in one line and in a table",
      `[${KINDS}]\n"tool.stopped" = true\n[${KINDS}.tool]\nstopped = false\n`,
      4,
      `${KINDS}.tool.stopped`,
      `says false, and ${KINDS}.tool.stopped on line 2 says true; say it once`,
    ],
    [
      "by its old name, and by the new one",
      `[${KINDS}]\n"handle.stopped" = false\n"tool.stopped" = true\n`,
      3,
      `${KINDS}.tool.stopped`,
      `says true, and ${KINDS}.handle.stopped on line 2 says false; say it once`,
    ],
    [
      "by the new name, and by the old one",
      `[${KINDS}]\n"tool.stopped" = false\n"handle.stopped" = true\n`,
      3,
      `${KINDS}.handle.stopped`,
      `says true, and ${KINDS}.tool.stopped on line 2 says false; say it once`,
    ],
    [
      "for a whole source, in two tables",
      `[${KINDS}.handle]\nenable = false\n[${KINDS}.tool]\nenable = true\n`,
      4,
      `${KINDS}.tool.enable`,
      `says true, and ${KINDS}.handle.enable on line 2 says false; say it once`,
    ],
    [
      "with a table that is opened again",
      `${NESTED}[${KINDS}]\n"mcp.reconnected" = true\n`,
      25,
      `${KINDS}.mcp.reconnected`,
      `says true, and ${KINDS}.mcp.reconnected on line 23 says false; say it once`,
    ],
  ])("refuses a kind that is switched on and off: %s", (_what, text, line, key, reason) => {
    const refused = (): readonly unknown[] => {
      try {
        return [parseConfig(text, "t")];
      } catch (error) {
        return error instanceof ConfigError ? error.problems : [error];
      }
    };
    expect(refused()).toEqual([{ line, column: 1, key, reason }]);
    // Beside what else is wrong, too.
    expect(() => parseConfig(`${text}[agents]\n`, "t")).toThrow(/agents is not a known key.*; say it once$/);
  });

  it("may say the same of a kind twice", () => {
    const text = `[${KINDS}]\n"tool.stopped" = false\n"handle.stopped" = false\n[${KINDS}.tool]\nstopped = false\n`;
    expect(plain(text).kinds).toEqual({ tool: { enable: true, stopped: false } });
  });

  it("knows of a switch which key it has in the file, and where; only what it says is a change", () => {
    const old = parseConfig(`[${KINDS}]\n"handle.stopped" = false\n`, "t");
    expect(old.notifications.kinds.get("tool")?.names.get("stopped")).toEqual({
      on: false,
      path: ["conversation", "notifications", "kinds", "handle.stopped"],
      line: 2,
    });
    expect(changedKeys(old, parseConfig(`\n\n[${KINDS}.tool]\nstopped = false\n`, "t"))).toEqual([]);
  });

  it("has a kind whose name begins like its source, in full or without dots", () => {
    const text = `[${KINDS}]\n"build.build.done" = false\n[${KINDS}.build]\nbuild = false\n`;
    expect(plain(text).kinds).toEqual({ build: { enable: true, "build.done": false, build: false } });
  });

  it("sets any of the server's limits, within its range", () => {
    const keys = Object.keys(SERVER_LIMITS).map((name) => limitKey(name));
    const text = `[server.limits]\n${keys.map((key) => `${key} = ${presetOf(key) + 1}`).join("\n")}\n`;
    const { limits } = parseConfig(text, "t").server;
    expect(limits).toEqual(Object.fromEntries(Object.entries(SERVER_LIMITS).map(([name, value]) => [name, value + 1])));
    expect(parseConfig("", "t").server.limits).toEqual({});
    expect(changedKeys(parseConfig("", "t"), parseConfig("[server.limits]\nbody_bytes = 5000\n", "t"))).toEqual([
      "server.limits.body_bytes",
    ]);
    for (const [line, words] of [
      ["body_byte = 5000", "t:2:1: server.limits.body_byte is not a known key; did you mean body_bytes?"],
      ["body_bytes = 1", "t:2:1: server.limits.body_bytes must be a whole number from 1024 to 1073741824, not 1"],
      ["json_depth = 64.5", "server.limits.json_depth must be a whole number from 8 to 500"],
      ["sockets = true", "server.limits.sockets must be a whole number from 1 to 1000000, not true"],
    ] as const)
      expect(() => parseConfig(`[server.limits]\n${line}\n`, "t")).toThrow(words);
    expect(() => parseConfig("[server]\nlimit = 1\n", "t")).toThrow(
      "server.limit is not a known key; did you mean limits?",
    );
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
