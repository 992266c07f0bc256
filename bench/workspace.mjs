/**
 * The processes and the folder of one invocation. Everything measured runs in a process of its own, so that no
 * contender inherits another's heap or compiled code. However this process ends, the others end and the folder goes;
 * a child whose parent was killed sees its channel close and ends by itself.
 */
import { fork } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, statfsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const TMPFS = 0x01021994;
const BENCH = fileURLToPath(new URL(".", import.meta.url));

export class Workspace {
  #children = new Set();
  #folders = 0;
  #ending = false;

  constructor() {
    // A flush to memory costs nothing and would prove nothing.
    const onDisk = statfsSync(tmpdir()).type !== TMPFS;
    this.folder = onDisk ? mkdtempSync(join(tmpdir(), "tidings-bench-")) : mkdtempSync(join(BENCH, ".run-"));
    // PostgreSQL runs as another user when this runs as root, and must get to its own folder.
    chmodSync(this.folder, 0o711);
    process.on("exit", () => this.#endAtOnce());
    for (const [signal, number] of [
      ["SIGINT", 2],
      ["SIGTERM", 15],
      ["SIGHUP", 1],
    ])
      process.on(signal, () => {
        if (this.#ending) return;
        process.stderr.write("\nending: stopping what runs and removing the files\n");
        void this.close().then(() => process.exit(128 + number));
      });
  }

  /** A new empty folder. */
  newFolder(name) {
    this.#folders += 1;
    const folder = join(this.folder, `${name}-${this.#folders}`);
    mkdirSync(folder);
    return folder;
  }

  /** Starts a contender's process. `result` resolves with what it sends; `stop` ends it. */
  start(contender, options) {
    const child = fork(join(BENCH, "contenders", "process.mjs"), [], { execArgv: ["--expose-gc"] });
    const ended = new Promise((resolve) => child.once("exit", resolve));
    const entry = { child, ended, pids: [] };
    this.#children.add(entry);
    void ended.then(() => this.#children.delete(entry));
    const result = new Promise((resolve, reject) => {
      child.on("message", (message) => {
        if ("pid" in message) entry.pids.push(message.pid);
        else if ("result" in message) resolve(message.result);
        else if ("error" in message) reject(new Error(`${contender}: ${message.error}`));
        else if (!this.#ending) options.onProgress?.(message.progress);
      });
      void ended.then((code) => {
        // While everything ends, nobody waits for a result any more.
        if (!this.#ending) reject(new Error(`${contender}: its process ended with ${code}`));
      });
    });
    const { onProgress: _, ...sent } = options;
    child.send({ contender, options: sent });
    return { result, stop: () => stop(entry) };
  }

  /** Runs a contender in a process of its own and answers what it measured. */
  async run(contender, options = {}) {
    const { result, stop: end } = this.start(contender, options);
    try {
      return await result;
    } finally {
      await end();
    }
  }

  /** The same, in a new folder that is removed afterwards. */
  async runInFolder(contender, options = {}) {
    const folder = this.newFolder(contender);
    try {
      return await this.run(contender, { folder, ...options });
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  }

  async close() {
    this.#ending = true;
    await Promise.all([...this.#children].map(stop));
    rmSync(this.folder, { recursive: true, force: true });
  }

  #endAtOnce() {
    for (const entry of this.#children) kill(entry);
    rmSync(this.folder, { recursive: true, force: true });
  }
}

const STOP_MS = 10_000;

/** Asks a child to end: one that keeps PostgreSQL or a server shuts it down first. Insists after a while. */
async function stop(entry) {
  const { child, ended } = entry;
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill("SIGTERM");
  const insist = setTimeout(() => kill(entry), STOP_MS);
  await ended;
  clearTimeout(insist);
}

/** A child and what it has started, at once. */
function kill({ child, pids }) {
  child.kill("SIGKILL");
  for (const pid of pids)
    try {
      process.kill(pid, "SIGKILL");
    } catch {
      // It has ended already.
    }
}
