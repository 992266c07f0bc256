/** Reading inside one folder and nowhere else: no way leads out of it, by `..`, by an absolute path or by a symlink. */
import { constants } from "node:fs";
import { open, realpath } from "node:fs/promises";
import { isAbsolute, join, relative, sep, win32 } from "node:path";

export type FileText =
  | { readonly text: string; readonly path: string }
  | { readonly reason: string; readonly missing: boolean };

/** The text of `folder/name`, as UTF-8, at most `bytesMax` long; or why it is not to be had. */
export async function readInside(folder: string, name: string, bytesMax: number): Promise<FileText> {
  const refused = refusePath(name);
  if (refused !== undefined) return { reason: refused, missing: false };
  try {
    const path = await realpath(join(folder, name));
    if (!isInside(await realpath(folder), path))
      return { reason: "is a symlink that leads out of the folder", missing: false };
    return await readText(path, bytesMax);
  } catch (error) {
    return failure(error);
  }
}

function refusePath(name: string): string | undefined {
  if (name.includes("\0")) return "has a NUL character in its path";
  if (isAbsolute(name) || win32.isAbsolute(name)) return "must be a path inside the folder, not an absolute one";
  if (name.split(/[/\\]/).includes("..")) return "must not leave the folder (..)";
  return undefined;
}

function isInside(folder: string, path: string): boolean {
  const way = relative(folder, path);
  return way !== "" && way !== ".." && !way.startsWith(`..${sep}`) && !isAbsolute(way);
}

async function readText(path: string, bytesMax: number): Promise<FileText> {
  // No link is followed any more, and a pipe does not make us wait.
  const handle = await open(path, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0));
  try {
    if (!(await handle.stat()).isFile()) return { reason: "is not a file", missing: false };
    const buffer = Buffer.alloc(bytesMax + 1);
    let length = 0;
    for (let read = -1; read !== 0 && length < buffer.length; length += read)
      ({ bytesRead: read } = await handle.read(buffer, length, buffer.length - length, null));
    if (length > bytesMax) return { reason: `is larger than ${bytesMax} bytes`, missing: false };
    try {
      return { text: new TextDecoder("utf-8", { fatal: true }).decode(buffer.subarray(0, length)), path };
    } catch {
      return { reason: "is not UTF-8 text", missing: false };
    }
  } finally {
    await handle.close();
  }
}

const FAILURES: Readonly<Record<string, string>> = {
  ENOENT: "does not exist",
  ENOTDIR: "does not exist",
  EISDIR: "is not a file",
  ELOOP: "is a symlink that leads in a circle",
  EACCES: "cannot be read: permission denied",
  EPERM: "cannot be read: permission denied",
};

function failure(error: unknown): FileText {
  const code = codeOf(error);
  const known = code === undefined ? undefined : FAILURES[code];
  const reason = known ?? `cannot be read: ${error instanceof Error ? error.message : String(error)}`;
  return { reason, missing: code === "ENOENT" || code === "ENOTDIR" };
}

/** Whether the error says that there is nothing of that name. */
export function isMissing(error: unknown): boolean {
  return codeOf(error) === "ENOENT";
}

/** Whether the error says that what was taken for a folder is none. */
export function isNoFolder(error: unknown): boolean {
  return codeOf(error) === "ENOTDIR";
}

function codeOf(error: unknown): string | undefined {
  return error instanceof Error && "code" in error ? String(error.code) : undefined;
}
