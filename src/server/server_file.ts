/** `server.json` in the data folder: where the server is, for the programs of the same user that look for it. */
import { readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const NAME = "server.json";

export interface ServerFile {
  readonly url: string;
  readonly token: string;
  readonly pid: number;
}

/** Appears whole, and for its owner alone. */
export function writeServerFile(folder: string, content: ServerFile): void {
  const temporary = join(folder, `${NAME}.${process.pid}`);
  rmSync(temporary, { force: true });
  writeFileSync(temporary, `${JSON.stringify(content)}\n`, { mode: 0o600, flag: "wx" });
  renameSync(temporary, join(folder, NAME));
}

/** Undefined if there is none, or it is none of ours; it may be left from a server that was killed. */
export function readServerFile(folder: string): ServerFile | undefined {
  try {
    const content: unknown = JSON.parse(readFileSync(join(folder, NAME), "utf8"));
    return isServerFile(content) ? content : undefined;
  } catch {
    return undefined;
  }
}

/** By hand: every command reads it first, and need not wait for a schema library. */
function isServerFile(content: unknown): content is ServerFile {
  if (typeof content !== "object" || content === null) return false;
  const { url, token, pid } = content as Partial<Record<keyof ServerFile, unknown>>;
  return (
    typeof url === "string" && URL.canParse(url) && typeof token === "string" && token !== "" && Number.isInteger(pid)
  );
}

/** Only its own: another server may have put its file there meanwhile. */
export function removeServerFile(folder: string, token: string): void {
  if (readServerFile(folder)?.token === token) rmSync(join(folder, NAME), { force: true });
}
