import { mkdir, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { encode } from "@toon-format/toon";
import { describe, expect, it, onTestFinished } from "vitest";
import { eventually, temporaryFolder } from "../../test/support/folder.js";
import { parseEvent } from "../domain/event.js";
import { eventId, OVERFLOW_SUBSCRIBER, subscriberId } from "../domain/ids.js";
import { Catalogue, type CatalogueChange } from "./catalogue.js";
import { checkedDisabled, settingsView, subscriberList } from "./listing.js";
import type { SubscriberInput } from "./subscriber.js";

function toml(id: string, name: string, more = ""): string {
  return `[subscriber]
id = "${id}"
name = "${name}"
description = "d"
version = "1"
${more}
[events]
types = ["my.event"]
[output]
priority = "normal"
inject_at = "next"
template = "mine.j2"
`;
}

interface Given {
  files?: Readonly<Record<string, string>>;
  config?: string;
  own?: readonly SubscriberInput[];
  watch?: boolean;
}

async function catalogueOf({ files = {}, config, own = [], watch = false }: Given = {}) {
  const root = await temporaryFolder();
  const folder = join(root, "subscribers");
  const config_file = join(root, "tidings.toml");
  await mkdir(folder);
  const write = async (name: string, content: string) => {
    await writeFile(join(folder, `.${name}.new`), content);
    await rename(join(folder, `.${name}.new`), join(folder, name));
  };
  await write("mine.j2", "mine: {{ event.payload.name }}");
  for (const [name, content] of Object.entries(files)) await write(name, content);
  if (config !== undefined) await writeFile(config_file, config);
  const catalogue = await Catalogue.open({ subscribers: own, folder, config_file, watch });
  onTestFinished(() => catalogue.close());
  const changes: CatalogueChange[] = [];
  catalogue.onChange((change) => changes.push(change));
  return { catalogue, folder, config_file, write, changes };
}

const EVENT = {
  ...parseEvent({ type: "tool.call.failure", source: "here", payload: { name: "one", tool_name: "grep" } }),
  id: eventId("e1"),
  timestamp: "2026-01-03T15:30:01.000Z",
};
const ROW = { event: EVENT, count: 1, since: EVENT.timestamp };
const id = subscriberId;
const USER = "ada" as Parameters<typeof subscriberList>[1]["user_id"];
const listOf = (catalogue: Catalogue, ...disabled: string[]) =>
  subscriberList(catalogue, { user_id: USER, disabled_subscribers: disabled.map(id) });
const stateIn = (catalogue: Catalogue, wanted: string, ...disabled: string[]) =>
  listOf(catalogue, ...disabled).subscribers.find((one) => one.id === wanted);

describe("what is in effect", () => {
  it("is the program's subscriber before the folder's, and the folder's before the built-in one", async () => {
    const { catalogue } = await catalogueOf({
      files: { "a.toml": toml("mcp_connection", "of the folder"), "b.toml": toml("rate_limit", "of the folder") },
      own: [{ id: "mcp_connection", name: "of the program", types: ["my.event"] }],
    });
    const names = ["mcp_connection", "rate_limit", "cli_event"].map((one) => catalogue.subscriber(id(one))?.name);
    expect(names).toEqual(["of the program", "of the folder", "Events from the command line"]);
    expect(catalogue.matching({ type: "my.event", source: "x" }).map((one) => one.id)).toEqual([
      "mcp_connection",
      "rate_limit",
    ]);
    expect(catalogue.matching({ type: "mcp.disconnected", source: "x" })).toEqual([]);
  });

  it("refuses two of a program with one id, and ids that are taken", async () => {
    const one = { id: "x", types: ["my.event"] };
    await expect(catalogueOf({ own: [one, one] })).rejects.toThrow("two have the id x");
    for (const taken of ["direct", "overflow"])
      await expect(catalogueOf({ own: [{ ...one, id: taken }] })).rejects.toThrow("is the subscriber behind");
  });

  it("changes with a file: for what is matched, and for what is worded", async () => {
    const { catalogue, folder, write } = await catalogueOf({ files: { "a.toml": toml("a", "A") }, watch: true });
    expect(catalogue.words(id("a"), [ROW], 0)).toEqual({ content: "mine: one", degraded: null });
    await write("mine.j2", "other: {{ event.payload.name }}");
    await eventually(
      async () => catalogue.words(id("a"), [ROW], 0).content,
      (content) => content === "other: one",
    );
    await rm(join(folder, "a.toml"));
    await eventually(
      async () => catalogue.matching({ type: "my.event", source: "x" }),
      (found) => found.length === 0,
    );
    // What it has left behind is still told.
    expect(catalogue.words(id("a"), [ROW], 0)).toEqual({
      content: encode({ notice: 'tool.call.failure grep (from here): {"name":"one","tool_name":"grep"}' }),
      degraded: "the subscriber a is no longer there",
    });
  });

  it("tells what is wrong with which file, and which keys have changed", async () => {
    const { catalogue, write, changes, config_file } = await catalogueOf({
      files: { "a.toml": toml("a", "A") },
      config: "",
      watch: true,
    });
    await write("a.toml", "nonsense");
    await eventually(
      async () => changes.length,
      (count) => count === 1,
    );
    await writeFile(config_file, "[conversation.notifications]\nenable = false\n");
    await eventually(
      async () => changes.length,
      (count) => count === 2,
    );
    await writeFile(config_file, "[conversation.notification]\n");
    await eventually(
      async () => changes.length,
      (count) => count === 3,
    );
    expect(changes).toEqual([
      { problems: [expect.objectContaining({ about: "subscriber", instead: "last_good" })], config_changed: [] },
      { problems: [], config_changed: ["conversation.notifications.enable"] },
      {
        problems: [
          expect.objectContaining({ about: "config", file: config_file, line: 1, key: "conversation.notification" }),
        ],
        config_changed: [],
      },
    ]);
    expect(catalogue.problems.map(({ about, instead }) => [about, instead])).toEqual([
      ["subscriber", "last_good"],
      ["config", "last_good"],
    ]);
  });
});

describe("what is held back", () => {
  const OFF = "[conversation.notifications]\nenable = false\n";

  it("is nothing of a core subscriber, of critical priority, or of the summary of what was too much", async () => {
    const { catalogue } = await catalogueOf({ config: OFF });
    const disabled = [id("tool_failure"), id("turn_digest")];
    const held = (one: string, priority: "normal" | "critical" = "normal") =>
      catalogue.held(EVENT, id(one), priority, disabled);
    expect(held("turn_digest")).toContain("conversation.notifications.enable = false (");
    expect(held("direct")).toContain("conversation.notifications.enable = false (");
    expect(held("gone")).toContain("conversation.notifications.enable = false (");
    expect([held("tool_failure"), held("turn_digest", "critical"), held(OVERFLOW_SUBSCRIBER)]).toEqual([
      undefined,
      undefined,
      undefined,
    ]);
  });

  it("can be something only if anything is switched off", async () => {
    const { catalogue } = await catalogueOf({
      config:
        '[conversation.notifications.kinds]\n"mcp.reconnected" = true\n[conversation.tools.git.notifications]\nwaiting = true\n',
    });
    expect([catalogue.holdsAny([]), catalogue.holdsAny([id("x")])]).toEqual([false, true]);
    for (const config of [
      OFF,
      "[conversation.notifications.kinds.mcp]\nenable = false\n",
      '[conversation.notifications.kinds]\n"mcp.reconnected" = false\n',
      "[conversation.tools.git.notifications]\nwaiting = false\n",
    ])
      expect((await catalogueOf({ config })).catalogue.holdsAny([]), config).toBe(true);
  });
});

describe("the list", () => {
  it("tells each one's state: active, disabled, loaded, broken", async () => {
    const { catalogue } = await catalogueOf({
      files: {
        "off.toml": toml("off", "Off", "enabled = false"),
        "good.toml": toml("good", "Good"),
        "bad.toml": toml("bad", "Bad", "x = 1"),
        "unread.toml": "nonsense",
        "cli.toml": toml("cli_event", "Mine", "x = 1"),
      },
    });
    const states = ["off", "good", "bad", "unread", "cli_event", "tool_failure"].map(
      (one) => stateIn(catalogue, one)?.state,
    );
    expect(states).toEqual(["loaded", "active", "broken", "broken", "broken", "active"]);
    expect(stateIn(catalogue, "good", "good", "tool_failure")?.state).toBe("disabled");
    // Core ones stay on, whatever a list says.
    expect(stateIn(catalogue, "tool_failure", "good", "tool_failure")?.state).toBe("active");
    expect(stateIn(catalogue, "bad")).toMatchObject({
      name: null,
      types: null,
      file: expect.stringMatching(/bad\.toml$/),
    });
    expect(stateIn(catalogue, "bad")?.reason).toMatch(/bad\.toml:6:1: subscriber\.x is not a known key/);
    expect(stateIn(catalogue, "cli_event")).toMatchObject({
      built_in: true,
      types: ["cli.*"],
      reason: expect.stringMatching(/cli\.toml:.*\(the built-in one stays in effect\)$/),
    });
    expect(listOf(catalogue).problems.map(({ subscriber_id }) => subscriber_id)).toEqual(["bad", "cli_event", null]);
  });

  it("shows all that a subscriber says, and whose word it is", async () => {
    const { catalogue } = await catalogueOf({ own: [{ id: "mine", types: ["my.event"], sources: ["ci"] }] });
    expect(stateIn(catalogue, "tool_failure")).toEqual({
      id: "tool_failure",
      name: "Tool failures",
      description: "Tells the agent when tool calls fail or time out",
      version: "1.0.0",
      state: "active",
      core: true,
      core_reason: expect.stringContaining("must not be missed"),
      enabled: true,
      types: ["tool.call.failure", "tool.call.timeout"],
      sources: null,
      severity_filter: "warning",
      priority: "high",
      inject_at: "after_tool",
      address: "session",
      target: "agent",
      handler: "system",
      batch_window_ms: 2000,
      max_batch_size: 10,
      dedupe_window_ms: 5000,
      built_in: true,
      file: expect.stringMatching(/subscribers\/tool_failure\.toml$/),
      reason: null,
      last_matches: [],
    });
    const own = { file: null, built_in: false, sources: ["ci"], batch_window_ms: 0, state: "active" };
    expect(stateIn(catalogue, "mine")).toMatchObject(own);
  });

  it("says of a file whose id another has, that it is broken, and of the other, that it is not", async () => {
    const { catalogue } = await catalogueOf({ files: { "a.toml": toml("x", "First"), "b.toml": toml("x", "Second") } });
    const found = listOf(catalogue).subscribers.filter((one) => one.id === "x");
    expect(found.map(({ state, name }) => [state, name])).toEqual([
      ["active", "First"],
      ["broken", null],
    ]);
  });

  it("says which switches do not concern core subscribers", async () => {
    const without = async (config: string, ...disabled: string[]) =>
      listOf((await catalogueOf({ config })).catalogue, ...disabled).without_effect.map((line) =>
        line.replace(/ \(.*?\)/, ""),
      );
    const stays = (rule: string, ...ids: string[]) =>
      `${rule} does not concern ${ids.join(", ")}: core subscribers stay on`;
    const at = "conversation.notifications";
    expect(await without(`[${at}]\nenable = false\n`)).toEqual([
      stays(`${at}.enable = false`, "budget_exceeded", "tool_failure"),
    ]);
    expect(await without(`[${at}.kinds.tool]\nenable = false\n"call.failure" = false\nstopped = false\n`)).toEqual([
      stays(`${at}.kinds.tool.enable = false`, "tool_failure"),
      stays(`${at}.kinds.tool.call.failure = false`, "tool_failure"),
    ]);
    expect(await without('[conversation.tools.grep.notifications]\n"call.timeout" = false\nwaiting = false\n')).toEqual(
      [stays("conversation.tools.grep.notifications.call.timeout = false", "tool_failure")],
    );
    expect(await without("[conversation.notifications.kinds.mcp]\nenable = false\n", "mcp_connection")).toEqual([]);
    expect(await without("", "tool_failure")).toEqual([
      "the user has disabled tool_failure, which is core by now and stays on",
    ]);
  });
});

describe("a switch that keeps back nothing that a subscriber takes", () => {
  const KINDS = "conversation.notifications.kinds";
  const without = async (config: string) => {
    const { catalogue, config_file } = await catalogueOf({
      config,
      files: { "mine.toml": toml("mine", "Mine"), "off.toml": toml("off", "Off", "enabled = false") },
      own: [{ id: "deploys", types: ["deploy.*"] }],
    });
    return listOf(catalogue).without_effect.map((line) => line.replace(config_file, "FILE"));
  };
  const idle = (key: string, line: number, why: string) =>
    `${key} = false (FILE:${line}) concerns only what notify() tells: no subscriber takes ${why}`;

  it.each([
    ["of an unknown source", `[${KINDS}.mpc]\nenable = false\n`, "mpc.enable", "anything of mpc; did you mean mcp?"],
    [
      "of its old name",
      `[${KINDS}.hanlde]\nenable = false\n`,
      "hanlde.enable",
      "anything of hanlde; did you mean handle?",
    ],
    ["in such a table", `[${KINDS}.mpc]\nlog = false\n`, "mpc.log", "anything of mpc; did you mean mcp?"],
    ["in one line", `[${KINDS}]\n"mpc.log" = false\n`, "mpc.log", "mpc.log; did you mean mcp.log?"],
    ["of a known source", `[${KINDS}.tool]\nstoped = false\n`, "tool.stoped", "tool.stoped; did you mean stopped?"],
    [
      "of it, in one line",
      `[${KINDS}]\n"tool.stoped" = false\n`,
      "tool.stoped",
      "tool.stoped; did you mean tool.stopped?",
    ],
    ["of one's own", `[${KINDS}]\n"my.evnt" = false\n`, "my.evnt", "my.evnt; did you mean my.event?"],
    ["near nothing", `[${KINDS}.zeppelin]\nenable = false\n`, "zeppelin.enable", "anything of zeppelin"],
  ])("is mentioned with its line: %s", async (_what, config, key, why) => {
    expect(await without(config)).toEqual([idle(`${KINDS}.${key}`, 2, why)]);
  });

  it("is mentioned of a tool", async () => {
    const key = "conversation.tools.x.notifications.stoped";
    expect(await without("[conversation.tools.x.notifications]\nstoped = false\n")).toEqual([
      idle(key, 2, "tool.stoped; did you mean stopped?"),
    ]);
  });

  it("is mentioned where a prefix would take it, if a known type is near", async () => {
    const says = (near: string) => [
      `${KINDS}.mcp.reconected = false (FILE:2) is about mcp.reconected, which is no known event type; did you mean ${near}?`,
    ];
    expect(await without(`[${KINDS}.mcp]\nreconected = false\n`)).toEqual(says("reconnected"));
    expect(await without(`[${KINDS}]\n"mcp.reconected" = false\n`)).toEqual(says("mcp.reconnected"));
  });

  it("is not mentioned where somebody takes it, or it is on", async () => {
    const taken = [
      "my.event",
      "deploy.anything",
      "tool.call.success",
      "mcp.reconnected",
      "mcp.restarted",
      "cli.reconnected",
    ];
    const off = taken.map((kind) => `"${kind}" = false\n`).join("");
    const on = '"mcp.reconnectd" = true\n"zeppelin.lands" = true\n';
    expect(await without(`[${KINDS}]\n${off}${on}[${KINDS}.deploy]\nenable = false\n`)).toEqual([]);
  });

  it("is mentioned of a known type that nobody takes, without a hint at itself", async () => {
    const { catalogue, config_file } = await catalogueOf({
      config: `[${KINDS}]\n"mcp.log" = false\n`,
      own: ["mcp_connection", "turn_digest"].map((one) => ({ id: one, types: ["my.event"] })),
    });
    const [line, ...others] = listOf(catalogue).without_effect;
    expect([line?.replace(config_file, "FILE"), others]).toEqual([idle(`${KINDS}.mcp.log`, 2, "mcp.log"), []]);
  });
});

describe("what a user may switch off", () => {
  it("is what is there and not core; what is off already may stay so", async () => {
    const { catalogue } = await catalogueOf();
    const checked = (before: string[], wanted: string[]) => checkedDisabled(catalogue, before.map(id), wanted);
    expect(checked([], ["cli_event", "mcp_connection", "cli_event"])).toEqual(["cli_event", "mcp_connection"]);
    expect(() => checked([], ["tool_failure"])).toThrow("disabled_subscribers: tool_failure is a core subscriber");
    expect(() => checked([], ["mcp_conection"])).toThrow('no subscriber "mcp_conection"; did you mean mcp_connection?');
    expect(() => checked([], ["__proto__"])).toThrow("there is no subscriber");
    expect(checked(["gone", "tool_failure"], ["tool_failure", "gone", "cli_event"])).toEqual([
      "tool_failure",
      "gone",
      "cli_event",
    ]);
  });

  it("is reported with what is no longer there", async () => {
    const { catalogue } = await catalogueOf();
    const settings = { user_id: USER, disabled_subscribers: [id("gone"), id("cli_event")] };
    expect(settingsView(catalogue, settings)).toEqual({ ...settings, unknown: ["gone"] });
  });
});
