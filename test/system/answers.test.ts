/** `/openrpc.json` says of every method what it answers; here every method answers, and what it says is compared. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { METHODS } from "../../src/server/methods.js";
import { call as toolCall } from "../support/background.js";
import { eventually, temporaryFolder } from "../support/folder.js";
import { isOfForm, type JsonSchema } from "../support/json_schema.js";
import { odd } from "../support/mcp.js";
import { Server } from "../support/server.js";

type Answer = Record<string, unknown>;

/** Methods that have answered something, in all tests of this file. */
const answered = new Set<string>();

/** Calls, and compares each answer with what the server says of its form. */
class Asker {
  readonly #server: Server;
  readonly #forms: ReadonlyMap<string, JsonSchema>;

  private constructor(server: Server, forms: ReadonlyMap<string, JsonSchema>) {
    this.#server = server;
    this.#forms = forms;
  }

  static async of(server: Server): Promise<Asker> {
    interface Described {
      readonly methods: readonly { readonly name: string; readonly result: { readonly schema: JsonSchema } }[];
    }
    const { json } = await server.get<Described>("/openrpc.json", null);
    return new Asker(server, new Map(json.methods.map(({ name, result }) => [name, result.schema])));
  }

  async ask<Result = Answer>(method: string, params: object = {}, token: string | null = this.#server.token) {
    const result = await this.#server.call<Result>(method, params, token);
    const form = this.#forms.get(method);
    if (form === undefined) throw new Error(`${method} is not described`);
    expect(isOfForm(result, form), `${method}: ${JSON.stringify(result)}`).toBe(true);
    this.#strict(method, result as Answer, form);
    answered.add(method);
    return result;
  }

  /** One field more or less is another form. */
  #strict(method: string, result: Answer, form: JsonSchema): void {
    expect(isOfForm({ ...result, no_such_field: 1 }, form), `${method} with another field`).toBe(false);
    for (const field of Object.keys(result)) {
      const { [field]: _, ...less } = result;
      const optional = (form.anyOf ?? [form]).some(({ required = [] }) => !required.includes(field));
      if (!optional) expect(isOfForm(less, form), `${method} without ${field}`).toBe(false);
    }
  }
}

interface Id {
  readonly id: string;
}

test("of what is reported, shown and told to an agent of one's own", async () => {
  const server = await Server.start();
  const asker = await Asker.of(server);
  const ask = asker.ask.bind(asker);
  const user_id = "ada";
  const { token } = await ask<{ token: string }>("token/create", { user_id, scopes: ["read"], name: "hers" });
  await ask("initialize", {}, token);
  const { journal_id } = await ask<{ journal_id: string }>("runtime/status");
  await ask("runtime/status", {}, token);
  await ask("stream/resume", { journal_id, after_seq: 0 });
  const event = { type: "cli.event", source: "test", user_id, payload: { message: "hello" }, subject: "it" };
  const emitted = await ask<Id>("event/emit", { ...event, id: "p1", timestamp: "2026-01-03T15:30:00Z" });
  await ask("event/emit", { ...event, type: "nobody.takes.it" });
  const shown = await ask<Id>("notification/notify", { content: "shown", target: "user", user_id, data: { a: [1] } });
  const dead = await ask<Id>("notification/notify", { content: "gone", target: "user", user_id, ttl_ms: 1 });
  await ask("notification/ack", { id: shown.id, revision: 1, action: "clicked" });
  for (const id of [shown.id, emitted.id]) await ask("notification/explain", { id });
  await ask("notification/read", { id: shown.id });
  await eventually(
    () => ask<{ state: string }>("notification/read", { id: dead.id }),
    ({ state }) => state === "FAILED",
    30_000,
  );
  await ask("notification/redrive", { id: dead.id });
  for (const params of [{}, { user_id, unread: true }, { state: "FAILED", limit: 1 }])
    await ask("notification/list", params);
  const { next } = await ask<{ next: string }>("notification/changed", { user_id });
  await ask("notification/notify", { content: "another", target: "user", user_id });
  await ask("notification/changed", { user_id, after: next });
  await ask("inbox/counts", { user_id });

  const { thread_id } = await ask<{ thread_id: string }>("thread/start", { thread_id: "hers", user_id });
  const session = { thread_id, user_id, address: "session" };
  await ask("agent/collect", { thread_id, point: "turn_start" });
  for (const content of ["one", "two", "three"])
    await ask("notification/notify", { ...session, content, target: "user", handler: "agent", directive: "say it" });
  const collect = async () => {
    const point = { thread_id, point: "turn_start", limit: 1 };
    const { carrier } = await ask<{ carrier: Id & { notifications: Id[] } }>("agent/collect", point);
    return { carrier_id: carrier.id, ids: carrier.notifications.map(({ id }) => id) };
  };
  const settled = await collect();
  await ask("agent/renew", { carrier_id: settled.carrier_id });
  await ask("agent/settle", { carrier_id: settled.carrier_id, acknowledged_ids: [...settled.ids, "another"] });
  await ask("agent/fail", { carrier_id: (await collect()).carrier_id, reason: "no answer" });
  await ask("agent/collect", { thread_id, point: "turn_start", auto_settle: true });
  await ask("thread/read", { thread_id, observe: true });
  await ask("thread/list", { user_id });

  await ask("subscriber/list", { user_id, matches: 3 });
  await ask("subscriber/preview", { subscriber_id: "tool_failure" });
  await ask("subscriber/preview", { subscriber_id: "cli_event", event_id: emitted.id });
  await ask("settings/update", { user_id, disabled_subscribers: ["cli_event"] });
  await ask("settings/get", { user_id });
  for (const params of [{}, { user_id, step_ms: 10_000 }]) await ask("stats/series", params);
  await ask("mcp/list");
  await ask("runtime/logStream");
  await ask("runtime/prune", { older_than_ms: 0 });
  const { tokens } = await ask<{ tokens: Id[] }>("token/list");
  await ask("token/revoke", { id: tokens[0]?.id });
});

test("of conversations with the hosted agent, and of broken files", async () => {
  const data = await temporaryFolder();
  const file = join(await temporaryFolder(), "tools.json");
  const tools = (description: string) => {
    const listed = ["read", "change"].map((name) => ({
      name,
      description: name === "read" ? description : "Says that they have changed",
      inputSchema: { type: "object", properties: {} },
    }));
    writeFileSync(file, JSON.stringify({ tools: listed }));
  };
  tools("Reads");
  const { command, args } = odd({ file });
  const mcp = `[mcp.servers.files]\ncommand = ${JSON.stringify(command)}\nargs = ${JSON.stringify(args)}\n`;
  writeFileSync(join(data, "tidings.toml"), mcp);
  const server = await Server.start({ data, args: ["--provider", "rehearsal"] });
  const asker = await Asker.of(server);
  const ask = asker.ask.bind(asker);
  const { thread_id } = await ask<{ thread_id: string }>("thread/start", {});
  interface Turn {
    readonly turn_id: string;
  }
  const idle = () =>
    eventually(
      () => ask<{ turns: Turn[] }>("queue/list", { thread_id }),
      ({ turns }) => turns.length === 0,
      30_000,
    );
  interface Servers {
    readonly servers: readonly { state: string; tools: readonly { tool: string; state: string }[] }[];
  }
  await eventually(
    () => ask<Servers>("mcp/list"),
    ({ servers }) => servers[0]?.state === "connected",
    30_000,
  );
  await ask("turn/start", { thread_id, input: toolCall("files_read", {}) });
  await idle();
  tools("Reads, and more");
  await ask("turn/deliver", { thread_id, input: toolCall("files_change", {}) });
  await idle();
  const held = ({ servers }: Servers) => servers[0]?.tools.some(({ state }) => state === "held") === true;
  await eventually(() => ask<Servers>("mcp/list"), held, 30_000);
  await ask("mcp/approve", { server: "files", tool: "read" });

  // While one is busy: what waits, what steers, what interrupts.
  await ask("turn/start", { thread_id, input: "say slowly 1000" });
  const { turn_id } = await ask<Turn>("turn/start", { thread_id, input: "then this" });
  await ask("queue/update", { turn_id, input: "then that" });
  await ask("thread/read", { thread_id, observe: true, internal: true });
  await ask("queue/remove", { turn_id });
  await ask("turn/deliver", { thread_id, input: "this too" });
  const active = await ask<Turn>("turn/steer", { thread_id, input: "and this" });
  await ask("thread/read", { thread_id, observe: true });
  const { successor } = await ask<{ successor: Turn | null }>("turn/interrupt", {
    turn_id: active.turn_id,
    input: "say slowly 40",
  });
  // One that runs, or is over by now; and one that is over.
  const { turn_id: next } = successor ?? active;
  await ask("turn/interrupt", { turn_id: next });
  await idle();
  await ask("turn/interrupt", { turn_id: next });
  await ask("notification/notify", { thread_id, address: "session", content: "on the floor", target: "user" });
  await ask("notification/notify", { thread_id, address: "session", content: "context", target: "agent" });
  await ask("turn/start", { thread_id, input: "hello" });
  await idle();
  await ask("thread/read", { thread_id, observe: true, internal: true });
  await ask("stats/series");
  await ask("runtime/pause", { timeout_seconds: 60 });
  await ask("turn/deliver", { thread_id, input: "later" });
  await ask("runtime/resume");
  await ask("thread/pause", { thread_id });
  await ask("thread/resume", { thread_id });
  await ask("thread/close", { thread_id });

  writeFileSync(join(data, "tidings.toml"), "[notifications]\nturn_end = 7\n");
  interface Problems {
    readonly problems: readonly object[];
  }
  await eventually(
    () => ask<Problems>("subscriber/list"),
    ({ problems }) => problems.length > 0,
    30_000,
  );
});

test("no method is left out", () => {
  expect([...answered].sort()).toEqual(METHODS.map(({ name }) => name).sort());
});
