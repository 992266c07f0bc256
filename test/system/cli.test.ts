import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { chmod } from "node:fs/promises";
import { join } from "node:path";
import Database from "better-sqlite3";
import { test as base, describe, expect } from "vitest";
import { Tidings } from "../../src/index.js";
import { SCHEMA_VERSION } from "../../src/store/sqlite/migrate.js";
import { Cli, eventually, ndjson, type Page, type Row, run, start } from "./cli.js";

/** Each on a folder of its own, so that they need not wait for one another. */
const test = base.extend<{ cli: Cli }>({
  // biome-ignore lint/correctness/noEmptyPattern: it depends on no other fixture, and vitest reads that from here
  cli: async ({}, use) => {
    const cli = new Cli();
    await use(cli);
    cli.remove();
  },
});

describe.concurrent("a story told by separate processes", () => {
  test("an event is emitted, shown, acknowledged, listed and explained", async ({ cli }) => {
    const emitted = await cli.json<{ id: string; seq: number; outcome: string; matches: { notification: Row }[] }>(
      "emit cli.build.finished --source ci --severity warning --message",
      "2 tests are red",
    );
    expect(Object.keys(emitted)).toEqual(["id", "seq", "outcome", "matches"]);
    expect(emitted).toMatchObject({ seq: 1, outcome: "accepted", matches: [{ notification: { channel: "inbox" } }] });
    const id = emitted.matches[0]?.notification.id ?? "";

    const inbox = await cli.json<Page>("inbox");
    expect(inbox).toMatchObject({ notifications: [{ id, state: "DISPATCHED" }], next: null });
    expect(inbox.notifications[0]?.content).toContain("2 tests are red");

    expect(await cli.json("ack", id)).toMatchObject({ id, state: "DELIVERED", action: "rendered", read_at: null });
    expect((await cli.json<Page>("inbox")).notifications, "rendered is not yet read").toHaveLength(1);
    expect(await cli.json("ack", id, "--action", "dismissed")).toMatchObject({ id, action: "dismissed" });
    expect((await cli.json<Page>("inbox")).notifications).toEqual([]);
    expect((await cli.json<Page>("inbox --all")).notifications).toMatchObject([{ id }]);

    expect(await cli.ledger()).toMatchObject([{ id, state: "DELIVERED", action: "dismissed" }]);
    const explained = await cli.json<{ kind: string; story: { text: string }[] }>("explain", id);
    expect(explained.kind).toBe("notification");
    const story = explained.story.map((line) => line.text).join("\n");
    expect(story).toContain(`Event ${emitted.id}: cli.build.finished from ci, severity warning, for user local.`);
    expect(story).toContain("Acknowledged by the user (rendered). [LOCKED, DELIVERED]");
    expect(story).toContain("The user dismissed it.");
    expect(await cli.json("explain", emitted.id)).toMatchObject({ kind: "event", notifications: [{ id }] });
    expect(await cli.json("audit")).toMatchObject({ ok: true, checked: { events: 1, notifications: 1 }, problems: [] });
  });

  test("the same story reads well without --json", async ({ cli }) => {
    const emitted = await cli.run("emit cli.build.finished --message", "2 tests are red");
    expect(emitted.stdout).toMatch(/^Event \S+: accepted\.\n {2}cli_event queued: DISPATCHED on the channel inbox, /);
    const inbox = await cli.run("inbox");
    expect(inbox.stdout).toMatch(/^1 unread for local\n/);
    const [, id = ""] = /ack (\S+) --action dismissed --data /.exec(inbox.stdout) ?? [];
    const acked = await cli.run("ack", id, "--action", "clicked");
    expect(acked).toMatchObject({ code: 0, stdout: expect.stringMatching(/^DELIVERED, clicked: .*2 tests are red/) });
    expect((await cli.run("inbox")).stdout).toBe("Nothing unread for local.\n");
    expect((await cli.run("ledger")).stdout).toMatch(
      /^AGE +STATE +CHANNEL +ID +CONTENT\n\S+ +DELIVERED +inbox +\S{36} +● cli_event: 2 tests are red \(cli\.build\.finished from cli\)/,
    );
    expect((await cli.run("explain", id)).stdout).toMatch(/ {2}\d\d:\d\d:\d\d\.\d{3} {2}Acknowledged by the user/);
    expect((await cli.run("audit")).stdout).toContain("Sound:");
    expect((await cli.run("dead list")).stdout).toBe("No dead letters.\n");
  });

  test("what one user has is not another's", async ({ cli }) => {
    await cli.json("notify hello --target user --user ada");
    const [row] = await cli.ledger("--user ada");
    expect(row).toMatchObject({ user_id: "ada", channel: "inbox" });
    const id = row?.id ?? "";
    expect((await cli.json<Page>("inbox")).notifications).toEqual([]);
    expect((await cli.json<Page>("inbox --user ada")).notifications).toMatchObject([{ id }]);
    expect(await cli.run(`explain ${id} --user bob --json`)).toMatchObject({ code: 3 });
    const foreign = await cli.run(`ack ${id} --user bob --json`);
    expect(foreign.code).toBe(3);
    expect(JSON.parse(foreign.stdout)).toMatchObject({ miss: "not_found", id });
  });

  test("repeats are shown once, with their count", async ({ cli }) => {
    for (let n = 0; n < 3; n += 1) await cli.json("notify hello --target user --dedupe-key k --dedupe-window-ms 60000");
    const inbox = await cli.run("inbox");
    expect(inbox.stdout).toContain("hello  (3 times)");
    expect(inbox.stdout).toMatch(/^1 unread for local/);
  });
});

describe.concurrent("what nobody takes", () => {
  test("an agent's item is escalated, then a dead letter, which is redriven once", async ({ cli }) => {
    const routing = "--target user --handler agent --severity error --ttl-ms 50";
    const sent = await cli.json<Row>(`notify ${routing}`, "The deploy failed");
    expect(Object.keys(sent)).toEqual(["id", "seq", "state", "channel"]);
    expect(sent).toMatchObject({ state: "PENDING", channel: "agent" });
    const escalated = await eventually(async () => {
      const [row] = await cli.ledger();
      return row?.state === "PENDING" ? undefined : row;
    });
    expect(escalated).toMatchObject({ id: sent.id, state: "ESCALATED", channel: "inbox", reason: "deadline" });
    expect((await cli.json<Page>("inbox")).notifications).toMatchObject([{ id: sent.id }]);

    const { id } = await cli.json<Row>(`notify ${routing}`, "The deploy failed");
    const dead = await eventually(async () => {
      const page = await cli.json<Page>("dead list --system-ttl-ms 1");
      return page.notifications.at(0);
    });
    expect(dead).toMatchObject({ id, state: "FAILED", channel: "inbox", reason: "unacknowledged" });
    const path = await cli.run("explain", id);
    expect(path.stdout).toMatch(
      /no agent took it before its deadline\. \[LOCKED, ESCALATED\]\n.* A dead letter: .* \[FAILED\]/,
    );

    const again = await cli.json<Row>("dead redrive", id);
    expect(again).toMatchObject({ redrive_of: id, state: "PENDING", channel: "agent", content: "The deploy failed" });
    expect(again.id).not.toBe(id);

    const second = await cli.run("dead redrive", id, "--json");
    expect(second.code).toBe(4);
    expect(JSON.parse(second.stdout)).toMatchObject({
      miss: "terminal",
      id,
      message: expect.stringContaining(again.id),
    });
    expect(await cli.run("dead redrive --all --json"), "nothing is left to redrive").toEqual({
      code: 0,
      stdout: "",
      stderr: "",
    });
    const story = await cli.run("explain", id);
    expect(story.stdout).toContain(`Redriven later, as ${again.id}.`);
    expect(await cli.json("audit")).toMatchObject({ ok: true });
  });

  test("all dead letters of a user are redriven together", async ({ cli }) => {
    for (const user of ["ada", "ada", "bob"]) await cli.json(`notify hello --target user --ttl-ms 1 --user ${user}`);
    await eventually(async () => ((await cli.ledger("--state FAILED")).length === 3 ? true : undefined));
    const { code, stdout } = await cli.run("dead redrive --all --user ada --json");
    expect(code).toBe(0);
    const redriven = ndjson(stdout) as Row[];
    expect(redriven.map((row) => row.user_id)).toEqual(["ada", "ada"]);
    expect((await cli.json<Page>("inbox --user ada")).notifications).toHaveLength(2);
    expect((await cli.run("dead redrive --all")).stdout).toMatch(/\n1 dead letter sent again\.\n$/);
  });

  test("the next page of a list is asked for as this one was", async ({ cli }) => {
    for (const text of ["one", "two"]) await cli.json(`notify ${text} --target user --user ada --ttl-ms 1`);
    await eventually(async () => ((await cli.ledger("--state FAILED")).length === 2 ? true : undefined));
    for (const list of ["dead list --user ada --limit 1", "inbox --all --user ada --limit 1"]) {
      const { stdout } = await cli.run(list);
      const [, more = ""] = /^More: +(?:npx tidings|node \S+) (.*) --data /m.exec(stdout) ?? [];
      expect(more, stdout).toMatch(new RegExp(`^${list} --after \\S+$`));
      const next = await cli.run(more);
      expect(stdout).toContain("two");
      expect(next.stdout).toContain("one");
      expect(next.stdout).not.toContain("two");
    }
    expect((await cli.run("dead list --user ada")).stdout).not.toContain("More:");
  });

  test("the inbox says of a dead letter how to send it again, and acknowledges only what can be", async ({ cli }) => {
    const { id: dead } = await cli.json<Row>("notify dead --target user --ttl-ms 1");
    await eventually(async () => (await cli.json<Page>("dead list")).notifications.at(0));
    const alone = await cli.run("inbox --all");
    expect(alone.stdout).toContain(`dead redrive ${dead} --data`);
    expect(alone.stdout).not.toContain(" ack ");
    const { id: fresh } = await cli.json<Row>("notify fresh --target user");
    const both = await cli.run("inbox --all");
    expect(both.stdout).toContain(`dead redrive ${dead} --data`);
    expect(both.stdout).toContain(`ack ${fresh} --action dismissed --data`);

    const { id: again } = await cli.json<Row>("dead redrive", dead);
    for (const id of [fresh, again]) await cli.json("ack", id, "--action", "dismissed");
    const done = await cli.run("inbox --all");
    expect(done.stdout).not.toMatch(/ ack | dead redrive /);
    expect(done.stdout).toContain("explain ID --data");
  });

  test("the list says which dead letters were sent again, and recommends another", async ({ cli }) => {
    const { id: one } = await cli.json<Row>("notify one --target user --ttl-ms 1");
    const { id: two } = await cli.json<Row>("notify two --target user --ttl-ms 1");
    await eventually(async () => ((await cli.ledger("--state FAILED")).length === 2 ? true : undefined));
    const before = await cli.run("dead list");
    expect(before.stdout).not.toContain("redriven");
    expect(before.stdout).toContain(`dead redrive ${two} --data`);
    expect(await cli.json("dead list")).toMatchObject({ redriven: {} });

    const { id: again } = await cli.json<Row>("dead redrive", two);
    const half = await cli.run("dead list");
    expect(half.stdout).toMatch(new RegExp(`${two} +redriven as ${again}\n`));
    expect(half.stdout).toMatch(new RegExp(`${one}\n`));
    expect(half.stdout).toContain(`dead redrive ${one} --data`);
    expect(await cli.json("dead list")).toMatchObject({
      notifications: [{ id: two }, { id: one }],
      redriven: { [two]: again },
    });

    await cli.json("dead redrive", one);
    expect((await cli.run("dead list")).stdout).not.toContain("dead redrive");
  });

  test("the environment sets the times, and flags win over it", async ({ cli }) => {
    const env = { TIDINGS_DATA: cli.data, TIDINGS_AGENT_TTL_MS: "3600000", TIDINGS_SYSTEM_TTL_MS: "3600000" };
    const kept = ["notify", "kept", "--target", "user", "--json"];
    const lost = ["notify", "lost", "--target", "user", "--system-ttl-ms", "1", "--json"];
    for (const line of [kept, lost]) expect(await run(line, { env })).toMatchObject({ code: 0 });
    const rows = await eventually(async () => {
      const found = await cli.ledger();
      return found[0]?.state === "FAILED" ? found : undefined;
    });
    expect(rows).toMatchObject([{ content: "lost" }, { content: "kept", state: "DISPATCHED" }]);
    const wrong = await run(["inbox"], { env: { ...env, TIDINGS_LEASE_MS: "soon" } });
    expect(wrong).toMatchObject({ code: 2, stderr: expect.stringMatching(/^tidings: TIDINGS_LEASE_MS: must be /) });
  });
});

describe.concurrent("an acknowledgement", () => {
  test("of an old revision does not settle a newer text", async ({ cli }) => {
    const notify = "notify --target user --dedupe-key disk --dedupe-window-ms 60000";
    const { id } = await cli.json<Row>(notify, "91% full");
    expect(await cli.json<Row>(notify, "97% full")).toMatchObject({ id });
    const stale = await cli.run(`ack ${id} --revision 1 --json`);
    expect(stale.code).toBe(4);
    expect(JSON.parse(stale.stdout)).toEqual({
      miss: "stale_revision",
      id,
      message: expect.stringContaining("acknowledge revision 2"),
    });
    expect(await cli.run(`ack ${id} --revision 1`)).toMatchObject({
      code: 4,
      stdout: "",
      stderr: expect.stringMatching(/^tidings: notification \S+ was not acknowledged: its text has changed/),
    });
    expect((await cli.ledger())[0]).toMatchObject({ state: "DISPATCHED", revision: 2, count: 2 });
    expect(await cli.json(`ack ${id} --revision 2`)).toMatchObject({ state: "DELIVERED", content: "97% full" });
  });

  test("of several ids answers each, and ends with the worst", async ({ cli }) => {
    const { id } = await cli.json<Row>("notify hello --target user");
    const { code, stdout } = await cli.run(`ack ${id} nobody --json`);
    expect(code).toBe(3);
    expect(ndjson(stdout)).toMatchObject([
      { id, state: "DELIVERED" },
      { miss: "not_found", id: "nobody" },
    ]);
    expect(await cli.run(`ack ${id} ${id} --revision 1`)).toMatchObject({ code: 2 });
  });
});

describe.concurrent("many events", () => {
  const lines = [
    '{"type":"cli.a.one","payload":{"message":"one"}}',
    "{broken",
    "",
    '{"type":"nobody.listens","source":"s"}',
    '{"type":"single"}',
    '{"type":"cli.a.two","user_id":"ada","surprise":1}',
    '{"type":"cli.a.two","user_id":"ada","source":"other"}',
  ];

  test("come from stdin, and a bad line does not hold up the others", async ({ cli }) => {
    const { code, stdout } = await cli.feed(lines.join("\n"), "emit - --json --source pipe");
    expect(code).toBe(2);
    expect(ndjson(stdout)).toMatchObject([
      { seq: 1, outcome: "accepted" },
      { line: 2, error: { code: "invalid_input", reason: expect.stringContaining("is not JSON") } },
      { seq: 2, outcome: "unmatched", matches: [] },
      { line: 5, error: { code: "invalid_input", field: "type" } },
      { line: 6, error: { code: "invalid_input", field: "surprise", reason: "is not a known field" } },
      { seq: 3, outcome: "accepted" },
    ]);
    const sources = (await cli.ledger()) as (Row & { source: string })[];
    expect(sources.map((row) => row.source)).toEqual(["other", "pipe"]);
  });

  test("come from a file, and are counted in words", async ({ cli }) => {
    const file = cli.path("events.ndjson");
    writeFileSync(file, lines.join("\r\n"));
    const { code, stdout, stderr } = await cli.run(`emit --file ${file}`);
    expect(code).toBe(2);
    expect(stdout).toBe("6 events: 2 accepted, 1 that no subscriber matches, 3 refused.\n");
    expect(stderr).toMatch(/^line 2: .*\nline 5: .*\nline 6: .*\n$/);
    expect(await cli.run("emit --file no-such-file")).toMatchObject({ code: 2, stdout: "" });
  });

  test("of any number go in, and bytes that are not text are refused", async ({ cli }) => {
    const events = Array.from({ length: 3_000 }, (_, n) => `{"type":"cli.a.b","id":"${n}","payload":{"n":${n}}}\n`);
    const input = Buffer.concat([Buffer.from(events.join("")), Buffer.from([0xff, 0xfe, 0x0a])]);
    const { code, stdout } = await cli.feed(input, "emit - --json");
    const answers = ndjson(stdout);
    expect(code).toBe(2);
    expect(answers).toHaveLength(3_001);
    expect(answers.at(-1)).toMatchObject({ line: 3_001, error: { reason: "is not UTF-8 text" } });
    expect((await cli.ledger()).length).toBe(3_000);
    expect((await cli.feed(events.join(""), "emit -")).stdout).toBe("3,000 events: 0 accepted, 3000 known already.\n");
  });
});

describe.concurrent("the words of the program", () => {
  test("--help names every command, and each has a page of its own", async () => {
    const { code, stdout } = await run(["--help"]);
    expect(code).toBe(0);
    const [, list = ""] = /\nCommands\n([\s\S]*?)\n\n/.exec(stdout) ?? [];
    const names = list.split("\n").map((line) => line.trim().split(/ {2,}/)[0] ?? "");
    expect([...names].sort()).toEqual([
      "ack",
      "audit",
      "backup",
      "chat",
      "dead list",
      "dead redrive",
      "doctor",
      "emit",
      "explain",
      "inbox",
      "ledger",
      "mcp approve",
      "mcp list",
      "notify",
      "prune",
      "restore",
      "rpc",
      "serve",
      "subscribers check",
      "subscribers disable",
      "subscribers enable",
      "subscribers list",
      "subscribers test",
      "tail",
      "threads",
      "token create",
      "token list",
      "token revoke",
      "tour",
      "turn",
    ]);
    for (const code of ["0", "1", "2", "3", "4", "5", "6", "7"]) expect(stdout).toMatch(new RegExp(`\n  ${code} +\\S`));
    const pages = await Promise.all(
      names.map(async (name) => [name, await run([...name.split(" "), "--help"])] as const),
    );
    for (const [name, page] of pages) {
      expect(page.code).toBe(0);
      expect(page.stdout).toContain(`tidings ${name}: `);
      expect(page.stdout).toMatch(/\nUsage\n[\s\S]*--data DIR[\s\S]*\nExamples\n {2}/);
    }
    expect(await run(["help", "dead", "list"])).toEqual(await run(["dead", "list", "-h"]));
    expect((await run(["dead", "--help"])).stdout).toContain("tidings dead redrive");
  });

  test("a command's options may stand before its name, and between its words", async ({ cli }) => {
    const { id } = await cli.json<Row>("notify late --target user --user inbox --ttl-ms 1");
    await eventually(async () => (await cli.json<Page>("--user inbox --limit 1 dead list")).notifications.at(0));
    for (const line of ["--limit 1 dead --user inbox list", "dead --user inbox --limit 1 list"])
      expect(await cli.json(line), line).toMatchObject({ notifications: [{ id }] });
    expect(await cli.json("--user inbox --all inbox")).toMatchObject({ notifications: [{ id }] });
    expect(await cli.json("--user other --all inbox")).toMatchObject({ notifications: [] });
  });

  test("--version is the package's", async () => {
    expect(await run(["--version"])).toEqual({ code: 0, stdout: "0.1.0\n", stderr: "" });
  });

  test.for<[line: string[], words: string | RegExp]>([
    [["inbx"], 'tidings: unknown command "inbx"; did you mean inbox? See `tidings --help`.\n'],
    [["dead", "lsit"], 'tidings: unknown command "dead lsit"; did you mean dead list? See `tidings --help`.\n'],
    [["tokn"], 'tidings: unknown command "tokn"; did you mean token? See `tidings --help`.\n'],
    [["tokn", "list"], 'tidings: unknown command "tokn"; did you mean token list? See `tidings --help`.\n'],
    [["tur"], 'tidings: unknown command "tur"; did you mean turn? See `tidings --help`.\n'],
    [["tuor"], 'tidings: unknown command "tuor"; did you mean tour? See `tidings --help`.\n'],
    [["ledgr", "x"], 'tidings: unknown command "ledgr"; did you mean ledger? See `tidings --help`.\n'],
    [["frobnicate"], 'tidings: unknown command "frobnicate". See `tidings --help`.\n'],
    [["--user", "inbox", "inbx"], 'tidings: unknown command "inbx"; did you mean inbox? See `tidings --help`.\n'],
    [["inbox", "--limt", "3"], "tidings: unknown option --limt; did you mean --limit? See `tidings inbox --help`.\n"],
    [["inbox", "--older-than", "3d"], "tidings: unknown option --older-than. See `tidings inbox --help`.\n"],
    [["inbox", "--user"], "tidings: --user needs a value: --user USER\n"],
    [["inbox", "--user", "--all"], "tidings: --user needs a value; if --all is meant, write --user=--all\n"],
    [["inbox", "--limit", "-1"], "tidings: --limit needs a value; if -1 is meant, write --limit=-1\n"],
    [["inbox", "--limit=0"], 'tidings: --limit: must be a whole number from 1 to 1000, not "0"\n'],
    [["prune", "--older-than", "30"], /^tidings: --older-than: must be a number with a unit .* like 30d, not "30"\n$/],
    [["emit", "a.b", "--severity", "warn"], /^tidings: --severity: "warn" is none of .*; did you mean warning\?\n$/],
    [["emit", "single"], /^tidings: type: must be 2 to 5 segments .*\n$/],
    [["notify", "two", "words"], /^tidings: unexpected "words": there is one CONTENT; quote it if it has spaces\n$/],
    [["dead", "redrive"], "tidings: say which: one or more IDs, or --all\n"],
  ])("%j is answered in one line, with exit code 2", async ([line, words], { cli }) => {
    const { code, stdout, stderr } = await run(["--data", cli.data, ...line]);
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toMatch(words);
  });

  test("with --json an error is a value on stdout", async ({ cli }) => {
    const unknown = await run(["inbox", "--limt", "3", "--json"]);
    expect(unknown).toMatchObject({ code: 2, stderr: "" });
    expect(JSON.parse(unknown.stdout)).toEqual({
      error: { code: "invalid_input", field: "--limt", message: expect.stringContaining("--limit") },
    });
    const bad = await cli.run("notify hello --inject-at immediate --json");
    expect(bad).toMatchObject({ code: 2, stderr: "" });
    expect(JSON.parse(bad.stdout)).toEqual({
      error: {
        code: "invalid_input",
        message: "inject_at: immediate needs priority critical",
        field: "inject_at",
        reason: "immediate needs priority critical",
      },
    });
  });

  test("text from outside cannot command the terminal", async ({ cli }) => {
    await cli.json("notify --target user", "red \u001b[31m alert\u0007\nsecond \u202eenil");
    for (const line of ["inbox", "ledger"]) {
      const { stdout } = await cli.run(line);
      expect(stdout).toContain("red \\u{1b}[31m alert\\u{7}");
      // biome-ignore lint/suspicious/noControlCharactersInRegex: their absence is the point
      expect(stdout).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f\u202e]/);
    }
  });

  test("every command answers JSON", async ({ cli }) => {
    const { id } = await cli.json<Row>("notify hello --target user --ttl-ms 1");
    await eventually(async () => (await cli.json<Page>("dead list")).notifications.at(0));
    const copy = cli.path("copy.db");
    const lines = [
      `emit cli.a.b`,
      "inbox",
      "inbox --all --limit 1",
      "ledger",
      `ack ${id}`,
      `explain ${id}`,
      "dead list",
      `dead redrive ${id}`,
      "audit",
      "doctor",
      "prune --older-than 1d",
      `backup ${copy}`,
      `restore ${copy} --replace`,
      "tour",
    ];
    for (const line of lines) {
      const { code, stdout, stderr } = await cli.run(line, "--json");
      expect(stderr, line).toBe("");
      expect(code, line).toBe(line.startsWith("ack") ? 4 : 0);
      expect(ndjson(stdout).length, line).toBeGreaterThan(0);
    }
  });
});

describe.concurrent("a data folder", () => {
  test("that holds nothing is not made by a command that has nothing to write, which says so", async ({ cli }) => {
    const note = `tidings: there is no Tidings data in ${cli.data}; --data DIR names another folder.\n`;
    const answers: [line: string, code: number, stdout: string | RegExp, stderr?: string][] = [
      ["inbox", 0, "Nothing unread for local.\n"],
      ["inbox --json", 0, '{"notifications":[],"next":null}\n'],
      ["dead list --json", 0, '{"notifications":[],"next":null,"redriven":{}}\n'],
      ["ledger --json", 0, ""],
      ["threads --json", 0, '{"threads":[],"next":null}\n'],
      ["token list --json", 0, ""],
      ["subscribers list", 0, /active {4}cli_event /],
      ["prune --older-than 1d --json", 0, '{"entries":0,"notifications":0,"visited":0}\n'],
      ["dead redrive --all", 0, "0 dead letters sent again.\n"],
      ["explain nothing", 3, "", 'tidings: no event or notification "nothing" for this user\n'],
      ["ack nothing", 3, "", 'tidings: no notification "nothing" for this user\n'],
      ["dead redrive nothing", 3, "", 'tidings: no notification "nothing" for this user\n'],
      ["token revoke nothing", 3, "", 'tidings: no token "nothing"\n'],
      ["audit", 6, ""],
    ];
    for (const [line, code, stdout, stderr = ""] of answers) {
      const ended = await cli.run(line);
      expect(ended, line).toMatchObject({ code, stderr: note + stderr });
      if (typeof stdout === "string") expect(ended.stdout, line).toBe(stdout);
      else expect(ended.stdout, line).toMatch(stdout);
      expect(readdirSync(cli.root), line).toEqual([]);
    }
    mkdirSync(cli.data);
    expect(await cli.run("inbox"), "nor is an empty one filled").toMatchObject({ code: 0, stderr: note });
    expect(readdirSync(cli.data)).toEqual([]);
    expect(await cli.json("notify hello --target user")).toMatchObject({ state: "DISPATCHED" });
    expect(await cli.run("ledger --json")).toMatchObject({ code: 0, stderr: "" });
  });

  test("that is made is for its owner alone", async ({ cli }) => {
    await cli.json("emit cli.a.b");
    expect(statSync(cli.data).mode & 0o777).toBe(0o700);
  });

  test("that is not there is what doctor finds, in plain words and once", async ({ cli }) => {
    const { code, stdout } = await cli.run("doctor");
    expect(code).toBe(1);
    expect(stdout).toContain(
      `✖ store        there is no Tidings data in ${cli.data}; --data DIR names another folder\n`,
    );
    expect(stdout).not.toMatch(/ENOENT|scandir|read_only|permissions/);
    expect(stdout).toMatch(/ disk .* free\n[\s\S]*\n1 thing is wrong\.\n$/);
    expect(readdirSync(cli.root)).toEqual([]);
  });

  test("with numbers and words in tidings.toml that are not allowed is told so in plain words", async ({ cli }) => {
    await cli.json("emit cli.a.b");
    const toml = "[agent.budgets.turn]\niterations = 0\ntokens = 1.5\n\n[server.limits]\nbody_bytes = 1\n";
    writeFileSync(join(cli.data, "tidings.toml"), toml);
    const { stdout } = await cli.run("doctor");
    expect(stdout).toMatch(/tidings\.toml:2:1: agent\.budgets\.turn\.iterations must be at least 1, not 0/);
    expect(stdout).toMatch(/tidings\.toml:3:1: agent\.budgets\.turn\.tokens must be a whole number, not 1\.5/);
    expect(stdout).not.toMatch(/Too |Invalid|expected/);
  });

  test("with a hook that has no secret gets a warning from doctor, which says what to set", async ({ cli }) => {
    await cli.json("emit cli.a.b");
    const hook = '[hooks.repo]\nscheme = "github"\nsecret_env = "REPO_SECRET"\n';
    writeFileSync(join(cli.data, "tidings.toml"), hook);
    const line = ["doctor", "--data", cli.data];
    const without = await run(line);
    expect(without.code).toBe(0);
    expect(without.stdout).toMatch(
      /▲ hooks {8}the hook repo takes nothing: there is no secret .* in REPO_SECRET; set REPO_SECRET where the server is started\n/,
    );
    expect((await run(line, { env: { REPO_SECRET: "s" } })).stdout).not.toContain("hook");
  });

  test("is backed up and restored, as another journal with the same notifications", async ({ cli }) => {
    for (const text of ["one", "two"]) await cli.json(`notify ${text} --target user`);
    const before = await cli.ledger();
    const copy = cli.path("copy.db");
    const { journal_id } = await cli.json("doctor");
    expect(await cli.json("backup", copy)).toEqual({ file: copy, bytes: statSync(copy).size, journal_id });
    expect(await cli.run("backup", copy), "an existing file is left alone").toMatchObject({ code: 2 });

    const elsewhere = cli.path("elsewhere");
    const restored = await run(["restore", copy, "--data", elsewhere, "--json"]);
    expect(restored.code).toBe(0);
    const answer = JSON.parse(restored.stdout) as { journal_id: string };
    expect(answer.journal_id).not.toBe(journal_id);
    const there = await run(["ledger", "--json", "--data", elsewhere]);
    expect(ndjson(there.stdout)).toEqual(before);
    expect((await run(["audit", "--data", elsewhere])).code).toBe(0);

    await cli.json("notify three --target user");
    const refused = await cli.run("restore", copy, "--json");
    expect(refused.code).toBe(2);
    expect(JSON.parse(refused.stdout)).toMatchObject({ error: { message: expect.stringContaining("--replace") } });
    expect(await cli.ledger()).toHaveLength(3);
    await cli.json("restore", copy, "--replace");
    expect(await cli.ledger()).toEqual(before);
    expect(existsSync(join(cli.data, "tidings.db.old"))).toBe(true);
    expect(await cli.run("restore no-such-file --replace")).toMatchObject({ code: 2 });
  });

  test.for<[what: string, make: (cli: Cli, file: string, whole: Buffer) => void, code: number]>([
    ["text", (_, file) => writeFileSync(file, "this has never been a database ".repeat(100)), 6],
    ["empty", (_, file) => writeFileSync(file, ""), 6],
    ["cut off", (_, file, whole) => writeFileSync(file, whole.subarray(0, 20_000)), 6],
    ["cut off in its head", (_, file, whole) => writeFileSync(file, whole.subarray(0, 50)), 6],
    ["another program's", (_, file) => new Database(file).exec("CREATE TABLE theirs (a)").close(), 6],
    ["without our tables", (_, file, whole) => writeFileSync(file, onlyMarked(file, whole)), 6],
    ["a folder", (_, file) => mkdirSync(file), 2],
  ])("is not replaced by a backup that is %s, which is named", async ([, make, code], { cli }) => {
    await cli.json("notify kept --target user");
    const whole = cli.path("whole.db");
    await cli.json("backup", whole);
    const bad = cli.path("bad.db");
    make(cli, bad, readFileSync(whole));
    const before = readFileSync(join(cli.data, "tidings.db"));

    const refused = await cli.run("restore", bad, "--replace");
    expect(refused).toMatchObject({ code, stdout: "" });
    expect(refused.stderr).toMatch(/^tidings: .*\bbad\.db is .*\bTidings backup.*; nothing was changed\..*\n$/);
    expect(refused.stderr, "what is good is not blamed, nor what nobody knows").not.toContain(cli.data);
    expect(readFileSync(join(cli.data, "tidings.db"))).toEqual(before);
    expect(readdirSync(cli.data).filter((name) => /arriving|old/.test(name))).toEqual([]);
    expect(await cli.ledger()).toMatchObject([{ content: "kept" }]);
  });

  test("that is not there is not backed up, nor made", async ({ cli }) => {
    const copy = cli.path("copy.db");
    const missing = await cli.run("backup", copy);
    expect(missing).toMatchObject({ code: (await cli.run("audit")).code, stdout: "" });
    expect(missing.stderr).toMatch(/^tidings: .*\bno Tidings data.*--data.*\n$/);
    expect(missing.stderr).toContain(cli.data);
    expect(readdirSync(cli.root)).toEqual([]);
    mkdirSync(cli.data);
    expect(await cli.run("backup", copy)).toMatchObject({ code: missing.code });
    expect(readdirSync(cli.root), "an empty one stays empty").toEqual(["data"]);
    expect(readdirSync(cli.data)).toEqual([]);
  });

  test("is pruned of settled history, and keeps what waits and what is dead", async ({ cli }) => {
    const { id: settled } = await cli.json<Row>("notify settled --target user");
    await cli.json("ack", settled);
    await cli.json("notify waits --target user");
    await cli.json("notify dead --target user --ttl-ms 1");
    await eventually(async () => (await cli.json<Page>("dead list")).notifications.at(0));
    expect(await cli.json("prune --older-than 1h")).toMatchObject({ entries: 0, notifications: 0 });
    const pruned = await eventually(async () => {
      const step = await cli.json<{ notifications: number }>("prune --older-than 1ms");
      return step.notifications === 0 ? undefined : step;
    });
    expect(pruned.notifications).toBe(1);
    expect((await cli.ledger()).map((row) => row.content)).toEqual(["dead", "waits"]);
    expect(await cli.json("audit")).toMatchObject({ ok: true });
    expect((await cli.run("prune --older-than 1ms")).stdout).toMatch(/^Removed .*0 notifications; looked at /);
  });

  test("is examined by doctor, which warns of permissions and names what is wrong", async ({ cli }) => {
    await cli.json("emit cli.a.b");
    const well = await cli.json<{ checks: { name: string; level: string }[] }>("doctor");
    expect(well).toMatchObject({
      ok: true,
      node: process.version,
      tidings: "0.1.0",
      synchronous: "FULL",
      journal_mode: "wal",
      schema_version: SCHEMA_VERSION,
      last_seq: 1,
      writer_pid: null,
    });
    expect(well.checks.filter((check) => check.level !== "ok")).toEqual([]);
    await chmod(cli.data, 0o755);
    const open = await cli.run("doctor");
    expect(open.code).toBe(0);
    expect(open.stdout).toContain("▲ permissions  the folder is 0755, not 0700");

    const broken = cli.path("broken");
    mkdirSync(broken);
    writeFileSync(join(broken, "tidings.db"), "this has never been a database ".repeat(100));
    const sick = await run(["doctor", "--data", broken, "--json"]);
    expect(sick.code).toBe(1);
    expect(JSON.parse(sick.stdout)).toMatchObject({ ok: false });
    const used = await run(["inbox", "--data", broken]);
    expect(used).toMatchObject({ code: 6, stdout: "" });
    expect(used.stderr).toMatch(/^tidings: .*tidings\.db is damaged or not a Tidings database.*\n$/);
    expect(await run(["inbox", "--data", join(broken, "tidings.db")])).toMatchObject({ code: 6 });
  });

  test("that is full refuses what has no room, and keeps what was answered", async ({ cli }) => {
    await cli.json("notify kept --target user");
    const input = Array.from({ length: 50 }, () => `{"type":"cli.a.b","payload":{"message":"${"x".repeat(9_000)}"}}`);
    const full = await cli.feed(input.join("\n"), "emit - --json --bytes-max 200000");
    expect(full.code).toBe(6);
    const answers = ndjson(full.stdout);
    expect(answers.at(-1)).toMatchObject({ error: { code: "store_full" } });
    expect(await cli.json("audit")).toMatchObject({ ok: true });
    expect((await cli.ledger()).length).toBeGreaterThanOrEqual(answers.length);
  });

  test("with a conflict says so: the same producer's id with another body", async ({ cli }) => {
    const line = "emit cli.a.b --id build-7 --message";
    expect(await cli.json(line, "red")).toMatchObject({ outcome: "accepted" });
    expect(await cli.json(line, "red")).toMatchObject({ outcome: "duplicate" });
    const other = await cli.run(line, "green", "--json");
    expect(other.code).toBe(4);
    expect(JSON.parse(other.stdout)).toMatchObject({ error: { code: "conflict", reason: "idempotency_mismatch" } });
  });
});

describe("several processes", () => {
  test("beside a writer, reading works and writing says who is in the way", async ({ cli }) => {
    const tidings = await Tidings.open({ data: cli.data });
    try {
      const { id } = await tidings.notify({ content: "held", target: "user" });
      expect((await cli.json<Page>("inbox")).notifications).toMatchObject([{ id }]);
      expect(await cli.ledger()).toMatchObject([{ id }]);
      expect(await cli.json("explain", id)).toMatchObject({ kind: "notification" });
      expect(await cli.json("audit")).toMatchObject({ ok: true });
      expect(await cli.json("doctor")).toMatchObject({ ok: true, writer_pid: process.pid });
      expect((await cli.run("doctor")).stdout, "no tick for what was not looked at").toContain(
        "  · durability   not looked at: only the writer can tell\n",
      );
      expect((await cli.json<{ bytes: number }>("backup", cli.path("copy.db"))).bytes).toBeGreaterThan(0);
      const busy = await cli.run("emit cli.a.b --wait-ms 200");
      expect(busy).toMatchObject({ code: 5, stdout: "" });
      expect(busy.stderr).toMatch(new RegExp(`^tidings: .* is in use: process ${process.pid} is its writer\\. .*\n$`));
      const asJson = await cli.run(`ack ${id} --wait-ms 200 --json`);
      expect(asJson.code).toBe(5);
      expect(JSON.parse(asJson.stdout)).toMatchObject({ error: { code: "store_busy" } });
      expect(await cli.run(`restore ${cli.path("copy.db")} --replace --wait-ms 0`)).toMatchObject({ code: 5 });
    } finally {
      await tidings.close();
    }
    expect(await cli.json("emit cli.a.b --wait-ms 200")).toMatchObject({ outcome: "accepted" });
  });

  test("a writer that waits gets its turn", async ({ cli }) => {
    const tidings = await Tidings.open({ data: cli.data });
    const waiting = cli.json("emit cli.a.b --wait-ms 60000");
    const seen = await eventually(async () => ((await cli.run("inbox")).code === 0 ? true : undefined));
    expect(seen).toBe(true);
    await tidings.close();
    expect(await waiting).toMatchObject({ outcome: "accepted" });
  });

  test("eight that emit at once into a new folder all succeed", async ({ cli }) => {
    const ended = await Promise.all(
      Array.from({ length: 8 }, (_, n) => cli.run(`emit cli.at.once --wait-ms 60000 --json --message number-${n}`)),
    );
    for (const one of ended) expect(one).toMatchObject({ code: 0, stderr: "" });
    const seqs = ended.map((one) => (JSON.parse(one.stdout) as { seq: number }).seq);
    expect(seqs.sort((a, b) => a - b)).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
    expect(await cli.ledger()).toHaveLength(8);
    expect(await cli.json("audit")).toMatchObject({ ok: true, checked: { events: 8 } });
  });

  test("readers and writers may all be the first in a new folder", async ({ cli }) => {
    const lines = ["inbox", "emit cli.a.b", "ledger", "dead list", "emit cli.a.b", "subscribers list"];
    const ended = await Promise.all(lines.map((line) => cli.run(line, "--json", "--wait-ms", "60000")));
    for (const [index, { code, stderr }] of ended.entries()) {
      expect(code, lines[index]).toBe(0);
      // Who comes before the first writer finds nothing, and says so.
      if (lines[index]?.startsWith("emit")) expect(stderr).toBe("");
      else expect(stderr).toMatch(/^(?:tidings: there is no Tidings data in [^\n]*\n)?$/);
    }
  });

  test("a long answer that nobody reads on holds up no writer", async ({ cli }) => {
    const events = Array.from({ length: 1_000 }, (_, n) => `{"type":"cli.a.b","payload":{"n":${n}}}\n`);
    expect(await cli.feed(events.join(""), "emit -")).toMatchObject({ code: 0 });
    const reader = start(["ledger", "--json", "--data", cli.data]);
    const ended = new Promise<number | null>((resolve) => reader.on("close", resolve));
    try {
      await new Promise((resolve) => reader.stdout?.once("readable", resolve));
      expect(await cli.json("emit cli.a.b --wait-ms 2000")).toMatchObject({ outcome: "accepted" });
    } finally {
      // Whoever reads has enough: the program ends quietly.
      reader.stdout?.destroy();
    }
    expect(await ended).toBe(0);
  });
});

test("the tour runs by itself, shows every part, and leaves nothing behind", async ({ cli }) => {
  const TMPDIR = cli.path("temporary");
  mkdirSync(TMPDIR);
  const { code, stdout, stderr } = await run(["tour"], { env: { TMPDIR } });
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  for (const words of ["(3 times since ", "ESCALATED", "refused", "DELIVERED", "FAILED", "sound.", "Try it yourself"])
    expect(stdout).toContain(words);
  expect(readdirSync(TMPDIR)).toEqual([]);
});

/** A database that says it is ours and holds nothing. */
function onlyMarked(file: string, whole: Buffer): Buffer {
  const path = `${file}.marked`;
  const applicationId = whole.readUInt32BE(68);
  new Database(path).exec(`PRAGMA application_id = ${applicationId}`).close();
  return readFileSync(path);
}
