import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { arch, availableParallelism, cpus, loadavg, release, totalmem, type } from "node:os";
import Database from "better-sqlite3";
import { installedVersion } from "./peers.mjs";

/** Where and with what the numbers were made. */
export function machineFacts(folder) {
  const connection = new Database(":memory:");
  const sqlite = connection.prepare("SELECT sqlite_version()").pluck().get();
  connection.close();
  const { version: ws } = createRequire(import.meta.url)("ws/package.json");
  return {
    cpu: `${availableParallelism()} cores, ${cpus()[0]?.model.trim() ?? "unknown"}`,
    memory: `${Math.round(totalmem() / 1024 ** 3)} GiB`,
    system: `${type()} ${release()} ${arch()}, ${fileSystemOf(folder)}`,
    software: [`Node ${process.versions.node}`, `SQLite ${sqlite}`, `ws ${ws}`, ...peers()].join(", "),
    load: loadavg()
      .map((one) => one.toFixed(1))
      .join(" "),
    date: new Date().toISOString().slice(0, 10),
  };
}

function peers() {
  return ["plainjob", "pg-boss", "fastify", "gpt-tokenizer"].flatMap((name) => {
    const version = installedVersion(name);
    return version === undefined ? [] : [`${name} ${version}`];
  });
}

function fileSystemOf(folder) {
  try {
    const mounts = readFileSync("/proc/mounts", "utf8")
      .trim()
      .split("\n")
      .map((line) => line.split(" "))
      .filter(([, at]) => folder === at || folder.startsWith(at === "/" ? at : `${at}/`));
    return mounts.sort((one, other) => one[1].length - other[1].length).at(-1)[2];
  } catch {
    return "unknown file system";
  }
}
