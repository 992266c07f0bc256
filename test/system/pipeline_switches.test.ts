/** The switches of the operator's file and of the user, at the real server: judged at delivery, and explained. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import type { EventInput } from "../../src/domain/event.js";
import { eventually, temporaryFolder } from "../support/folder.js";
import {
  all,
  decoded,
  emit,
  emitAll,
  failure,
  newThread,
  onlyMatch,
  PLAIN_TEMPLATE,
  read,
  rowsOf,
  sharedServer,
  storyOf,
  told,
  writeSubscriber,
} from "../support/pipeline.js";
import { Server } from "../support/server.js";

/** As seed 1 has it, with its table that is there twice. */
const SEED_1 = `[conversation.tools.cargo_check]
source = "builtin"
stateful = true

[conversation.tools.cargo_check.notifications]
stopped = true
waiting = false
failed = true

[conversation.notifications.kinds.tool]
stopped = true
waiting = true
failed = true

[conversation.notifications.kinds.mcp]
disconnected = true
reconnected = false # don't bother the assistant with reconnects
`;

/** And with its first example before it: the two tables of \`mcp\` are read as if they were one. */
const SEED_1_TWICE = `[conversation.notifications.kinds.mcp]
enable = false

${SEED_1}`;

const SEED_2 = `[conversation.tools.cargo_check]
source = "builtin"
stateful = true

[conversation.tools.cargo_check.notifications]
stopped = true   # notify when the tool stops
waiting = false  # don't notify for waiting state (not applicable anyway)

[conversation.notifications]
enable = true    # master switch (default: true)

[conversation.notifications.kinds]
"handle.stopped" = true
"handle.waiting" = true
"mcp.disconnected" = true
"mcp.reconnected" = false  # don't bother the assistant with reconnects
`;

const event = (type: string, payload: EventInput["payload"] = {}): EventInput => ({
  type,
  source: "test",
  severity: "warning",
  payload,
});

const KINDS: Record<string, EventInput> = {
  stopped: event("tool.stopped", { tool_name: "git" }),
  waiting: event("tool.waiting", { tool_name: "git" }),
  "handle stopped": event("handle.stopped", { tool_name: "git" }),
  "waiting cargo_check": event("tool.waiting", { tool_name: "cargo_check" }),
  "waiting cargo_check, as a handle": event("handle.waiting", { tool_name: "cargo_check" }),
  "failed cargo_check": event("tool.failed", { tool_name: "cargo_check" }),
  disconnected: event("mcp.disconnected", { server: "github" }),
  reconnected: event("mcp.reconnected", { server: "github" }),
  "loop detected": event("agent.loop.detected", { pattern: "a" }),
  "a core one": failure("vault_search"),
};

const WAITING_RULE = "conversation.tools.cargo_check.notifications.waiting = false";
const RECONNECTED_RULE = "conversation.notifications.kinds.mcp.reconnected = false";
const MCP_RULE = "conversation.notifications.kinds.mcp.enable = false";
const MASTER_RULE = "conversation.notifications.enable = false";

/** What each file keeps back, and by which rule; everything else of `KINDS` is told. */
const FILES: [string, string, Record<string, string>][] = [
  ["no file", "", {}],
  [
    "seed 1",
    SEED_1,
    {
      "waiting cargo_check": WAITING_RULE,
      "waiting cargo_check, as a handle": WAITING_RULE,
      reconnected: RECONNECTED_RULE,
    },
  ],
  [
    "seed 1 with its table twice",
    SEED_1_TWICE,
    {
      "waiting cargo_check": WAITING_RULE,
      "waiting cargo_check, as a handle": WAITING_RULE,
      disconnected: MCP_RULE,
      reconnected: MCP_RULE,
    },
  ],
  [
    "seed 2",
    SEED_2,
    {
      "waiting cargo_check": WAITING_RULE,
      "waiting cargo_check, as a handle": WAITING_RULE,
      reconnected: RECONNECTED_RULE,
    },
  ],
  [
    "the master switch",
    SEED_2.replace("enable = true ", "enable = false"),
    Object.fromEntries(
      Object.keys(KINDS)
        .filter((name) => name !== "a core one")
        .map((name) => [name, MASTER_RULE]),
    ),
  ],
];

describe("tidings.toml, as the seeds write it", () => {
  test.each(FILES)("%s", async (_, text, muted) => {
    const data = await temporaryFolder();
    const file = join(data, "tidings.toml");
    if (text !== "") writeFileSync(file, text);
    const server = await Server.start({ data });
    for (const [name, one] of Object.entries(KINDS)) {
      const thread_id = newThread();
      const sent = await emit(server, { ...one, thread_id });
      // It is taken in whatever the switches say, and judged when it is delivered.
      const { notification, outcome } = onlyMatch(sent);
      expect(outcome, name).toBe("batched");
      const carried = await told(server, thread_id, "turn_start");
      const rule = muted[name];
      if (rule === undefined) {
        expect(carried, name).toMatchObject([{ id: notification.id, degraded: null }]);
        continue;
      }
      expect(carried, name).toEqual([]);
      expect(await read(server, notification.id), name).toMatchObject({ state: "SUPPRESSED", reason: "muted" });
      for (const id of [notification.id, sent.id]) {
        const story = await storyOf(server, id);
        expect(story, name).toContain(rule);
        expect(story, name).toContain(file);
      }
    }
    expect(await server.stop()).toBe(0);
  });

  test("a file elsewhere, by --config", async () => {
    const folder = await temporaryFolder();
    const file = join(folder, "elsewhere.toml");
    writeFileSync(file, SEED_2);
    const server = await Server.start({ args: ["--config", file] });
    const thread_id = newThread();
    const { notification } = onlyMatch(await emit(server, { ...(KINDS["reconnected"] as EventInput), thread_id }));
    expect(await told(server, thread_id, "turn_start")).toEqual([]);
    expect(await storyOf(server, notification.id)).toContain(`${RECONNECTED_RULE} (${file})`);
  });
});

/** Windows so long that only a collect ends them. */
function patient(folder: string): void {
  for (const id of ["mcp_connection", "notes"])
    writeSubscriber(folder, {
      id,
      types: [id === "notes" ? "note.*" : "mcp.*"],
      window_ms: 10_000,
      template: PLAIN_TEMPLATE.replaceAll("payload.name", "payload.server"),
    });
  writeSubscriber(folder, {
    id: "shown",
    types: ["shown.*"],
    window_ms: 0,
    routing: { address: "user", target: "user", handler: "system" },
    template: "shown: {{ event.payload.server }}\n",
  });
}

const named = (type: string, server: string, thread_id: string): EventInput => ({
  type,
  source: "test",
  thread_id,
  payload: { server },
});

describe("while the batch is open", () => {
  /** Writes the file and waits until the server has said that it has read it. */
  async function configure(server: Server, text: string): Promise<void> {
    const reloads = async () =>
      (await all(server)).filter(({ kind }) => kind === "config.reloaded").reduce((sum, { count }) => sum + count, 0);
    const before = await reloads();
    writeFileSync(join(server.data, "tidings.toml"), text);
    await eventually(reloads, (count) => count > before);
  }

  test("what the operator switches off is left out of it, and the rest is told", async () => {
    const { server, end } = await sharedServer(patient);
    try {
      const thread_id = newThread();
      const sent = await emitAll(server, [
        named("mcp.disconnected", "a", thread_id),
        named("mcp.reconnected", "a", thread_id),
        named("mcp.disconnected", "b", thread_id),
      ]);
      const { id } = onlyMatch(sent[0] as (typeof sent)[0]).notification;
      await configure(server, '[conversation.notifications.kinds]\n"mcp.reconnected" = false\n');
      expect((await read(server, id)).open_until).not.toBe(null);
      const carried = (await told(server, thread_id, "turn_start")).filter((one) => one.kind.startsWith("mcp."));
      expect(carried.map((one) => one.id)).toEqual([id]);
      expect(rowsOf(carried[0]?.content ?? "")).toEqual([
        { name: "a", times: 1 },
        { name: "b", times: 1 },
      ]);
      const story = await storyOf(server, id);
      expect(story).toContain(RECONNECTED_RULE);
      expect(story).toContain(join(server.data, "tidings.toml"));

      // And all of it: kept back as a whole, with the rule.
      const other = newThread();
      const { notification } = onlyMatch(await emit(server, named("mcp.disconnected", "c", other)));
      await configure(server, "[conversation.notifications.kinds.mcp]\nenable = false\n");
      expect((await told(server, other, "turn_start")).filter((one) => one.kind.startsWith("mcp."))).toEqual([]);
      expect(await read(server, notification.id)).toMatchObject({ state: "SUPPRESSED", reason: "muted" });
      expect(await storyOf(server, notification.id)).toContain(MCP_RULE);

      // Switched on again, the next one is told.
      await configure(server, "");
      const third = newThread();
      await emit(server, named("mcp.disconnected", "d", third));
      const [last] = (await told(server, third, "turn_start")).filter((one) => one.kind.startsWith("mcp."));
      expect(decoded(last?.content ?? "")).toEqual({ told: "d", times: 1 });
    } finally {
      await end();
    }
  });
});

describe("what a user switches off", () => {
  let server: Server;
  beforeAll(async () => {
    const shared = await sharedServer(patient);
    server = shared.server;
    return shared.end;
  });

  const disable = (user_id: string, disabled_subscribers: string[]) =>
    server.call("settings/update", { user_id, disabled_subscribers });

  test("takes effect on the next delivery, on what is open already, and for that user alone", async () => {
    const users = ["ada", "ben"];
    const threads = users.map(() => newThread());
    const sent = await emitAll(
      server,
      users.map((user_id, index) => ({ ...named("note.one", "x", threads[index] ?? ""), user_id })),
    );
    const ids = sent.map((one) => onlyMatch(one).notification.id);
    await disable("ada", ["notes"]);
    expect(await server.call("settings/get", { user_id: "ada" })).toEqual({
      user_id: "ada",
      disabled_subscribers: ["notes"],
      unknown: [],
    });
    expect(await told(server, threads[0] ?? "", "turn_start")).toEqual([]);
    expect(await told(server, threads[1] ?? "", "turn_start")).toMatchObject([{ id: ids[1] }]);
    expect(await read(server, ids[0] ?? "")).toMatchObject({ state: "SUPPRESSED", reason: "muted" });
    expect(await storyOf(server, ids[0] ?? "")).toContain("the user has disabled the subscriber notes");

    await disable("ada", []);
    await emit(server, { ...named("note.one", "y", threads[0] ?? ""), user_id: "ada" });
    expect(await told(server, threads[0] ?? "", "turn_start")).toMatchObject([{ count: 1 }]);
  });

  test("is kept back at once where it would be shown at once", async () => {
    await disable("cyd", ["shown"]);
    const { token } = await server.createToken({ user_id: "cyd", scopes: ["read"] });
    const client = await server.connect({ token });
    await client.welcomed();
    const muted = onlyMatch(await emit(server, { ...named("shown.one", "x", newThread()), user_id: "cyd" }));
    expect(muted).toMatchObject({ outcome: "muted", notification: { state: "SUPPRESSED", reason: "muted" } });
    expect(await storyOf(server, muted.notification.id)).toContain("the user has disabled the subscriber shown");
    const other = onlyMatch(await emit(server, { type: "cli.event", source: "test", user_id: "cyd" }));
    await client.pushed("created", other.notification.id);
    expect(client.pushes).toHaveLength(1);
  });

  test("cannot be a core one, nor one that is not there", async () => {
    for (const [id, why] of [
      ["tool_failure", /core/],
      ["tool_handel", /tool_handle/],
    ] as const) {
      const { error } = await server.rpc("settings/update", { user_id: "dee", disabled_subscribers: [id] });
      expect(error).toMatchObject({ code: -32602, data: { field: "disabled_subscribers" } });
      expect(error?.data?.reason).toMatch(why);
    }
    expect(await server.call("settings/get", { user_id: "dee" })).toMatchObject({ disabled_subscribers: [] });
    const thread_id = newThread();
    await emit(server, { ...failure("vault_search", { thread_id }), user_id: "dee" });
    expect(await told(server, thread_id, "after_tool")).toHaveLength(1);
  });

  test("shows in the list of subscribers, with every other state", async () => {
    await disable("eve", ["mcp_connection"]);
    const { subscribers } = await server.call<{ subscribers: { id: string; state: string; core: boolean }[] }>(
      "subscriber/list",
      { user_id: "eve" },
    );
    const states = Object.fromEntries(subscribers.map(({ id, state }) => [id, state]));
    expect(states).toMatchObject({
      mcp_connection: "disabled",
      tool_failure: "active",
      tool_call: "loaded",
      turn_digest: "loaded",
      notes: "active",
    });
    expect(subscribers.filter(({ core }) => core).map(({ id }) => id)).toEqual(
      expect.arrayContaining(["tool_failure", "budget_exceeded"]),
    );
  });
});
