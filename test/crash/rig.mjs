/**
 * The kill loop over the library: starts a worker on a folder, ends it with SIGKILL (at a random moment, while it
 * opens, or at a named point between two statements), and then asks the folder, through the library, for everything
 * it ever promised.
 */
import { spawn } from "node:child_process";
import { copyFileSync, existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Tidings } from "../../dist/index.js";
import { STORE_POINTS } from "../../dist/platform/crashpoint.js";
import { writeSubscribers } from "./batches.mjs";
import { runLives } from "./folder.mjs";
import { POLICY, SUBSCRIBERS } from "./setup.mjs";
import { newTally } from "./tally.mjs";

export { newTally, STORE_POINTS };

const WORKER = fileURLToPath(new URL("./worker.mjs", import.meta.url));
const CALLERS = 16;
/** A life that lasts longer than this has not met its end, which is a problem of its own. */
const LIFE_MS_MAX = 30_000;

const ANY_END = { moment: 5, point: 4, opening: 1 };

/** @type {import("./plan.mjs").Rules} */
export const RULES = {
  folders: {
    plain: { share: 5, lives: 25, ends: ANY_END },
    prune: { share: 1.5, lives: 8, ends: ANY_END, also: "prune" },
    backup: { share: 1.5, lives: 8, ends: ANY_END, also: "backup" },
    // Cut while it is made; once made it is fresh no more.
    fresh: { share: 2, lives: 1, ends: { opening: 1 } },
  },
  answers: 200,
  points: STORE_POINTS,
  // The rare ones are passed once or twice in a life.
  passages: { "thread.closing": 2, "claim.leased": 12, "commit.begun": 40, "commit.before": 40, "commit.after": 40 },
  passagesOtherwise: 150,
};

/** Puts one folder through its lives, or up to the first problem; adds to the tally. */
export function runFolder(plan, tally, options = {}) {
  return runLives(plan, tally, options, (parts) => new LibraryRig(parts));
}

class LibraryRig {
  #folder;
  #oracle;
  #tally;
  #also;

  constructor({ folder, oracle, tally, also }) {
    this.#folder = folder;
    this.#oracle = oracle;
    this.#tally = tally;
    this.#also = also;
    writeSubscribers(folder);
  }

  live({ life, end, seed }) {
    const task = { folder: this.#folder, seed, life, callers: CALLERS, also: this.#also };
    return work(task, end, (line) => this.#oracle.take(line));
  }

  async after({ life, next }) {
    await this.#audit(`after life ${life}`);
    // The life that is cut while it opens finds the folder as the kill left it: nobody has recovered it before.
    if (next?.how !== "opening") await this.#reopen(life);
  }

  finish() {
    return this.#audit("at the end");
  }

  async #reopen(life) {
    const tidings = await Tidings.open({ data: this.#folder, policy: POLICY, subscribers: SUBSCRIBERS });
    try {
      await this.#oracle.examine(planeOf(tidings), { life });
    } finally {
      await tidings.close();
    }
    await this.#mustBeClosed(life);
    for (const backup of this.#oracle.takeBackups()) await this.#examineBackup(backup);
  }

  /** Whoever ends in order words what is open, also what somebody else had opened. */
  async #mustBeClosed(life) {
    const reader = await Tidings.open({ data: this.#folder, mode: "read" });
    try {
      const { notifications } = await reader.list({ state: "PENDING", limit: 1_000 });
      for (const { id, open_until } of notifications)
        if (open_until !== null)
          this.#oracle.problem(`closed in order after life ${life}, and left the batch ${id} open`);
    } finally {
      await reader.close();
    }
  }

  /** As the crash left it: by a reader, so that no watchdog acts and nothing is repaired before it is judged. */
  async #audit(when) {
    const oracle = this.#oracle;
    // Killed before there was a file: nothing to audit, and nothing was answered.
    if (oracle.eventsAnswered === 0 && !existsSync(join(this.#folder, "tidings.db"))) return;
    try {
      const reader = await Tidings.open({ data: this.#folder, mode: "read" });
      try {
        const { ok, problems } = await reader.audit();
        this.#tally.audited += 1;
        if (!ok) oracle.problem(`audit ${when}: ${JSON.stringify(problems.slice(0, 5))}`);
      } finally {
        await reader.close();
      }
    } catch (error) {
      // Killed before the schema was committed, or the journal had its id: a reader says that a writer must come first.
      if (oracle.eventsAnswered === 0 && ["read_only", "store_busy"].includes(error.code)) return;
      oracle.problem(`audit ${when}: ${error.stack}`);
    }
  }

  async #examineBackup({ file, answered, events }) {
    if (!existsSync(file)) {
      if (answered) this.#oracle.problem(`the backup ${file} was answered and is not there`);
      return;
    }
    const folder = mkdtempSync(join(tmpdir(), "tidings-crash-copy-"));
    try {
      copyFileSync(file, join(folder, "tidings.db"));
      const copy = await Tidings.open({ data: folder, mode: "read" });
      try {
        await this.#compareCopy(copy, file, events);
        this.#tally.backups += 1;
      } finally {
        await copy.close();
      }
    } finally {
      rmSync(folder, { recursive: true, force: true });
      rmSync(file);
    }
  }

  async #compareCopy(copy, file, events) {
    const oracle = this.#oracle;
    const { ok, problems } = await copy.audit();
    if (!ok) oracle.problem(`audit of the backup ${file}: ${JSON.stringify(problems.slice(0, 5))}`);
    const { last_seq } = await copy.facts();
    const found = new Set();
    if (last_seq > 0)
      for await (const entry of copy.watch({ after: 0 })) {
        if (entry.type === "event") found.add(entry.event.id);
        if (entry.seq >= last_seq) break;
      }
    for (const id of events)
      if (!found.has(id)) oracle.problem(`the event ${id} was answered before the backup ${file} and is not in it`);
  }
}

/** The library, as the oracle asks it. */
function planeOf(tidings) {
  return {
    emit: (event) => tidings.emit(event),
    list: (filter) => tidings.list(filter),
    facts: () => tidings.facts(),
    explain: (ids) => Promise.all(ids.map((id) => tidings.explain(id))),
    journal: () => tidings.watch({ after: 0 }),
    settings: (user_id) => tidings.settings(user_id),
  };
}

/** One worker, from start to its end. A point ends it from inside; everything else does so from here. */
function work(task, end, onLine) {
  const env = { ...process.env };
  if (end.how === "point") env.TIDINGS_CRASH_AT = `${end.point}:${end.passage}`;
  else delete env.TIDINGS_CRASH_AT;
  const child = spawn(process.execPath, [WORKER, JSON.stringify(task)], {
    env,
    stdio: ["pipe", "ignore", "pipe", "pipe"],
  });
  return new Promise((resolve, reject) => {
    let stderr = "";
    let rest = "";
    let answers = 0;
    let overdue = false;
    let opened = false;
    let killing = false;
    const kill = () => child.kill("SIGKILL");
    const killIn = (delayMs) => {
      if (killing) return;
      killing = true;
      // With no delay right at the answer: what it promised must be there already.
      if (delayMs === 0) kill();
      else setTimeout(kill, delayMs);
    };
    const limit = setTimeout(() => {
      overdue = true;
      kill();
    }, LIFE_MS_MAX);
    child.stdin.on("error", () => {});
    child.stderr.setEncoding("utf8").on("data", (text) => {
      stderr += text;
    });
    child.stdio[3].setEncoding("utf8").on("data", (text) => {
      const lines = (rest + text).split("\n");
      // A line that was cut by the kill was not heard.
      rest = lines.pop();
      for (const one of lines) {
        const line = JSON.parse(one);
        onLine(line);
        if (line.tell === "answer") answers += 1;
        if (line.tell === "open") opened = true;
        if (end.how === "opening" && line.tell === "ready") killIn(end.delayMs);
        if (end.how === "moment" && answers >= end.answers) killIn(end.delayMs);
      }
    });
    child.on("error", reject);
    // `close` comes after the last line was read.
    child.on("close", (code, signal) => {
      clearTimeout(limit);
      resolve({ code, signal, stderr: stderr.trim(), overdue, opened });
    });
  });
}
