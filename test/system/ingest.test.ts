/** What others send: CloudEvents in their three forms, and hooks that are opened by a signature, to the server as a process. */
import { createHmac, randomUUID } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { eventually, openTidings, temporaryFolder } from "../support/folder.js";
import { type HttpReply, Server } from "../support/server.js";
import { run } from "./cli.js";

const PUSH = readFileSync(new URL("../fixtures/github_push.json", import.meta.url));

const SECRETS = {
  GITHUB_SECRET: "It's a Secret to Everybody",
  PAY_NEW: `whsec_${Buffer.alloc(32, 1).toString("base64")}`,
  PAY_OLD: `whsec_${Buffer.alloc(24, 2).toString("base64")}`,
  BROKEN: "whsec_this is no base64",
};

const CONFIG = `
[hooks.github]
scheme = "github"
secret_env = "GITHUB_SECRET"
user_id = "ada"
type = "cli.github.{header.x-github-event}"
source = "github:{body.repository.full_name}"
subject = "{body.ref}"
timestamp = "{body.head_commit.timestamp}"
severity = "warning"

[hooks.github.payload]
message = "{body.sender.login} pushed to {body.repository.full_name}: {body.head_commit.message}"
files = "{body.head_commit.modified}"
forced = "{body.forced}"
nothing = "{body.no.such.key}"
weight = 3

[hooks.whole]
scheme = "github"
secret_env = "GITHUB_SECRET"

[hooks.pay]
scheme = "standard"
secret_env = ["PAY_NEW", "PAY_OLD"]
tolerance_secs = 60
severity = "{body.severity}"

[hooks.unready]
scheme = "standard"
secret_env = ["BROKEN", "NOT_SET_ANYWHERE"]
`;

interface HookReply {
  id?: string;
  seq?: number;
  outcome?: string;
  matches?: unknown;
  error?: { code: string; message: string; reason?: string; field?: string };
}

interface Entry {
  type: string;
  source: string;
  severity: string;
  timestamp: string;
  subject: string | null;
  user_id: string;
  payload: Record<string, unknown>;
}

function post(
  server: Server,
  hook: string,
  body: Uint8Array,
  headers: Record<string, string>,
): Promise<HttpReply<HookReply>> {
  return server.request(`/v1/hooks/${hook}`, { method: "POST", token: null, body, headers });
}

function githubHeaders(body: Uint8Array, more: Record<string, string> = {}, secret = SECRETS.GITHUB_SECRET) {
  return {
    "x-github-event": "push",
    "x-github-delivery": randomUUID(),
    "x-hub-signature-256": `sha256=${createHmac("sha256", secret).update(body).digest("hex")}`,
    ...more,
  };
}

interface Message {
  id: string;
  body: Uint8Array;
  at?: number;
  secret?: string;
}

function standardHeaders({ id, body, at = Math.floor(Date.now() / 1_000), secret = SECRETS.PAY_NEW }: Message) {
  const key = Buffer.from(secret.slice("whsec_".length), "base64");
  const signature = createHmac("sha256", key).update(`${id}.${at}.`).update(body).digest("base64");
  return { "webhook-id": id, "webhook-timestamp": String(at), "webhook-signature": `v1,${signature}` };
}

const bytes = (value: unknown) => Buffer.from(JSON.stringify(value));
/** No two are the same. */
const push = (more: object = {}) => bytes({ ...JSON.parse(PUSH.toString()), test: randomUUID(), ...more });

async function lastSeq(server: Server): Promise<number> {
  return (await server.call<{ last_seq: number }>("runtime/status")).last_seq;
}

/** Whatever `run` does, it leaves nothing in the journal. */
async function leavesNothing<Value>(server: Server, run: () => Promise<Value>): Promise<Value> {
  const before = await lastSeq(server);
  const value = await run();
  expect(await lastSeq(server)).toBe(before);
  return value;
}

async function eventOf(data: string, id: string): Promise<Entry> {
  const reader = await openTidings({ data, mode: "read" });
  for await (const entry of reader.watch({ after: 0 }))
    if (entry.type === "event" && entry.event.id === id) return entry.event as unknown as Entry;
  throw new Error(`no event ${id}`);
}

let server: Server;
let data: string;

beforeAll(async () => {
  data = await mkdtemp(join(tmpdir(), "tidings-test-"));
  writeFileSync(join(data, "tidings.toml"), CONFIG);
  server = await Server.start({ data, env: SECRETS, keep: true });
});

afterAll(async () => {
  expect(await server.stop()).toBe(0);
  // Once, however often it was asked for.
  expect(server.stderr.match(/the hook unready takes nothing: .* in BROKEN, NOT_SET_ANYWHERE\n/g)).toHaveLength(1);
  await rm(data, { recursive: true, force: true });
});

describe("a delivery of GitHub", () => {
  test("becomes the event that the configuration says, and its user is told", async () => {
    const { status, json } = await post(server, "github", PUSH, githubHeaders(PUSH));
    expect({ status, json }).toEqual({
      status: 202,
      json: { id: expect.stringMatching(/^[0-9a-f-]{36}$/), seq: expect.any(Number), outcome: "accepted" },
    });
    expect(await eventOf(data, json.id ?? "")).toMatchObject({
      type: "cli.github.push",
      source: "github:Codertocat/Hello-World",
      severity: "warning",
      subject: "refs/heads/main",
      timestamp: "2019-05-15T15:20:30.000Z",
      user_id: "ada",
      payload: {
        message:
          "Codertocat pushed to Codertocat/Hello-World: Fix the build\n\nIt was red since Tuesday: “naïve” quoting.",
        files: ["build.sh"],
        forced: false,
        weight: 3,
      },
    });
    const { notifications } = await server.call<{ notifications: { user_id: string; content: string }[] }>(
      "notification/list",
      { user_id: "ada", unread: true },
    );
    expect(notifications).toEqual([
      expect.objectContaining({ user_id: "ada", content: expect.stringContaining("Codertocat pushed to") }),
    ]);
  });

  test("is refused when it comes again, as it was or under another name, and leaves nothing", async () => {
    const body = push();
    const headers = githubHeaders(body);
    const first = await post(server, "github", body, headers);
    expect(first.status).toBe(202);
    await leavesNothing(server, async () => {
      const again = await post(server, "github", body, headers);
      expect(again.status).toBe(409);
      expect(again.json.error).toMatchObject({ code: "conflict", reason: "replayed" });
      expect(again.json.error?.message).toContain(first.json.id);
      // The id of a delivery, and what kind it is, are not signed.
      const renamed = await post(server, "github", body, { ...headers, "x-github-delivery": randomUUID() });
      expect([renamed.status, renamed.json.error?.reason]).toEqual([409, "replayed"]);
      const other = await post(server, "github", body, { ...headers, "x-github-event": "release" });
      expect([other.status, other.json.error?.reason]).toEqual([409, "idempotency_mismatch"]);
    });
  });

  test("is refused with any byte changed in body or signature, without a word of why, and leaves nothing", async () => {
    const body = push();
    const headers = githubHeaders(body);
    const signature = headers["x-hub-signature-256"];
    await leavesNothing(server, () =>
      fc.assert(
        fc.asyncProperty(fc.boolean(), fc.nat(), fc.integer({ min: 1, max: 255 }), async (inBody, at, by) => {
          const changed = Buffer.from(body);
          const place = at % changed.length;
          if (inBody) changed[place] = (changed[place] ?? 0) ^ by;
          const index = at % signature.length;
          const letter = signature[index] === "a" ? "b" : "a";
          const given = inBody ? signature : signature.slice(0, index) + letter + signature.slice(index + 1);
          const refused = await post(server, "github", changed, { ...headers, "x-hub-signature-256": given });
          // Of so many from one address, later ones are slowed down.
          if (refused.status !== 429) expect([refused.status, refused.json]).toEqual([401, UNKNOWN]);
        }),
        { numRuns: 40 },
      ),
    );
    // And with none it is taken: a good one is not slowed down.
    expect((await post(server, "github", body, headers)).status).toBe(202);
  });

  test("is answered alike for a name that nobody has, a wrong secret, and no signature", async () => {
    const body = push();
    const answers = [
      await post(server, "nobody", body, githubHeaders(body)),
      await post(server, "github", body, githubHeaders(body, {}, "another")),
      await post(server, "github", body, { "x-github-event": "push" }),
      await post(server, "unready", body, standardHeaders({ id: "m", body })),
      await post(server, "__proto__", body, githubHeaders(body)),
      await post(server, "", body, githubHeaders(body)),
      await post(server, "github/", body, githubHeaders(body)),
    ];
    for (const { status, json } of answers) expect([status, json]).toEqual([401, UNKNOWN]);
  });

  test("has no secret in the server's environment: doctor asks the server, and warns of that hook alone", async () => {
    const { code, stdout } = await run(["doctor", "--data", data, "--json"]);
    expect(code).toBe(0);
    const { checks } = JSON.parse(stdout) as { checks: { name: string; level: string; detail: string }[] };
    expect(checks.filter(({ name }) => name === "hooks")).toEqual([
      {
        name: "hooks",
        level: "warning",
        detail:
          "the hook unready takes nothing: there is no secret of its scheme in BROKEN, NOT_SET_ANYWHERE; set one of them where the server is started",
      },
    ]);
  });

  test("is told in whole where nothing is chosen of it; what is too much is left out, and the event is there", async () => {
    const body = push({ n: 1 });
    const whole = await post(server, "whole", body, githubHeaders(body));
    expect([whole.status, whole.json.outcome]).toEqual([202, "unmatched"]);
    expect(await eventOf(data, whole.json.id ?? "")).toMatchObject({
      ...{ type: "github.push", source: "whole", user_id: "local", severity: "info" },
      payload: { n: 1, ref: "refs/heads/main" },
    });
    const large = bytes({ text: "x".repeat(70_000), many: Array.from({ length: 2_000 }, () => randomUUID()) });
    const cut = await post(server, "whole", large, githubHeaders(large, { "x-github-event": "ping" }));
    expect(cut.status).toBe(202);
    const { type, payload } = await eventOf(data, cut.json.id ?? "");
    expect({ type, payload }).toEqual({
      type: "github.ping",
      payload: { omitted: expect.stringContaining("[hooks.whole.payload]") },
    });
  });

  test("is refused with a word of why once its sender is known: no JSON, too large, no POST", async () => {
    await leavesNothing(server, async () => {
      const text = Buffer.from("payload=%7B%7D");
      const form = await post(server, "github", text, githubHeaders(text));
      expect([form.status, form.json.error?.field]).toEqual([400, "body"]);
      const huge = Buffer.alloc(1_100_000, 32);
      const large = await post(server, "github", huge, githubHeaders(huge));
      expect([large.status, large.json.error?.code]).toEqual([413, "too_large"]);
      const asked = await server.request("/v1/hooks/github", { token: null });
      expect([asked.status, asked.headers.get("allow")]).toEqual([405, "POST"]);
    });
  });
});

const UNKNOWN = {
  error: { code: "unauthorized", message: "there is no such hook, or the signature is not that of its sender" },
};

describe("a message of Standard Webhooks", () => {
  const message = (more: object = {}) => bytes({ type: "invoice.paid", data: { id: randomUUID() }, ...more });

  test("becomes an event, by any of the secrets that are good", async () => {
    for (const secret of [SECRETS.PAY_NEW, SECRETS.PAY_OLD]) {
      const [id, body] = [`msg_${randomUUID()}`, message({ severity: "error" })];
      const { status, json } = await post(server, "pay", body, standardHeaders({ id, body, secret }));
      expect(status).toBe(202);
      const { type, source, severity, payload } = await eventOf(data, json.id ?? "");
      expect({ type, source, severity }).toEqual({
        type: "webhook.pay.invoice.paid",
        source: "pay",
        severity: "error",
      });
      expect(payload).toMatchObject({ type: "invoice.paid" });
    }
    const [id, body] = ["msg_gone", message()];
    const secret = `whsec_${Buffer.alloc(24, 3).toString("base64")}`;
    expect((await post(server, "pay", body, standardHeaders({ id, body, secret }))).status).toBe(401);
  });

  test("may have several signatures; more than are looked at are refused with a word, whoever asks", async () => {
    const signed = (count: number) => {
      const [id, body] = [`msg_${randomUUID()}`, message()];
      const headers = standardHeaders({ id, body });
      const others = Array<string>(count - 1).fill(`v1,${Buffer.alloc(32).toString("base64")}`);
      return {
        body,
        headers: { ...headers, "webhook-signature": [...others, headers["webhook-signature"]].join(" ") },
      };
    };
    const most = signed(16);
    expect((await post(server, "pay", most.body, most.headers)).status).toBe(202);
    await leavesNothing(server, async () => {
      for (const hook of ["pay", "none"]) {
        const { body, headers } = signed(17);
        const { status, json } = await post(server, hook, body, headers);
        expect([status, json.error?.field]).toEqual([400, "webhook-signature"]);
        expect(json.error?.reason).toContain("at most 16");
      }
    });
  });

  test("is refused if it is old, or ahead of time, and leaves nothing", async () => {
    const now = Math.floor(Date.now() / 1_000);
    await leavesNothing(server, async () => {
      for (const [at, word] of [
        [now - 120, "old"],
        [now - 1_000_000, "old"],
        [now + 120, "ahead"],
      ] as const) {
        const [id, body] = [`msg_${randomUUID()}`, message()];
        const { status, json } = await post(server, "pay", body, standardHeaders({ id, body, at }));
        expect([status, json.error?.field]).toEqual([400, "webhook-timestamp"]);
        expect(json.error?.reason).toContain(word);
      }
    });
    const [id, body] = [`msg_${randomUUID()}`, message()];
    expect((await post(server, "pay", body, standardHeaders({ id, body, at: now - 30 }))).status).toBe(202);
  });

  test("is refused when it is replayed; sent again by its sender, it is told that it has arrived; another under its id is refused", async () => {
    const [id, body] = [`msg_${randomUUID()}`, message()];
    const at = Math.floor(Date.now() / 1_000) - 5;
    const headers = standardHeaders({ id, body, at });
    const first = await post(server, "pay", body, headers);
    expect(first.status).toBe(202);
    await leavesNothing(server, async () => {
      const replay = await post(server, "pay", body, headers);
      expect([replay.status, replay.json.error?.reason]).toEqual([409, "replayed"]);
      // Signed anew, and later than it was accepted.
      const again = await post(server, "pay", body, standardHeaders({ id, body, at: at + 10 }));
      expect([again.status, again.json]).toEqual([200, { ...first.json, outcome: "duplicate" }]);
      const repeated = await post(server, "pay", body, standardHeaders({ id, body, at: at + 10 }));
      expect([repeated.status, repeated.json.error?.reason]).toEqual([409, "replayed"]);
      const other = message();
      const conflict = await post(server, "pay", other, standardHeaders({ id, body: other, at: at + 10 }));
      expect([conflict.status, conflict.json.error?.reason]).toEqual([409, "idempotency_mismatch"]);
    });
  });
});

test("a replay is refused also after history was pruned, for as long as its time would be good", async () => {
  const [id, body] = [`msg_${randomUUID()}`, bytes({ type: "invoice.paid" })];
  const headers = standardHeaders({ id, body, at: Math.floor(Date.now() / 1_000) });
  expect((await post(server, "pay", body, headers)).status).toBe(202);
  await new Promise((resolve) => setTimeout(resolve, 50));
  await server.call("runtime/prune", { older_than_ms: 0 });
  await leavesNothing(server, async () => {
    const replay = await post(server, "pay", body, headers);
    expect([replay.status, replay.json.error?.reason]).toEqual([409, "replayed"]);
  });
});

test("a replay is refused also if the clock of the sender is ahead of ours", async () => {
  const [id, body] = [`msg_${randomUUID()}`, bytes({ type: "invoice.paid" })];
  const at = Math.floor(Date.now() / 1_000) + 30;
  const headers = standardHeaders({ id, body, at });
  const first = await post(server, "pay", body, headers);
  expect(first.status).toBe(202);
  await leavesNothing(server, async () => {
    const replay = await post(server, "pay", body, headers);
    expect([replay.status, replay.json.error?.reason]).toEqual([409, "replayed"]);
    const again = await post(server, "pay", body, standardHeaders({ id, body, at: at + 1 }));
    expect([again.status, again.json]).toEqual([200, { ...first.json, outcome: "duplicate" }]);
  });
});

test("a replay is refused after a restart, and after a kill", async () => {
  const folder = await temporaryFolder();
  writeFileSync(join(folder, "tidings.toml"), CONFIG);
  const [body, paid] = [push(), bytes({ type: "invoice.paid" })];
  const headers = githubHeaders(body);
  const signed = standardHeaders({ id: "msg_1", body: paid });
  const replay = async (one: Server, status: number) => {
    expect((await post(one, "github", body, headers)).status).toBe(status);
    expect((await post(one, "pay", paid, signed)).status).toBe(status);
  };
  let one = await Server.start({ data: folder, env: SECRETS });
  await replay(one, 202);
  expect(await one.stop()).toBe(0);
  one = await Server.start({ data: folder, env: SECRETS });
  await leavesNothing(one, () => replay(one, 409));
  await one.kill();
  one = await Server.start({ data: folder, env: SECRETS });
  await leavesNothing(one, () => replay(one, 409));

  // An edit of the file takes effect while it runs; one that is broken leaves the last good version.
  const body2 = push();
  writeFileSync(join(folder, "tidings.toml"), CONFIG.replace("[hooks.pay]", "[hooks.paid]"));
  const moved = standardHeaders({ id: "msg_2", body: body2 });
  await eventually(
    () => post(one, "paid", body2, moved),
    ({ status }) => status === 202,
  );
  expect((await post(one, "pay", body2, moved)).status).toBe(401);
  expect(one.stderr).toContain("tidings: a request to the hook github was refused: conflict\n");
  expect(await one.stop()).toBe(0);
  for (const secret of Object.values(SECRETS)) expect(one.stdout + one.stderr).not.toContain(secret);
});

describe("CloudEvents", () => {
  const event = (more: object = {}) => ({
    ...{ specversion: "1.0", id: randomUUID(), source: "https://ci.example/build", type: "cli.build.finished" },
    ...{ data: { message: "All tests passed" }, ...more },
  });
  const send = (type: string, body: unknown, headers: Record<string, string> = {}, token = server.token) =>
    server.request<HookReply & HookReply[]>("/v1/events", {
      ...{ method: "POST", token, body, headers: { "content-type": type, ...headers } },
    });
  const STRUCTURED = "application/cloudevents+json";
  const BATCH = "application/cloudevents-batch+json";

  test("are taken as one in JSON, once for each id, and the same id with another body is a conflict", async () => {
    const one = event({ subject: "main", time: "2026-01-03T15:30:00Z", tidingsseverity: "error" });
    const first = await send(STRUCTURED, one);
    expect([first.status, first.json.outcome]).toEqual([202, "accepted"]);
    expect(await eventOf(data, first.json.id ?? "")).toMatchObject({
      ...{ type: "cli.build.finished", source: "https://ci.example/build", subject: "main", severity: "error" },
      timestamp: "2026-01-03T15:30:00.000Z",
      payload: { message: "All tests passed", cloudevent: { id: one.id, specversion: "1.0" } },
    });
    const again = await send(STRUCTURED, one);
    expect([again.status, again.json.outcome, again.json.id]).toEqual([202, "duplicate", first.json.id]);
    const other = await send(STRUCTURED, { ...one, data: { message: "red" } });
    expect([other.status, other.json.error?.reason]).toEqual([409, "idempotency_mismatch"]);
  });

  test("are taken as many, each with its own outcome in the same order", async () => {
    const { status, json } = await send(BATCH, [event(), event({ id: "" }), 5, event({ myName: 1 }), event()]);
    expect(status).toBe(202);
    expect(json.map(({ outcome, error }) => outcome ?? [error?.code, error?.field])).toEqual([
      "accepted",
      ["invalid_input", "id"],
      ["invalid_input", ""],
      ["invalid_input", "myName"],
      "accepted",
    ]);
    expect((await send(BATCH, [])).json).toEqual([]);
  });

  test("are taken as headers and a body", async () => {
    const headers = {
      ...{ "ce-specversion": "1.0", "ce-id": randomUUID(), "ce-source": "/sensor", "ce-type": "cli.sensor.read" },
      ...{ "ce-subject": "Gr%C3%BC%C3%9Fe", "ce-tidingsseverity": "warning" },
    };
    const { status, json } = await send("application/json", { message: "hot" }, headers);
    expect(status).toBe(202);
    expect(await eventOf(data, json.id ?? "")).toMatchObject({
      ...{ type: "cli.sensor.read", source: "/sensor", subject: "Grüße", severity: "warning" },
      payload: { message: "hot", cloudevent: { datacontenttype: "application/json", subject: "Grüße" } },
    });
    const missing = await send("application/json", {}, { "ce-id": "1" });
    expect([missing.status, missing.json.error]).toEqual([
      400,
      expect.objectContaining({ field: "specversion", reason: "is required" }),
    ]);
  });

  test("may do no more than their token: no other user, no scope, no priority that it has not", async () => {
    const { token } = await server.createToken({ user_id: "bob", scopes: ["ingest"] });
    const named = await send(STRUCTURED, event({ tidingsuser: "ada" }), {}, token);
    expect([named.status, named.json.error?.code]).toEqual([403, "forbidden"]);
    const batch = await send(BATCH, [event({ tidingsuser: "ada" }), event({ tidingsuser: "bob" })], {}, token);
    expect(batch.json.map(({ outcome, error }) => outcome ?? error?.code)).toEqual(["forbidden", "accepted"]);
    const thread = await send(STRUCTURED, event({ tidingsthread: "not-there" }), {}, token);
    expect([thread.status, thread.json.error?.code]).toEqual([404, "not_found"]);
    const reader = await server.createToken({ user_id: "bob", scopes: ["read"] });
    expect((await send(STRUCTURED, event(), {}, reader.token)).status).toBe(403);
  });
});
