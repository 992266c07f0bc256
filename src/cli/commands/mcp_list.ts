import { beginning, difference } from "../../mcp/difference.js";
import { approveCommand } from "../../mcp/held.js";
import type { McpServerView, McpState, McpToolView } from "../../mcp/views.js";
import { noWords } from "../arguments.js";
import { defineCommand } from "../command.js";
import { EXIT } from "../exit.js";
import type { Output, Style } from "../output.js";
import { withPlane } from "../plane.js";
import { PROGRAM } from "../program.js";
import { counted, oneLine, pad, widthOf } from "../text.js";

export const mcpList = defineCommand({
  usage: "[options]",
  about: [
    "The servers of [mcp.servers] in tidings.toml, and those whose tools were ever seen, with how they are and what they offer. " +
      "A tool that is held is shown as it was approved and as it looks now: of long texts, what lies around the first " +
      "difference. With --json one server a line, and all that is approved of. docs/AGENT.md " +
      "describes them.",
  ],
  terms: {
    heading: "States",
    rows: [
      ["connected", "the agent can use its tools"],
      ["connecting", "it is tried for the first time"],
      ["unresponsive", "it is connected, and does not answer"],
      ["away", "it is gone, or never came; it is tried again and again"],
      ["off", "enable = false, or it is not configured any more"],
      ["idle", "it comes with Tidings, and is started when a conversation calls it"],
      ["unknown", "no server of Tidings runs here that would use it"],
    ],
  },
  options: {},
  examples: ["tidings mcp list", "tidings mcp list --json"],
  async run({ words, settings, output }) {
    noWords(words);
    const servers = await withPlane({ settings, output }, "read", (plane) => plane.mcp.list());
    if (output.json) for (const server of servers) await output.value(server);
    else if (servers.length === 0)
      await output.line("No MCP servers. Name one in tidings.toml, as [mcp.servers.NAME] with a command or an url.");
    else {
      const columns = Math.max(...servers.map(({ name }) => widthOf(oneLine(name))));
      for (const server of servers) await show(server, columns, settings.dataFlag, output);
    }
    return EXIT.ok;
  },
});

const STYLES: Record<McpState, Style> = {
  connected: "green",
  connecting: "gray",
  unresponsive: "yellow",
  away: "red",
  off: "gray",
  idle: "gray",
  unknown: "gray",
};
const STATE_COLUMNS = 12;

async function show(server: McpServerView, columns: number, dataFlag: string, output: Output): Promise<void> {
  const { name, state, reason, tools, refused } = server;
  const offered = tools.filter((tool) => tool.state === "offered").length;
  const held = tools.filter((tool) => tool.state === "held");
  const about = [
    reason === null ? "" : oneLine(reason),
    state === "unknown" || state === "off" ? "" : counted(offered, "tool"),
    held.length === 0 ? "" : `${held.length} held`,
    refused.length === 0 ? "" : `${refused.length} refused`,
  ].filter((part) => part !== "");
  await output.line(
    `${output.style(STYLES[state], pad(state, STATE_COLUMNS))}  ${output.style("bold", pad(oneLine(name), columns))}  ${about.join("; ")}`.trimEnd(),
  );
  for (const tool of held) await showHeld(name, tool, dataFlag, output);
  for (const one of refused)
    await output.line(`  ${output.style("gray", `not offered: ${oneLine(one.tool)}: ${oneLine(one.reason)}`)}`);
}

async function showHeld(
  server: string,
  { tool, approved, held }: McpToolView,
  dataFlag: string,
  output: Output,
): Promise<void> {
  await output.line(`  ${output.style("yellow", "held")} ${output.style("bold", oneLine(tool))}`);
  const { before, now } = differing(approved?.description, held?.description);
  await output.line(`    approved  ${before === null ? "(never)" : oneLine(before)}`);
  await output.line(`    now       ${oneLine(now)}`);
  if (approved?.input_schema !== held?.input_schema) {
    const input = differing(approved?.input_schema, held?.input_schema);
    if (input.before !== null) await output.line(`    input approved  ${oneLine(input.before)}`);
    await output.line(`    input now       ${oneLine(input.now)}`);
  }
  const digest = held === null ? "" : ` --digest=${held.digest}`;
  await output.line(output.style("gray", `    ${approveCommand(PROGRAM, server, tool, `${digest}${dataFlag}`)}`));
}

/** Of a long text, what lies around the first difference. */
const SHOWN_CHARS = 1_000;

function differing(approved: string | undefined, held = ""): { before: string | null; now: string } {
  return approved === undefined
    ? { before: null, now: beginning(held, SHOWN_CHARS) }
    : difference(approved, held, SHOWN_CHARS);
}
