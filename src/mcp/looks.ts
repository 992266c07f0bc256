/** What a server lists, as the model may be shown it; or why not. */
import { z } from "zod";
import { cleanText } from "../domain/clean.js";
import { canonicalJson, type Json, type JsonObject, jsonText, takeJson } from "../domain/json.js";
import type { ToolLook } from "../domain/mcp.js";
import { sha256 } from "../platform/secret.js";
import { MCP_LIMITS } from "./limits.js";
import { shortWords, wordsOf } from "./words.js";

export interface ListedTool {
  /** The server's own name for it. */
  readonly tool: string;
  readonly look: ToolLook;
}

export interface RefusedTool {
  readonly tool: string;
  readonly reason: string;
}

export interface Listing {
  readonly tools: readonly ListedTool[];
  /** The first of them. */
  readonly refused: readonly RefusedTool[];
}

const TOOL_NAME_CHARS = 200;

const toolSchema = z.looseObject({
  name: z.string().min(1).max(TOOL_NAME_CHARS),
  description: z.string().optional(),
  inputSchema: z.looseObject({ type: z.literal("object") }),
});

export function listingOf(listed: Iterable<unknown>, wanted: ReadonlySet<string> | null): Listing {
  const tools: ListedTool[] = [];
  const refused: RefusedTool[] = [];
  const names = new Set<string>();
  const refuse = (tool: unknown, reason: string) => {
    if (refused.length < MCP_LIMITS.refusedShown)
      refused.push({ tool: typeof tool === "string" ? shortWords(tool, TOOL_NAME_CHARS) : "?", reason });
  };
  for (const one of listed) {
    const name = typeof one === "object" && one !== null && "name" in one ? one.name : null;
    if (wanted !== null && (typeof name !== "string" || !wanted.has(name))) continue;
    const parsed = toolSchema.safeParse(one);
    if (!parsed.success) refuse(name, "it is not of the form that the protocol says");
    else if (names.has(parsed.data.name)) refuse(name, "there are two of this name");
    else if (tools.length >= MCP_LIMITS.tools) refuse(name, `there are more than ${MCP_LIMITS.tools}`);
    else {
      names.add(parsed.data.name);
      try {
        tools.push({ tool: parsed.data.name, look: lookOf(parsed.data) });
      } catch (error) {
        refuse(name, wordsOf(error));
      }
    }
  }
  return { tools, refused };
}

function lookOf({ name, description = "", inputSchema }: z.output<typeof toolSchema>): ToolLook {
  if (cleanText(name) !== name || /[\t\n]/.test(name)) throw new Error("its name holds characters that cannot be seen");
  const input_schema = cleanSchema(takeJson(inputSchema, "inputSchema"));
  if (jsonText(input_schema).length > MCP_LIMITS.schemaChars)
    throw new Error(`inputSchema has more than ${MCP_LIMITS.schemaChars} characters`);
  const words = shortWords(description, MCP_LIMITS.descriptionChars);
  const digest = sha256(canonicalJson({ name, description: words, input_schema }));
  return { digest, description: words, input_schema };
}

/** Texts in it are read by the model as the description is. */
function cleanSchema(schema: JsonObject): JsonObject {
  return cleaned(schema) as JsonObject;
}

function cleaned(value: Json): Json {
  if (typeof value === "string") return cleanText(value);
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(cleaned);
  return Object.fromEntries(
    Object.entries(value).map(([key, one]) => {
      if (cleanText(key) !== key) throw new Error("inputSchema has a key with characters that cannot be seen");
      return [key, cleaned(one)];
    }),
  );
}
