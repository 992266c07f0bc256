import {
  accessSync,
  chmodSync,
  closeSync,
  constants,
  copyFileSync,
  existsSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  renameSync,
  rmSync,
  statSync,
} from "node:fs";
import { dirname, join, resolve } from "node:path";
import Database from "better-sqlite3";
import { InvalidInputError, StoreError } from "../../domain/errors.js";
import { type JournalId, journalId } from "../../domain/ids.js";
import { systemClock } from "../../platform/clock.js";
import { IdSource } from "../../platform/ids.js";
import { APPLICATION_ID, type Connection } from "./connection.js";
import { DATABASE_FILE } from "./database.js";
import { codeOf, isBusy, storeError } from "./failure.js";
import { WriterLock } from "./lock.js";
import { SCHEMA_VERSION } from "./migrate.js";

const PAGES_PER_STEP = 1_000;

/** Copies the database while it is in use. The file appears under its name only when it is whole. */
export async function backupTo(
  connection: Connection,
  file: string,
  onProgress?: (done: number, total: number) => void,
): Promise<void> {
  const target = resolve(file);
  if (existsSync(target)) throw new InvalidInputError("file", `${target} exists; choose a new name`);
  const partial = `${target}.partial`;
  try {
    rmSync(partial, { force: true });
    mkdirSync(dirname(target), { recursive: true });
    await connection.backup(partial, {
      progress: ({ totalPages, remainingPages }) => {
        onProgress?.(totalPages - remainingPages, totalPages);
        return PAGES_PER_STEP;
      },
    });
    chmodSync(partial, 0o600);
    intoOneFile(partial);
    const { flaw } = look(partial);
    if (flaw !== undefined)
      throw new StoreError(
        "store_corrupt",
        `${connection.name} is damaged (${flaw}); no backup was made. See what is wrong with \`tidings audit\`.`,
      );
    flush(partial);
    renameSync(partial, target);
    flush(dirname(target));
  } catch (error) {
    rmSync(partial, { force: true });
    throw storeError(error, target) ?? error;
  }
}

/**
 * Puts a backup in the place of a data folder's database. The journal gets a new id: its later history is another
 * than the one that clients may have seen. What was there is kept beside it as `tidings.db.old`.
 */
export async function restoreFrom(file: string, folder: string, replace: boolean, waitMs: number): Promise<JournalId> {
  const source = resolve(file);
  const target = join(folder, DATABASE_FILE);
  const arriving = `${target}.arriving`;
  assertFile(source);
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const lock = await WriterLock.acquire(folder, waitMs);
    try {
      if (existsSync(target) && !replace)
        throw new InvalidInputError("data", `${folder} holds a database; say --replace to put the backup in its place`);
      copyIn(source, arriving);
      const id = takeOver(source, arriving);
      flush(arriving);
      keepOld(target);
      renameSync(arriving, target);
      flush(folder);
      return id;
    } finally {
      removeAll(arriving);
      lock.release();
    }
  } catch (error) {
    throw storeError(error, target) ?? error;
  }
}

/** Before anything is made: what was named can be read. */
function assertFile(source: string): void {
  if (!existsSync(source)) throw new InvalidInputError("file", `${source} does not exist`);
  if (!statSync(source).isFile())
    throw new InvalidInputError("file", `${source} is not a file, and so no Tidings backup; nothing was changed.`);
  try {
    accessSync(source, constants.R_OK);
  } catch {
    throw new InvalidInputError("file", `${source} cannot be read by this user; nothing was changed.`);
  }
}

function copyIn(source: string, arriving: string): void {
  removeAll(arriving);
  copyFileSync(source, arriving);
  // A database that was in use when it was copied has its newest commits in its log.
  if (existsSync(`${source}-wal`)) copyFileSync(`${source}-wal`, `${arriving}-wal`);
  chmodSync(arriving, 0o600);
}

/**
 * Checks the copy of a backup and gives it an id of its own. What is wrong with it is said of the backup: its reader
 * knows neither the copy nor a fault of the database that would have been replaced.
 */
function takeOver(source: string, arriving: string): JournalId {
  try {
    intoOneFile(arriving);
    const { flaw, version } = look(arriving);
    if (flaw !== undefined) throw notWhole(source, flaw);
    if (version > SCHEMA_VERSION)
      throw new StoreError(
        "store_newer",
        `${source} has schema version ${version}, newer than this program's ${SCHEMA_VERSION}; nothing was changed. Install the Tidings that made it, or a later one.`,
      );
    return giveNewId(arriving);
  } catch (error) {
    throw error instanceof Error && isOfTheContent(error) ? notWhole(source, error.message, error) : error;
  }
}

function notWhole(source: string, flaw: string, cause?: unknown): StoreError {
  return new StoreError(
    "store_corrupt",
    `${source} is not a whole Tidings backup (${flaw}); nothing was changed. Name a file that \`tidings backup\` made.`,
    cause,
  );
}

/** Whether it tells of what is in the file, and not of the disk that it is on: no database, a damaged one, no such table. */
function isOfTheContent(error: Error): boolean {
  const code = codeOf(error) ?? "";
  return code === "SQLITE_ERROR" || code.startsWith("SQLITE_NOTADB") || code.startsWith("SQLITE_CORRUPT");
}

/** Why it is not a sound Tidings database, undefined if it is one; and the version of its schema. */
function look(file: string): { flaw: string | undefined; version: number } {
  const connection = new Database(file, { readonly: true, fileMustExist: true });
  try {
    const version = connection.pragma("user_version", { simple: true }) as number;
    if (connection.pragma("application_id", { simple: true }) !== APPLICATION_ID)
      return { flaw: "it is empty, or another program's", version };
    const found = connection.pragma("integrity_check(1)", { simple: true }) as string;
    return { flaw: found === "ok" ? undefined : found, version };
  } finally {
    connection.close();
  }
}

/** Without a write-ahead log beside it; fails with `store_busy` if somebody is reading it. */
function intoOneFile(file: string): void {
  const connection = new Database(file, { timeout: 0 });
  try {
    connection.pragma("journal_mode = DELETE");
  } finally {
    connection.close();
  }
}

function giveNewId(file: string): JournalId {
  const id = journalId(new IdSource().random(systemClock.wall()));
  const connection = new Database(file);
  try {
    connection.prepare("UPDATE meta SET value = ? WHERE key = 'journal_id'").run(id);
  } finally {
    connection.close();
  }
  return id;
}

/**
 * Keeps what is in the place as `tidings.db.old`, without taking it away: killed at any moment, the folder has the
 * old database or the new one. A log that belongs to the old one must not be found beside the new one.
 */
function keepOld(target: string): void {
  if (!existsSync(target)) return;
  try {
    intoOneFile(target);
  } catch (error) {
    if (isBusy(error)) throw error;
    // Damaged, which may be why it is replaced: as it is, with its log.
    rmSync(`${target}-shm`, { force: true });
    if (existsSync(`${target}-wal`)) renameSync(`${target}-wal`, `${target}.old-wal`);
  }
  rmSync(`${target}.old`, { force: true });
  linkSync(target, `${target}.old`);
}

/** A database with all that SQLite may have left beside it. */
function removeAll(file: string): void {
  for (const suffix of ["", "-wal", "-shm", "-journal"]) rmSync(`${file}${suffix}`, { force: true });
}

function flush(path: string): void {
  const handle = openSync(path, "r");
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}
