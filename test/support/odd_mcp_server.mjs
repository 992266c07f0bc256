/**
 * An MCP server with bad habits, written without any library: one message a line. What it does is said in its first argument:
 *
 * - `file`: where its tools stand, as JSON `{ tools: [...] }`; it looks at the file when it is asked for the list
 * - `tools`: how many tools it makes up; `description`: how long theirs is
 * - `pages`: `endless`: each page has a next one
 * - `exit`: the code with which it ends at once, after some words on stderr
 * - `garbage`: it prints what is no message
 * - `logs`: how many it sends when it is called
 * - `bomb`: it answers a call with a line that never ends
 * - `busy`: for so many milliseconds it does nothing else when it is called
 * - `deaf`: it does not know what a ping is
 * - `leaves`: it starts a process that does not end with it
 *
 * A call of `change` makes it say that its list has changed; of `touch`, that the resource `uri` has; of `die`, it ends.
 */
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";

const habits = JSON.parse(process.argv[2]);
const say = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
const text = (words) => ({ content: [{ type: "text", text: words }] });
const object = { type: "object", properties: {} };

if (habits.exit !== undefined) {
  process.stderr.write("\u001b[31mno licence\u001b[0m for this machine\n");
  process.exit(habits.exit);
}
if (habits.leaves) spawn("sleep", ["1000", process.argv[3]], { stdio: "ignore" });
if (habits.garbage) {
  process.stdout.write("Welcome to the server!\n{ not json\n[1,2,3]\n{}\nnull\n");
  process.stdout.write(`${"[".repeat(100_000)}\n`);
}

function tools() {
  if (habits.file !== undefined) return JSON.parse(readFileSync(habits.file, "utf8")).tools;
  const description = "x".repeat(habits.description ?? 10);
  return Array.from({ length: habits.tools ?? 1 }, (_, index) => ({
    name: `tool${index}`,
    description,
    inputSchema: object,
  }));
}

const METHODS = {
  initialize: ({ protocolVersion }) => ({
    protocolVersion: habits.version ?? protocolVersion,
    capabilities: { tools: { listChanged: true }, resources: { subscribe: true }, logging: {} },
    serverInfo: { name: "odd", version: "1" },
  }),
  ping: () => ({}),
  "logging/setLevel": () => ({}),
  "resources/subscribe": () => ({}),
  "tools/list": ({ cursor }) =>
    habits.pages === "endless"
      ? { tools: [{ name: `page${cursor ?? 0}`, inputSchema: object }], nextCursor: String(Number(cursor ?? 0) + 1) }
      : { tools: tools() },
  "tools/call": ({ name, arguments: input }) => {
    if (habits.bomb) {
      const piece = "x".repeat(1_000_000);
      const more = () => process.stdout.write(piece, more);
      more();
      return undefined;
    }
    for (const until = Date.now() + (habits.busy ?? 0); Date.now() < until; );
    if (name === "die") {
      process.stderr.write(`${input?.words ?? ""}\n`);
      process.exit(0);
    }
    if (name === "change") say({ method: "notifications/tools/list_changed" });
    if (name === "touch") say({ method: "notifications/resources/updated", params: { uri: input.uri } });
    if (name === "log")
      for (let index = 0; index < habits.logs; index += 1)
        say({
          method: "notifications/message",
          params: { level: input.level ?? "error", logger: "odd", data: `line ${index}` },
        });
    if (name === "mixed")
      return {
        content: [
          { type: "text", text: "seen\u0000\u202Ehidden" },
          { type: "image", data: "AAAA", mimeType: "image/png" },
          { type: "resource", resource: { uri: "file:///a", text: "inside" } },
          { type: "what" },
        ],
      };
    if (name === "refuse") return { ...text(`I will not${".".repeat(input.dots ?? 0)}`), isError: true };
    return text(`${name} done`);
  },
};

createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params = {} } = JSON.parse(line);
  if (id === undefined) return;
  if (METHODS[method] === undefined || (habits.deaf && method === "ping"))
    return say({ id, error: { code: -32601, message: `no method ${method}` } });
  const result = METHODS[method](params);
  if (result !== undefined) say({ id, result });
});
