/** What is told of servers, in the words of the built-in subscriber `mcp_connection`. */
import type { LogLevel } from "../config/mcp.js";
import type { EventInput } from "../domain/event.js";
import type { JsonObject } from "../domain/json.js";
import type { McpToolRecord } from "../domain/mcp.js";
import type { Severity } from "../domain/severity.js";
import { newNonce } from "../platform/secret.js";
import { heldWords } from "./held.js";
import { MCP_LIMITS } from "./limits.js";
import { shortWords } from "./words.js";

/** Without whom it is for. */
export type News = Pick<EventInput, "type" | "source" | "severity" | "payload" | "dedupe_key">;

const SOURCE = "mcp";

function news(type: string, severity: Severity, payload: JsonObject): News {
  return { type: `mcp.${type}`, source: SOURCE, severity, payload };
}

/** What has changed: the same again is no repetition, whatever was told in between. */
function change(type: string, severity: Severity, payload: JsonObject): News {
  return { ...news(type, severity, payload), dedupe_key: `mcp:${newNonce()}` };
}

/** `attempts`: to connect, since it was there last. */
export function disconnected(server: string, reason: string, attempts: number): News {
  return change("disconnected", "error", { server, reason, attempts });
}

export function unresponsive(server: string, reason: string): News {
  return change("unresponsive", "error", { server, reason });
}

export function reconnected(server: string, attempts: number): News {
  return change("reconnected", "info", { server, attempts });
}

/** By the names that the server has for them. */
export interface ToolChanges {
  readonly added: readonly string[];
  readonly removed: readonly string[];
  /** Held: they look otherwise than what was approved, or nobody has approved of them. */
  readonly held: readonly string[];
  readonly approved: readonly string[];
}

/** Of so many the words are shown, each about so long. */
const HELD_SHOWN = 5;
const HELD_CHARS = 300;

/** A tool that has changed is a matter of security: somebody has to look at it. */
export function toolsChanged(server: string, changes: ToolChanges, held: readonly McpToolRecord[] = []): News {
  const names = (list: readonly string[]) => list.slice(0, MCP_LIMITS.namesTold).map((name) => shortWords(name, 100));
  const said = Object.entries(changes).flatMap(([what, list]: [string, readonly string[]]) =>
    list.length === 0 ? [] : [`${what} ${names(list).join(", ")}${list.length > MCP_LIMITS.namesTold ? ", …" : ""}`],
  );
  const words = held.slice(0, HELD_SHOWN).map((record): JsonObject => ({ ...heldWords(record, HELD_CHARS) }));
  return change("tools_changed", changes.held.length > 0 ? "warning" : "info", {
    server,
    reason: said.join("; "),
    tools: Object.fromEntries(Object.entries(changes).map(([what, list]) => [what, names(list)])),
    ...(words.length === 0 ? {} : { held: words }),
  });
}

export function resourceUpdated(server: string, uri: string, dropped: number): News {
  return change("resource_updated", "info", { server, uri: shortWords(uri), ...more(dropped) });
}

/** However loud a server is: that something is critical is not for it to say. */
const SEVERITIES: Record<LogLevel, Severity> = {
  debug: "info",
  info: "info",
  notice: "info",
  warning: "warning",
  error: "error",
  critical: "error",
  alert: "error",
  emergency: "error",
};

export function logged(server: string, level: LogLevel, message: string, dropped: number): News {
  return news("log", SEVERITIES[level], { server, level, message, ...more(dropped) });
}

/** How many came before it that were too many to be told. */
function more(dropped: number): JsonObject {
  return dropped === 0 ? {} : { dropped };
}
