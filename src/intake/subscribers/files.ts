/** Reading inside one folder and nowhere else: no way leads out of it, by `..`, by an absolute path or by a symlink. */
import { realpath } from "node:fs/promises";
import { isAbsolute, join, relative, sep, win32 } from "node:path";
import { codeOf, type FileText, readText, unreadable } from "../../config/text_file.js";

/** The text of `folder/name`, as UTF-8, at most `bytesMax` long; or why it is not to be had. */
export async function readInside(folder: string, name: string, bytesMax: number): Promise<FileText> {
  const refused = refusePath(name);
  if (refused !== undefined) return { reason: refused, missing: false };
  try {
    const path = await realpath(join(folder, name));
    const inside = wayInto(await realpath(folder), path);
    if (inside === "") return { reason: "is the folder itself, and not a file in it", missing: false };
    if (inside === undefined) return { reason: "is a symlink that leads out of the folder", missing: false };
    return await readText(path, bytesMax);
  } catch (error) {
    return unreadable(error);
  }
}

function refusePath(name: string): string | undefined {
  if (name.includes("\0")) return "has a NUL character in its path";
  if (isAbsolute(name) || win32.isAbsolute(name)) return "must be a path inside the folder, not an absolute one";
  if (name.split(/[/\\]/).includes("..")) return "must not leave the folder (..)";
  return undefined;
}

/** From the folder to the file; undefined if it lies elsewhere. */
function wayInto(folder: string, path: string): string | undefined {
  const way = relative(folder, path);
  return way === ".." || way.startsWith(`..${sep}`) || isAbsolute(way) ? undefined : way;
}

/** Whether the error says that there is nothing of that name. */
export function isMissing(error: unknown): boolean {
  return codeOf(error) === "ENOENT";
}

/** Whether the error says that what was taken for a folder is none. */
export function isNoFolder(error: unknown): boolean {
  return codeOf(error) === "ENOTDIR";
}
