// What the compiler does not do.

import { chmodSync, cpSync, mkdirSync, rmSync, symlinkSync } from "node:fs";
import { buildWeb } from "./build-web.mjs";
import { bundleCli } from "./bundle-cli.mjs";

// The migrations are read from beside the compiled code.
cpSync("src/store/sqlite/migrations", "dist/store/sqlite/migrations", { recursive: true });

await bundleCli();
await buildWeb();
cpSync("src/store/sqlite/migrations", "dist/cli/migrations", { recursive: true });

// In this folder `npx tidings` is this program, at once: npm links the bins of dependencies, not a package's own.
chmodSync("dist/cli/main.js", 0o755);
if (process.platform !== "win32") {
  mkdirSync("node_modules/.bin", { recursive: true });
  rmSync("node_modules/.bin/tidings", { force: true });
  symlinkSync("../../dist/cli/main.js", "node_modules/.bin/tidings");
}
