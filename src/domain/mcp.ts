/** Tools of MCP servers, as somebody has approved of them. */
import type { JsonObject } from "./json.js";

/** What a model is told of a tool. */
export interface ToolLook {
  /** Of its name and of the two below: the same look has the same. */
  readonly digest: string;
  readonly description: string;
  readonly input_schema: JsonObject;
}

/** `first_use`: it was there when its server was first seen. `operator`: somebody has said so. `as_before`: it looks as it did. */
export const APPROVALS = ["first_use", "operator", "as_before"] as const;
export type Approval = (typeof APPROVALS)[number];

export interface McpToolRecord {
  readonly server: string;
  readonly tool: string;
  /** Null: nobody has approved of it yet. */
  readonly approved: ToolLook | null;
  /** As its server shows it now, where that is not what was approved; null otherwise. */
  readonly held: ToolLook | null;
  /** The entry that says so, and its time. */
  readonly seq: number;
  readonly at: number;
}

/** One that is seen: it is approved by this, or it is held. */
export interface SeenTool {
  readonly server: string;
  readonly tool: string;
  readonly look: ToolLook;
  readonly by: Exclude<Approval, "operator"> | null;
}
