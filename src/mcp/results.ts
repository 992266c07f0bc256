/** What a tool of a server has answered, as text: what is no text is named, and not shown. */
import { z } from "zod";
import { cleanText } from "../domain/clean.js";
import { MCP_LIMITS } from "./limits.js";
import { shortWords } from "./words.js";

export const resultSchema = z.looseObject({
  content: z.array(z.unknown()).optional(),
  structuredContent: z.unknown().optional(),
  isError: z.boolean().optional(),
});

const partSchema = z.discriminatedUnion("type", [
  z.looseObject({ type: z.literal("text"), text: z.string() }),
  z.looseObject({ type: z.literal("image"), data: z.string(), mimeType: z.string() }),
  z.looseObject({ type: z.literal("audio"), data: z.string(), mimeType: z.string() }),
  z.looseObject({ type: z.literal("resource_link"), uri: z.string(), name: z.string().optional() }),
  z.looseObject({
    type: z.literal("resource"),
    resource: z.looseObject({
      uri: z.string(),
      text: z.string().optional(),
      blob: z.string().optional(),
      mimeType: z.string().optional(),
    }),
  }),
]);

export function resultText({ content = [], structuredContent }: z.output<typeof resultSchema>): string {
  const parts = content.slice(0, MCP_LIMITS.contentParts).map(partText);
  const left = content.length - parts.length;
  if (left > 0) parts.push(`[${left} more parts: not shown]`);
  // A server that answers with both says the same twice.
  if (parts.length === 0 && structuredContent !== undefined) parts.push(cleanText(JSON.stringify(structuredContent)));
  return parts.length === 0 ? "(it answered nothing)" : parts.join("\n");
}

function partText(part: unknown): string {
  const parsed = partSchema.safeParse(part);
  if (!parsed.success) return "[a part of an unknown form: not shown]";
  const { data } = parsed;
  switch (data.type) {
    case "text":
      return cleanText(data.text);
    case "image":
    case "audio":
      return `[${data.type}, ${shortWords(data.mimeType, 100)}, ${bytesOf(data.data)} bytes: not shown]`;
    case "resource_link":
      return `[link to ${shortWords(data.uri)}${data.name === undefined ? "" : `, ${shortWords(data.name, 200)}`}]`;
    case "resource": {
      const { uri, text, blob = "", mimeType = "unknown" } = data.resource;
      if (text !== undefined) return `[resource ${shortWords(uri)}]\n${cleanText(text)}`;
      return `[resource ${shortWords(uri)}, ${shortWords(mimeType, 100)}, ${bytesOf(blob)} bytes: not shown]`;
    }
  }
}

/** Of Base64. */
function bytesOf(data: string): number {
  return Math.floor((data.replace(/=+$/, "").length * 3) / 4);
}
