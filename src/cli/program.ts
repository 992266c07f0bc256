import { basename, relative } from "node:path";

/** How this program was called, for commands that it suggests. */
export const PROGRAM = programOf(process.argv[1] ?? "tidings");

function programOf(script: string): string {
  const name = basename(script);
  const here = relative("", script);
  // Not on the path, as a rule: whoever has it in a project calls it through npx.
  if (!name.endsWith(".js")) return here.startsWith("node_modules") || calledByNpx() ? `npx ${name}` : name;
  if (here === "dist/cli/main.js") return "npx tidings";
  return `node ${here.startsWith("..") ? script : here}`;
}

function calledByNpx(): boolean {
  return process.env["npm_command"] === "exec";
}
