/** `server.json` in the data folder: where the server is, for the programs of the same user that look for it. */
import { readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";

const NAME = "server.json";

const schema = z.object({ url: z.url(), token: z.string().min(1), pid: z.int() });
export type ServerFile = z.output<typeof schema>;

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
    return schema.parse(JSON.parse(readFileSync(join(folder, NAME), "utf8")));
  } catch {
    return undefined;
  }
}

/** Only its own: another server may have put its file there meanwhile. */
export function removeServerFile(folder: string, token: string): void {
  if (readServerFile(folder)?.token === token) rmSync(join(folder, NAME), { force: true });
}
