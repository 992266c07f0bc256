import { mkdir, open, rename, rm, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { newNonce } from "../../platform/secret.js";

const NAME_CHARS = 100;

/** Whoever reads the file sees all of it or what was there before. Its folder is made if it is not there; its mode stays. */
export async function writeAtomically(file: string, content: Uint8Array): Promise<void> {
  const folder = dirname(file);
  await mkdir(folder, { recursive: true });
  const before = await stat(file).catch(() => null);
  const draft = join(folder, `.${basename(file).slice(0, NAME_CHARS)}.${newNonce()}.tmp`);
  try {
    const handle = await open(draft, "wx", before === null ? 0o666 : before.mode & 0o777);
    try {
      await handle.writeFile(content);
      if (before !== null) await handle.chmod(before.mode & 0o7777);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(draft, file);
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  }
}
