/**
 * The kill loop: starts a worker on a folder, ends it with SIGKILL (at a random moment, while it opens, or at a named
 * point between two statements), and then asks the folder, through the library, for everything it ever promised.
 * One folder goes through many lives; an oracle in this process remembers all of them.
 */
import { spawn } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { Tidings } from "../../dist/index.js";
import { CRASH_POINTS } from "../../dist/platform/crashpoint.js";
import { POLICY, SUBSCRIBERS } from "./load.mjs";
import { Oracle } from "./oracle.mjs";
import { randomFrom } from "./random.mjs";

export { CRASH_POINTS };

const WORKER = join(dirname(fileURLToPath(import.meta.url)), "worker.mjs");
const CALLERS = 16;
/** A life that lasts longer than this has not met its end, which is a problem of its own. */
const LIFE_MS_MAX = 30_000;
/** How often a point is passed at most before it ends a life; the rare ones are passed once or twice in a life. */
const PASSAGES = {
  "thread.closing": 2,
  "claim.leased": 12,
  "commit.begun": 40,
  "commit.before": 40,
  "commit.after": 40,
};
const PASSAGES_OTHERWISE = 150;
/** Lives of one folder. A fresh one is cut while it is made, and once made it is fresh no more. */
const LIVES = { plain: 25, prune: 8, backup: 8, fresh: 1 };

/** @typedef {import("./rig.mjs").End} End */
/** @typedef {import("./rig.mjs").FolderPlan} FolderPlan */

/** A plan of so many kills: folders of some lives each, the crash points in turn. */
export function planKills(seed, kills) {
  const random = randomFrom(seed);
  const points = turns(CRASH_POINTS, random);
  /** @type {FolderPlan[]} */
  const folders = [];
  for (let left = kills; left > 0; ) {
    const kind = random.weighted({ plain: 5, prune: 1.5, backup: 1.5, fresh: 2 });
    const lives = Math.min(left, LIVES[kind]);
    const how = () => (kind === "fresh" ? "opening" : random.weighted({ moment: 5, point: 4, opening: 1 }));
    const ends = Array.from({ length: lives }, () => endOf(how(), random, points));
    folders.push({ seed: random.between(0, 2 ** 31), also: kind === "prune" || kind === "backup" ? kind : null, ends });
    left -= lives;
  }
  return folders;
}

/** Each in turn, in an order of its own each round. */
export function turns(names, random) {
  let round = [];
  return () => {
    if (round.length === 0) round = [...names].sort(() => random.next() - 0.5);
    return round.pop();
  };
}

/** @returns {End} */
export function endOf(how, random, nextPoint) {
  switch (how) {
    case "point": {
      const point = nextPoint();
      return { how, point, passage: random.between(1, PASSAGES[point] ?? PASSAGES_OTHERWISE) };
    }
    case "opening":
      return { how, delayMs: random.between(0, 22) };
    default:
      return { how: "moment", answers: random.between(1, 200), delayMs: random.between(0, 120) };
  }
}

export function newTally() {
  return {
    /** Ended by SIGKILL, as planned. */
    kills: 0,
    moments: 0,
    openings: 0,
    /** Of all kills, those that came before the store was open. */
    unopened: 0,
    points: {},
    folders: 0,
    answers: {},
    events: 0,
    notifications: 0,
    audited: 0,
    backups: 0,
    problems: [],
  };
}

/** Puts one folder through its lives, or up to the first problem; adds to the tally. */
export async function runFolder(plan, tally, { onKill = () => {}, keep = false } = {}) {
  const folder = mkdtempSync(join(tmpdir(), "tidings-crash-"));
  const oracle = new Oracle();
  const random = randomFrom(plan.seed);
  const before = { ...tally };
  try {
    for (const [life, end] of plan.ends.entries()) {
      const seed = random.between(0, 2 ** 31);
      const task = { folder, seed, life, callers: CALLERS, also: plan.also };
      const died = await live(task, end, (line) => oracle.take(line));
      count(tally, end, died, life, oracle);
      await auditCrashed(folder, oracle, tally, `after life ${life}`);
      // The life that is cut while it opens finds the folder as the kill left it: nobody has recovered it before.
      if (plan.ends[life + 1]?.how !== "opening") await reopen(folder, oracle, life, tally);
      tally.events = before.events + oracle.eventsAnswered;
      tally.notifications = before.notifications + oracle.notificationsAnswered;
      tally.answers = sum(before.answers, oracle.answers);
      onKill(tally);
      if (oracle.problems.length > 0) break;
    }
    if (oracle.problems.length === 0) await auditCrashed(folder, oracle, tally, "at the end");
    tally.folders += 1;
  } finally {
    const where = keep ? folder : `seed ${plan.seed}`;
    for (const text of oracle.problems) tally.problems.push(`folder ${where}: ${text}`);
    if (!keep || oracle.problems.length === 0) rmSync(folder, { recursive: true, force: true });
  }
}

function sum(one, other) {
  const both = { ...one };
  for (const [name, number] of Object.entries(other)) both[name] = (both[name] ?? 0) + number;
  return both;
}

function count(tally, end, died, life, oracle) {
  const name = `life ${life} (${JSON.stringify(end)})`;
  if (died.signal !== "SIGKILL") {
    oracle.problems.push(`${name} ended by itself: code ${died.code}, signal ${died.signal}: ${died.stderr}`);
    return;
  }
  if (died.overdue) {
    oracle.problems.push(`${name} did not meet its end within ${LIFE_MS_MAX} ms`);
    return;
  }
  tally.kills += 1;
  if (end.how === "point") tally.points[end.point] = (tally.points[end.point] ?? 0) + 1;
  if (end.how === "moment") tally.moments += 1;
  if (end.how === "opening") tally.openings += 1;
  if (!died.opened) tally.unopened += 1;
}

/** One life, from start to its end. A point ends it from inside; everything else does so from here. */
export function live(task, end, onLine) {
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
      setTimeout(kill, delayMs);
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

async function reopen(folder, oracle, life, tally) {
  try {
    const tidings = await Tidings.open({ data: folder, policy: POLICY, subscribers: SUBSCRIBERS });
    try {
      await oracle.examine(tidings, life);
    } finally {
      await tidings.close();
    }
    await examineBackups(oracle, tally);
  } catch (error) {
    oracle.problems.push(`after life ${life}: ${error.stack}`);
  }
}

/** As the crash left it: by a reader, so that no watchdog acts and nothing is repaired before it is judged. */
async function auditCrashed(folder, oracle, tally, when) {
  // Killed before there was a file: nothing to audit, and nothing was answered.
  if (oracle.eventsAnswered === 0 && !existsSync(join(folder, "tidings.db"))) return;
  try {
    const reader = await Tidings.open({ data: folder, mode: "read" });
    try {
      const { ok, problems } = await reader.audit();
      tally.audited += 1;
      if (!ok) oracle.problems.push(`audit ${when}: ${JSON.stringify(problems.slice(0, 5))}`);
    } finally {
      await reader.close();
    }
  } catch (error) {
    // Killed before the schema was committed, or the journal had its id: a reader says that a writer must come first.
    if (oracle.eventsAnswered === 0 && ["read_only", "store_busy"].includes(error.code)) return;
    oracle.problems.push(`audit ${when}: ${error.stack}`);
  }
}

async function examineBackups(oracle, tally) {
  for (const { file, answered, events } of oracle.takeBackups()) {
    if (!existsSync(file)) {
      if (answered) oracle.problems.push(`the backup ${file} was answered and is not there`);
      continue;
    }
    const folder = mkdtempSync(join(tmpdir(), "tidings-crash-copy-"));
    try {
      mkdirSync(folder, { recursive: true });
      copyFileSync(file, join(folder, "tidings.db"));
      const copy = await Tidings.open({ data: folder, mode: "read" });
      try {
        await examineBackup(copy, file, events, oracle);
        tally.backups += 1;
      } finally {
        await copy.close();
      }
    } finally {
      rmSync(folder, { recursive: true, force: true });
      rmSync(file);
    }
  }
}

async function examineBackup(copy, file, events, oracle) {
  const { ok, problems } = await copy.audit();
  if (!ok) oracle.problems.push(`audit of the backup ${file}: ${JSON.stringify(problems.slice(0, 5))}`);
  const { last_seq } = await copy.facts();
  const found = new Set();
  if (last_seq > 0)
    for await (const entry of copy.watch({ after: 0 })) {
      if (entry.type === "event") found.add(entry.event.id);
      if (entry.seq >= last_seq) break;
    }
  for (const id of events)
    if (!found.has(id)) oracle.problems.push(`the event ${id} was answered before the backup ${file} and is not in it`);
}
