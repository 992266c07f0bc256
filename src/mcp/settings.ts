/** How one server is to be reached and watched, with all that was not said. */
import { resolve } from "node:path";
import type { LogLevel, McpServerConfig } from "../config/mcp.js";
import type { Impact } from "../runtime/impact.js";

export type Way =
  | {
      readonly kind: "stdio";
      readonly argv: readonly string[];
      readonly folder: string;
      readonly environment: readonly string[];
    }
  | { readonly kind: "http"; readonly url: string; readonly headers_env: ReadonlyMap<string, string> };

/** `never`: it comes with this package, and is trusted as that is. */
export type Approve = "first_use" | "always" | "never";

export interface ServerSettings {
  readonly way: Way;
  /** Null: all of them. */
  readonly tools: ReadonlySet<string> | null;
  readonly impact: Impact;
  readonly approve: Approve;
  readonly connect_timeout_ms: number;
  readonly call_timeout_ms: number;
  readonly ping_ms: number;
  readonly ping_timeout_ms: number;
  readonly pings_unanswered_max: number;
  readonly reconnect_max_ms: number;
  readonly resources: readonly string[];
  readonly log_level: LogLevel;
}

const ENVIRONMENT = ["PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR"] as const;

export function settingsOf(config: McpServerConfig): ServerSettings {
  const ms = (secs: number | undefined, preset: number) => Math.round((secs ?? preset) * 1_000);
  return {
    way: wayOf(config),
    tools: config.tools === undefined ? null : new Set(config.tools),
    impact: config.impact ?? "external",
    approve: config.approve ?? "first_use",
    connect_timeout_ms: ms(config.connect_timeout_secs, 30),
    call_timeout_ms: ms(config.call_timeout_secs, 60),
    ping_ms: ms(config.ping_secs, 30),
    ping_timeout_ms: ms(config.ping_timeout_secs, 10),
    pings_unanswered_max: config.pings_unanswered_max ?? 3,
    reconnect_max_ms: ms(config.reconnect_max_secs, 60),
    resources: config.resources ?? [],
    log_level: config.log_level ?? "warning",
  };
}

function wayOf({
  command,
  args = [],
  folder = ".",
  environment = ENVIRONMENT,
  url,
  headers_env = {},
}: McpServerConfig): Way {
  if (command !== undefined) return { kind: "stdio", argv: [command, ...args], folder: resolve(folder), environment };
  return { kind: "http", url: url ?? "", headers_env: new Map(Object.entries(headers_env)) };
}
