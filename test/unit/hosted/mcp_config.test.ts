/** MCP servers of tidings.toml, edited at the wrong moment. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { z } from "zod";
import { defineTool, type McpServerConfig } from "../../../src/index.js";
import { call, spawn, Talk } from "../../support/background.js";
import { eventually, openTidings, temporaryFolder } from "../../support/folder.js";
import { becomes, events, hears, odd, places } from "../../support/mcp.js";

function toml(name: string, { command, args }: McpServerConfig, more = ""): string {
  return `[mcp.servers.${name}]\ncommand = ${JSON.stringify(command)}\nargs = ${JSON.stringify(args)}\n${more}`;
}

test("a server whose table is edited while it is away is told to be back to those who were told that it is gone", async () => {
  const data = await temporaryFolder();
  const file = join(data, "tidings.toml");
  const well = odd({ tools: 1 });
  const program = join(data, "server.mjs");
  const path = well.args?.[0] ?? "";
  writeFileSync(program, `import ${JSON.stringify(path)};`);
  const config = { command: process.execPath, args: [program, ...(well.args ?? []).slice(1)] };
  writeFileSync(file, toml("files", config, "reconnect_max_secs = 0.1\n"));
  const talk = await Talk.open({}, { data });
  const { pid } = await becomes(talk.tidings, "files", "connected");
  await talk.say(call("files_tool0", {}));

  writeFileSync(program, "process.exit(3);");
  process.kill(pid ?? 0, "SIGKILL");
  await hears(talk.tidings, "mcp.disconnected");
  writeFileSync(file, toml("files", well));
  await hears(talk.tidings, "mcp.reconnected");
  expect(await places(talk.tidings)).toEqual(["mcp.disconnected local chat", "mcp.reconnected local chat"]);
});

test("an edit while the host is being closed is for the next start", async () => {
  const data = await temporaryFolder();
  const problems: string[] = [];
  let ended = () => {};
  let asked = () => {};
  const aborted = new Promise<void>((resolve) => {
    asked = resolve;
  });
  const slow = defineTool({
    name: "slow",
    description: "Ends when it is told to",
    input: z.object({}),
    async spawn(_input, { signal }) {
      await new Promise<void>((resolve) => {
        ended = resolve;
        signal.addEventListener("abort", asked, { once: true });
      });
      return "";
    },
  });
  const agent = { tools: [slow], handles: { abort_ms: 60_000 } };
  const talk = await Talk.open(agent, { data, onProblem: (line) => problems.push(line) });
  await talk.say(spawn("one", {}, "slow"));
  const before = await talk.tidings.lastSeq();
  const closing = talk.tidings.close();
  await aborted;
  writeFileSync(join(data, "tidings.toml"), toml("files", odd({ tools: 1 })));
  for await (const entry of talk.tidings.watch({ after: before }))
    if (entry.type === "event" && entry.event.type === "config.reloaded") break;
  ended();
  await closing;
  expect(problems).toEqual([]);
});

test("whoever throws when told of an edit does not end the watch, nor the process", async () => {
  const data = await temporaryFolder();
  const file = join(data, "tidings.toml");
  const lines: string[] = [];
  const tidings = await openTidings({
    data,
    onProblem: (line) => {
      lines.push(line);
      if (lines.length === 1) throw new Error("no paper in the printer");
    },
  });
  writeFileSync(file, "[nonsense\n");
  await eventually(
    async () => lines,
    (found) => found.length >= 2,
  );
  expect(lines[1]).toContain("no paper in the printer");
  writeFileSync(file, "[conversation.notifications.kinds.mcp]\nenable = false\n");
  await hears(tidings, "config.reloaded");
  expect(await events(tidings, "config.reloaded")).toHaveLength(1);
});
