/** What is run in which order. Each run has every contender of a group once, in an order that rotates. */
import { cpSync, mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { rotated } from "./statistics.mjs";

/** The contenders of a, b and c by name: which process, and with what. */
function contendersOf({ sections, sizes }, connectionString) {
  const { warmup, emits, cycles } = sizes;
  const contenders = { fdatasync: ["fdatasync", { count: sizes.fdatasyncs }] };
  for (const users of [1, 100]) {
    if (sections.has("a")) {
      contenders[`raw ${users}`] = ["rawInserts", { users, many: 16, warmup, emits }];
      contenders[`raw single ${users}`] = ["rawInserts", { users, many: 1, warmup, emits }];
    }
    if (sections.has("b")) contenders[`emit ${users}`] = ["durableEmit", { users, warmup, emits }];
    if (sections.has("c")) contenders[`cycle ${users}`] = ["fullCycle", { users, warmup, cycles }];
  }
  if (!sections.has("c")) return contenders;
  const { pgBoss } = sizes;
  return {
    ...contenders,
    "plainjob loop": ["plainjobLoop", sizes.plainjob],
    "plainjob worker": ["plainjobWorker", sizes.plainjob],
    "plainjob flushed": ["plainjobLoop", { ...sizes.plainjobFull, synchronous: "FULL" }],
    "pg-boss callers": ["pgBossCallers", { connectionString, warmup: pgBoss.warmup, jobs: pgBoss.jobs }],
    "pg-boss batches": ["pgBossBatches", { connectionString, warmup: pgBoss.warmup, jobs: pgBoss.batchedJobs }],
  };
}

/** a, b and c: name to what each run measured. */
export async function throughput(workspace, options, say) {
  const { sections, runs } = options;
  let server;
  let connectionString;
  if (sections.has("c")) {
    say("starting PostgreSQL");
    server = workspace.start("postgres", { folder: workspace.newFolder("postgres") });
    ({ connectionString } = await server.result);
  }
  const contenders = Object.entries(contendersOf(options, connectionString));
  const measured = Object.fromEntries(contenders.map(([name]) => [name, []]));
  for (let run = 0; run < runs; run += 1) {
    for (const [name, [contender, settings]] of rotated(contenders, run)) {
      const value = await workspace.runInFolder(contender, settings);
      measured[name].push(value);
      const shown =
        typeof value === "number"
          ? `${Math.round(value)}/s`
          : `${value.inPlace.median.toFixed(2)} ms (growing file ${value.growing.median.toFixed(2)} ms)`;
      say(`run ${run + 1} of ${runs}: ${name.padEnd(18)} ${shown}`);
    }
  }
  await server?.stop();
  return measured;
}

/** Builds the stores with history that d and e share. */
export async function buildHistory(workspace, { sections, sizes }, say) {
  const history = { built: {} };
  const build = async (name, contender, options) => {
    const done = await workspace.run(contender, { ...options, onProgress: progress(say, `building ${name}`) });
    say(`built ${name}: ${done.seconds.toFixed(0)} s, ${(done.bytes / 1e6).toFixed(0)} MB`);
    history.built[name] = done;
  };
  const wanted = sections.has("d") ? ["small", "large"] : ["large"];
  for (const size of wanted) {
    const total = sizes[`${size}Store`];
    const live = join(workspace.folder, `${size}-live`);
    const settled = join(workspace.folder, `${size}-settled`);
    mkdirSync(live);
    await build(`${total} live`, "buildLive", { data: live, total });
    cpSync(live, settled, { recursive: true });
    await build(`${total} settled`, "settleMost", { data: settled, total });
    history[size] = { live, settled };
  }
  return history;
}

/** d: for each state, what each run measured on the small and the large store. */
export async function sizeComparison(workspace, { runs, sizes }, history, say) {
  const measured = { live: [], settled: [] };
  const total = { small: sizes.smallStore, large: sizes.largeStore };
  for (let run = 0; run < runs; run += 1) {
    for (const state of rotated(["settled", "live"], run)) {
      const times = await workspace.runInFolder("compareSizes", {
        small: history.small[state],
        large: history.large[state],
        total,
        settled: state === "settled",
        rounds: sizes.rounds,
      });
      measured[state].push(times);
      const shown = Object.keys(times.small).map(
        (name) => `${name} ${(times.large[name] / times.small[name]).toFixed(2)}`,
      );
      say(`run ${run + 1} of ${runs}: ${state}, large to small: ${shown.join(", ")}`);
    }
  }
  return measured;
}

/** e: for each store, what each run measured. */
export async function openingAndMemory(workspace, { runs, sizes }, history, say) {
  const measured = { empty: [], settled: [], live: [] };
  for (let run = 0; run < runs; run += 1) {
    for (const name of rotated(Object.keys(measured), run)) {
      const data = name === "empty" ? workspace.newFolder("empty") : history.large[name];
      const one = await workspace.run("memory", { data, emits: sizes.memoryEmits });
      if (name === "empty") rmSync(data, { recursive: true, force: true });
      measured[name].push(one);
      say(
        `run ${run + 1} of ${runs}: ${name.padEnd(8)} opened in ${one.openMs.toFixed(1)} ms, ${one.idle.toFixed(0)} MiB idle`,
      );
    }
  }
  return measured;
}

/** Says where a long task is, a few times a minute. */
function progress(say, what) {
  let last = performance.now();
  return (text) => {
    if (performance.now() - last < 5_000) return;
    last = performance.now();
    say(`${what}: ${text}`);
  };
}
