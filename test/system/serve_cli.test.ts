/** The commands with a server beside them: the same words, the same answers, the same exit codes as without one. */
import { cpSync, writeFileSync } from "node:fs";
import { createServer as createHttpServer, type RequestListener } from "node:http";
import { type AddressInfo, createServer as createTcpServer, type Server as NetServer } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { describe, expect, onTestFinished, test } from "vitest";
import { temporaryFolder } from "../support/folder.js";
import { Server } from "../support/server.js";
import { Cli, type Ended, eventually, ndjson, type Page, type Row, run, start } from "./cli.js";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));

function newCli(): Cli {
  const cli = new Cli();
  onTestFinished(() => cli.remove());
  return cli;
}

/** What was said, with everything that differs from run to run named alike. */
class Transcript {
  readonly said: { words: string; code: number | null; stdout: string; stderr: string }[] = [];
  readonly #cli: Cli;
  readonly #names = new Map<string, string>();

  constructor(cli: Cli) {
    this.#cli = cli;
  }

  async say(code: number, ...words: string[]): Promise<Ended> {
    return this.#keep(code, words, await run([...words, "--data", this.#cli.data]));
  }

  async feed(code: number, input: string, ...words: string[]): Promise<Ended> {
    return this.#keep(code, words, await run([...words, "--data", this.#cli.data], { input }));
  }

  #keep(code: number, words: readonly string[], ended: Ended): Ended {
    expect(ended, words.join(" ")).toMatchObject({ code });
    const [stdout, stderr] = [this.#normal(ended.stdout), this.#normal(ended.stderr)];
    this.said.push({ words: this.#normal(words.join(" ")), code: ended.code, stdout, stderr });
    return ended;
  }

  #normal(text: string): string {
    // Columns are as wide as the ages in them: spaces are not compared.
    return text
      .replaceAll(this.#cli.root, "ROOT")
      .replace(/tdg_[\w-]{43}/g, "TOKEN")
      .replace(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, (id) => this.#named(id))
      .replace(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/g, "TIME")
      .replace(/\d{4}-\d\d-\d\d\n/g, "DAY\n")
      .replace(/\d\d:\d\d:\d\d(\.\d{3})?/g, "CLOCK")
      .replace(/just now|\d+[smhd] ago/g, "AGE")
      .replace(/^(now|\d+[smhd]) +/gm, "AGE ")
      .replace(/"(bytes|free_bytes|last_at)":\d+/g, '"$1":N')
      .replace(/[\d.]+ [KMGT]iB/g, "SIZE")
      .replace(/ {2,}/g, "  ");
  }

  #named(id: string): string {
    const known = this.#names.get(id) ?? `ID${this.#names.size + 1}`;
    this.#names.set(id, known);
    return known;
  }
}

/** Every command, in words and as JSON, with what goes well and what does not. */
async function story(cli: Cli): Promise<Transcript> {
  const transcript = new Transcript(cli);
  const say = transcript.say.bind(transcript);
  const idIn = ({ stdout }: Ended) => (JSON.parse(stdout) as { id: string }).id;

  await say(0, "emit", "cli.build.finished", "--message", "All tests passed", "--source", "ci");
  const emitted = idIn(await say(0, "emit", "cli.a.b", "--id", "build-7", "--json"));
  await say(4, "emit", "cli.a.b", "--id", "build-7", "--message", "another body", "--json");
  await say(2, "emit", "onesegment", "--json");

  const lines = [
    '{"type":"cli.a.b"}',
    '{"type":"nobody.wants.this"}',
    "no json",
    '{"type":"x"}',
    '{"type":"cli.a.b","id":"build-7"}',
    "[]",
  ].join("\n");
  const file = cli.path("events.ndjson");
  writeFileSync(file, lines);
  await say(2, "emit", "--file", file, "--user", "bob");
  await transcript.feed(2, lines, "emit", "-", "--json", "--source", "pipe");

  const shown = idIn(await say(0, "notify", "hello", "--target", "user", "--user", "ada", "--thread", "t1", "--json"));
  await say(0, "notify", "The deploy failed", "--target", "user", "--handler", "agent", "--severity", "error");
  const merged = ["--target", "user", "--dedupe-key", "k", "--dedupe-window-ms", "60000", "--json"];
  const revised = idIn(await say(0, "notify", "1 test is red", ...merged));
  await say(0, "notify", "2 tests are red", ...merged);
  await say(2, "notify", "hello", "--inject-at", "immediate", "--json");
  await say(3, "notify", "not your thread", "--user", "bob", "--thread", "t1", "--json");

  await say(0, "inbox");
  await say(0, "inbox", "--user", "ada", "--json");
  await say(0, "inbox", "--all", "--limit", "2");

  await say(4, "ack", revised, "--revision", "1");
  await say(0, "ack", revised);
  await say(3, "ack", shown, "--user", "bob", "--json");
  await say(0, "ack", shown, "--user", "ada", "--action", "dismissed", "--json");

  await say(0, "subscribers", "list");
  await say(0, "subscribers", "list", "--user", "ada", "--json");
  await say(0, "subscribers", "disable", "mcp_connection", "--user", "ada");
  await say(0, "subscribers", "disable", "cli_event", "--user", "ada", "--json");
  await say(2, "subscribers", "disable", "tool_failure");
  await say(2, "subscribers", "disable", "nothing", "--json");
  await say(0, "emit", "cli.a.b", "--user", "ada");
  await say(0, "subscribers", "enable", "cli_event", "--user", "ada");
  await say(2, "subscribers", "enable", "nothing");

  await say(0, "ledger");
  await say(0, "ledger", "--json", "--user", "ada");
  await say(0, "ledger", "--limit", "2", "--state", "DISPATCHED");

  await say(0, "explain", emitted);
  await say(0, "explain", revised, "--json");
  await say(3, "explain", shown, "--user", "bob");

  const late = ["--target", "user", "--ttl-ms", "1", "--json"];
  const dead = idIn(await say(0, "notify", "too late", ...late));
  await eventually(async () => (await cli.json<Page>("dead list")).notifications.at(0));
  await say(0, "dead", "list");
  await say(0, "dead", "redrive", dead);
  await say(4, "dead", "redrive", dead, "--json");
  await say(0, "dead", "redrive", "--all");
  await say(0, "dead", "list", "--json", "--limit", "1");

  const token = idIn(
    await say(0, "token", "create", "--scope", "read,ack", "--user", "ada", "--name", "phone", "--json"),
  );
  await say(0, "token", "create", "--scope", "ingest", "--expires-in", "30d");
  await say(0, "token", "revoke", token);
  await say(3, "token", "revoke", "nothing", "--json");
  await say(0, "token", "list");
  await say(0, "token", "list", "--user", "ada", "--json");

  await say(0, "prune", "--older-than", "1ms", "--json");
  await say(0, "prune", "--older-than", "1h");
  await say(0, "audit", "--json");
  await say(0, "backup", cli.path("copy.db"));
  return transcript;
}

test("every command says the same with a server as without one", async () => {
  const [bare, served] = [newCli(), newCli()];
  await Server.start({ data: served.data });
  const [without, beside] = await Promise.all([story(bare), story(served)]);
  for (const [n, said] of without.said.entries()) expect(beside.said[n], said.words).toEqual(said);
  expect(beside.said).toHaveLength(without.said.length);

  const doctors = await Promise.all([bare, served].map((cli) => cli.run("doctor")));
  const lines = doctors.map(({ stdout }) =>
    stdout.split("\n").map((line) => line.split(/ {2,}/).slice(0, 2).join(" ")),
  );
  // Beside a server, doctor is not the writer, and cannot look at that.
  const notLookedAt = (line: string) => line.replace("✔ durability", "· durability");
  expect(lines[1]?.slice(1)).toEqual(lines[0]?.slice(1).map(notLookedAt));
  expect(doctors[0]?.stdout).toMatch(/writer +nobody; the folder is free\n[\s\S]*server +none runs\n/);
  expect(doctors[1]?.stdout).toMatch(/writer +process \d+\n[\s\S]*server +runs at http:\/\/127\.0\.0\.1:\d+\n/);
  const restored = await served.run("restore", served.path("copy.db"), "--replace", "--wait-ms", "0");
  expect(restored).toMatchObject({ code: 5, stderr: expect.stringContaining("is in use: process ") });
});

test("a command through a server loads nothing but the program, and so do version and help", async () => {
  const server = await Server.start();
  // Without the packages that it depends on: none for schemas, none for a store.
  const alone = await temporaryFolder();
  cpSync(join(ROOT, "dist"), join(alone, "dist"), { recursive: true });
  cpSync(join(ROOT, "package.json"), join(alone, "package.json"));
  const program = join(alone, "dist/cli/main.js");
  const there = ["--data", server.data];
  const lines = [
    ["--version"],
    ["--help"],
    ["serve", "--help"],
    ["emit", "cli.a.b", ...there],
    ["notify", "hello", "--target", "user", ...there],
    ["inbox", ...there],
    ["ledger", ...there],
    ["subscribers", "list", ...there],
    ["token", "list", ...there],
  ];
  for (const line of lines) expect(await run(line, { program }), line.join(" ")).toMatchObject({ code: 0, stderr: "" });
  const { notifications } = await server.call<Page>("notification/list", { user_id: "local" });
  expect(notifications).toHaveLength(2);
  const { id } = notifications[0] as Row;
  expect(await run(["ack", id, ...there], { program })).toMatchObject({ code: 0, stderr: "" });
  // On the folder itself they are missed.
  expect(await server.stop()).toBe(0);
  expect(await run(["inbox", ...there], { program })).toMatchObject({ code: 70 });
});

describe("a server that is named", () => {
  test("is asked as the user of the token, which decides what may be done", async () => {
    const server = await Server.start();
    const { token } = await server.createToken({ user_id: "ada", scopes: ["read", "ingest"] });
    const cwd = await temporaryFolder();
    const elsewhere = ["--data", join(cwd, "unused")];
    const named = (...words: string[]) => run([...words, "--server", server.url, "--token", token, ...elsewhere]);
    const env = { TIDINGS_SERVER: server.url, TIDINGS_TOKEN: token };

    const sent = await named("notify", "for ada", "--target", "user", "--json");
    const { id } = JSON.parse(sent.stdout) as Row;
    await server.call("notification/notify", { content: "for local", target: "user" });
    const inbox = await run(["inbox", ...elsewhere], { env });
    expect(inbox).toMatchObject({ code: 0, stderr: "" });
    expect(inbox.stdout).toMatch(/^1 unread for ada\n/);
    expect(inbox.stdout).toContain("for ada");
    const listed = await named("ledger", "--json");
    expect(ndjson(listed.stdout)).toMatchObject([{ id, user_id: "ada" }]);
    expect(await run(["explain", id, "--server", `${server.url}/#token=${token}`, ...elsewhere])).toMatchObject({
      code: 0,
    });

    expect(await named("inbox", "--user", "bob")).toMatchObject({
      code: 7,
      stderr: expect.stringContaining("own user"),
    });
    expect(await named("ack", id)).toMatchObject({
      code: 7,
      stderr: "tidings: this needs a token with the scope ack\n",
    });
    const created = await named("token", "create", "--scope", "admin", "--json");
    expect(created.code).toBe(7);
    expect(JSON.parse(created.stdout)).toMatchObject({ error: { code: "forbidden" } });
    const wrong = await run(["inbox", ...elsewhere], { env: { ...env, TIDINGS_TOKEN: "wrong" } });
    expect(wrong).toMatchObject({
      code: 7,
      stderr: expect.stringMatching(/^tidings: the token is unknown, revoked or expired/),
    });

    await server.stop();
    const away = await named("inbox");
    expect(away).toMatchObject({ code: 5, stderr: expect.stringContaining(`${server.url} does not answer: `) });
    expect(await run(["doctor", ...elsewhere]), "nothing was done here").toMatchObject({ code: 1 });
  });

  test("must be named well, and only where a command can ask one", async () => {
    const cli = newCli();
    const cases: [line: string, told: RegExp][] = [
      ["inbox --server localhost:4747 --token x", /--server: must be an address like http:/],
      ["inbox --server http://127.0.0.1:1", /--server needs a --token/],
      ["inbox --token x", /--token is for --server/],
      ["audit --server http://127.0.0.1:1", /audit works on a data folder, see --data: it takes no --server/],
    ];
    for (const [line, told] of cases)
      expect(await cli.run(line)).toMatchObject({ code: 2, stderr: expect.stringMatching(told) });
    await cli.json("emit cli.a.b");
    const env = { TIDINGS_SERVER: "http://127.0.0.1:1", TIDINGS_TOKEN: "x" };
    expect(await run(["audit", "--data", cli.data], { env })).toMatchObject({
      code: 0,
      stderr: "tidings: audit works on a data folder, see --data; TIDINGS_SERVER is not asked\n",
    });
  });
});

test("an option that says how to open the folder is remarked on where a server has it open", async () => {
  const server = await Server.start();
  const line = [
    "notify",
    "soon",
    "--target",
    "user",
    "--handler",
    "agent",
    "--agent-ttl-ms",
    "50",
    "--bytes-max",
    "1",
    "--json",
  ];
  const sent = await run([...line, "--data", server.data]);
  expect(sent).toMatchObject({
    code: 0,
    stderr: `tidings: --agent-ttl-ms, --bytes-max have no effect: this went through the server at ${server.url}, which keeps to what it was started with\n`,
  });
  const { id } = JSON.parse(sent.stdout) as Row;
  const { created_at, deadline } = await server.call<{ created_at: string; deadline: string }>("notification/read", {
    id,
  });
  expect(Date.parse(deadline) - Date.parse(created_at), "the server's own").toBe(300_000);
  const env = { TIDINGS_AGENT_TTL_MS: "50" };
  const quiet = await run(["inbox", "--wait-ms", "100", "--data", server.data], { env });
  expect(quiet).toMatchObject({ code: 0, stderr: "" });
});

describe("many events through a server", () => {
  test("go in requests that it takes, and one that is too large is refused alone, in the same words", async () => {
    const [bare, served] = [newCli(), newCli()];
    await Server.start({ data: served.data });
    const event = (characters: number) =>
      JSON.stringify({ type: "cli.a.b", payload: { message: "x".repeat(characters) } });
    // The first fills a line to its limit, and a request to more than that.
    const large = [event(1_048_576 - event(0).length), event(700_000), event(70_000), event(2_000_000)];
    const input = [...Array.from({ length: 40 }, () => event(60_000)), ...large, event(1)].join("\n");
    const [without, beside] = await Promise.all([bare, served].map((cli) => cli.feed(input, "emit -")));
    expect(beside).toEqual(without);
    expect(beside).toMatchObject({ code: 2, stdout: "45 events: 41 accepted, 4 refused.\n" });
    expect(beside?.stderr.split("\n").map((line) => line.slice(0, 16))).toEqual([
      "line 41: payload",
      "line 42: payload",
      "line 43: payload",
      "line 44: input: ",
      "",
    ]);
    expect(await served.json("audit")).toMatchObject({ ok: true, checked: { events: 41 } });
  });

  test("wait for their turn where they are more than it takes at once", async () => {
    const server = await Server.start({ args: ["--events-per-second", "1000"] });
    const input = Array.from({ length: 3_500 }, (_, n) => `{"type":"cli.a.b","payload":{"n":${n}}}`).join("\n");
    const ended = await run(["emit", "-", "--data", server.data], { input });
    expect(ended).toEqual({ code: 0, stdout: "3,500 events: 3500 accepted.\n", stderr: "" });
    expect(await server.call("runtime/status")).toMatchObject({ last_seq: 3_500 });
  });

  test("are taken in one request also where they are more than a slow rate allows at once; then others wait", async () => {
    const server = await Server.start({ args: ["--events-per-second", "1"] });
    const event = { type: "cli.a.b", source: "test" };
    const { status, json } = await server.post<unknown[]>(
      "/v1/events",
      Array.from({ length: 1_000 }, () => event),
    );
    expect({ status, answers: json.length }).toEqual({ status: 202, answers: 1_000 });
    const next = await server.post("/v1/events", event);
    expect(next).toMatchObject({ status: 429, json: { error: { code: "overloaded" } } });
    expect(Number(next.headers.get("retry-after"))).toBeGreaterThan(0);
  });

  test("that come slowly through a pipe hold up nobody, and are told how far they came if the server dies", async () => {
    const server = await Server.start();
    const pipe = start(["emit", "-", "--json", "--data", server.data]);
    onTestFinished(() => void pipe.kill("SIGKILL"));
    let stderr = "";
    pipe.stderr?.setEncoding("utf8").on("data", (text: string) => {
      stderr += text;
    });
    const ended = new Promise<number | null>((resolve) => pipe.on("close", resolve));
    if (pipe.stdout === null) throw new Error("the pipe has no output");
    const answers = createInterface({ input: pipe.stdout })[Symbol.asyncIterator]();
    const next = async () => JSON.parse((await answers.next()).value as string) as Record<string, unknown>;
    for (let n = 1; n <= 3; n += 1) {
      pipe.stdin?.write('{"type":"cli.a.b"}\n');
      expect(await next()).toMatchObject({ outcome: "accepted" });
      expect((await server.post("/v1/events", { type: "cli.a.b", source: "other" })).status).toBe(202);
    }
    await server.stop("SIGKILL");
    pipe.stdin?.end('{"type":"cli.a.b"}\n');
    expect(await next()).toMatchObject({ error: { code: "unreachable" } });
    expect(await ended).toBe(5);
    expect(stderr).toBe("tidings: 3 events had been answered, and are stored, before this happened\n");
    const { stdout } = await run(["ledger", "--json", "--data", server.data]);
    expect(eventsIn(stdout)).toBe(6);
  });
});

/** Behind the notifications of a ledger: the same event again within its window is counted to the first. */
function eventsIn(ledger: string): number {
  return (ndjson(ledger) as Row[]).reduce((sum, { count }) => sum + count, 0);
}

async function listening(server: NetServer): Promise<string> {
  server.listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** Somebody else's program, at the address that a `server.json` names. */
async function stranger(answer: RequestListener): Promise<string> {
  const server = createHttpServer(answer);
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  return listening(server);
}

function leaveServerFile(cli: Cli, url: string, pid: number): void {
  writeFileSync(join(cli.data, "server.json"), JSON.stringify({ url, token: "tdg_left", pid }), { mode: 0o600 });
}

describe("a server that comes, goes, or does not answer", () => {
  test("that was killed is not confused with whoever is at its address now", async () => {
    const cli = newCli();
    await cli.json("emit cli.a.b");
    const other = await Server.start();
    const { pid } = other;
    const answers: [status: number, body: string][] = [
      [404, "<h1>Not found</h1>"],
      [200, "null"],
      [200, "{}"],
      [200, '{"error":"what?"}'],
      [200, '{"jsonrpc":"2.0","id":1,"result":{"status":"running","pid":1}}'],
    ];
    let turn = 0;
    const url = await stranger((_request, response) => {
      const [status, body] = answers[turn] ?? [500, ""];
      response.writeHead(status).end(body);
    });
    for (turn = 0; turn < answers.length; turn += 1) {
      leaveServerFile(cli, url, pid);
      const { notifications } = await cli.json<Page>("inbox");
      expect(notifications, answers[turn]?.[1]).toHaveLength(1);
    }
    leaveServerFile(cli, other.url, pid);
    expect(await cli.json("emit cli.a.b"), "a server of another folder").toMatchObject({ seq: 2 });
    expect((await other.call<{ last_seq: number }>("runtime/status")).last_seq).toBe(0);
    writeFileSync(join(cli.data, "server.json"), "this is no JSON");
    expect(await cli.json("emit cli.a.b")).toMatchObject({ seq: 3 });
  });

  test("that ends when it has just said that it is there leaves the command to the folder", async () => {
    const cli = newCli();
    await cli.json("emit cli.a.b");
    for (const [n, line] of ["emit cli.a.b", "emit -", "ledger", "inbox"].entries()) {
      const answered = JSON.stringify({ jsonrpc: "2.0", id: 1, result: { status: "running", pid: process.pid } });
      const ending = createHttpServer((_request, response) => {
        response.writeHead(200, { connection: "close" });
        ending.close();
        response.end(answered);
      });
      leaveServerFile(cli, await listening(ending), process.pid);
      const ended = await cli.feed('{"type":"cli.a.b"}\n', `${line} --json`);
      expect(ended, line).toMatchObject({ code: 0, stderr: "" });
      if (n < 2) expect(JSON.parse(ended.stdout)).toMatchObject({ outcome: "accepted", seq: n + 2 });
    }
    expect(eventsIn((await cli.run("ledger --json")).stdout)).toBe(3);
  });

  test("that is stopped is told with exit code 5, and waited for no longer than a few seconds", async () => {
    const server = await Server.start();
    const cli = newCli();
    await cli.json("emit cli.a.b");
    const silent = createTcpServer(() => {});
    onTestFinished(() => void silent.close());
    const gone = start(["inbox", "--data", cli.data]);
    await new Promise((resolve) => gone.on("close", resolve));
    leaveServerFile(cli, await listening(silent), gone.pid ?? 0);

    server.process.kill("SIGSTOP");
    const told = `tidings: the server at ${server.url} (process ${server.pid}) does not answer; is it stopped?\n`;
    const lines = [["inbox"], ["emit", "cli.a.b"], ["ledger"], ["serve", "--port", "0"]];
    const [doctor, beside, ...others] = await Promise.all([
      run(["doctor", "--data", server.data]),
      cli.run("emit cli.a.b --json"),
      ...lines.map((line) => run([...line, "--data", server.data])),
    ]);
    for (const other of others) expect(other).toEqual({ code: 5, stdout: "", stderr: told });
    expect(doctor.code).toBe(1);
    expect(doctor.stdout).toContain("✖ server       the server at ");
    expect(beside, "the file of a dead one, with a silent stranger at its address").toMatchObject({
      code: 0,
      stderr: "",
    });
    server.process.kill("SIGCONT");
    expect(await run(["emit", "cli.a.b", "--data", server.data])).toMatchObject({ code: 0 });
    expect(await server.stop()).toBe(0);
  });

  test("that is starting or ending is in no command's way", async () => {
    const data = await temporaryFolder();
    const line = ["emit", "cli.a.b", "--json", "--wait-ms", "60000", "--data", data];
    const starting = Server.start({ data, args: ["--wait-ms", "60000"] });
    const early = await Promise.all([
      run(line),
      run(line),
      run(["inbox", "--data", data]),
      run(["token", "list", "--data", data]),
    ]);
    const server = await starting;
    // Who only looks may be there before the folder is.
    const quiet = /^(?:tidings: there is no Tidings data in [^\n]*\n)?$/;
    for (const [index, { code, stderr }] of early.entries()) {
      expect(code).toBe(0);
      expect(stderr).toMatch(index < 2 ? /^$/ : quiet);
    }

    const first = run(line);
    const commands = [line, line, ["ledger", "--data", data], ["inbox", "--data", data]].map((words) => run(words));
    expect(await first).toMatchObject({ code: 0 });
    expect(await server.stop()).toBe(0);
    const late = await Promise.all(commands);
    expect(late.map(({ code, stderr }) => ({ code, stderr }))).toEqual(late.map(() => ({ code: 0, stderr: "" })));
    const { stdout } = await run(["ledger", "--json", "--data", data]);
    expect(eventsIn(stdout)).toBe(5);
  });
});
