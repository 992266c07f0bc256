import type { McpToolRecord, ToolLook } from "../../domain/mcp.js";
import type { McpToolPlace } from "../contract.js";
import type { Connection, Statement } from "./connection.js";

const COLUMNS = "server, tool, approved, held, seq, at";

/** Tools of MCP servers, each as the newest entry about it says. */
export class McpTools {
  readonly #put: Statement;
  readonly #one: Statement;
  readonly #page: Statement;

  constructor(connection: Connection) {
    this.#put = connection.prepare(
      `INSERT INTO mcp_tools (${COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)
       ON CONFLICT (server, tool) DO UPDATE SET
         approved = excluded.approved, held = excluded.held, seq = excluded.seq, at = excluded.at`,
    );
    this.#one = connection.prepare(`SELECT ${COLUMNS} FROM mcp_tools WHERE server = ? AND tool = ?`);
    this.#page = connection.prepare(
      `SELECT ${COLUMNS} FROM mcp_tools WHERE (server, tool) > (?, ?) ORDER BY server, tool LIMIT ?`,
    );
  }

  put({ server, tool, approved, held, seq, at }: McpToolRecord): void {
    this.#put.run(server, tool, textOf(approved), textOf(held), seq, at);
  }

  get(server: string, tool: string): McpToolRecord | undefined {
    const row = this.#one.get(server, tool);
    return row === undefined ? undefined : recordOf(row);
  }

  page(after: McpToolPlace | null, limit: number): McpToolRecord[] {
    return this.#page.all(after?.server ?? "", after?.tool ?? "", limit).map(recordOf);
  }
}

function textOf(look: ToolLook | null): string | null {
  return look === null ? null : JSON.stringify(look);
}

function recordOf(row: unknown): McpToolRecord {
  const { approved, held, ...rest } = row as Omit<McpToolRecord, "approved" | "held"> & {
    approved: string | null;
    held: string | null;
  };
  return { ...rest, approved: lookOf(approved), held: lookOf(held) };
}

function lookOf(text: string | null): ToolLook | null {
  return text === null ? null : (JSON.parse(text) as ToolLook);
}
