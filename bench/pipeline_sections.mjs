/** Sections j to m: from an event to its notification. */
import { rmSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { asAdmin, interleaved, residentKiB, withTidings } from "./server_sections.mjs";
import { median } from "./statistics.mjs";
import { sharedMs } from "./wire.mjs";
import { CALLERS, failureOf } from "./workload.mjs";

/** j: what each run measured. */
export async function matchingCost(workspace, { runs, sizes }, say) {
  const measured = [];
  for (let run = 0; run < runs; run += 1) {
    const one = await workspace.run("matching", sizes.matching);
    measured.push(one);
    const shown = (ms) => `${(ms * 1_000).toFixed(2)} µs`;
    say(`run ${run + 1} of ${runs}: few ${shown(one.few)}, many ${shown(one.many)} an event`);
  }
  return measured;
}

/** k: name to what each run measured. */
export async function pipelineCost(workspace, { runs, sizes }, say) {
  const { pipeline, plainjobAdd, plainjobAddFlushed } = sizes;
  const contender = (name, settings) => () => workspace.runInFolder(name, settings);
  const contenders = Object.entries({
    write: contender("journalWrite", pipeline),
    "raw entries": contender("rawEntries", pipeline),
    "raw batches": contender("rawBatches", pipeline),
    match: contender("matchAlone", pipeline),
    render: contender("renderAlone", pipeline),
    whole: contender("pipelineWrite", pipeline),
    emit: contender("pipelineEmit", pipeline),
    "emit many": contender("pipelineEmitMany", pipeline),
    plainjob: contender("plainjobAdd", plainjobAdd),
    "plainjob flushed": contender("plainjobAdd", { ...plainjobAddFlushed, synchronous: "FULL" }),
  });
  return interleaved(contenders, runs, (name, { micros, perSecond }, run) => {
    say(`${run}: ${name.padEnd(16)} ${micros.toFixed(1)} µs of CPU an event, ${Math.round(perSecond)}/s`);
  });
}

const SAMPLE_MS = 50;
/** Before the burst, and after it until the last windows have ended. */
const CALM_MS = 5_500;
const AFTER_MS = 4_000;

/** l: what each run measured. */
export async function burstAndQuiet(workspace, { runs, sizes, profile }, say) {
  const measured = [];
  for (let run = 0; run < runs; run += 1) {
    const data = workspace.newFolder("burst");
    try {
      const one = await withTidings(workspace, { data, profile }, (server) => burstOn(workspace, server, sizes.burst));
      const account = await workspace.run("accountFor", { data, events: sizes.burst.events });
      measured.push({ ...one, account });
      const { calm, during, ms, memory } = one;
      const kept = `${memory.before} MiB before, ${memory.most} at most, ${memory.after} after`;
      const delays = `${median(during).toFixed(1)} ms, worst ${Math.max(...during).toFixed(0)} ms (calm ${median(calm).toFixed(1)} ms)`;
      say(`run ${run + 1} of ${runs}: ${(ms / 1_000).toFixed(1)} s; the quiet one's delay ${delays}; ${kept}`);
    } finally {
      rmSync(data, { recursive: true, force: true });
    }
  }
  return measured;
}

async function burstOn(workspace, server, { events }) {
  const { user_id, thread_id } = failureOf(0);
  await asAdmin(server, "thread/start", { user_id, thread_id });
  const delays = [];
  const quiet = workspace.start("quietSource", { server, onProgress: (one) => delays.push(one) });
  const failed = quiet.result.then(() => {});
  failed.catch(() => {});
  const resident = [];
  const sampling = setInterval(() => resident.push({ at: sharedMs(), kib: residentKiB(server.pid) }), SAMPLE_MS);
  try {
    await Promise.race([pause(CALM_MS), failed]);
    const before = residentKiB(server.pid);
    let halfAt;
    const onProgress = (progress) => {
      ({ halfAt } = progress);
    };
    const posted = workspace.run("burst", { server, events, connections: CALLERS, onProgress });
    const { startedAt, endedAt } = await Promise.race([posted, failed]);
    await Promise.race([pause(AFTER_MS), failed]);
    const most = (from, to) => Math.max(...resident.filter(({ at }) => at >= from && at <= to).map(({ kib }) => kib));
    const after = residentKiB(server.pid);
    return {
      calm: delays.filter(({ at }) => at < startedAt).map(({ ms }) => ms),
      during: delays.filter(({ at }) => at >= startedAt && at <= endedAt).map(({ ms }) => ms),
      ms: endedAt - startedAt,
      memory: {
        before: mib(before),
        most: mib(most(startedAt, Number.POSITIVE_INFINITY)),
        firstHalf: mib(most(startedAt, halfAt)),
        secondHalf: mib(most(halfAt, endedAt)),
        after: mib(after),
      },
    };
  } finally {
    clearInterval(sampling);
    await quiet.stop();
  }
}

function mib(kib) {
  return Math.round(kib / 1_024);
}

/** m: a measurement for each subscriber and number of rows. Nothing varies: it is done once. */
export async function tokenCounts(workspace, say) {
  const measured = await workspace.run("tokens");
  say(`${measured.length} batches counted`);
  return measured;
}
