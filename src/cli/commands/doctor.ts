import { existsSync, readdirSync, readFileSync, statfsSync, statSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { RemoteTidings } from "../../client/remote.js";
import type { Endpoint } from "../../client/rpc.js";
import { StoreError, TidingsError } from "../../domain/errors.js";
import { LOCAL_USER } from "../../domain/ids.js";
import { Catalogue } from "../../intake/catalogue.js";
import { type SubscriberList, subscriberList } from "../../intake/listing.js";
import type { McpServerView } from "../../mcp/views.js";
import { systemClock } from "../../platform/clock.js";
import { VERSION } from "../../platform/version.js";
import { type HookWithoutSecret, hooksWithoutSecret, withoutSecretLine } from "../../server/ingest/secrets.js";
import type { StoreFacts } from "../../store/contract.js";
import { noWords } from "../arguments.js";
import { defineCommand } from "../command.js";
import { EXIT } from "../exit.js";
import type { Output, Style } from "../output.js";
import { DATABASE, filesIn, holdsData, noDataIn, withTidings } from "../plane.js";
import { runningServer } from "../running.js";
import type { Settings } from "../settings.js";
import { counted, oneLine, pad, size } from "../text.js";

const NODE_MIN = [20, 19] as const;
const FREE_BYTES_MIN = 64 * 1024 * 1024;
const FREE_BYTES_LOW = 512 * 1024 * 1024;
const PRIVATE_FOLDER = 0o700;
const PRIVATE_FILE = 0o600;
const WRITER_PID = "writer.pid";
/** What their names begin with. */
const PRIVATE_FILES = [DATABASE, "writer.", "server.json"];

interface Check {
  name: string;
  /** `skipped`: it was not looked at. */
  level: "ok" | "skipped" | "warning" | "problem";
  detail: string;
}

export const doctor = defineCommand({
  usage: "[options]",
  about: [
    "Versions, durability, permissions, free space, who is the writer, whether a server runs, what is wrong with " +
      "subscriber files and switches, and which hooks have no secret. Exit code 1 if something is wrong; a warning alone is no failure. `tidings audit` " +
      "checks what is in the folder.",
  ],
  options: {},
  examples: ["tidings doctor", "tidings doctor --json"],
  folderOnly: true,
  async run({ words, settings, output }) {
    noWords(words);
    const data = resolve(settings.data);
    const store = await lookInside(settings);
    const server = await lookForServer(settings.data);
    const files = await lookAtFiles(settings, store, server);
    const space = spaceOf(data);
    const checks: Check[] = [
      nodeCheck(),
      { name: "tidings", level: "ok", detail: VERSION },
      ...storeChecks(store),
      serverCheck(server),
      ...fileChecks(files.subscribers),
      ...hookChecks(files.hooks),
      ...mcpChecks(await lookAtMcp(store, server)),
      ...permissionChecks(data),
      spaceCheck(space),
    ];
    const ok = checks.every((check) => check.level !== "problem");
    if (output.json) {
      const facts = "facts" in store ? { ...store.facts, writer_pid: store.writerPid } : {};
      const versions = { node: process.version, tidings: VERSION };
      await output.value({ ok, ...versions, data, ...facts, free_bytes: space, checks });
    } else {
      await output.line(`${output.style("bold", "tidings doctor")} on ${oneLine(data)}`);
      await output.line();
      for (const check of checks) await show(check, output);
      await output.line();
      const bad = checks.filter((check) => check.level === "problem").length;
      const odd = checks.filter((check) => check.level === "warning").length;
      const verdict = ok
        ? output.style("green", "Nothing is wrong")
        : output.style("red", `${counted(bad, "thing")} ${bad === 1 ? "is" : "are"} wrong`);
      await output.line(odd === 0 ? `${verdict}.` : `${verdict}; ${counted(odd, "warning")}.`);
    }
    return ok ? EXIT.ok : EXIT.problem;
  },
});

const SIGNS: Record<Check["level"], readonly [string, Style]> = {
  ok: ["✔", "green"],
  skipped: ["·", "gray"],
  warning: ["▲", "yellow"],
  problem: ["✖", "red"],
};
const NAME_COLUMNS = 12;

function show({ name, level, detail }: Check, output: Output): Promise<void> {
  const [sign, style] = SIGNS[level];
  return output.line(`  ${output.style(style, sign)} ${pad(name, NAME_COLUMNS)} ${oneLine(detail)}`);
}

type Inside =
  | {
      facts: StoreFacts;
      writable: boolean;
      writerPid: number | null;
      files: Files;
      mcp: readonly McpServerView[];
    }
  | { problem: string };

/** A folder that does not open is a finding, not the end of the examination. */
async function lookInside(settings: Settings): Promise<Inside> {
  if (!holdsData(settings)) return { problem: noDataIn(settings) };
  try {
    return await withTidings(settings, "read", async (tidings) => ({
      facts: await tidings.facts(),
      writable: tidings.writable,
      writerPid: tidings.writable ? null : pidIn(settings.data),
      files: { subscribers: await tidings.subscribers(), hooks: hooksWithoutSecret(tidings.hooks, process.env) },
      mcp: await tidings.mcp.list(),
    }));
  } catch (error) {
    if (error instanceof StoreError) return { problem: `${error.code}: ${error.message}` };
    throw error;
  }
}

function pidIn(folder: string): number | null {
  try {
    const pid = Number(readFileSync(join(folder, WRITER_PID), "utf8"));
    return Number.isInteger(pid) && pid > 0 ? pid : null;
  } catch {
    return null;
  }
}

function nodeCheck(): Check {
  const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
  const enough = major > NODE_MIN[0] || (major === NODE_MIN[0] && minor >= NODE_MIN[1]);
  const detail = enough
    ? process.version
    : `${process.version} is too old; Tidings needs ${NODE_MIN.join(".")} or later`;
  return { name: "node", level: enough ? "ok" : "problem", detail };
}

function storeChecks(store: Inside): Check[] {
  if ("problem" in store) return [{ name: "store", level: "problem", detail: store.problem }];
  const { facts, writable, writerPid } = store;
  const durable = facts.synchronous === "FULL";
  const { journal_mode } = facts;
  const holder = writerPid === null ? "another process" : `process ${writerPid}`;
  return [
    { name: facts.engine, level: "ok", detail: facts.engine_version },
    writable
      ? {
          name: "durability",
          level: durable ? "ok" : "problem",
          detail: `synchronous ${facts.synchronous}${durable ? ": an answer is on disk" : ", and must be FULL"}`,
        }
      : { name: "durability", level: "skipped", detail: "not looked at: only the writer can tell" },
    {
      name: "journal mode",
      level: journal_mode === "wal" ? "ok" : "problem",
      detail: journal_mode === "wal" ? "WAL" : `${journal_mode}, and must be WAL`,
    },
    { name: "writer", level: "ok", detail: writable ? "nobody; the folder is free" : holder },
    { name: "schema", level: "ok", detail: `version ${facts.schema_version}` },
    {
      name: "journal",
      level: "ok",
      detail: `${facts.journal_id}, last seq ${facts.last_seq}, kept from seq ${facts.floor_seq}`,
    },
    clockCheck(facts.last_at),
    { name: "size", level: "ok", detail: size(facts.bytes) },
  ];
}

type Found = { running: Endpoint | undefined } | { error: TidingsError };

async function lookForServer(data: string): Promise<Found> {
  try {
    return { running: await runningServer(data) };
  } catch (error) {
    if (error instanceof TidingsError) return { error };
    throw error;
  }
}

/** One that does not answer is in the way of every command. */
function serverCheck(found: Found): Check {
  if ("error" in found) return { name: "server", level: "problem", detail: found.error.message };
  const { running } = found;
  return { name: "server", level: "ok", detail: running === undefined ? "none runs" : `runs at ${running.url}` };
}

interface Files {
  readonly subscribers: SubscriberList;
  /** Those that have no secret. */
  readonly hooks: readonly HookWithoutSecret[];
}

/**
 * A server knows what is in effect, also where its files and its environment are others than ours; without one they are
 * looked at here.
 */
async function lookAtFiles(settings: Settings, store: Inside, server: Found): Promise<Files> {
  const running = "running" in server ? server.running : undefined;
  if (running !== undefined) {
    const remote = new RemoteTidings(running);
    return { subscribers: await remote.subscribers(), hooks: await remote.hooksWithoutSecret() };
  }
  if ("files" in store) return store.files;
  const { subscribersFolder: folder, configFile: config_file } = filesIn(settings);
  const catalogue = await Catalogue.open({ subscribers: [], folder, config_file, watch: false });
  const subscribers = subscriberList(catalogue, { user_id: LOCAL_USER, disabled_subscribers: [] });
  return { subscribers, hooks: hooksWithoutSecret(catalogue.config.hooks, process.env) };
}

function fileChecks({ subscribers, problems, without_effect }: SubscriberList): Check[] {
  const active = subscribers.filter(({ state }) => state === "active").length;
  const count = `${active} of ${counted(subscribers.length, "subscriber")} ${active === 1 ? "is" : "are"} active`;
  return [
    ...(problems.length === 0 ? [{ name: "subscribers", level: "ok" as const, detail: count }] : []),
    ...problems.map(({ text }) => ({ name: "subscribers", level: "problem" as const, detail: text })),
    ...without_effect.map((detail) => ({ name: "switches", level: "warning" as const, detail })),
  ];
}

function hookChecks(hooks: readonly HookWithoutSecret[]): Check[] {
  return hooks.map(({ name, secret_env }) => {
    const one = secret_env.length === 1 ? secret_env.join() : "one of them";
    const detail = `${withoutSecretLine(name, secret_env)}; set ${one} where the server is started`;
    return { name: "hooks", level: "warning", detail };
  });
}

/** A server knows how they are; without one, only what of them is held can be told. */
async function lookAtMcp(store: Inside, server: Found): Promise<readonly McpServerView[]> {
  const running = "running" in server ? server.running : undefined;
  if (running !== undefined) return new RemoteTidings(running).mcp.list();
  return "mcp" in store ? store.mcp : [];
}

function mcpChecks(servers: readonly McpServerView[]): Check[] {
  return servers.map(({ name, state, reason, tools }) => {
    const held = tools.filter((tool) => tool.state === "held").map(({ tool }) => tool);
    const away = state === "away" || state === "unresponsive";
    const waits = held.length === 0 ? "" : `; held until approved: ${held.join(", ")} (tidings mcp list)`;
    const detail = `${name} is ${state}${away && reason !== null ? `: ${reason}` : ""}${waits}`;
    return { name: "mcp", level: away || held.length > 0 ? "warning" : "ok", detail };
  });
}

const CLOCK_AHEAD_MS = 60_000;

/** The journal's time never goes back: one entry under a wrong clock delays every deadline after it. */
function clockCheck(lastAtMs: number): Check {
  const aheadMs = lastAtMs - systemClock.wall();
  if (aheadMs < CLOCK_AHEAD_MS) return { name: "clock", level: "ok", detail: "not behind the journal" };
  const detail = `the journal is ${Math.round(aheadMs / 1000)} s ahead of this machine: deadlines come late until it has caught up`;
  return { name: "clock", level: "warning", detail };
}

function permissionChecks(data: string): Check[] {
  if (process.platform === "win32" || !existsSync(data)) return [];
  try {
    const files = readdirSync(data).filter((name) => PRIVATE_FILES.some((prefix) => name.startsWith(prefix)));
    const wrong = [
      ...wrongMode(data, ".", PRIVATE_FOLDER),
      ...files.flatMap((name) => wrongMode(join(data, name), name, PRIVATE_FILE)),
    ];
    if (wrong.length === 0) return [{ name: "permissions", level: "ok", detail: "folder 0700, files 0600" }];
    return wrong.map((detail) => ({ name: "permissions", level: "warning", detail }));
  } catch (error) {
    return [{ name: "permissions", level: "problem", detail: error instanceof Error ? error.message : String(error) }];
  }
}

function wrongMode(path: string, name: string, wanted: number): string[] {
  const mode = statSync(path, { throwIfNoEntry: false })?.mode;
  if (mode === undefined || (mode & 0o777) === wanted) return [];
  const what = name === "." ? "the folder" : name;
  return [`${what} is ${octal(mode & 0o777)}, not ${octal(wanted)}: chmod ${octal(wanted)} ${path}`];
}

function octal(mode: number): string {
  return `0${mode.toString(8)}`;
}

/** The folder, or the nearest one above it that is there. */
function existingOf(path: string): string {
  return existsSync(path) || dirname(path) === path ? path : existingOf(dirname(path));
}

/** What this user may still write there; null if the system does not say. */
function spaceOf(data: string): number | null {
  try {
    const { bavail, bsize } = statfsSync(existingOf(data));
    return bavail * bsize;
  } catch {
    return null;
  }
}

function spaceCheck(free: number | null): Check {
  if (free === null) return { name: "disk", level: "warning", detail: "the system does not say how much is free" };
  const level = free < FREE_BYTES_MIN ? "problem" : free < FREE_BYTES_LOW ? "warning" : "ok";
  return { name: "disk", level, detail: `${size(free)} free${level === "ok" ? "" : "; make room"}` };
}
