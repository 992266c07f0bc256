/** What every command takes, from flags and the environment, and how it opens the data folder. */
import { StoreError } from "../domain/errors.js";
import type { DeliveryPolicy } from "../domain/policy.js";
import { systemClock } from "../platform/clock.js";
import { pause } from "../platform/timers.js";
import { type OpenOptions, Tidings } from "../tidings.js";
import { UsageError } from "./exit.js";
import type { Values } from "./options.js";

const DEFAULT_DATA = ".tidings";
const DEFAULT_WAIT_MS = 5_000;
const RETRY_MS = 25;
/** How long a reader waits for a first writer that is just making the database. */
const BEING_MADE_MS = 1_000;

export const COMMON_OPTIONS = {
  data: { kind: "text", value: "DIR", summary: "data folder", env: "TIDINGS_DATA", preset: DEFAULT_DATA },
  json: { kind: "flag", summary: "answer as JSON, one value a line" },
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

export interface Settings {
  readonly data: string;
  readonly waitMs: number;
  readonly policy: Partial<DeliveryPolicy>;
  readonly bytesMax: number | undefined;
  /** What a suggested command needs to act on the same folder. */
  readonly dataFlag: string;
}

export function settingsOf(values: Values<typeof COMMON_OPTIONS>, env: NodeJS.ProcessEnv): Settings {
  const data = values.data ?? named(env, "TIDINGS_DATA") ?? DEFAULT_DATA;
  if (data === "") throw new UsageError("--data: must not be empty", "--data");
  const agentTtlMs = values["agent-ttl-ms"] ?? positive(env, "TIDINGS_AGENT_TTL_MS");
  const contextTtlMs = values["context-ttl-ms"] ?? positive(env, "TIDINGS_CONTEXT_TTL_MS");
  const systemTtlMs = values["system-ttl-ms"] ?? positive(env, "TIDINGS_SYSTEM_TTL_MS");
  const leaseMs = values["lease-ms"] ?? positive(env, "TIDINGS_LEASE_MS");
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
    dataFlag: values.data === undefined ? "" : ` --data ${shellWord(data)}`,
  };
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

/**
 * Runs `use` on the data folder and closes it again. `read` is the mode of commands that only look: they become the
 * writer if nobody is, so that the watchdog's sweep at opening acts on what is overdue.
 */
export async function withTidings<Value>(
  settings: Settings,
  mode: "read" | "write",
  use: (tidings: Tidings) => Promise<Value>,
): Promise<Value> {
  return closing(await open(settings, mode === "write" ? "write" : "write_if_free"), use);
}

/**
 * For answers of any length, which may wait for a slow pipe: sweeps as every reading command does, and then reads
 * without holding the folder against a writer.
 */
export async function withReader<Value>(settings: Settings, use: (tidings: Tidings) => Promise<Value>): Promise<Value> {
  await withTidings(settings, "read", async () => {});
  return closing(await open(settings, "read"), use);
}

/** For checks: opens what is there, makes nothing, changes nothing, not even what is overdue. */
export async function withOnlooker<Value>(
  settings: Settings,
  use: (tidings: Tidings) => Promise<Value>,
): Promise<Value> {
  return closing(await open(settings, "read"), use);
}

async function closing<Value>(tidings: Tidings, use: (tidings: Tidings) => Promise<Value>): Promise<Value> {
  try {
    return await use(tidings);
  } finally {
    await tidings.close();
  }
}

async function open(settings: Settings, mode: NonNullable<OpenOptions["mode"]>): Promise<Tidings> {
  const { data, policy, waitMs, bytesMax } = settings;
  const start = systemClock.monotonic();
  for (;;) {
    const leftMs = Math.max(0, waitMs - (systemClock.monotonic() - start));
    try {
      const bound = bytesMax === undefined ? {} : { bytes_max: bytesMax };
      return await Tidings.open({ data, mode, policy, wait_ms: leftMs, ...bound });
    } catch (error) {
      const patienceMs = isBusy(error) ? waitMs : mode !== "write" && mayBeInTheMaking(error) ? BEING_MADE_MS : 0;
      if (systemClock.monotonic() - start + RETRY_MS > patienceMs) throw error;
      await pause(RETRY_MS);
    }
  }
}

/** Another process opens or closes the same database at this moment. */
function isBusy(error: unknown): boolean {
  return error instanceof StoreError && error.code === "store_busy";
}

/** A reader beside the very first writer: the database is not there yet, or has no tables. */
function mayBeInTheMaking(error: unknown): boolean {
  if (!(error instanceof StoreError) || error.code !== "read_only") return false;
  const { cause } = error;
  return cause === undefined || (cause instanceof Error && "code" in cause && cause.code === "SQLITE_CANTOPEN");
}
