// The program in few files: half of what a command takes is the loading of many small modules.
import { existsSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { rolldown } from "rolldown";

/** Native code, and packages that are not always there. */
const EXTERNAL = ["better-sqlite3", "openai", "@anthropic-ai/sdk"];
const BUNDLE = "dist/cli.bundle";

/** Replaces the compiled `dist/cli` by a bundle of it and of all that it imports. */
export async function bundleCli() {
  const bundle = await rolldown({ input: "dist/cli/main.js", platform: "node", external: EXTERNAL });
  const { output } = await bundle.write({ dir: BUNDLE, format: "esm" });
  await bundle.close();
  writeFileSync(join(BUNDLE, "LICENSES.txt"), licenses(output.flatMap((chunk) => chunk.moduleIds ?? [])));
  rmSync("dist/cli", { recursive: true });
  renameSync(BUNDLE, "dist/cli");
}

/** Of the packages whose code is in the bundle. */
function licenses(modules) {
  const folders = modules.flatMap((id) => /^(.*\/node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(id)?.[1] ?? []);
  return [...new Set(folders)].sort().map(license).join("\n\n");
}

function license(folder) {
  const { name, version, license: kind } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  const file = readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry) && existsSync(join(folder, entry)));
  const text = file === undefined ? "" : readFileSync(join(folder, file), "utf8");
  return `${name} ${version} (${kind})\n\n${text.trim()}`;
}
