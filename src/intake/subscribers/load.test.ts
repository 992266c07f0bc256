import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { mkdir, symlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { temporaryFolder } from "../../../test/support/folder.js";
import { BUILT_IN_FOLDER, type LoadedSubscriber, loadFolder, type SubscriberProblem } from "./load.js";
import { SUBSCRIBER_LIMITS } from "./schema.js";

const run = promisify(execFile);

/** The example of the data model, as it is written there. */
const EXAMPLE = `[subscriber]
id = "tool_failure"
name = "Tool Failure Notifications"
description = "Notifies agent when tool calls fail or timeout"
version = "1.0.0"

[events]
types = ["tool.call.failure", "tool.call.timeout"]
severity_filter = "warning"

[batching]
window_ms = 2000
max_size = 10
dedupe_key = "type:payload.tool_name"
dedupe_window_ms = 5000

[output]
priority = "high"
inject_at = "after_tool"
template = "templates/tool_failure.toon.j2"
core = true
`;

const MINIMAL = `[subscriber]
id = "mine"
name = "Mine"
description = "What it is for"
version = "1"
[events]
types = ["my.event"]
[output]
priority = "normal"
inject_at = "next"
template = "mine.j2"
`;

async function folderWith(files: Readonly<Record<string, string | Uint8Array>>): Promise<string> {
  const folder = await temporaryFolder();
  for (const [name, content] of Object.entries({ "mine.j2": "mine: {{ event.type }}", ...files })) {
    await mkdir(dirname(join(folder, name)), { recursive: true });
    await writeFile(join(folder, name), content);
  }
  return folder;
}

async function loadOne(toml: string): Promise<LoadedSubscriber> {
  const { loaded, broken } = await loadFolder(await folderWith({ "mine.toml": toml }));
  expect(broken).toEqual([]);
  expect(loaded).toHaveLength(1);
  return loaded[0] as LoadedSubscriber;
}

/** What is wrong with a file, as `line key reason`, without the folder's own name. */
async function problemsOf(toml: string): Promise<string[]> {
  const folder = await folderWith({ "mine.toml": toml });
  const { loaded, broken } = await loadFolder(folder);
  expect(loaded).toEqual([]);
  for (const { file, subscriber_file } of broken)
    expect([file, subscriber_file]).toEqual(Array(2).fill(join(folder, "mine.toml")));
  return broken.map(({ line, key, reason }) => `${line} ${key} ${reason}`);
}

/** MINIMAL with lines added to (or replaced in) one of its tables. */
function with_(table: string, ...lines: string[]): string {
  const names = lines.map((line) => line.split("=")[0]?.trim());
  const kept = MINIMAL.split("\n").filter((line) => !names.includes(line.split("=")[0]?.trim() ?? ""));
  const at = kept.indexOf(`[${table}]`);
  if (at < 0) return [...kept, `[${table}]`, ...lines, ""].join("\n");
  return [...kept.slice(0, at + 1), ...lines, ...kept.slice(at + 1)].join("\n");
}

const brief = ({ key, reason }: SubscriberProblem) => `${key} ${reason}`;

describe("a subscriber's file", () => {
  it("of the data model's example loads as it is written", async () => {
    const folder = await temporaryFolder();
    await writeFile(join(folder, "tool_failure.toml"), EXAMPLE);
    const { loaded, broken } = await loadFolder(folder);
    expect(broken).toEqual([]);
    expect(loaded).toMatchObject([
      {
        id: "tool_failure",
        name: "Tool Failure Notifications",
        description: "Notifies agent when tool calls fail or timeout",
        version: "1.0.0",
        enabled: true,
        types: ["tool.call.failure", "tool.call.timeout"],
        sources: null,
        severity_filter: "warning",
        batch: { window_ms: 2_000, max_size: 10 },
        dedupe: { key: { text: "type:payload.tool_name" }, window_ms: 5_000 },
        priority: "high",
        inject_at: "after_tool",
        core: true,
        axes: { address: "session", target: "agent", handler: "system" },
        file: join(folder, "tool_failure.toml"),
      },
    ]);
    // Its template is the built-in one: the folder has none of that name.
    expect(loaded[0]?.batch_template).toBe(loaded[0]?.template);
  });

  it("has the documented defaults", async () => {
    expect(await loadOne(MINIMAL)).toMatchObject({
      enabled: true,
      built_in: false,
      severity_filter: "info",
      sources: null,
      batch: { window_ms: 2_000, max_size: 10 },
      dedupe: { key: null, window_ms: 5_000 },
      core: false,
      wake: null,
      max_wait_ms: 2_000,
      directive: null,
      ttl_ms: null,
      axes: { address: "session", target: "agent", handler: "system" },
    });
  });

  it("may set every key", async () => {
    const toml = `${with_("events", 'types = ["a.b", "a.*", "a.b"]', 'sources = ["ci", "ci"]', 'severity_filter = "debug"')}
wake = "idle"
max_wait_ms = 500
batch_template = "templates/many.j2"
[batching]
window_ms = 10000
max_size = 100
dedupe_key = "source:subject:payload.a.0"
dedupe_window_ms = 60000
[routing]
address = "user"
target = "user"
handler = "agent"
directive = "Ask before you retry."
ttl_ms = 1000
`;
    const folder = await folderWith({ "mine.toml": toml, "templates/many.j2": "many: {{ count }}" });
    const { loaded, broken } = await loadFolder(folder);
    expect(broken).toEqual([]);
    expect(loaded).toMatchObject([
      {
        types: ["a.b", "a.*"],
        sources: ["ci"],
        severity_filter: "debug",
        batch: { window_ms: 10_000, max_size: 100 },
        dedupe: { key: { text: "source:subject:payload.a.0" }, window_ms: 60_000 },
        wake: "idle",
        max_wait_ms: 500,
        axes: { address: "user", target: "user", handler: "agent" },
        directive: "Ask before you retry.",
        ttl_ms: 1_000,
      },
    ]);
    expect(loaded[0]?.batch_template).not.toBe(loaded[0]?.template);
  });

  it("for what the user is shown has no window unless it sets one", async () => {
    const routed = (...lines: string[]) => loadOne(`${MINIMAL}[routing]\n${lines.join("\n")}\n`);
    const shown = 'target = "user"';
    expect((await routed(shown)).batch.window_ms).toBe(0);
    expect((await routed(shown, 'address = "user"')).batch.window_ms).toBe(0);
    expect((await routed(shown, 'handler = "agent"')).batch.window_ms).toBe(2_000);
    expect((await routed(shown, "[batching]", "window_ms = 700")).batch.window_ms).toBe(700);
  });

  it.each([
    ["batching", "window_ms", 0, 10_000],
    ["batching", "max_size", 1, 100],
    ["batching", "dedupe_window_ms", 0, 60_000],
    ["routing", "ttl_ms", 1, 365 * 24 * 60 * 60 * 1000],
  ] as const)("takes [%s] %s from %i to %i, whole", async (table, key, min, max) => {
    for (const value of [min, max]) await loadOne(with_(table, `${key} = ${value}`));
    for (const value of [min - 1, max + 1, `${min}.5`, `"${min}"`, "true", "inf", "nan"])
      expect(await problemsOf(with_(table, `${key} = ${value}`))).toEqual([
        expect.stringMatching(new RegExp(`^\\d+ ${table}\\.${key} must be a whole number from ${min} to ${max}, not `)),
      ]);
  });

  it.each([
    [
      "immediate without critical",
      with_("output", 'inject_at = "immediate"'),
      "9 output.inject_at immediate needs priority critical",
    ],
    [
      "a core one that is off",
      with_("subscriber", "enabled = false").replace("[output]", "[output]\ncore = true"),
      /^2 subscriber\.enabled a core subscriber cannot be switched off/,
    ],
    [
      "a directive for nobody",
      with_("routing", 'directive = "Do it"'),
      /^14 routing\.directive is only for items that the agent handles/,
    ],
    [
      "a wake for the user",
      `${with_("output", 'wake = "idle"')}[routing]\ntarget = "user"\n`,
      /^9 output\.wake has no effect on what is shown to the user/,
    ],
    ["a wait for no wake", with_("output", "max_wait_ms = 5"), /^9 output\.max_wait_ms nothing wakes the agent here/],
    ["no event types", with_("events", "types = []"), "7 events.types must name at least one event type"],
    ["no sources", with_("events", "sources = []"), /^7 events\.sources must name at least one source/],
    [
      "an event type of one word",
      with_("events", 'types = ["a.b", "tool"]'),
      /^7 events\.types\.1 must be an event type like/,
    ],
    [
      "an event type of six",
      with_("events", 'types = ["a.b.c.d.e.f"]'),
      /^7 events\.types\.0 must be an event type like/,
    ],
    ["a star alone", with_("events", 'types = ["*"]'), /^7 events\.types\.0 must be an event type like/],
    ["a star inside", with_("events", 'types = ["tool.*.failure"]'), /^7 events\.types\.0 must be an event type like/],
    [
      "a prefix that nothing has",
      with_("events", 'types = ["a.b.c.d.e.*"]'),
      /^7 events\.types\.0 must be an event type like/,
    ],
    [
      "a bad expression",
      with_("batching", 'dedupe_key = "payload.__proto__"'),
      /^14 batching\.dedupe_key .* no payload has/,
    ],
    [
      "the id behind notify",
      with_("subscriber", 'id = "direct"'),
      /^2 subscriber\.id direct is the subscriber behind notify/,
    ],
    [
      "an unknown severity",
      with_("events", 'severity_filter = "warn"'),
      '7 events.severity_filter must be one of debug, info, warning, error, critical, not "warn"; did you mean warning?',
    ],
    ["a wrong wake", with_("output", 'wake = "always"'), '9 output.wake must be idle, not "always"'],
    ["text where a switch is", with_("output", 'core = "yes"'), '9 output.core must be true or false, not "yes"'],
    [
      "a number where text is",
      with_("subscriber", "version = 1.0"),
      "2 subscriber.version must be text in quotes, not 1",
    ],
    ["text where a list is", with_("events", 'types = "a.b"'), '7 events.types must be a list, not "a.b"'],
    [
      "a date where text is",
      with_("subscriber", "name = 2026-01-03"),
      "2 subscriber.name must be text in quotes, not a date",
    ],
    [
      "a value where a table is",
      MINIMAL.replace("[subscriber]", "routing = 1\n[subscriber]"),
      "1 routing must be a table, not 1",
    ],
    [
      "a mistyped key",
      with_("events", 'severity_filtre = "info"'),
      "7 events.severity_filtre is not a known key; did you mean severity_filter?",
    ],
    ["a mistyped table", with_("batchin", "max_size = 3"), "13 batchin is not a known key; did you mean batching?"],
    [
      "a key in the wrong table",
      with_("subscriber", "core = true"),
      "2 subscriber.core is not a known key; it belongs into [output]",
    ],
    [
      "a field's other name",
      with_("batching", "batch_window_ms = 3"),
      "14 batching.batch_window_ms is not a known key; it is called [batching] window_ms here",
    ],
    [
      "a key that is nothing like any",
      with_("routing", "zzz = 3"),
      /^14 routing\.zzz is not a known key; known here: address, /,
    ],
    ["a missing key", MINIMAL.replace('id = "mine"\n', ""), "1 subscriber.id is required"],
    ["a missing table", MINIMAL.slice(0, MINIMAL.indexOf("[output]")), "1 output is required"],
    [
      "a template that is not there",
      with_("output", 'template = "no.j2"'),
      '9 output.template the template "no.j2" does not exist',
    ],
    [
      "an absolute path",
      with_("output", 'template = "/etc/passwd"'),
      /^9 output\.template the template "\/etc\/passwd" must be a path inside the folder/,
    ],
    ["another system's absolute path", with_("output", 'template = "C:\\\\x.j2"'), /must be a path inside the folder/],
    [
      "a way out",
      with_("output", 'template = "../mine.j2"'),
      '9 output.template the template "../mine.j2" must not leave the folder (..)',
    ],
    [
      "a way out and back",
      with_("output", 'batch_template = "templates/../mine.j2"'),
      /^9 output\.batch_template .* must not leave the folder/,
    ],
    ["a folder for a template", with_("output", 'template = "."'), /^9 output\.template the template "\." is /],
  ])("refuses %s, with line, key and reason", async (_, toml, expected) => {
    expect(await problemsOf(toml)).toEqual([typeof expected === "string" ? expected : expect.stringMatching(expected)]);
  });

  it("names everything that is wrong at once", async () => {
    const toml = with_("output", 'priority = "urgent"', "window_ms = 3", 'inject_at = "now"').replace(
      'name = "Mine"\n',
      "",
    );
    expect(await problemsOf(toml)).toEqual([
      "1 subscriber.name is required",
      expect.stringMatching(/^8 output\.priority must be one of critical, high, normal, low, not "urgent"/),
      expect.stringMatching(/^10 output\.inject_at must be one of next, immediate, /),
      "9 output.window_ms is not a known key; it belongs into [batching]",
    ]);
  });

  it("with a mistake in its TOML tells line and column", async () => {
    const folder = await folderWith({
      "mine.toml": '[subscriber]\nid = "a"\nname = \n',
      "proto.toml": "[a]\n__proto__ = 1\n",
    });
    const { broken } = await loadFolder(folder);
    expect(broken).toMatchObject([
      {
        file: join(folder, "mine.toml"),
        line: 3,
        column: 8,
        key: null,
        reason: expect.stringMatching(/^is not valid TOML: /),
      },
      { file: join(folder, "proto.toml"), line: 2, column: 1, key: null },
    ]);
  });

  it("with a mistake in its template tells the template's line", async () => {
    const folder = await folderWith({ "mine.toml": MINIMAL, "mine.j2": "fine\n\n{% if %}" });
    const { loaded, broken } = await loadFolder(folder);
    expect(loaded).toEqual([]);
    expect(broken).toMatchObject([
      {
        file: join(folder, "mine.j2"),
        line: 3,
        key: "output.template",
        subscriber_file: join(folder, "mine.toml"),
        subscriber_id: "mine",
      },
    ]);
  });

  it("that is too large, or no text, is refused", async () => {
    const large = SUBSCRIBER_LIMITS.fileBytes;
    const folder = await folderWith({
      "a.toml": `${MINIMAL}${"#".repeat(large)}`,
      "b.toml": Buffer.from([...Buffer.from(MINIMAL), 0x23, 0xff, 0xfe]),
      "c.toml": with_("output", 'template = "large.j2"'),
      "d.toml": with_("output", 'template = "latin.j2"'),
      "large.j2": "x".repeat(SUBSCRIBER_LIMITS.templateBytes + 1),
      "latin.j2": Buffer.from([0xe9]),
      // As large as it may be, with a mark of the byte order in front.
      "e.toml": `\ufeff${MINIMAL}`.padEnd(large - 2, "#"),
    });
    const { loaded, broken } = await loadFolder(folder);
    expect(loaded.map(({ file }) => file)).toEqual([join(folder, "e.toml")]);
    expect(broken.map(brief)).toEqual([
      `null is larger than ${large} bytes`,
      "null is not UTF-8 text",
      `output.template the template "large.j2" is larger than ${SUBSCRIBER_LIMITS.templateBytes} bytes`,
      'output.template the template "latin.j2" is not UTF-8 text',
    ]);
  });
});

describe("a folder of subscribers", () => {
  it("that is missing or empty has none", async () => {
    const folder = await temporaryFolder();
    expect(await loadFolder(join(folder, "none"))).toEqual({ loaded: [], broken: [] });
    expect(await loadFolder(folder)).toEqual({ loaded: [], broken: [] });
  });

  it("that is a file is a problem of its own", async () => {
    const folder = await folderWith({});
    const file = join(folder, "mine.j2");
    expect((await loadFolder(file)).broken).toMatchObject([{ file, reason: expect.stringMatching(/is not a folder/) }]);
  });

  it("loads all that is whole, whatever the others are, and skips what is none of its own", async () => {
    const folder = await folderWith({
      "b.toml": with_("subscriber", 'id = "b"'),
      "a.toml": "broken",
      "c.toml": with_("subscriber", 'id = "c"', "enabled = false"),
      ".#c.toml": "a lock of an editor",
      "c.toml~": "a copy of an editor",
      "notes.md": "",
      "templates/inner.toml": "not read: it is not in the folder itself",
    });
    const { loaded, broken } = await loadFolder(folder);
    expect(loaded.map(({ id, enabled }) => [id, enabled])).toEqual([
      ["b", true],
      ["c", false],
    ]);
    expect(broken.map(({ file }) => file)).toEqual([join(folder, "a.toml")]);
  });

  it("gives an id to the first file that has it, by name", async () => {
    const folder = await folderWith({ "b.toml": MINIMAL, "a.toml": MINIMAL, "c.toml": MINIMAL });
    const { loaded, broken } = await loadFolder(folder);
    expect(loaded.map(({ file }) => file)).toEqual([join(folder, "a.toml")]);
    expect(broken).toMatchObject(
      ["b.toml", "c.toml"].map((name) => ({
        file: join(folder, name),
        line: 2,
        column: 1,
        key: "subscriber.id",
        reason: `"mine" is the id of ${join(folder, "a.toml")} too; two subscribers cannot share one`,
        subscriber_id: "mine",
      })),
    );
  });

  it("follows symlinks inside itself and none that lead out of it", async () => {
    const outside = await folderWith({ "mine.toml": MINIMAL, "secret.j2": "secret" });
    const folder = await folderWith({
      "..data/real.toml": with_("subscriber", 'id = "real"'),
      "out_template.toml": with_("output", 'template = "link.j2"'),
      "out_folder.toml": with_("output", 'template = "elsewhere/secret.j2"'),
      "circle_template.toml": with_("output", 'template = "circle.j2"'),
    });
    await symlink("..data/real.toml", join(folder, "in.toml"));
    await symlink(join(outside, "mine.toml"), join(folder, "out.toml"));
    await symlink(join(outside, "secret.j2"), join(folder, "link.j2"));
    await symlink(outside, join(folder, "elsewhere"));
    await symlink("circle.j2", join(folder, "circle.j2"));
    await symlink("nowhere.toml", join(folder, "dangling.toml"));
    // The folder itself may be a link: the operator has named it.
    const link = join(outside, "link");
    await symlink(folder, link);
    const { loaded, broken } = await loadFolder(link);
    expect(loaded.map(({ id }) => id)).toEqual(["real"]);
    expect(broken.map((one) => [one.subscriber_file.slice(link.length + 1), brief(one)])).toEqual([
      ["circle_template.toml", 'output.template the template "circle.j2" is a symlink that leads in a circle'],
      ["dangling.toml", "null does not exist"],
      ["out.toml", "null is a symlink that leads out of the folder"],
      [
        "out_folder.toml",
        'output.template the template "elsewhere/secret.j2" is a symlink that leads out of the folder',
      ],
      ["out_template.toml", 'output.template the template "link.j2" is a symlink that leads out of the folder'],
    ]);
  });

  it.runIf(process.platform !== "win32")("is not held up by a pipe, nor confused by a folder", async () => {
    const folder = await folderWith({ "dir.toml/x": "" });
    await run("mkfifo", [join(folder, "pipe.toml")]);
    expect((await loadFolder(folder)).broken.map(brief)).toEqual(["null is not a file", "null is not a file"]);
  });

  it("is no template itself", async () => {
    const folder = await folderWith({ "mine.toml": with_("output", 'template = "."') });
    expect((await loadFolder(folder)).broken.map(brief)).toEqual([
      'output.template the template "." is the folder itself, and not a file in it',
    ]);
  });

  it("has equal digests for equal texts only", async () => {
    const toml = with_("output", 'batch_template = "many.j2"');
    const folder = await folderWith({ "mine.toml": toml, "many.j2": "many" });
    const digest = async () => (await loadFolder(folder)).loaded[0]?.digest;
    const digests = [await digest()];
    expect(await digest()).toBe(digests[0]);
    for (const [name, text] of [
      ["mine.j2", "mine: {{ event.source }}"],
      ["many.j2", "more"],
      ["mine.toml", `${toml}# changed\n`],
    ] as const) {
      await writeFile(join(folder, name), text);
      digests.push(await digest());
    }
    expect(new Set(digests).size).toBe(4);
  });
});

describe("docs/SUBSCRIBERS.md", () => {
  const page = readFileSync(new URL("../../../docs/SUBSCRIBERS.md", import.meta.url), "utf8");
  const blocks = [...page.matchAll(/```(\w*)\n([\s\S]*?)```/g)].map(([, language, text]) => ({
    language,
    text: text ?? "",
  }));
  const block = (language: string) => blocks.filter((one) => one.language === language).map((one) => one.text);

  it("has an example that loads and gives what is shown", async () => {
    const [toml = ""] = block("toml");
    const [template = ""] = block("jinja");
    const folder = await folderWith({ "my_builds.toml": toml, "templates/my_builds.j2": template });
    const { loaded, broken } = await loadFolder(folder);
    expect(broken).toEqual([]);
    const [subscriber] = loaded;
    const event = (branch: string, count: number) => ({
      payload: { branch },
      timestamp: "2026-01-03T15:30:02Z",
      since: "2026-01-03T15:30:01Z",
      count,
    });
    const render = (...events: ReturnType<typeof event>[]) => {
      const count = events.reduce((sum, one) => sum + one.count, 0);
      return subscriber?.template.render({ event: events[0] ?? null, events, count, subscriber: {}, now: "" });
    };
    const [single = "", table] = block("text");
    expect(`${render(event("main", 2))}`).toBe(single.trim().split("\n").at(-1));
    expect(`${render(event("main", 1), event("next, or later", 1))}\n`).toBe(table);
  });

  it("tells of every key, and of no other", async () => {
    for (const table of ["subscriber", "events", "batching", "output", "routing"]) {
      const [unknown = ""] = await problemsOf(with_(table, "zzzzzzzzzz = 1"));
      const known = unknown.split("known here: ")[1]?.split(", ");
      const section = page.split(`### \`[${table}]\``)[1]?.split("##")[0] ?? "";
      expect([...section.matchAll(/^\| `(\w+)` \|/gm)].map(([, key]) => key)).toEqual(known);
    }
  });

  it("tells of every built-in subscriber", async () => {
    const section = page.split("## The built-in ones\n")[1] ?? "";
    const named = [...section.matchAll(/^\| `(\w+)` \|/gm)].map(([, id]) => id ?? "");
    const { loaded } = await loadFolder(BUILT_IN_FOLDER);
    expect(named.toSorted()).toEqual(loaded.map(({ id }) => id));
    for (const { id, core, enabled } of loaded) {
      const line = section.split("\n").find((one) => one.startsWith(`| \`${id}\``)) ?? "";
      expect([line.includes("| core: "), !line.includes("| off: ")]).toEqual([core, enabled]);
    }
  });
});

it("the built-in folder is beside the code, and is told apart", async () => {
  const { loaded } = await loadFolder(BUILT_IN_FOLDER);
  expect(loaded.length).toBeGreaterThan(0);
  expect(loaded.every((one) => one.built_in)).toBe(true);
});
