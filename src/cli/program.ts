import { basename, relative } from "node:path";

/** How this program was called, for commands that it suggests. */
export const PROGRAM = programOf(process.argv[1] ?? "tidings");

function programOf(script: string): string {
  const name = basename(script);
  if (!name.endsWith(".js")) return name;
  const path = relative("", script);
  return `node ${path.startsWith("..") ? script : path}`;
}
