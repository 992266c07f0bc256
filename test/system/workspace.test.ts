/** A workspace through processes: the server, the conversation in a terminal, and hosts that are killed. */
import { mkdir, readdir, readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { ThreadItem } from "../../src/index.js";
import type { ThreadPage, TurnView } from "../../src/runtime/conversation.js";
import { call, spawn } from "../support/background.js";
import { eventually, temporaryFolder } from "../support/folder.js";
import { Host } from "../support/host.js";
import { Server } from "../support/server.js";
import { ndjson, run } from "./cli.js";

/** A turn of a conversation over the wire, from its message to its end; answers all of the conversation. */
function said(server: Server, thread_id: string, ...lines: string[]): Promise<ThreadItem[]> {
  return saidAs(server.token, server, thread_id, ...lines);
}

async function saidAs(token: string, server: Server, thread_id: string, ...lines: string[]): Promise<ThreadItem[]> {
  await server.call("turn/start", { thread_id, input: lines.join("\n") }, token);
  await eventually(
    () => server.call<{ turns: TurnView[] }>("queue/list", { thread_id }, token),
    ({ turns }) => turns.length === 0,
  );
  return (await server.call<ThreadPage>("thread/read", { thread_id, observe: true }, token)).items;
}

const told = (items: readonly ThreadItem[]) =>
  items.flatMap((item) => (item.type === "observation" && item.status === "sent" ? [item.content.text] : []));
const outputs = (items: readonly ThreadItem[]) =>
  items.flatMap((item) => (item.type === "tool_call" ? [item.content.output ?? ""] : []));

async function announced(server: Server, thread_id: string, count: number): Promise<void> {
  await eventually(
    () => server.call<{ notifications: { kind: string }[] }>("notification/list", { thread_id }),
    ({ notifications }) => notifications.filter(({ kind }) => kind === "workspace.file.changed").length === count,
  );
}

const exits = spawn("b", { argv: ["sh", "-c", "exit 3"] });

describe("tidings serve", () => {
  test("[agent.workspace] and [agent.shell] of the file: the agent reads, is told, and runs commands", async () => {
    const [data, folder] = [await temporaryFolder(), await temporaryFolder()];
    await writeFile(
      join(data, "tidings.toml"),
      `[agent.workspace]\nenable = true\nfolder = ${JSON.stringify(folder)}\n\n[agent.shell]\nenable = true\n`,
    );
    await writeFile(join(folder, "a.txt"), "one\n");
    const server = await Server.start({ data, args: ["--provider", "rehearsal"] });
    const { thread_id } = await server.call<{ thread_id: string }>("thread/start");
    const items = await said(
      server,
      thread_id,
      call("read_file", { path: "a.txt" }),
      exits,
      call("await", { all: ["b"] }),
    );
    const [read, spawned, awaited] = outputs(items);
    expect(read).toBe("one\n");
    expect(JSON.parse(spawned ?? "")).toMatchObject({ handle: "b", state: "running" });
    expect(JSON.parse(awaited ?? "")).toMatchObject({ completed: [{ handle: "b", exit_code: 3 }] });
    await writeFile(join(folder, ".a.txt.swp"), "two\n");
    await rename(join(folder, ".a.txt.swp"), join(folder, "a.txt"));
    await announced(server, thread_id, 1);
    expect(told(await said(server, thread_id, "hello"))).toEqual([
      expect.stringMatching(
        /^workspace: a\.txt modified outside of this conversation\n[\s\S]*call read_file with its path/,
      ),
    ]);

    // Killed, changed, started: told once.
    await server.stop("SIGKILL");
    await writeFile(join(folder, "a.txt"), "three\n");
    const second = await Server.start({ data, args: ["--provider", "rehearsal"] });
    await announced(second, thread_id, 2);
    expect(told(await said(second, thread_id, "hello"))).toHaveLength(2);
    expect(await second.stop()).toBe(0);
    expect(second.stderr).toBe("");
    const third = await Server.start({ data, args: ["--provider", "rehearsal"] });
    const last = await said(third, thread_id, call("read_file", { path: "a.txt" }));
    expect(told(last)).toHaveLength(2);
    expect(outputs(last).at(-1)).toBe("three\n");
    expect(await third.stop()).toBe(0);
    expect(await run(["audit", "--data", data, "--json"])).toMatchObject({ code: 0, stderr: "" });
  });

  test("--workspace and --shell; a folder that there is not ends the start", async () => {
    const folder = await temporaryFolder();
    await writeFile(join(folder, "a.txt"), "one\n");
    const args = ["--provider", "rehearsal", "--workspace", folder, "--shell"];
    const server = await Server.start({ args });
    const { thread_id } = await server.call<{ thread_id: string }>("thread/start");
    const items = await said(server, thread_id, call("list_files", {}), exits, call("await", { all: ["b"] }));
    expect(outputs(items)[0]).toBe("a.txt 4");
    expect(JSON.parse(outputs(items)[2] ?? "")).toMatchObject({ completed: [{ exit_code: 3 }] });
    const without = await Server.start({ args: ["--provider", "rehearsal"] });
    const other = await without.call<{ thread_id: string }>("thread/start");
    for (const output of outputs(await said(without, other.thread_id, call("list_files", {}), exits)))
      expect(output).toMatch(/^there is no tool/);
    const data = await temporaryFolder();
    const none = await run(["serve", "--port", "0", "--data", data, "--workspace", join(folder, "none")]);
    expect(none).toMatchObject({ code: 2, stdout: "" });
    expect(none.stderr).toContain("--workspace");
    expect(none.stderr.trim().split("\n")).toHaveLength(1);
  });
});

describe("the data folder in the workspace", () => {
  test("--workspace . : a user of the agent gets neither the server's token nor a command of their own", async () => {
    const folder = await temporaryFolder();
    const args = ["--provider", "rehearsal", "--workspace", "."];
    const server = await Server.start({ data: ".tidings", cwd: folder, args });
    const { token } = await server.createToken({ user_id: "ada", scopes: ["read", "agent"] });
    const { thread_id } = await server.call<{ thread_id: string }>("thread/start", {}, token);
    expect(await readFile(join(folder, ".tidings/server.json"), "utf8")).toContain(server.token);
    const content = `[mcp.servers.evil]\ncommand = "touch"\nargs = [${JSON.stringify(join(folder, "ran"))}]\n`;
    const items = await saidAs(
      token,
      server,
      thread_id,
      call("read_file", { path: ".tidings/server.json" }),
      call("write_file", { path: ".tidings/tidings.toml", content }),
      call("list_files", { depth: 5 }),
      call("write_file", { path: "a.txt", content: "one\n" }),
    );
    expect(JSON.stringify(items)).not.toContain(server.token);
    const [read, written, listed, own] = outputs(items);
    for (const output of [read, written]) expect(JSON.parse(output ?? "")).toMatchObject({ error: "not_allowed" });
    expect(listed).not.toContain("tidings");
    expect(own).toBe("wrote 4 bytes to a.txt");
    expect(await readdir(folder)).toEqual([".tidings", "a.txt"]);
    expect(await readdir(join(folder, ".tidings"))).not.toContain("tidings.toml");
    expect(await server.stop()).toBe(0);
  });

  test.each(["serve", "chat"])("%s: a workspace in the data folder ends the start", async (command) => {
    const data = await temporaryFolder();
    await mkdir(join(data, "work"));
    const line = ["--data", data, "--provider", "rehearsal", "--workspace", join(data, "work")];
    const { code, stdout, stderr } = await run([command, ...line, ...(command === "serve" ? ["--port", "0"] : [])], {
      input: "",
    });
    expect([code, stdout]).toEqual([2, ""]);
    expect(stderr).toMatch(/workspace.*is Tidings' own.*choose another\n$/);
    expect(stderr.trim().split("\n")).toHaveLength(1);
  });
});

describe("tidings chat", () => {
  const answers = (stdout: string) =>
    (ndjson(stdout) as { method?: string; params?: { item_type?: string; content?: { output?: string } } }[]).flatMap(
      ({ params }) =>
        params?.item_type === "tool_call" && params.content?.output !== undefined ? [params.content.output] : [],
    );

  test("--workspace and --shell, and the file's own", async () => {
    const folder = await temporaryFolder();
    await writeFile(join(folder, "a.txt"), "one\n");
    const input = [call("read_file", { path: "a.txt" }), exits, call("await", { all: ["b"] })].join("\n");
    const line = ["chat", "--json", "--provider", "rehearsal"];
    const flags = await run([...line, "--data", await temporaryFolder(), "--workspace", folder, "--shell"], { input });
    expect(flags).toMatchObject({ code: 0, stderr: "" });
    expect(answers(flags.stdout).join()).toMatch(/one\n.*"exit_code":3/s);
    const data = await temporaryFolder();
    const toml = `[agent.workspace]\nenable = true\nfolder = ${JSON.stringify(folder)}\n[agent.shell]\nenable = true\n`;
    await writeFile(join(data, "tidings.toml"), toml);
    const file = await run([...line, "--data", data], { input });
    expect(answers(file.stdout).join()).toMatch(/one\n.*"exit_code":3/s);

    // Through a server that runs they have no effect, and it says so; without them it says nothing.
    const server = await Server.start({ args: ["--provider", "rehearsal"] });
    const idle = await run([...line.slice(0, 2), "--data", server.data, "--workspace", folder, "--shell"], {
      input: "",
    });
    expect(idle.stderr).toMatch(/--workspace.*--shell/);
    const silent = await run([...line.slice(0, 2), "--data", server.data], { input: "" });
    expect(silent.stderr).toBe("");
  });

  test.each(["serve", "chat"])("%s --help says so", async (command) => {
    const { stdout } = await run([command, "--help"]);
    expect(stdout).toMatch(/--workspace FOLDER\s+lets the hosted agent read and write files/);
    expect(stdout).toMatch(/--shell\s+lets the hosted agent run commands/);
  });
});

describe("a host", () => {
  const read = call("read_file", { path: "a.txt" });

  test("killed when the change was told and not recorded: told once", async () => {
    const [data, folder] = [await temporaryFolder(), await temporaryFolder()];
    for (const name of ["a.txt", "b.txt"]) await writeFile(join(folder, name), "one\n");
    const agent = { provider: "rehearsal", workspace: { folder } };
    const first = await Host.start({ under: ["env", "TIDINGS_CRASH_AT=file.told"] });
    await first.open({ data, agent });
    await first.command("say", "chat", `${read}\n${call("read_file", { path: "b.txt" })}`);
    await writeFile(join(folder, "a.txt"), "two\n");
    expect(await first.ended).toBe("SIGKILL");

    await writeFile(join(folder, "b.txt"), "two\n");
    const second = await Host.start();
    await second.open({ data, agent });
    // Both are looked at again; of the one the agent is told already.
    const changed = async () => {
      const { notifications } = await second.call<{ notifications: { id: string; kind: string; count: number }[] }>(
        "list",
        {
          thread_id: "chat",
        },
      );
      return notifications
        .filter(({ kind }) => kind === "workspace.file.changed")
        .reduce((sum, { count }) => sum + count, 0);
    };
    await eventually(changed, (count) => count === 2);
    const words = told(await second.command<ThreadItem[]>("say", "chat", "hello")).join("\n");
    expect(words.split("a.txt")).toHaveLength(2);
    expect(words.split("b.txt")).toHaveLength(2);
    await writeFile(join(folder, "a.txt"), "three\n");
    await eventually(changed, (count) => count === 3);
    expect(await second.call("audit")).toMatchObject({ problems: [] });
  });

  test.each([true, false])(
    "ends by itself when it has nothing more to do; closes Tidings before: %s",
    async (closes) => {
      const [data, folder] = [await temporaryFolder(), await temporaryFolder()];
      await writeFile(join(folder, "a.txt"), "one\n");
      const program = join(folder, "program.mjs");
      const library = JSON.stringify(new URL("../../dist/index.js", import.meta.url).href);
      const agent = JSON.stringify({ provider: "rehearsal", workspace: { folder } });
      await writeFile(
        program,
        `import { Tidings } from ${library};
const tidings = await Tidings.open({ data: ${JSON.stringify(data)}, agent: ${agent} });
const { thread_id } = await tidings.startThread();
const turn = await tidings.thread(thread_id).say(${JSON.stringify(read)});
await tidings.turns.ended(turn.turn_id);
${closes ? "await tidings.close();" : ""}
console.log((await ${closes ? "Promise.resolve(1)" : "tidings.lastSeq()"}) > 0);\n`,
      );
      expect(await run([], { program })).toEqual({ code: 0, stdout: "true\n", stderr: "" });
    },
  );
});
