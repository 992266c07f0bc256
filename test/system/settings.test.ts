/** What users switch off, over RPC and by the command line; and every combination of the switches at the real server. */
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { isMiss, type SettingsView, type SubscriberList, Tidings } from "../../src/index.js";
import { eventually, temporaryFolder } from "../support/folder.js";
import { emit, onlyMatch, sharedServer, storyOf, writeSubscriber } from "../support/pipeline.js";
import { Server } from "../support/server.js";
import { run } from "./cli.js";

const INVALID = -32602;
const FORBIDDEN = -32003;

/** Shown at once, so that what becomes of an event is in its answer. */
const SHOWN = { routing: { address: "user", target: "user", handler: "system" } } as const;

const settingsOf = (server: Server, user_id: string) => server.call<SettingsView>("settings/get", { user_id });
const listOf = (server: Server, user_id: string) => server.call<SubscriberList>("subscriber/list", { user_id });

describe("the settings of a user", () => {
  let server: Server;
  let end: () => Promise<void>;
  beforeAll(async () => {
    ({ server, end } = await sharedServer((folder) => {
      writeSubscriber(folder, { id: "notes", types: ["note.*"], template: "note: {{ count }}\n", ...SHOWN });
      writeSubscriber(folder, { id: "gone", types: ["gone.*"], template: "gone: {{ count }}\n", ...SHOWN });
    }));
  });
  afterAll(() => end());

  test("are empty at first, and then what was said last", async () => {
    expect(await settingsOf(server, "ada")).toEqual({ user_id: "ada", disabled_subscribers: [], unknown: [] });
    const update = (disabled_subscribers: string[]) =>
      server.call<SettingsView>("settings/update", { user_id: "ada", disabled_subscribers });
    const answer = { user_id: "ada", disabled_subscribers: ["notes", "mcp_connection"], unknown: [] };
    expect(await update(["notes", "mcp_connection", "notes"])).toEqual(answer);
    expect(await settingsOf(server, "ada")).toEqual(answer);
    expect(await update(["mcp_connection"])).toMatchObject({ disabled_subscribers: ["mcp_connection"] });
    expect(await settingsOf(server, "ben")).toMatchObject({ disabled_subscribers: [] });
  });

  test("hold at the next delivery, and no longer than that", async () => {
    const sent = async () =>
      onlyMatch(await emit(server, { type: "note.one", source: crypto.randomUUID(), user_id: "cyd" }));
    expect((await sent()).outcome).toBe("queued");
    await server.call("settings/update", { user_id: "cyd", disabled_subscribers: ["notes"] });
    const { outcome, notification } = await sent();
    expect([outcome, notification.state, notification.reason]).toEqual(["muted", "SUPPRESSED", "muted"]);
    expect(await storyOf(server, notification.id)).toContain("the user has disabled the subscriber notes");
    await server.call("settings/update", { user_id: "cyd", disabled_subscribers: [] });
    expect((await sent()).outcome).toBe("queued");
  });

  test.each([
    ["a core one", ["tool_failure"], "tool_failure is a core subscriber: it cannot be switched off"],
    ["one that is not there", ["note"], 'there is no subscriber "note"; did you mean notes?'],
    ["the one behind notify()", ["direct"], 'there is no subscriber "direct"'],
    ["what is no list", "notes", "must be a list"],
    ["an empty id", [""], ""],
    ["too many", Array.from({ length: 1_001 }, (_, n) => `s${n}`), "1000"],
  ])("refuse %s, and stay as they are", async (_what, disabled_subscribers, reason) => {
    await server.call("settings/update", { user_id: "dee", disabled_subscribers: ["notes"] });
    const { error } = await server.rpc("settings/update", { user_id: "dee", disabled_subscribers });
    expect(error).toMatchObject({ code: INVALID, data: { field: expect.stringMatching(/^disabled_subscribers/) } });
    expect(error?.data?.reason).toContain(reason);
    expect(await settingsOf(server, "dee")).toMatchObject({ disabled_subscribers: ["notes"] });
  });

  test("keep the id of a subscriber that was removed, say so, and hold again when it is back", async () => {
    await server.call("settings/update", { user_id: "eve", disabled_subscribers: ["gone"] });
    const file = join(server.data, "subscribers/gone.toml");
    const unknown = (wanted: string[]) =>
      eventually(
        () => settingsOf(server, "eve"),
        (settings) => settings.unknown.join() === wanted.join(),
      );
    rmSync(file);
    expect(await unknown(["gone"])).toMatchObject({ disabled_subscribers: ["gone"] });
    // Others can be switched off meanwhile, and that one stays.
    const more = await server.call("settings/update", { user_id: "eve", disabled_subscribers: ["gone", "notes"] });
    expect(more).toEqual({ user_id: "eve", disabled_subscribers: ["gone", "notes"], unknown: ["gone"] });
    expect((await listOf(server, "eve")).subscribers.some(({ id }) => id === "gone")).toBe(false);
    // Nobody else can switch it off now.
    const { error } = await server.rpc("settings/update", { user_id: "fay", disabled_subscribers: ["gone"] });
    expect(error?.code).toBe(INVALID);
    writeSubscriber(join(server.data, "subscribers"), {
      id: "gone",
      types: ["gone.*"],
      template: "gone: {{ count }}\n",
      ...SHOWN,
    });
    await unknown([]);
    const back = onlyMatch(await emit(server, { type: "gone.one", source: "x", user_id: "eve" }));
    expect(back.outcome).toBe("muted");
  });

  test("are the user's own: a token sees and changes no other's", async () => {
    const { token } = await server.createToken({ user_id: "gil", scopes: ["read", "ack"] });
    for (const [method, params] of [
      ["settings/get", {}],
      ["settings/update", { disabled_subscribers: ["notes"] }],
      ["subscriber/list", {}],
    ] as const) {
      expect((await server.rpc(method, params, token)).error, method).toBeUndefined();
      expect((await server.rpc(method, { ...params, user_id: "ada" }, token)).error?.code, method).toBe(FORBIDDEN);
    }
    expect(await settingsOf(server, "gil")).toMatchObject({ disabled_subscribers: ["notes"] });
    const reader = await server.createToken({ user_id: "gil", scopes: ["read"] });
    const { error } = await server.rpc("settings/update", { disabled_subscribers: [] }, reader.token);
    expect(error?.code).toBe(FORBIDDEN);
  });

  test("survive a restart", async () => {
    const data = await temporaryFolder();
    const first = await Server.start({ data });
    await first.call("settings/update", { user_id: "ada", disabled_subscribers: ["cli_event"] });
    await first.kill();
    const second = await Server.start({ data });
    const { outcome } = onlyMatch(await emit(second, { type: "cli.a.b", source: "x", user_id: "ada" }));
    expect(outcome).toBe("muted");
    expect(await second.stop()).toBe(0);
  });
});

describe("by the command line", () => {
  async function lines(data: string, ...line: string[]) {
    return run(["subscribers", ...line, "--data", data]);
  }

  test("on a folder and through a server alike: list, disable, enable", async () => {
    const story = async (served: boolean) => {
      const data = await temporaryFolder();
      const server = served ? await Server.start({ data }) : undefined;
      const off = await lines(data, "disable", "cli_event");
      expect(off).toEqual({ code: 0, stdout: "cli_event is off from now on for local.\n", stderr: "" });
      expect((await lines(data, "disable", "cli_event")).stdout).toBe("cli_event was off already for local.\n");
      const { stdout } = await lines(data, "list");
      expect(stdout).toMatch(/^disabled {2}cli_event +Events from the command line {2}cli\.\* {2}\(built in\)$/m);
      expect(stdout).toMatch(/^active {4}tool_failure +Tool failures .*\(core, built in\)$/m);
      expect(stdout).toMatch(/^loaded {4}turn_digest /m);
      expect(stdout.trimEnd().endsWith("14 subscribers.")).toBe(true);
      const emitted = await run(["emit", "cli.a.b", "--data", data]);
      expect(emitted.stdout).toMatch(/cli_event muted: SUPPRESSED/);
      const on = await lines(data, "enable", "cli_event", "--json");
      expect(JSON.parse(on.stdout)).toEqual({ user_id: "local", disabled_subscribers: [], unknown: [] });
      expect((await lines(data, "enable", "cli_event")).stdout).toBe("cli_event was not switched off for local.\n");
      expect((await run(["emit", "cli.a.b", "--data", data])).stdout).toMatch(/cli_event queued: DISPATCHED/);
      if (server !== undefined) expect(await server.stop()).toBe(0);
    };
    await Promise.all([story(false), story(true)]);
  });

  test("for another user, and with a reason where it is refused", async () => {
    const data = await temporaryFolder();
    expect((await lines(data, "disable", "mcp_connection", "--user", "ada")).code).toBe(0);
    const states = async (...more: string[]) => {
      const { stdout } = await lines(data, "list", "--json", ...more);
      const { subscribers } = JSON.parse(stdout) as SubscriberList;
      return subscribers.find(({ id }) => id === "mcp_connection")?.state;
    };
    expect([await states(), await states("--user", "ada")]).toEqual(["active", "disabled"]);
    expect(await lines(data, "disable", "tool_failure")).toMatchObject({
      code: 2,
      stderr: "tidings: disabled_subscribers: tool_failure is a core subscriber: it cannot be switched off\n",
    });
    for (const verb of ["disable", "enable"])
      expect(await lines(data, verb, "mcp_conection")).toMatchObject({
        code: 2,
        stderr: expect.stringContaining('there is no subscriber "mcp_conection"; did you mean mcp_connection?'),
      });
  });
});

describe("the switches, each on, off or not said", () => {
  const STATES = [undefined, true, false] as const;
  const RULES = {
    master: "conversation.notifications.enable = false",
    source: "conversation.notifications.kinds.tool.enable = false",
    name: "conversation.notifications.kinds.tool.stopped = false",
    tool: "conversation.tools.cargo.notifications.stopped = false",
    user: "the user has disabled the subscriber shown_tools",
  } as const;
  type Switch = keyof typeof RULES;
  const IN_FILE = ["master", "source", "name", "tool"] as const satisfies Switch[];
  type States = Readonly<Record<(typeof IN_FILE)[number], boolean | undefined>>;

  /** Every combination of what a file can say. */
  function files(): States[] {
    let found: Partial<States>[] = [{}];
    for (const key of IN_FILE) found = found.flatMap((one) => STATES.map((state) => ({ ...one, [key]: state })));
    return found as States[];
  }

  function textOf({ master, source, name, tool }: States): string {
    const line = (key: string, value: boolean | undefined) => (value === undefined ? "" : `${key} = ${value}\n`);
    return `[conversation.notifications]
${line("enable", master)}[conversation.notifications.kinds.tool]
${line("enable", source)}${line("stopped", name)}[conversation.tools.cargo.notifications]
${line("stopped", tool)}`;
  }

  /** The first that is off. */
  function ruleOf(states: States, tool: string, user: string): string | undefined {
    const off = IN_FILE.find((key) => states[key] === false && (key !== "tool" || tool === "cargo"));
    return off !== undefined ? RULES[off] : user === "ada" ? RULES.user : undefined;
  }

  test("every cell: the first that is off is the rule, and core and critical ones pass", async () => {
    const folder = await temporaryFolder();
    const shown = { types: ["tool.stopped"], template: "tool: {{ event.payload.tool_name }}\n", ...SHOWN };
    writeSubscriber(folder, { id: "shown_tools", ...shown });
    writeSubscriber(folder, { id: "core_tools", core: true, ...shown });
    writeSubscriber(folder, { id: "urgent_tools", priority: "critical", ...shown });
    const config_file = join(folder, "tidings.toml.txt");
    const data = await temporaryFolder();
    const counted = { told: 0, muted: 0 };
    for (const states of files()) {
      writeFileSync(config_file, textOf(states));
      const tidings = await Tidings.open({ data, subscribers_folder: folder, config_file, watch: false });
      try {
        await tidings.updateSettings({ user_id: "ada", disabled_subscribers: ["shown_tools", "urgent_tools"] });
        for (const user_id of ["ada", "ben"])
          for (const tool_name of ["cargo", "git"]) {
            const source = crypto.randomUUID();
            await tidings.emit({ type: "tool.stopped", source, payload: { tool_name }, user_id });
            const rule = ruleOf(states, tool_name, user_id);
            const label = `${textOf(states)} ${user_id} ${tool_name}`;
            const { notifications } = await tidings.list({ user_id, limit: 10 });
            const own = notifications.filter((one) => one.source === source && one.subscriber_id !== "tool_handle");
            expect(Object.fromEntries(own.map((one) => [one.subscriber_id, one.state])), label).toEqual({
              shown_tools: rule === undefined ? "DISPATCHED" : "SUPPRESSED",
              core_tools: "DISPATCHED",
              urgent_tools: "DISPATCHED",
            });
            counted[rule === undefined ? "told" : "muted"] += 1;
            const why = await tidings.explain(own.find((one) => one.subscriber_id === "shown_tools")?.id ?? "");
            const story = isMiss(why) ? why.message : why.story.map(({ text }) => text).join("\n");
            for (const one of Object.values(RULES))
              expect(story.includes(one), `${label}: ${story}`).toBe(one === rule);
            if (rule !== undefined && rule !== RULES.user) expect(story, label).toContain(`(${config_file})`);
          }
      } finally {
        await tidings.close();
      }
    }
    // Of 81 files 16 keep nothing back of cargo, and 24 nothing of git; one of the two users has switched it off.
    expect(counted).toEqual({ told: 16 + 24, muted: 4 * 81 - (16 + 24) });
  });
});
