import { isMiss } from "../../domain/errors.js";
import { defineCommand } from "../command.js";
import { EXIT, exitCodeOfMiss, UsageError } from "../exit.js";
import { withPlane } from "../plane.js";
import { showMiss } from "../show.js";
import { oneLine } from "../text.js";

export const mcpApprove = defineCommand({
  usage: "SERVER TOOL [--digest DIGEST] [options]",
  about: [
    "A tool of an MCP server is held when it does not look as it did when it was approved: another description, or another " +
      "input. `tidings mcp list` shows both. The agent can use it from its next call on, and sees the new text only then. " +
      "Approving of one again changes nothing.",
  ],
  options: {
    digest: {
      kind: "text",
      value: "DIGEST",
      summary: "only if it looks as `tidings mcp list` has shown it with this digest",
    },
  },
  examples: ["tidings mcp approve files read", "tidings mcp approve files read --digest=mpAr0…"],
  async run({ values, words, settings, output }) {
    const [server, tool, ...rest] = words;
    if (server === undefined || tool === undefined) throw new UsageError("name the server and the tool: SERVER TOOL");
    if (rest.length > 0) throw new UsageError(`one tool at a time; ${JSON.stringify(rest[0])} is too much`);
    const answer = await withPlane({ settings, output }, "change", (plane) =>
      plane.mcp.approve({ server, tool, ...(values.digest === undefined ? {} : { digest: values.digest }) }),
    );
    if (output.json) await output.value(answer);
    else if (isMiss(answer)) showMiss(answer, output);
    else await output.line(`${oneLine(tool)} of ${oneLine(server)} is approved.`);
    return isMiss(answer) ? exitCodeOfMiss(answer) : EXIT.ok;
  },
});
