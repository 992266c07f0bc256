/** What the documents show is run as it stands: every block of JavaScript, and the README's commands. */
import { execFile, spawn } from "node:child_process";
import { chmodSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { describe, expect, it, onTestFinished } from "vitest";
import { limitKey, SERVER_LIMITS } from "../../src/config/server_limits.js";
import { SCOPES } from "../../src/domain/token.js";
import { METHODS } from "../../src/server/methods.js";
import { NOTIFICATION_NAMES } from "../../src/server/notifications.js";
import { temporaryFolder } from "../support/folder.js";
import { Server } from "../support/server.js";
import { framesOf } from "../support/stream.js";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const run = promisify(execFile);

function blocks(file: string, language: string): string[] {
  const text = readFileSync(join(ROOT, file), "utf8");
  return [...text.matchAll(new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\``, "gm"))].map(([, code]) => code ?? "");
}

/** A project that has installed the package, as npm would lay it out. */
async function project(): Promise<string> {
  const folder = await temporaryFolder();
  mkdirSync(join(folder, "node_modules/.bin"), { recursive: true });
  symlinkSync(ROOT, join(folder, "node_modules/tidings"));
  for (const name of ["ws", "zod"]) symlinkSync(join(ROOT, "node_modules", name), join(folder, "node_modules", name));
  const main = join(ROOT, "dist/cli/main.js");
  chmodSync(main, 0o755);
  symlinkSync(main, join(folder, "node_modules/.bin/tidings"));
  writeFileSync(join(folder, "package.json"), '{"type":"module"}');
  return folder;
}

async function runScript(code: string): Promise<string> {
  const folder = await project();
  writeFileSync(join(folder, "example.js"), code);
  const { stdout } = await run(process.execPath, ["example.js"], { cwd: folder });
  return stdout;
}

describe("the document of subscribers", () => {
  it("has an example that makes of its events what it says", async () => {
    const file = "docs/SUBSCRIBERS.md";
    const folder = await project();
    mkdirSync(join(folder, "templates"));
    const [toml = "", jinja = "", json = ""] = ["toml", "jinja", "json"].map((language) => blocks(file, language)[0]);
    writeFileSync(join(folder, "my_builds.toml"), toml);
    writeFileSync(join(folder, "templates/my_builds.j2"), jinja);
    const env = { ...process.env, PATH: `${join(folder, "node_modules/.bin")}:${process.env["PATH"]}`, NO_COLOR: "1" };
    const [script = ""] = blocks(file, "sh").filter((one) => one.includes("subscribers test"));
    const test = async (events: string) => {
      writeFileSync(join(folder, "builds.json"), events);
      return (await run("sh", ["-e", "-c", script], { cwd: folder, env })).stdout;
    };
    const [same, different = ""] = blocks(file, "text");
    expect(await test(json)).toBe(same);
    const [first, second] = JSON.parse(json) as Record<string, unknown>[];
    const other = { ...second, payload: { branch: "next, or later" } };
    expect(await test(JSON.stringify([first, other]))).toContain(different);
    expect(await test(JSON.stringify(first)), "once is not counted").not.toContain("times");
  });
});

describe("the README", () => {
  it("has a five-line example that prints what it says", async () => {
    const [example, ...more] = blocks("README.md", "js");
    expect(more).toEqual([]);
    expect(await runScript(example ?? "")).toBe(
      "DISPATCHED cli_event: All tests passed (cli.build.finished from ci)\n",
    );
  });

  it("has a quick start that works, in a minute, with a server and a second terminal", async () => {
    const block = blocks("README.md", "sh").find((one) => one.includes("curl"));
    const folder = await project();
    const env = { ...process.env, PATH: `${join(folder, "node_modules/.bin")}:${process.env["PATH"]}`, NO_COLOR: "1" };
    const server = await Server.start({ data: join(folder, ".tidings") });
    // Its port is a free one here, and npx would look beside the project.
    const script = (block ?? "").replaceAll("http://127.0.0.1:4747", server.url).replaceAll("npx ", "");
    expect(script).toContain(server.url);
    const { stdout } = await run("sh", ["-e", "-c", script], { cwd: folder, env });
    expect(stdout).toContain('"outcome":"accepted"');
    expect(stdout).toMatch(/1 unread for local[\s\S]*2 tests are red[\s\S]*DELIVERED, dismissed/);
    expect(stdout).toMatch(
      /Event \S+: cli\.build\.finished from ci[\s\S]*The user dismissed it|Acknowledged by the user \(dismissed\)/,
    );
  });

  it("has commands that tell one story", async () => {
    const block = blocks("README.md", "sh").find((one) => one.includes("tidings emit"));
    const lines = (block ?? "").split("\n").flatMap((line) => {
      const command = line.replace(/ +#.*/, "").trim();
      return command === "" || command.endsWith("tidings serve") ? [] : [command];
    });
    expect(lines.length).toBeGreaterThan(4);
    const folder = await project();
    const env = { ...process.env, PATH: `${join(folder, "node_modules/.bin")}:${process.env["PATH"]}`, NO_COLOR: "1" };
    const shell = async (command: string) => (await run("sh", ["-c", command], { cwd: folder, env })).stdout;
    const told: string[] = [];
    for (const line of lines) {
      const { notifications } = JSON.parse(await shell("tidings inbox --all --json"));
      told.push(await shell(line.replace("npx ", "").replace("ID", notifications[0]?.id ?? "ID")));
    }
    const [, inbox, , explained] = told;
    expect(inbox).toContain("The deploy is through");
    expect(explained).toContain("Acknowledged by the user");
  });
});

describe("the page about the server", () => {
  it("has a client that is shown an event and acknowledges it", async () => {
    const [example, ...more] = blocks("docs/SERVER.md", "js");
    expect(more).toEqual([]);
    expect(await runScript(example ?? "")).toBe(
      "shown: cli_event: All tests passed (cli.build.finished from ci)\nnow: DELIVERED\n",
    );
  });

  it("has commands that send events in every form, and a delivery as GitHub signs it, which are taken", async () => {
    const data = await temporaryFolder();
    const settings = blocks("docs/SERVER.md", "toml");
    expect(settings.join("\n")).toMatch(/\[hooks\.[\s\S]*\[server\.limits\]|\[server\.limits\][\s\S]*\[hooks\./);
    writeFileSync(join(data, "tidings.toml"), settings.join("\n"));
    const secrets = { GITHUB_WEBHOOK_SECRET: "a secret; with 'words' in it" };
    const server = await Server.start({ data, env: secrets });
    const { token } = await server.createToken({ scopes: ["ingest", "read"] });
    const env = { ...process.env, ...secrets, TOKEN: token };
    const scripts = blocks("docs/SERVER.md", "sh").filter((one) => /curl (?!-N)/.test(one));
    const answers: unknown[] = [];
    for (const script of scripts) {
      const own = script.replaceAll("http://127.0.0.1:4747", server.url).replaceAll("curl ", "curl -sS ");
      const { stdout } = await run("sh", ["-e", "-c", own], { env });
      answers.push(
        ...stdout
          .trimEnd()
          .split("\n")
          .map((line) => JSON.parse(line)),
      );
    }
    const accepted = { outcome: "accepted" };
    expect(answers).toMatchObject([[accepted, accepted], { id: 1, result: {} }, accepted, accepted, accepted]);
    const { notifications } = await server.call<{ notifications: { content: string }[] }>("notification/list", {
      user_id: "ada",
    });
    expect(notifications.map(({ content }) => content)).toEqual([
      expect.stringContaining("ada pushed to ada/engine: Fix the build"),
    ]);
  });

  it("names every figure that there is", async () => {
    const server = await Server.start({ agent: "its own" });
    const { text } = await server.get("/metrics");
    const document = readFileSync(join(ROOT, "docs/SERVER.md"), "utf8");
    const names = [...text.matchAll(/^# TYPE (\S+) /gm)].map(([, name]) => name ?? "");
    expect(names.length).toBeGreaterThan(20);
    expect(names.filter((name) => !document.includes(`\`${name}\``))).toEqual([]);
  });

  it("tells of every method and every scope, in their order", () => {
    const text = readFileSync(join(ROOT, "docs/SERVER.md"), "utf8");
    const rowsOf = (heading: string) => {
      const [, section = ""] = text.split(`\n## ${heading}\n`);
      const [own = ""] = section.split("\n## ");
      return [...own.matchAll(/^\| `([a-z]+(?:\/[a-zA-Z]+)?)` \| /gm)].map(([, name]) => name);
    };
    expect(rowsOf("Methods")).toEqual(METHODS.map((method) => method.name));
    expect(rowsOf("Who may do what")).toEqual([...SCOPES]);
  });

  it("has every limit in its table, with its name and its default", () => {
    const text = readFileSync(join(ROOT, "docs/SERVER.md"), "utf8");
    const rows = [...text.slice(text.indexOf("\n## Limits\n")).matchAll(/^\| `([a-z_]+)` \| ([\d,]+) \| /gm)];
    const told = rows.map(([, key = "", value = ""]) => [key, Number(value.replaceAll(",", ""))]);
    expect(told).toEqual(Object.entries(SERVER_LIMITS).map(([name, value]) => [limitKey(name), value]));
  });

  it("tells of every notification", () => {
    const text = readFileSync(join(ROOT, "docs/SERVER.md"), "utf8");
    for (const name of NOTIFICATION_NAMES) expect(text).toContain(`\`${name}\``);
  });

  it("has lines of curl that listen, and one that speaks too", async () => {
    const block = blocks("docs/SERVER.md", "sh").find((one) => one.includes("curl -N")) ?? "";
    const commands = block.split("\n").filter((line) => line.startsWith("curl"));
    expect(commands).toHaveLength(3);
    const server = await Server.start({ args: ["--provider", "rehearsal"] });
    const env = { ...process.env, TOKEN: server.token };
    const running = commands.map((line) => {
      const command = line
        .replaceAll("http://127.0.0.1:4747", server.url)
        .replace("curl", "exec curl -sS --no-progress-meter");
      const child = spawn("sh", ["-c", command], { env, stdio: ["pipe", "pipe", "inherit"] });
      onTestFinished(() => {
        child.kill();
      });
      return { child, frames: framesOf(child.stdout) };
    });
    await Promise.all(running.map(({ frames }) => frames.told("inbox/counts")));
    running[1]?.child.stdin.write('{"id": 1, "method": "thread/start", "params": {}}\n');
    for (const { frames } of running) await frames.told("thread/started");
    expect((await running[1]?.frames.answer(1))?.result).toMatchObject({ state: "running" });
  });
});

describe("the page about the client", () => {
  it("has a client that calls, is told, and acknowledges", async () => {
    const [example, ...more] = blocks("docs/CLIENT.md", "js");
    expect(more).toEqual([]);
    const words = "cli_event: All tests passed (cli.build.finished from ci)";
    expect(await runScript(example ?? "")).toBe(
      `accepted\nnotification/created DISPATCHED ${words}\nnotification/updated DELIVERED ${words}\n`,
    );
  });
});

describe("the document about models", () => {
  it("has a loop that tells a model what has happened, and the model says it", async () => {
    const [example, ...more] = blocks("docs/PROVIDERS.md", "js");
    expect(more).toEqual([]);
    expect(await runScript(example ?? "")).toContain("The nightly build is red.");
  });
});

describe("the document about the hosted agent", () => {
  it("has a conversation in which the agent is told, and tells", async () => {
    const [example] = blocks("docs/AGENT.md", "js");
    const shown = await runScript(example ?? "");
    expect(shown).toMatch(/^completed\nDELIVERED\nuser: call lookup/);
    expect(shown).toContain("The nightly build is slow.");
    expect(shown).toContain("lookup answered: nightly is green");
    expect(shown).toContain("You should know: Lunch is ready.");
  });

  it("has a tool that runs in the background", async () => {
    const [, example] = blocks("docs/AGENT.md", "js");
    expect(await runScript(example ?? "")).toContain('"status":"completed"');
    expect(await runScript(example ?? "")).toContain("app is built for release");
  });

  it("has a workspace in which somebody else writes, and nothing else that is not run", async () => {
    const [, , example, ...more] = blocks("docs/AGENT.md", "js");
    expect(more).toEqual([]);
    const shown = await runScript(example ?? "");
    expect(shown.match(/^workspace: .*$/gm)).toEqual(["workspace: notes.txt modified outside of this conversation"]);
  });
});

describe("the guide", () => {
  const examples = blocks("docs/GUIDE.md", "js");

  it("has examples", () => {
    expect(examples.length).toBeGreaterThanOrEqual(2);
  });

  it("shows the library at work", async () => {
    const shown = await runScript(examples[0] ?? "");
    expect(shown).toContain("accepted [ 'tool_failure: batched on context' ]");
    expect(shown).toContain("The deploy is through: DELIVERED");
    expect(shown).toContain("Acknowledged by the user (clicked).");
    expect(shown.trimEnd().endsWith("true")).toBe(true);
  });

  it("shows an agent that is told, and settles", async () => {
    expect(await runScript(examples[1] ?? "")).toBe(
      "For you: The build failed\nTell the user: Lunch is at noon\nsent DELIVERED DELIVERED\n",
    );
  });

  it("shows an agent claim and settle", async () => {
    expect(await runScript(examples[2] ?? "")).toBe("turn 7 1\n");
  });
});
