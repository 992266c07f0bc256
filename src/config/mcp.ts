/** `[mcp.servers.NAME]`: servers of tools. A program gives the same, in an object. */
import { z } from "zod";

export const LOG_LEVELS = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

/** One server: a program to start, or an address. What is not said is as documented in docs/AGENT.md. */
export interface McpServerConfig {
  /** A program that speaks MCP on its standard input and output. */
  readonly command?: string;
  readonly args?: readonly string[];
  /** Where it runs; default: where this program does. */
  readonly folder?: string;
  /** The environment variables that it sees; default: PATH, HOME, LANG, LC_ALL, TZ, TMPDIR. */
  readonly environment?: readonly string[];
  /** Or an address that speaks MCP over streamable HTTP. */
  readonly url?: string;
  /** By its name, the environment variable that holds the value of a header of each request. */
  readonly headers_env?: Readonly<Record<string, string>>;
  readonly enable?: boolean;
  /** Of its tools only these are offered, by the names that the server has for them. */
  readonly tools?: readonly string[];
  /** Of its tools; `[conversation.tools.NAME] impact` wins. Default external. */
  readonly impact?: "internal" | "external";
  /** `first_use`: a tool is approved as it is first seen. `always`: each has to be approved first. Default first_use. */
  readonly approve?: "first_use" | "always";
  readonly connect_timeout_secs?: number;
  readonly call_timeout_secs?: number;
  readonly ping_secs?: number;
  readonly ping_timeout_secs?: number;
  /** After so many pings in a row without an answer it is given up, and connected anew. */
  readonly pings_unanswered_max?: number;
  /** The longest pause between two attempts to connect. */
  readonly reconnect_max_secs?: number;
  /** Resources whose changes are told. */
  readonly resources?: readonly string[];
  /** From which level on its log is told. Default warning. */
  readonly log_level?: LogLevel;
}

const DAY_SECS = 86_400;
const SERVERS_MAX = 64;
const LIST_MAX = 1_000;

const word = z.string().min(1, "must not be empty");
const variable = z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/, "must be the name of an environment variable");
/** Of what is in a table of names. */
function keys(pattern: RegExp, message: string) {
  return (table: object, context: z.RefinementCtx): void => {
    for (const name of Object.keys(table))
      if (!pattern.test(name)) context.addIssue({ code: "custom", path: [name], message });
  };
}

const HEADER = /^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/;
const seconds = z.number().min(0.01).max(DAY_SECS);

const serverShape = z.strictObject({
  command: word.optional(),
  args: z.array(z.string()).max(LIST_MAX).optional(),
  folder: word.optional(),
  environment: z.array(variable).max(LIST_MAX).optional(),
  url: z.url({ protocol: /^https?$/, error: "must be an address, like http://localhost:3001/mcp" }).optional(),
  headers_env: z.record(z.string(), variable).superRefine(keys(HEADER, "must be the name of a header")).optional(),
  enable: z.boolean().optional(),
  tools: z.array(word).max(LIST_MAX).optional(),
  impact: z.enum(["internal", "external"]).optional(),
  approve: z.enum(["first_use", "always"]).optional(),
  connect_timeout_secs: seconds.optional(),
  call_timeout_secs: seconds.optional(),
  ping_secs: seconds.optional(),
  ping_timeout_secs: seconds.optional(),
  pings_unanswered_max: z.int().min(1).max(1_000).optional(),
  reconnect_max_secs: seconds.optional(),
  resources: z.array(word).max(LIST_MAX).optional(),
  log_level: z.enum(LOG_LEVELS).optional(),
});

/** Which keys a server may have. */
export const MCP_SERVER_KEYS: readonly string[] = Object.keys(serverShape.shape);

const serverSchema = serverShape.superRefine((server, context) => {
  const refuse = (key: keyof McpServerConfig, message: string) =>
    context.addIssue({ code: "custom", path: [key], message });
  if (server.command === undefined && server.url === undefined)
    context.addIssue({ code: "custom", path: [], message: "needs a command or an url" });
  if (server.command !== undefined && server.url !== undefined)
    refuse("url", "is too much beside command: give one of them");
  if (server.command === undefined)
    for (const key of ["args", "folder", "environment"] as const)
      if (server[key] !== undefined) refuse(key, "goes with command, and there is none");
  if (server.url === undefined && server.headers_env !== undefined)
    refuse("headers_env", "goes with url, and there is none");
});

/**
 * No underscore: it parts the server's name from the tool's, and so no two servers can come to have a tool of one name.
 */
const NAME = /^[A-Za-z0-9][A-Za-z0-9-]{0,31}$/;

export const mcpServersSchema = z
  .record(z.string(), serverSchema)
  .superRefine(keys(NAME, "must have a name of at most 32 letters, digits and -"))
  .refine((servers) => Object.keys(servers).length <= SERVERS_MAX, `must be ${SERVERS_MAX} servers at most`)
  .transform((servers): ReadonlyMap<string, McpServerConfig> => new Map(Object.entries(servers).map(withoutUndefined)));

function withoutUndefined([name, server]: [string, z.output<typeof serverSchema>]): [string, McpServerConfig] {
  return [name, Object.fromEntries(Object.entries(server).filter(([, value]) => value !== undefined))];
}
