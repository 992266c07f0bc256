/** Sections f to i: the server. Each run has every contender once, in an order that rotates, on a fresh folder. */

import { execFileSync } from "node:child_process";
import { readFileSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { platform } from "node:os";
import { join } from "node:path";
import { json } from "node:stream/consumers";
import { setTimeout as pause } from "node:timers/promises";
import { percent } from "./rows.mjs";
import { rotated } from "./statistics.mjs";
import { openWebSocket } from "./wire.mjs";
import { CALLERS, eventOf } from "./workload.mjs";

/** f: name to what each run measured. */
export async function emitsOverHttp(workspace, { runs, sizes, profile }, say) {
  const one = { ...sizes.http, perRequest: 1 };
  const arrays = { ...sizes.httpArrays, perRequest: 100 };
  const load = (server, settings) => workspace.run("postEvents", { server, connections: CALLERS, ...settings });
  const tidings = (settings) => () =>
    withTidings(workspace, { profile }, async (server) => {
      const before = await lastSeq(server);
      const measured = await load(server, settings);
      mustBe("entries of the journal", (await lastSeq(server)) - before, settings.warmup + settings.events);
      return measured;
    });
  const fastify = (settings) => () => withBare(workspace, "bareFastify", {}, (server) => load(server, settings));
  const contenders = Object.entries({
    "tidings 1": tidings(one),
    "fastify 1": fastify(one),
    "tidings 100": tidings(arrays),
    "fastify 100": fastify(arrays),
    emit: async () => ({
      perSecond: await workspace.runInFolder("durableEmit", { users: 1, ...one, emits: one.events }),
    }),
  });
  return interleaved(contenders, runs, (name, { perSecond, busy }, run) => {
    const generator = busy === undefined ? "" : `, the load generator ${percent(busy)} busy`;
    say(`${run}: ${name.padEnd(12)} ${Math.round(perSecond)}/s${generator}`);
  });
}

/** g: name to what each run measured. */
export async function emitsToFrames(workspace, { runs, sizes, profile }, say) {
  const measure = (server) => workspace.run("emitToFrame", { server, ...sizes.latency });
  const contenders = Object.entries({
    tidings: () => withTidings(workspace, { profile }, measure),
    "bare ws": () => withBare(workspace, "bareWebSocket", {}, measure),
  });
  return interleaved(contenders, runs, (name, { p50, p99, max, late, waitedMost }, run) => {
    const times = `50% ${p50.toFixed(2)} ms, 99% ${p99.toFixed(2)} ms, worst ${max.toFixed(1)} ms`;
    const generator = `behind the clock, 99%: ${late.toFixed(1)} ms; without a connection: ${waitedMost} at most`;
    say(`${run}: ${name.padEnd(12)} ${times}; ${generator}`);
  });
}

/** Two processes hold the clients: more would take the server's core. */
const AUDIENCES = 2;

/** h: name to what each run measured, and the size of a frame. */
export async function fanOut(workspace, { runs, sizes, profile }, say) {
  const { clients } = sizes.fanOut;
  const frameBytes = await withTidings(workspace, {}, pushBytes);
  say(`a push has ${frameBytes} bytes`);
  const measured = { tidings: [], "bare ws": [] };
  for (let run = 0; run < runs; run += 1) {
    const one = await withTidings(workspace, { profile }, (tidings) =>
      withBare(workspace, "bareWebSocket", { frameBytes }, (bare) =>
        fanOutInTurn(workspace, { tidings, "bare ws": bare }, sizes.fanOut, frameBytes),
      ),
    );
    for (const [name, { frames, ms, workMs, busy }] of Object.entries(one)) {
      const value = { perSecond: (frames * 1_000) / ms, workMs: workMs / frames, busy: Math.max(...busy) };
      measured[name].push(value);
      const shown = `${Math.round(value.perSecond)} frames/s to ${clients} clients`;
      say(`run ${run + 1} of ${runs}: ${name.padEnd(12)} ${shown}, which were at most ${percent(value.busy)} busy`);
    }
  }
  return { frameBytes, ...measured };
}

/**
 * The same clients are connected to both servers, and these broadcast in turn, a round each: whatever else the machine
 * does then slows both. A round lasts from its first request to the last frame at the last client.
 */
async function fanOutInTurn(workspace, servers, { clients, warmup, rounds, events }, frameBytes) {
  const marks = Array.from({ length: rounds + 1 }, (_, round) => warmup + round * events);
  // Counts are frames too, and much shorter than a push; they are sent, and not counted.
  const options = { servers, clients: clients / AUDIENCES, marks, bytesMin: frameBytes / 2 };
  const audiences = Array.from({ length: AUDIENCES }, () => seated(workspace, options));
  const all = (step) => Promise.all(audiences.map((one) => one.told(step)));
  const broadcast = async (name, count, mark) => {
    const post = workspace.run("postEvents", { server: servers[name], connections: CALLERS, events: count });
    const [{ startedAt }, ends] = await Promise.all([post, all(`${name} ${mark}`)]);
    return { ms: Math.max(...ends.map(({ at }) => at)) - startedAt, busy: ends.map(({ busy }) => busy) };
  };
  const names = Object.keys(servers);
  const sums = Object.fromEntries(names.map((name) => [name, { frames: 0, ms: 0, workMs: 0, busy: [] }]));
  try {
    await all("connected");
    for (const name of names) await broadcast(name, warmup, warmup);
    for (let round = 1; round <= rounds; round += 1)
      for (const name of rotated(names, round)) {
        const before = workMs(servers[name].pid);
        const { ms, busy } = await broadcast(name, events, marks[round]);
        sums[name].frames += clients * events;
        sums[name].ms += ms;
        sums[name].workMs += workMs(servers[name].pid) - before;
        sums[name].busy.push(...busy);
      }
    return sums;
  } finally {
    await Promise.all(audiences.map((one) => one.stop()));
  }
}

/** Starts clients; `told` resolves when they have come to a step, and rejects when they cannot. */
export function seated(workspace, options) {
  const steps = new Map();
  const waiting = new Map();
  const onProgress = (message) => {
    steps.set(message.step, message);
    waiting.get(message.step)?.(message);
  };
  const { result, stop } = workspace.start("audience", { ...options, onProgress });
  const failed = new Promise((_, reject) => {
    result.catch(reject);
  });
  failed.catch(() => {});
  const told = (step) => {
    const reached = new Promise((resolve) => {
      if (steps.has(step)) resolve(steps.get(step));
      else waiting.set(step, resolve);
    });
    return Promise.race([reached, failed]);
  };
  return { told, stop };
}

/** How long a push of an event of the workload is. */
async function pushBytes(server) {
  return new Promise((resolve, reject) => {
    const onText = (text) => {
      if (text.includes('"notification/created"')) resolve(text.length);
    };
    const begin = async () => {
      await openWebSocket(server, onText, reject);
      const response = await fetch(`${server.url}/v1/events`, {
        method: "POST",
        headers: { authorization: `Bearer ${server.token}` },
        body: JSON.stringify(eventOf(0, 1)),
      });
      mustBe("the answer's status", response.status, 202);
    };
    begin().catch(reject);
  });
}

/** Until a process that has just worked holds what it goes on holding. */
const SETTLE_MS = 1_000;

/** i: name to what each run measured. */
export async function bootAndMemory(workspace, { runs, sizes }, say) {
  const { idleClients, bootStore } = sizes;
  say(`building ${bootStore} live`);
  const history = workspace.newFolder("boot");
  await workspace.run("buildLive", { data: history, total: bootStore, onProgress: () => {} });
  const measure = (door) => async (server) => {
    await pause(SETTLE_MS);
    const idle = residentKiB(server.pid);
    const options = { servers: { server }, clients: idleClients, marks: [], bytesMin: 0 };
    // With the first ones a server still compiles and makes room: some come and go, others stay, and none of them counts.
    await (await withSeated(workspace, options)).stop();
    const audiences = [await withSeated(workspace, options)];
    try {
      const before = await held(door);
      audiences.push(await withSeated(workspace, options));
      const after = await held(door);
      const perClient = (key) => (after[key] - before[key]) / 1_024 / idleClients;
      const memory = { heap: perClient("heap"), resident: perClient("resident"), all: perClient("all") };
      return { readyMs: server.readyMs, idle, ...memory };
    } finally {
      await Promise.all(audiences.map((one) => one.stop()));
    }
  };
  let doors = 0;
  const newDoor = () => {
    doors += 1;
    return join(workspace.folder, `door-${doors}`);
  };
  const tidings = (data) => () => {
    const door = newDoor();
    return withTidings(workspace, { data, door }, measure(door));
  };
  const contenders = Object.entries({
    empty: tidings(undefined),
    history: tidings(history),
    "bare ws": () => {
      const door = newDoor();
      return withBare(workspace, "bareWebSocket", { door }, measure(door));
    },
    "bare node": () => workspace.run("bareNode"),
  });
  return interleaved(contenders, runs, (name, { readyMs, idle, heap, resident, all }, run) => {
    const ready = readyMs === undefined ? [] : [`ready after ${readyMs.toFixed(0)} ms`];
    const client = () => `${heap.toFixed(2)} KiB a client, resident ${resident.toFixed(1)} or ${all.toFixed(1)}`;
    const memory = idle === undefined ? [] : [`${(idle / 1_024).toFixed(0)} MiB idle, ${client()}`];
    say(`${run}: ${name.padEnd(12)} ${[...ready, ...memory].join(", ")}`);
  });
}

/** Clients that are connected, and have been for a moment. */
async function withSeated(workspace, options) {
  const clients = seated(workspace, options);
  try {
    await clients.told("connected");
    await pause(SETTLE_MS);
    return clients;
  } catch (error) {
    await clients.stop();
    throw error;
  }
}

/** What the process behind a door holds, in bytes. */
function held(door) {
  return json(connect(door));
}

export function residentKiB(pid) {
  if (platform() !== "linux") return Number(execFileSync("ps", ["-o", "rss=", "-p", String(pid)]));
  const [, kib] = /^VmRSS:\s+([0-9]+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"));
  return Number(kib);
}

/** What a process has worked so far, which other processes hardly change; NaN where the system does not tell. */
function workMs(pid) {
  if (platform() !== "linux") return Number.NaN;
  // After the name, which may hold anything: the 12th and 13th are ticks of 10 ms, its own and the kernel's for it.
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8")
    .replace(/^.*\) /s, "")
    .split(" ");
  return (Number(fields[11]) + Number(fields[12])) * 10;
}

/** Name to what each run measured. */
export async function interleaved(contenders, runs, tell) {
  const measured = Object.fromEntries(contenders.map(([name]) => [name, []]));
  for (let run = 0; run < runs; run += 1)
    for (const [name, contender] of rotated(contenders, run)) {
      const value = await contender();
      measured[name].push(value);
      tell(name, value, `run ${run + 1} of ${runs}`);
    }
  return measured;
}

/** A `tidings serve` for as long as `use` takes, on a folder of its own unless it is given one. */
export async function withTidings(workspace, { data, profile, door }, use) {
  const folder = data ?? workspace.newFolder("served");
  try {
    return await withBare(workspace, "tidingsServe", { data: folder, profile, door }, use);
  } finally {
    if (data === undefined) rmSync(folder, { recursive: true, force: true });
  }
}

async function withBare(workspace, contender, options, use) {
  const { result, stop } = workspace.start(contender, options);
  try {
    return await use(await result);
  } finally {
    await stop();
  }
}

/** How far the journal of a server has come. */
async function lastSeq(server) {
  return (await asAdmin(server, "runtime/status", {})).last_seq;
}

export async function asAdmin({ url, adminToken }, method, params) {
  const response = await fetch(`${url}/rpc`, {
    method: "POST",
    headers: { authorization: `Bearer ${adminToken}` },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }),
  });
  const { result, error } = await response.json();
  if (error !== undefined) throw new Error(`${method}: ${error.message}`);
  return result;
}

function mustBe(what, value, wanted) {
  if (value !== wanted) throw new Error(`${what}: ${value}, not ${wanted}`);
}
