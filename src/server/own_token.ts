/**
 * The server's own token, kept in the data folder for its owner alone, beside the data that it opens: a page that is open
 * goes on when the server comes back.
 */
import { readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { newTokenText } from "../access/tokens.js";

const NAME = "server.token";
const FORM = /^[\w.~-]{16,200}$/;

/** The one that is kept there, or a new one that is kept from now on. */
export function ownToken(folder: string, renew: boolean): string {
  const kept = renew ? undefined : keptToken(folder);
  if (kept !== undefined) return kept;
  const token = newTokenText();
  const temporary = join(folder, `${NAME}.${process.pid}`);
  rmSync(temporary, { force: true });
  writeFileSync(temporary, `${token}\n`, { mode: 0o600, flag: "wx" });
  renameSync(temporary, join(folder, NAME));
  return token;
}

function keptToken(folder: string): string | undefined {
  try {
    const text = readFileSync(join(folder, NAME), "utf8").trim();
    return FORM.test(text) ? text : undefined;
  } catch {
    return undefined;
  }
}
