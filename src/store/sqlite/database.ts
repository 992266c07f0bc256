import { chmodSync, existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";
import { assert, StoreError } from "../../domain/errors.js";
import { APPLICATION_ID, type Connection } from "./connection.js";
import { storeError } from "./failure.js";
import { createPrivate } from "./files.js";
import { migrate, SCHEMA_VERSION } from "./migrate.js";

export const DATABASE_FILE = "tidings.db";
/** Before it, a WAL could be reset while a reader was using it. */
const SQLITE_VERSION_MIN = [3, 51, 3] as const;
const SYNCHRONOUS_FULL = 2;
/** How long one attempt waits for a lock; longer waits are made of these, so that the event loop is not held up. */
const BUSY_MS = 50;

export interface OpenOptions {
  readonly readonly: boolean;
  /** Upper bound of the database file. */
  readonly bytesMax?: number;
}

/** Opens the database of a data folder, made and migrated if need be. */
export function openDatabase(folder: string, options: OpenOptions): Connection {
  const file = join(folder, DATABASE_FILE);
  let connection: Connection | undefined;
  try {
    if (!options.readonly) prepareFolder(folder, file);
    else if (!existsSync(file))
      throw new StoreError("read_only", `${file} is not there; open the folder for writing to make it.`);
    connection = new Database(file, { readonly: options.readonly, fileMustExist: true, timeout: BUSY_MS });
    assertEngine(connection);
    assertOurs(connection, file);
    if (options.readonly) assertReadable(connection, file);
    else {
      chmodSync(file, 0o600);
      prepareForWriting(connection, options);
    }
    return connection;
  } catch (error) {
    connection?.close();
    throw storeError(error, file) ?? error;
  }
}

function prepareFolder(folder: string, file: string): void {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  createPrivate(file);
}

function assertEngine(connection: Connection): void {
  const version = engineVersion(connection);
  const parts = version.split(".").map(Number);
  for (const [index, least] of SQLITE_VERSION_MIN.entries()) {
    const part = parts[index] ?? 0;
    if (part > least) return;
    if (part < least)
      throw new StoreError(
        "store_unsupported",
        `SQLite ${version} is too old; Tidings needs ${SQLITE_VERSION_MIN.join(".")} or later. Reinstall better-sqlite3.`,
      );
  }
}

export function engineVersion(connection: Connection): string {
  return connection.prepare("SELECT sqlite_version()").pluck().get() as string;
}

function assertOurs(connection: Connection, file: string): void {
  const applicationId = connection.pragma("application_id", { simple: true });
  const version = connection.pragma("user_version", { simple: true }) as number;
  const tables = connection.prepare("SELECT count(*) FROM sqlite_schema").pluck().get() as number;
  if (applicationId !== APPLICATION_ID && tables > 0)
    throw new StoreError("store_corrupt", `${file} is another program's database; choose another folder with --data.`);
  if (version > SCHEMA_VERSION)
    throw new StoreError(
      "store_newer",
      `${file} has schema version ${version}, and this program knows ${SCHEMA_VERSION}: a newer Tidings wrote it. Install that version or a later one.`,
    );
}

function assertReadable(connection: Connection, file: string): void {
  const version = connection.pragma("user_version", { simple: true }) as number;
  if (version < SCHEMA_VERSION)
    throw new StoreError(
      "read_only",
      `${file} has schema version ${version} and wants to be upgraded to ${SCHEMA_VERSION}; open it for writing once.`,
    );
}

function prepareForWriting(connection: Connection, options: OpenOptions): void {
  const mode = connection.pragma("journal_mode = WAL", { simple: true });
  assert(mode === "wal", `SQLite answered journal mode ${String(mode)}, not wal`);
  connection.pragma("foreign_keys = ON");
  connection.pragma("trusted_schema = OFF");
  // Far more than is between two checkpoints of the thread beside: see checkpoints.ts.
  connection.pragma("wal_autocheckpoint = 16000");
  connection.pragma("cache_size = -16384");
  if (options.bytesMax !== undefined) {
    const pageSize = connection.pragma("page_size", { simple: true }) as number;
    connection.pragma(`max_page_count = ${Math.max(1, Math.floor(options.bytesMax / pageSize))}`);
  }
  migrate(connection);
  // better-sqlite3 is compiled to fall back to NORMAL when it first touches a WAL: set it after that touch.
  connection.pragma("synchronous = FULL");
  assertDurable(connection);
}

/** The promise of every answer: a commit is flushed before it returns. */
export function assertDurable(connection: Connection): void {
  const synchronous = connection.pragma("synchronous", { simple: true });
  assert(synchronous === SYNCHRONOUS_FULL, `SQLite runs with synchronous=${String(synchronous)}, not FULL`);
}
