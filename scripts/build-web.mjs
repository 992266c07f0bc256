// The web app, as a browser gets it: bundled, and compressed once for all who ask.
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { brotliCompressSync, constants } from "node:zlib";
import { build } from "vite";

const OUTPUT = "dist/web";
const COMPRESSED = /\.(js|css|svg)$/;

export async function buildWeb() {
  await build({ configFile: "web/vite.config.ts", logLevel: "warn" });
  for (const entry of readdirSync(OUTPUT, { recursive: true })) {
    if (!COMPRESSED.test(entry)) continue;
    const path = join(OUTPUT, entry);
    const plain = readFileSync(path);
    const small = brotliCompressSync(plain, { params: { [constants.BROTLI_PARAM_QUALITY]: 9 } });
    if (small.length < plain.length) writeFileSync(`${path}.br`, small);
  }
}
