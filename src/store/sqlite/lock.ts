import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";
import { StoreError } from "../../domain/errors.js";
import { pause } from "../../platform/timers.js";
import { isBusy, storeError } from "./failure.js";
import { createPrivate } from "./files.js";

const LOCK_FILE = "writer.lock";
const PID_FILE = "writer.pid";
const POLL_MS = 20;

/**
 * One writer process per data folder. The lock is a POSIX file lock, taken through SQLite on a file of its own, so
 * that the kernel frees it however the process ends; the pid beside it is only there to be shown.
 */
export class WriterLock {
  readonly #connection: Database.Database;

  private constructor(connection: Database.Database) {
    this.#connection = connection;
  }

  /** Waits up to `waitMs` for the other writer to end. */
  static async acquire(folder: string, waitMs: number): Promise<WriterLock> {
    for (let waited = 0; ; waited += POLL_MS) {
      const lock = WriterLock.tryAcquire(folder);
      if (lock !== undefined) return lock;
      if (waited >= waitMs) throw new StoreError("store_busy", heldMessage(folder));
      await pause(POLL_MS);
    }
  }

  static tryAcquire(folder: string): WriterLock | undefined {
    const file = join(folder, LOCK_FILE);
    let connection: Database.Database | undefined;
    try {
      createPrivate(file);
      connection = new Database(file, { timeout: 0 });
      connection.exec("BEGIN EXCLUSIVE");
      writeFileSync(join(folder, PID_FILE), String(process.pid), { mode: 0o600 });
      return new WriterLock(connection);
    } catch (error) {
      connection?.close();
      if (isBusy(error)) return undefined;
      throw storeError(error, file) ?? error;
    }
  }

  release(): void {
    this.#connection.close();
  }
}

function heldMessage(folder: string): string {
  let holder = "another process";
  try {
    holder = `process ${readFileSync(join(folder, PID_FILE), "utf8")}`;
  } catch {
    // Only for the message.
  }
  return `${folder} is in use: ${holder} is its writer. End it, use it instead, or try again later.`;
}
