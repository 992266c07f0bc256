import { closeSync, existsSync, openSync } from "node:fs";

/**
 * Makes the file, for its owner alone, if it is not there. One that is there is never opened here: closing any handle
 * of a file drops every POSIX lock that this process holds on it, and with it the writer's lock.
 */
export function createPrivate(file: string): void {
  if (!existsSync(file)) closeSync(openSync(file, "a", 0o600));
}
