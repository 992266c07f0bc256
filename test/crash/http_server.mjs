/** The built program as its users run it: the server as a process of its own, and the commands beside it. */
import { spawn } from "node:child_process";
import { existsSync, readFileSync, statSync, watch } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const PROGRAM = fileURLToPath(new URL("../../dist/cli/main.js", import.meta.url));
const READY = /^Tidings is ready: (http:\S+)\/#token=(\S+)$/;
/** Short, so that agents are given up and letters die within a life or two, and some wait for the next one. */
const TIMES = ["--agent-ttl-ms", "700", "--context-ttl-ms", "1500", "--system-ttl-ms", "2500"];

const running = new Set();
// Whoever started them is gone: so is the reason for them.
process.on("exit", () => {
  for (const child of running) child.kill("SIGKILL");
});

function start(line, crashAt) {
  const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith("TIDINGS_"));
  const env = { ...Object.fromEntries(inherited), ...(crashAt === undefined ? {} : { TIDINGS_CRASH_AT: crashAt }) };
  const child = spawn(process.execPath, [PROGRAM, ...line], { env, stdio: ["ignore", "pipe", "pipe"] });
  let stderr = "";
  child.stderr.setEncoding("utf8").on("data", (text) => {
    stderr += text;
  });
  running.add(child);
  const ended = new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (code, signal) => {
      running.delete(child);
      resolve({ code, signal, stderr: stderr.trim() });
    });
  });
  return { child, ended };
}

/** One command, to its end. */
export async function run(line) {
  const { child, ended } = start(line);
  let stdout = "";
  child.stdout.setEncoding("utf8").on("data", (text) => {
    stdout += text;
  });
  const { code, stderr } = await ended;
  return { code, stdout, stderr };
}

/** A server on a folder. `crashAt` ends it from inside, at that passage of a named point. */
export class Server {
  /** `{url, token, pid}` of its ready line; undefined if it ended before. */
  ready;
  /** `{code, signal, stderr}` */
  ended;
  #child;

  constructor(folder, crashAt) {
    const { child, ended } = start(["serve", "--port", "0", "--provider", "none", "--data", folder, ...TIMES], crashAt);
    this.#child = child;
    this.ended = ended;
    const ready = new Promise((resolve) => {
      createInterface({ input: child.stdout }).on("line", (line) => {
        const [, url, token] = READY.exec(line) ?? [];
        if (url !== undefined) resolve({ url, token, pid: child.pid });
      });
    });
    this.ready = Promise.race([ready, ended.then(() => undefined)]);
  }

  signal(name) {
    this.#child.kill(name);
  }
}

/** What is in the folder for programs that look for its server; undefined if there is nothing. */
export function serverFile(folder) {
  const path = join(folder, "server.json");
  if (!existsSync(path)) return undefined;
  return { ...JSON.parse(readFileSync(path, "utf8")), mode: statSync(path).mode & 0o777 };
}

/** Resolves when something in the folder is touched, by whoever opens it. */
export function touched(folder) {
  return new Promise((resolve) => {
    const watcher = watch(folder, () => {
      watcher.close();
      resolve();
    });
  });
}
