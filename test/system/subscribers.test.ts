/** Subscriber files by the command line: checked, and tried on events, without a store and without a server. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { type EventInput, Tidings } from "../../src/index.js";
import { temporaryFolder } from "../support/folder.js";
import { run } from "./cli.js";

const BUILT_IN = fileURLToPath(new URL("../../subscribers/", import.meta.url));

const FILE = `[subscriber]
id = "deploys"
name = "Deploys"
description = "Tells the user of deploys"
version = "1.0.0"

[events]
types = ["deploy.*"]
severity_filter = "warning"

[output]
priority = "normal"
inject_at = "next"
template = "deploys.j2"

[routing]
address = "user"
target = "user"
`;

async function folderWith(files: Record<string, string>): Promise<string> {
  const folder = join(await temporaryFolder(), "subscribers");
  mkdirSync(folder);
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  return folder;
}

describe("tidings subscribers check", () => {
  test("finds nothing wrong with those that come with Tidings", async () => {
    const { code, stdout } = await run(["subscribers", "check", "--builtin", "--json"]);
    expect(code).toBe(0);
    const { ok, loaded } = JSON.parse(stdout) as { ok: boolean; loaded: { id: string }[] };
    expect(ok).toBe(true);
    expect(loaded.map(({ id }) => id)).toContain("tool_failure");
  });

  test("names what is wrong with its file, line, key and reason, and loads the rest", async () => {
    const broken = FILE.replace('"deploys"', '"broken"').replace('"normal"', '"urgent"');
    const folder = await folderWith({ "good.toml": FILE, "broken.toml": broken, "deploys.j2": "deploy: {{ count }}" });
    const { code, stdout } = await run(["subscribers", "check", folder]);
    expect(code).toBe(1);
    expect(stdout).toContain("✔ deploys");
    expect(stdout).toContain(`✖ ${join(folder, "broken.toml")}:12:1: output.priority must be one of critical, high`);
    expect(stdout).toContain("1 subscriber in ");
  });

  test("says of a folder that is not there that it is not", async () => {
    const data = await temporaryFolder();
    const note = `tidings: there is no folder ${join(data, "subscribers")}; DIR names another one\n`;
    const line = ["subscribers", "check", "--data", data];
    expect(await run(line)).toEqual({ code: 0, stdout: "", stderr: note });
    const asJson = await run([...line, "--json"]);
    expect(asJson).toMatchObject({ code: 0, stderr: note });
    expect(JSON.parse(asJson.stdout)).toMatchObject({ ok: true, loaded: [], broken: [] });
    const named = join(data, "nowhere");
    for (const words of [[named], ["--subscribers", named]])
      expect(await run([...line, ...words])).toEqual({
        code: 2,
        stdout: "",
        stderr: `tidings: there is no folder ${named}\n`,
      });
  });
});

interface Shown {
  enabled: boolean;
  outcomes: string[];
  notifications: {
    channel: string;
    rows: { key: string | null; count: number }[];
    content: string;
    degraded: string | null;
  }[];
}

describe("tidings subscribers test", () => {
  test("has each option once in its help", async () => {
    const { stdout } = await run(["subscribers", "test", "--help"]);
    const options = stdout.match(/^ {2}(?:-\w, )?--[\w-]+/gm) ?? [];
    expect(options).toContain("  --config");
    expect(options).toEqual([...new Set(options)]);
  });

  test("shows what one event, and several, would become", async () => {
    const file = join(BUILT_IN, "tool_failure.toml");
    const failure = (tool_name: string, error_type: string) => ({
      type: "tool.call.failure",
      source: "tools",
      severity: "error",
      timestamp: "2026-01-03T15:30:01Z",
      payload: { tool_name, error_type, error_message: "Operation timed out after 5000ms" },
    });
    const shown = async (events: unknown) => {
      const ended = await run(["subscribers", "test", file, "--event", "-", "--json"], {
        input: JSON.stringify(events),
      });
      expect(ended.code, ended.stdout + ended.stderr).toBe(0);
      const { notifications } = JSON.parse(ended.stdout) as Shown;
      expect(notifications).toHaveLength(1);
      return notifications[0] as Shown["notifications"][number];
    };
    const one = await shown(failure("vault_search", "timeout"));
    expect(one.content.trim()).toBe("tool_fail: vault_search timeout after 5000ms");
    const three = [
      failure("vault_search", "timeout"),
      failure("vault_write", "denied"),
      failure("vault_search", "timeout"),
    ];
    const batch = await shown(three);
    expect(batch.rows.map(({ count }) => count)).toEqual([2, 1]);
    expect(batch.content).toContain("tool_fails[2]{tool,error,ts,times}:");
  });

  test("says what does not match, what is filtered, and what a switch mutes", async () => {
    const folder = await folderWith({
      "deploys.toml": FILE,
      "deploys.j2": "deploy: {{ event.payload.message }}",
      "config.toml.txt": '[conversation.notifications.kinds]\n"deploy.muted" = false\n',
    });
    const event = (type: string, severity: string) => ({ type, source: "ci", severity, payload: { message: "done" } });
    const events = [
      event("deploy.done", "warning"),
      event("other.done", "error"),
      event("deploy.done", "info"),
      event("deploy.muted", "error"),
    ];
    const line = [
      "subscribers",
      "test",
      join(folder, "deploys.toml"),
      "--event",
      "-",
      "--config",
      join(folder, "config.toml.txt"),
    ];
    const { code, stdout } = await run(line, { input: JSON.stringify(events) });
    expect(code).toBe(0);
    expect(stdout).toMatch(/^event 1: matched\nevent 2: not matched: its type is other\.done\nevent 3: filtered: /);
    expect(stdout).toMatch(/event 4: muted: conversation\.notifications\.kinds\.deploy\.muted = false/);
    expect(stdout).toContain("1 notification, priority normal, told at: next");
    expect(stdout).toContain("on the channel inbox:");
    expect(stdout).toContain("deploy: done");
  });

  describe("merges and batches as the server does", () => {
    const deploy = (name: string, more: object = {}) => ({
      type: "deploy.done",
      source: "ci",
      severity: "error",
      payload: { name },
      thread_id: "t1",
      ...more,
    });
    const file = (more: { batching?: string; priority?: string; enabled?: boolean }) => `[subscriber]
id = "deploys"
name = "Deploys"
description = "Tells of deploys"
version = "1.0.0"
enabled = ${more.enabled ?? true}

[events]
types = ["deploy.*"]

[batching]
${more.batching ?? ""}

[output]
priority = "${more.priority ?? "normal"}"
inject_at = "next"
template = "deploys.j2"
`;
    const names = ["a", "b", "a", "c", "b"];

    test.each<[string, Parameters<typeof file>[0], object[], string[]]>([
      ["what is the same is one row", {}, names.map((name) => deploy(name)), ["a×2 b×2 c×1"]],
      [
        "nothing is merged without a window",
        { batching: "dedupe_window_ms = 0" },
        names.map((name) => deploy(name)),
        ["a×1 b×1 a×1 c×1 b×1"],
      ],
      [
        "without batching each is by itself",
        { batching: "window_ms = 0" },
        names.map((name) => deploy(name)),
        ["a×2", "b×2", "c×1"],
      ],
      [
        "so it is with a size of one",
        { batching: "max_size = 1" },
        names.map((name) => deploy(name)),
        ["a×2", "b×2", "c×1"],
      ],
      ["so is what is critical", { priority: "critical" }, names.map((name) => deploy(name)), ["a×2", "b×2", "c×1"]],
      [
        "a full one is told, and counted to",
        { batching: "max_size = 2" },
        names.map((name) => deploy(name)),
        ["a×2 b×2", "c×1"],
      ],
      [
        "each thread and each user has its own",
        {},
        [deploy("a"), deploy("a", { thread_id: "t2" }), deploy("a", { user_id: "ada", thread_id: "t3" }), deploy("b")],
        ["a×1 b×1", "a×1", "a×1"],
      ],
    ])("%s", async (_what, options, events, expected) => {
      const data = await temporaryFolder();
      mkdirSync(join(data, "subscribers"));
      const path = join(data, "subscribers", "deploys.toml");
      writeFileSync(path, file(options));
      const template =
        'told: {% for one in events %}{{ one.payload.name ~ "×" ~ one.count }}{% if not loop.last %} {% endif %}{% endfor %}';
      writeFileSync(join(data, "subscribers", "deploys.j2"), template);
      const { stdout, code } = await run(["subscribers", "test", path, "--event", "-", "--json"], {
        input: JSON.stringify(events),
      });
      expect(code, stdout).toBe(0);
      const { notifications } = JSON.parse(stdout) as Shown;
      expect(notifications.map(({ content }) => content.replace("told: ", ""))).toEqual(expected);

      // And what comes of them for real.
      const tidings = await Tidings.open({ data });
      for (const event of events) await tidings.emit(event as EventInput);
      await tidings.close();
      const reader = await Tidings.open({ data, mode: "read" });
      const { notifications: real } = await reader.list({ user_id: undefined });
      await reader.close();
      expect(real.map(({ content }) => content.replace("told: ", "")).sort()).toEqual([...expected].sort());
    });

    test("and says so if the file is switched off", async () => {
      const folder = await folderWith({ "deploys.toml": file({ enabled: false }), "deploys.j2": "told: {{ count }}" });
      const line = ["subscribers", "test", join(folder, "deploys.toml"), "--event", "-"];
      const { stdout } = await run(line, { input: JSON.stringify(deploy("a")) });
      expect(stdout).toMatch(/^enabled = false: as it is, the file takes no events/);
      expect(stdout).toContain("told: 1");
      const json = await run([...line, "--json"], { input: JSON.stringify(deploy("a")) });
      expect((JSON.parse(json.stdout) as Shown).enabled).toBe(false);
    });
  });

  test("says of a text that is not TOON why it is not, and nothing of one that is", async () => {
    const texts = { "deploys.j2": "deploy: {{ event.payload.name }}\ndeploy: again" };
    const folder = await folderWith({ "deploys.toml": FILE, ...texts });
    const line = ["subscribers", "test", join(folder, "deploys.toml"), "--event", "-"];
    const input = JSON.stringify({ type: "deploy.done", source: "ci", severity: "error", payload: { name: "a" } });
    const { code, stdout, stderr } = await run(line, { input });
    expect(code).toBe(0);
    expect(`${stdout}${stderr}`).toMatch(/this is not TOON, and is told as it is: .*deploy/);
    writeFileSync(join(folder, "deploys.j2"), "deploy: {{ event.payload.name }}");
    const good = JSON.parse((await run([...line, "--json"], { input })).stdout) as Record<string, unknown>;
    expect(good["notifications"]).toMatchObject([{ content: "deploy: a", toon_problem: null }]);
  });

  test("refuses a broken file and a missing event in words", async () => {
    const folder = await folderWith({ "deploys.toml": FILE });
    const noTemplate = await run(["subscribers", "test", join(folder, "deploys.toml"), "--event", "-"], {
      input: "{}",
    });
    expect(noTemplate).toMatchObject({ code: 2, stderr: expect.stringContaining("output.template the template") });
    const file = join(BUILT_IN, "cli_event.toml");
    expect(await run(["subscribers", "test", file])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("--event is missing"),
    });
    const bad = await run(["subscribers", "test", file, "--event", "-"], { input: '{"type": "x"}' });
    expect(bad).toMatchObject({ code: 2, stderr: expect.stringContaining("type: must be 2 to 5 segments") });
  });
});

test("tidings subscribers enable says what else keeps one off", async () => {
  const data = await temporaryFolder();
  const { code, stdout } = await run(["subscribers", "enable", "turn_digest", "--data", data]);
  expect(code).toBe(0);
  expect(stdout).toMatch(
    /^turn_digest was not switched off for local\.\nIt takes no events all the same: \S*turn_digest\.toml has enabled = false\.\n$/,
  );
});
