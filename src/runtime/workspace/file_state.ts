import { hash } from "node:crypto";
import { constants } from "node:fs";
import { type FileHandle, lstat, open } from "node:fs/promises";
import type { FileState } from "../../domain/known_file.js";
import { codeOf } from "./folder.js";

/** What is larger is told by its size and time: to read it whenever it changes would be too much. */
export const HASHED_BYTES_MAX = 8_388_608;

/** Never waits: what is no file, like a pipe, is opened without anybody at its other end. */
const READ = constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0);

export function openForReading(file: string): Promise<FileHandle> {
  return open(file, READ);
}

export function hashOf(content: Uint8Array): string {
  return hash("sha256", content, "base64url");
}

/** As it is now; null if there is no file. */
export async function stateOf(file: string): Promise<FileState | null> {
  let handle: FileHandle;
  try {
    handle = await openForReading(file);
  } catch {
    return unread(file);
  }
  try {
    const { size, mtimeMs } = await handle.stat();
    const content = await contentOf(handle);
    return content === null ? unread(file) : { size, mtime_ms: mtimeMs, hash: hashOf(content) };
  } catch {
    return unread(file);
  } finally {
    await handle.close();
  }
}

/** Without its content: it is too large, or not to be read. */
async function unread(file: string): Promise<FileState | null> {
  try {
    const entry = await lstat(file);
    return entry.isFile() ? { size: entry.size, mtime_ms: entry.mtimeMs, hash: null } : null;
  } catch (error) {
    const gone = ["ENOENT", "ENOTDIR", "ELOOP"].includes(codeOf(error));
    if (gone) return null;
    throw error;
  }
}

/** All of it; null if it is too large, or no file. It may grow while it is read. */
export async function contentOf(handle: FileHandle): Promise<Buffer | null> {
  const entry = await handle.stat();
  if (!entry.isFile() || entry.size > HASHED_BYTES_MAX) return null;
  const chunks: Buffer[] = [];
  let total = 0;
  for (;;) {
    const chunk = Buffer.allocUnsafe(Math.max(1, Math.min(entry.size - total, HASHED_BYTES_MAX) || 65_536));
    const { bytesRead } = await handle.read(chunk, 0, chunk.length, total);
    if (bytesRead === 0) return Buffer.concat(chunks, total);
    total += bytesRead;
    if (total > HASHED_BYTES_MAX) return null;
    chunks.push(chunk.subarray(0, bytesRead));
  }
}
