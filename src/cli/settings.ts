/** What every command takes, from flags and the environment. */
import type { Endpoint } from "../client/rpc.js";
import type { DeliveryPolicy } from "../domain/policy.js";
import { UsageError } from "./exit.js";
import type { Options, Values } from "./options.js";

const DEFAULT_DATA = ".tidings";
const DEFAULT_WAIT_MS = 5_000;

export const COMMON_OPTIONS = {
  data: { kind: "text", value: "DIR", summary: "data folder", env: "TIDINGS_DATA", preset: DEFAULT_DATA },
  json: { kind: "flag", summary: "answer as JSON, one value a line" },
  server: {
    kind: "text",
    value: "URL",
    summary: "the server to ask, instead of the data folder's own",
    env: "TIDINGS_SERVER",
  },
  token: { kind: "text", value: "TOKEN", summary: "the token for --server", env: "TIDINGS_TOKEN" },
  subscribers: {
    kind: "text",
    value: "DIR",
    summary: "folder of subscriber files",
    env: "TIDINGS_SUBSCRIBERS",
    preset: "subscribers in the data folder",
  },
  config: {
    kind: "text",
    value: "FILE",
    summary: "the file with the switches",
    env: "TIDINGS_CONFIG",
    preset: "tidings.toml in the data folder",
  },
  "wait-ms": {
    kind: "integer",
    value: "N",
    min: 0,
    summary: "how long to wait for another writer",
    preset: String(DEFAULT_WAIT_MS),
  },
  "agent-ttl-ms": {
    kind: "integer",
    value: "N",
    min: 1,
    summary: "how long an agent's item waits before it goes to the user",
    env: "TIDINGS_AGENT_TTL_MS",
  },
  "context-ttl-ms": {
    kind: "integer",
    value: "N",
    min: 1,
    summary: "how long passive context waits for its agent",
    env: "TIDINGS_CONTEXT_TTL_MS",
  },
  "system-ttl-ms": {
    kind: "integer",
    value: "N",
    min: 1,
    summary: "how long a shown item waits before it is a dead letter",
    env: "TIDINGS_SYSTEM_TTL_MS",
  },
  "lease-ms": {
    kind: "integer",
    value: "N",
    min: 1,
    summary: "how long a claim holds without renewal",
    env: "TIDINGS_LEASE_MS",
  },
  "bytes-max": {
    kind: "integer",
    value: "N",
    min: 1,
    summary: "upper bound of the database file",
    env: "TIDINGS_BYTES_MAX",
  },
  help: { kind: "flag", short: "h", summary: "show the help" },
} as const;

/** What can stand before a command's name, or without one. */
export const PROGRAM_OPTIONS: Options = {
  ...COMMON_OPTIONS,
  version: { kind: "flag", summary: "show the version" },
};

export interface Settings {
  readonly data: string;
  readonly waitMs: number;
  readonly policy: Partial<DeliveryPolicy>;
  readonly bytesMax: number | undefined;
  /** Where subscriber files and switches are; without a word, in the data folder. */
  readonly subscribersFolder: string | undefined;
  readonly configFile: string | undefined;
  /** The server that was named; without one, the data folder's own is looked for. */
  readonly server: Endpoint | undefined;
  /** What a suggested command needs to act on the same folder or server. */
  readonly dataFlag: string;
  /** The options that say how a data folder is to be opened, as they were typed: a server has its own. */
  readonly folderFlags: readonly string[];
}

const FOLDER_FLAGS = [
  "subscribers",
  "config",
  "agent-ttl-ms",
  "context-ttl-ms",
  "system-ttl-ms",
  "lease-ms",
  "bytes-max",
] as const;

export function settingsOf(values: Values<typeof COMMON_OPTIONS>, env: NodeJS.ProcessEnv): Settings {
  const data = values.data ?? named(env, "TIDINGS_DATA") ?? DEFAULT_DATA;
  if (data === "") throw new UsageError("--data: must not be empty", "--data");
  const agentTtlMs = values["agent-ttl-ms"] ?? positive(env, "TIDINGS_AGENT_TTL_MS");
  const contextTtlMs = values["context-ttl-ms"] ?? positive(env, "TIDINGS_CONTEXT_TTL_MS");
  const systemTtlMs = values["system-ttl-ms"] ?? positive(env, "TIDINGS_SYSTEM_TTL_MS");
  const leaseMs = values["lease-ms"] ?? positive(env, "TIDINGS_LEASE_MS");
  const server = values.server ?? named(env, "TIDINGS_SERVER");
  if (values.token !== undefined && server === undefined)
    throw new UsageError("--token is for --server; the data folder's own server needs none", "--token");
  return {
    data,
    waitMs: values["wait-ms"] ?? DEFAULT_WAIT_MS,
    policy: {
      ...(agentTtlMs === undefined ? {} : { agentTtlMs }),
      ...(contextTtlMs === undefined ? {} : { contextTtlMs }),
      ...(systemTtlMs === undefined ? {} : { systemTtlMs }),
      ...(leaseMs === undefined ? {} : { leaseMs }),
    },
    bytesMax: values["bytes-max"] ?? positive(env, "TIDINGS_BYTES_MAX"),
    subscribersFolder: values.subscribers ?? named(env, "TIDINGS_SUBSCRIBERS"),
    configFile: values.config ?? named(env, "TIDINGS_CONFIG"),
    server: serverOf(server, values.token ?? named(env, "TIDINGS_TOKEN")),
    dataFlag: `${flag("data", values.data)}${flag("server", values.server)}`,
    folderFlags: FOLDER_FLAGS.filter((name) => values[name] !== undefined).map((name) => `--${name}`),
  };
}

/** As `Tidings.open` takes them. */
export function filesOf({ subscribersFolder, configFile }: Settings) {
  return {
    ...(subscribersFolder === undefined ? {} : { subscribers_folder: subscribersFolder }),
    ...(configFile === undefined ? {} : { config_file: configFile }),
  };
}

/** An option of a suggested command, as it was given to this one; nothing if it was not. */
export function flag(name: string, value: string | number | undefined): string {
  return value === undefined ? "" : ` --${name} ${shellWord(String(value))}`;
}

function serverOf(url: string | undefined, token: string | undefined): Endpoint | undefined {
  if (url === undefined) return undefined;
  if (!URL.canParse(url) || !/^https?:/.test(url))
    throw new UsageError(
      `--server: must be an address like http://127.0.0.1:4747, not ${JSON.stringify(url)}`,
      "--server",
    );
  const { origin, hash } = new URL(url);
  const inUrl = new URLSearchParams(hash.slice(1)).get("token");
  const given = token ?? inUrl;
  if (given === undefined || given === null || given === "")
    throw new UsageError("--server needs a --token, or TIDINGS_TOKEN; see `tidings token create`", "--token");
  return { url: origin, token: given };
}

function named(env: NodeJS.ProcessEnv, name: string): string | undefined {
  const value = env[name];
  return value === "" ? undefined : value;
}

function positive(env: NodeJS.ProcessEnv, name: string): number | undefined {
  const value = named(env, name);
  if (value === undefined) return undefined;
  if (!/^[0-9]{1,15}$/.test(value) || Number(value) < 1)
    throw new UsageError(`${name}: must be a whole number of at least 1, not ${JSON.stringify(value)}`, name);
  return Number(value);
}

/** As a shell takes it for one word. */
export function shellWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
