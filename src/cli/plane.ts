/** What a command works on: the running server of the data folder where there is one, else the folder itself. */
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { type Plane, RemoteTidings } from "../client/remote.js";
import type { Endpoint } from "../client/rpc.js";
import { StoreError, UnreachableError } from "../domain/errors.js";
import { LOCAL_USER } from "../domain/ids.js";
import { systemClock } from "../platform/clock.js";
import { pause } from "../platform/timers.js";
import type { OpenOptions, Tidings } from "../tidings.js";
import type { Call } from "./command.js";
import { runningServer } from "./running.js";
import { filesOf, type Settings } from "./settings.js";
import { oneLine } from "./text.js";

const RETRY_MS = 25;
/** How long a reader waits for a first writer that is just making the database. */
const BEING_MADE_MS = 1_000;
/** What a data folder has since somebody opened it to write. */
export const DATABASE = "tidings.db";
const SUBSCRIBERS_FOLDER = "subscribers";
const CONFIG_FILE = "tidings.toml";
/** How long the writer's lock is waited for before a server is looked for again. */
const LOCK_MS = 250;

/** What a command says to find its plane. */
type Where = Pick<Call, "settings" | "output">;

/** `change`: it writes, but only to what is there; where there is nothing, it makes no data folder, as `read` makes none. */
type Mode = "read" | "change" | "write";

/**
 * Runs `use` on the server if there is one, and on the data folder otherwise; the same calls, the same answers. `use`
 * is run again if the server ended before it was asked anything.
 */
export async function withPlane<Value>(
  where: Where,
  mode: Mode,
  use: (plane: Plane) => Promise<Value>,
): Promise<Value> {
  const { settings } = where;
  const { waitMs } = settings;
  const start = systemClock.monotonic();
  for (;;) {
    const served = await onServer(where, mode, use);
    if (served !== undefined) return served.value;
    if (mode !== "write" && !holdsData(settings)) return onNothing(where, use);
    const leftMs = Math.max(0, waitMs - (systemClock.monotonic() - start));
    let tidings: Tidings;
    try {
      const patient = { ...settings, waitMs: Math.min(leftMs, LOCK_MS) };
      // Whoever only looks is not told what `doctor` tells.
      const onProblem = (line: string) =>
        mode === "read" ? undefined : where.output.remark(`tidings: ${oneLine(line)}`);
      tidings = await open(patient, mode === "read" ? "write_if_free" : "write", onProblem);
    } catch (error) {
      // Its writer may be a server that is just starting, or one that is just ending.
      if (!isBusy(error) || leftMs <= LOCK_MS) throw error;
      continue;
    }
    return closing(tidings, use);
  }
}

/** For long lists: as `withPlane`, and on a folder as `withReader`. */
export async function withReadingPlane<Value>(
  where: Where,
  use: (plane: Pick<Plane, "list">) => Promise<Value>,
): Promise<Value> {
  const served = await onServer(where, "read", use);
  if (served !== undefined) return served.value;
  return holdsData(where.settings) ? withReader(where.settings, use) : onNothing(where, use);
}

/** False where there is no folder, or one without a database; what else is in the way is for the store to say. */
export function holdsData({ data }: Settings): boolean {
  try {
    return statSync(join(data, DATABASE), { throwIfNoEntry: false }) !== undefined || isFile(data);
  } catch {
    return true;
  }
}

function isFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === false;
}

export function noDataIn({ data }: Settings): string {
  return `there is no Tidings data in ${resolve(data)}; --data DIR names another folder`;
}

/** Runs `use` on a new folder that is gone afterwards: the answers are those of a folder in which nothing has happened. */
async function onNothing<Value>(
  { settings, output }: Where,
  use: (tidings: Tidings) => Promise<Value>,
): Promise<Value> {
  output.remark(`tidings: ${oneLine(noDataIn(settings))}.`);
  const data = mkdtempSync(join(tmpdir(), "tidings-none-"));
  const { subscribersFolder, configFile } = filesIn(settings);
  try {
    return await closing(await open({ ...settings, data, subscribersFolder, configFile }, "write"), use);
  } finally {
    rmSync(data, { recursive: true, force: true });
  }
}

/** Where the operator's files are, named or not. */
export function filesIn({ data, subscribersFolder, configFile }: Settings) {
  return {
    subscribersFolder: subscribersFolder ?? join(data, SUBSCRIBERS_FOLDER),
    configFile: configFile ?? join(data, CONFIG_FILE),
  };
}

/** Undefined if no server runs, or it ended before it did anything: then the folder is next. */
async function onServer<Value>(
  { settings, output }: Where,
  mode: Mode,
  use: (plane: Plane) => Promise<Value>,
): Promise<{ value: Value } | undefined> {
  const { server, data, folderFlags } = settings;
  const running = server ?? (await runningServer(data));
  if (running === undefined) return undefined;
  const remote = new RemoteTidings(running);
  try {
    const value = await use(remote);
    if (folderFlags.length > 0) output.remark(withoutEffect(folderFlags, running));
    return { value };
  } catch (error) {
    const gone =
      error instanceof UnreachableError && (error.why === "unsent" || (error.why === "lost" && mode === "read"));
    if (server === undefined && remote.isFresh && gone) return undefined;
    throw error;
  }
}

export function withoutEffect(flags: readonly string[], { url }: Endpoint): string {
  const has = flags.length === 1 ? "has" : "have";
  return `tidings: ${flags.join(", ")} ${has} no effect: this went through the server at ${url}, which keeps to what it was started with`;
}

/** Whose inbox is meant where nobody is named: of a token, its own user's. */
export function ownUser(plane: Plane): Promise<string> | string {
  return plane instanceof RemoteTidings ? plane.user() : LOCAL_USER;
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

/** As `withReader`, for commands that have nothing to do on a folder that nobody has used: they make none. */
export async function withUsed<Value>(settings: Settings, use: (tidings: Tidings) => Promise<Value>): Promise<Value> {
  mustHoldData(settings);
  return withReader(settings, use);
}

/** For checks: opens what is there, makes nothing, changes nothing, not even what is overdue. */
export async function withOnlooker<Value>(
  settings: Settings,
  use: (tidings: Tidings) => Promise<Value>,
): Promise<Value> {
  mustHoldData(settings);
  return closing(await open(settings, "read"), use);
}

function mustHoldData(settings: Settings): void {
  if (!holdsData(settings)) throw new StoreError("read_only", `${noDataIn(settings)}.`);
}

async function closing<Value>(tidings: Tidings, use: (tidings: Tidings) => Promise<Value>): Promise<Value> {
  try {
    return await use(tidings);
  } finally {
    await tidings.close();
  }
}

async function open(
  settings: Settings,
  mode: NonNullable<OpenOptions["mode"]>,
  onProblem: (line: string) => void = () => {},
): Promise<Tidings> {
  // Loaded here: whoever goes through a server needs none of it.
  const { Tidings } = await import("../tidings.js");
  const { data, policy, waitMs, bytesMax } = settings;
  const start = systemClock.monotonic();
  for (;;) {
    const leftMs = Math.max(0, waitMs - (systemClock.monotonic() - start));
    try {
      const bound = bytesMax === undefined ? {} : { bytes_max: bytesMax };
      // Over before a file could change.
      const files = { ...filesOf(settings), watch: false, onProblem };
      return await Tidings.open({ data, mode, policy, wait_ms: leftMs, ...bound, ...files });
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
