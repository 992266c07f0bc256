import Database from "better-sqlite3";
import { StoreError } from "../../domain/errors.js";

/** SQLite's codes in our words: what happened, to which file, and what to do. */
export function storeError(error: unknown, file: string): StoreError | undefined {
  if (error instanceof StoreError) return error;
  const code = codeOf(error);
  if (code === undefined) return undefined;
  const detail = error instanceof Error ? error.message : String(error);
  if (code.startsWith("SQLITE_BUSY") || code.startsWith("SQLITE_LOCKED"))
    return new StoreError(
      "store_busy",
      `${file} is locked by another process; nothing was stored. End the other program, or try again later.`,
      error,
    );
  if (code.startsWith("SQLITE_FULL") || code === "ENOSPC")
    return new StoreError(
      "store_full",
      `no room left for ${file}; what was not answered is not stored, what was answered is. Free space, or raise the size limit, and start again.`,
      error,
    );
  if (code.startsWith("SQLITE_CORRUPT") || code.startsWith("SQLITE_NOTADB"))
    return new StoreError(
      "store_corrupt",
      `${file} is damaged or not a Tidings database (${detail}). Restore a backup with \`tidings restore\`, or move the file away to start empty.`,
      error,
    );
  if (
    code.startsWith("SQLITE_READONLY") ||
    code.startsWith("SQLITE_CANTOPEN") ||
    code.startsWith("SQLITE_PERM") ||
    ["EACCES", "EROFS", "EPERM", "ENOTDIR", "EEXIST", "EISDIR", "ENOENT"].includes(code)
  )
    return new StoreError(
      "read_only",
      `${file} cannot be opened for writing (${detail}). Check that the folder exists, is yours and is writable, or choose another with --data.`,
      error,
    );
  return new StoreError(
    "store_io",
    `reading or writing ${file} failed (${code}: ${detail}). What was answered is stored; check the disk and start again.`,
    error,
  );
}

export function codeOf(error: unknown): string | undefined {
  if (error instanceof Database.SqliteError) return error.code;
  if (error instanceof Error && "code" in error && typeof error.code === "string" && "syscall" in error)
    return error.code;
  return undefined;
}

export function isBusy(error: unknown): boolean {
  return codeOf(error)?.startsWith("SQLITE_BUSY") ?? false;
}
