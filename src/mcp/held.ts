/** What is said of a tool that is held. */
import { canonicalJson } from "../domain/json.js";
import type { McpToolRecord } from "../domain/mcp.js";
import { sha256 } from "../platform/secret.js";
import { beginning, difference } from "./difference.js";
import { shellWord } from "./words.js";

const PROGRAM = "tidings";

/** What has changed of one that is held. */
export interface HeldWords {
  readonly tool: string;
  /** Null: nobody has ever approved of it. */
  readonly before: string | null;
  readonly now: string;
  /** Where the input is another. */
  readonly input_before?: string;
  readonly input_now?: string;
}

export function heldWords({ tool, approved, held }: McpToolRecord, charsMax: number): HeldWords {
  const description = held?.description ?? "";
  const schema = canonicalJson(held?.input_schema ?? {});
  if (approved === null) return { tool, before: null, now: beginning(description, charsMax) };
  const words = { tool, ...difference(approved.description, description, charsMax) };
  const approvedSchema = canonicalJson(approved.input_schema);
  if (approvedSchema === schema) return words;
  const input = difference(approvedSchema, schema, charsMax);
  return { ...words, input_before: input.before, input_now: input.now };
}

/** Whoever calls it is told. */
export function heldRefusal(server: string, tool: string): string {
  return `The tool ${shellWord(tool)} of the MCP server ${server} is held: it does not look as it was approved. Look at it with \`tidings mcp list\`, and approve of it with \`${approveCommand(PROGRAM, server, tool, "")}\``;
}

const NOTICE_CHARS = 500;

/** For the operator, who approves of what is shown here, and of nothing that it has become since. */
export function heldNotice(record: McpToolRecord): string {
  const { server, tool, held } = record;
  const { before, now, input_before, input_now } = heldWords(record, NOTICE_CHARS);
  const digest = held === null ? "" : ` --digest=${held.digest}`;
  return [
    `The tool ${shellWord(tool)} of the MCP server ${server} is held: it does not look as it was approved. All of it is shown by \`tidings mcp list --json\`; approve of it with \`${approveCommand(PROGRAM, server, tool, digest)}\`.`,
    `Approved: ${indented(before ?? "(never)")}`,
    `Now: ${indented(now)}`,
    ...(input_before === undefined ? [] : [`Input approved: ${input_before}`, `Input now: ${input_now}`]),
  ].join("\n");
}

/** One that is held is told of once, also after a restart; held again later, it is told of again. */
export function heldId({ server, tool, held, seq }: McpToolRecord): string {
  return `mcp_held:${sha256(JSON.stringify([server, tool, held?.digest ?? null, seq]))}`;
}

/** As it can be given to a shell. `options`: with a space before each. */
export function approveCommand(program: string, server: string, tool: string, options: string): string {
  const words = `${shellWord(server)} ${shellWord(tool)}`;
  // A name that begins with a hyphen is no option.
  return tool.startsWith("-")
    ? `${program} mcp approve${options} -- ${words}`
    : `${program} mcp approve ${words}${options}`;
}

/** Its own lines cannot be taken for those of a notice. */
function indented(text: string): string {
  return text.replaceAll("\n", "\n  ");
}
