// What the compiler does not do.

import { chmodSync, cpSync, mkdirSync, rmSync, symlinkSync } from "node:fs";
import { buildWeb } from "./build-web.mjs";
import { bundleCli } from "./bundle-cli.mjs";

// What the store reads, or starts, from beside the compiled code.
const besideStore = (folder) => {
  for (const name of ["migrations", "checkpoint_thread.mjs"])
    cpSync(`src/store/sqlite/${name}`, `${folder}/${name}`, { recursive: true });
};
besideStore("dist/store/sqlite");

await bundleCli();
await buildWeb();
besideStore("dist/cli");

// In this folder `npx tidings` is this program, at once: npm links the bins of dependencies, not a package's own.
chmodSync("dist/cli/main.js", 0o755);
if (process.platform !== "win32") {
  mkdirSync("node_modules/.bin", { recursive: true });
  rmSync("node_modules/.bin/tidings", { force: true });
  symlinkSync("../../dist/cli/main.js", "node_modules/.bin/tidings");
}
