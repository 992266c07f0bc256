import { constants } from "node:fs";
import { open } from "node:fs/promises";

export type FileText =
  | { readonly text: string; readonly path: string }
  | { readonly reason: string; readonly missing: boolean };

/**
 * The text of the file at this path, as UTF-8, at most `bytesMax` long; or why it is not to be had. The path is a real
 * one: no link is followed. A pipe does not make us wait.
 */
export async function readText(path: string, bytesMax: number): Promise<FileText> {
  try {
    const handle = await open(path, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0));
    try {
      if (!(await handle.stat()).isFile()) return { reason: "is not a file", missing: false };
      const buffer = Buffer.alloc(bytesMax + 1);
      let length = 0;
      for (let read = -1; read !== 0 && length < buffer.length; length += read)
        ({ bytesRead: read } = await handle.read(buffer, length, buffer.length - length, null));
      if (length > bytesMax) return { reason: `is larger than ${bytesMax} bytes`, missing: false };
      return textOf(buffer.subarray(0, length), path);
    } finally {
      await handle.close();
    }
  } catch (error) {
    return unreadable(error);
  }
}

function textOf(bytes: Buffer, path: string): FileText {
  try {
    return { text: new TextDecoder("utf-8", { fatal: true }).decode(bytes), path };
  } catch {
    return { reason: "is not UTF-8 text", missing: false };
  }
}

const FAILURES: Readonly<Record<string, string>> = {
  ENOENT: "does not exist",
  ENOTDIR: "does not exist",
  EISDIR: "is not a file",
  ENXIO: "is not a file",
  ELOOP: "is a symlink that leads in a circle",
  EACCES: "cannot be read: permission denied",
  EPERM: "cannot be read: permission denied",
};

export function unreadable(error: unknown): FileText {
  const code = codeOf(error);
  const known = code === undefined ? undefined : FAILURES[code];
  const reason = known ?? `cannot be read: ${error instanceof Error ? error.message : String(error)}`;
  return { reason, missing: code === "ENOENT" || code === "ENOTDIR" };
}

export function codeOf(error: unknown): string | undefined {
  return error instanceof Error && "code" in error ? String(error.code) : undefined;
}
