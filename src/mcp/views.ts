/** What can be seen of servers from outside. */
import { canonicalJson } from "../domain/json.js";
import type { McpToolRecord, ToolLook } from "../domain/mcp.js";
import type { RefusedTool } from "./looks.js";

/**
 * `off`: switched off, or removed. `idle`: begun when a conversation calls it. `unknown`: no agent is hosted here that would use
 * it.
 */
export type McpState = "connecting" | "connected" | "unresponsive" | "away" | "off" | "idle" | "unknown";

export interface McpLookView {
  readonly digest: string;
  readonly description: string;
  /** As JSON. */
  readonly input_schema: string;
}

export interface McpToolView {
  /** The server's name for it. */
  readonly tool: string;
  /** The agent's; null if it is not offered. */
  readonly name: string | null;
  /** `gone`: its server does not list it now, or was not asked. */
  readonly state: "offered" | "held" | "gone";
  /** Of one that is held: what was approved, and what it looks like now; all of it, since all of it is approved of. */
  readonly approved: McpLookView | null;
  readonly held: McpLookView | null;
}

export interface McpServerView {
  readonly name: string;
  /** Null if it is not configured any more. */
  readonly transport: "stdio" | "http" | null;
  readonly state: McpState;
  /** Why it is away, or does not answer. */
  readonly reason: string | null;
  /** Of its process. */
  readonly pid: number | null;
  /** To connect, since it was there last. */
  readonly attempts: number;
  /** Under way. */
  readonly calls: number;
  readonly tools: readonly McpToolView[];
  readonly refused: readonly RefusedTool[];
  /** Of its log, since the last that was told. */
  readonly log_dropped: number;
}

export function toolView({ tool, approved, held }: McpToolRecord, name: string | null, listed: boolean): McpToolView {
  const looks = held === null ? { approved: null, held: null } : { approved: lookView(approved), held: lookView(held) };
  return { tool, name, state: held !== null ? "held" : listed ? "offered" : "gone", ...looks };
}

function lookView(look: ToolLook | null): McpLookView | null {
  if (look === null) return null;
  const { digest, description } = look;
  return { digest, description, input_schema: canonicalJson(look.input_schema) };
}
