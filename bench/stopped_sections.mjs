/** Section o: one client of many stops reading. What the others notice, what it costs, and what it has when it is back. */
import { setTimeout as pause } from "node:timers/promises";
import { residentKiB, seated, withTidings } from "./server_sections.mjs";
import { median, rotated } from "./statistics.mjs";

/** o: for each run, what the others noticed without it and with it, and for each round what became of it. */
export async function stoppedReader(workspace, { runs, sizes }, say) {
  const measured = [];
  for (let run = 0; run < runs; run += 1) {
    const tell = (text) => say(`run ${run + 1} of ${runs}: ${text}`);
    measured.push(await withTidings(workspace, {}, (server) => oneRun(workspace, server, sizes.stopped, tell)));
  }
  return measured;
}

/** It reads and it does not, in turn: whatever else the machine does is in both. */
async function oneRun(workspace, server, { clients, rounds, ...load }, say) {
  const notifications = load.warmup + load.events;
  const marks = Array.from({ length: 2 * rounds }, (_, at) => (at + 1) * notifications);
  // One more measures, and one is the one that stops.
  const options = { servers: { tidings: server }, clients: clients - 2, marks, bytesMin: load.words };
  const others = seated(workspace, options);
  const measured = { without: [], with: [] };
  let round = 0;
  const measure = async () => {
    const times = await workspace.run("emitToFrame", { server, ...load });
    // All the others have had everything too.
    await others.told(`tidings ${marks[round]}`);
    round += 1;
    return times;
  };
  try {
    await others.told("connected");
    for (let at = 0; at < rounds; at += 1)
      for (const kind of rotated(Object.keys(measured), at)) {
        const one = await withReader(workspace, server, { notifications, stops: kind === "with" }, measure);
        measured[kind].push(one);
        say(`${kind.padEnd(7)} ${shown(one)}`);
      }
  } finally {
    await others.stop();
  }
  const ofAll = (kind, key) => median(measured[kind].map(({ times }) => times[key]));
  const times = (kind) => ({ p50: ofAll(kind, "p50"), p99: ofAll(kind, "p99") });
  return { without: times("without"), with: times("with"), stopped: measured.with };
}

function shown({ times, waiting, closed, reader }) {
  const { p50, p99 } = times;
  const became = closed ? "was closed and " : "";
  return (
    `50% ${p50.toFixed(2)} ms, 99% ${p99.toFixed(2)} ms; ${waiting} bytes waited for one at most; ` +
    `the one ${became}has ${reader.seen}, over ${reader.connections} connections`
  );
}

/** While `measure` runs one more client reads or, as a process that is stopped, does not; then it must have been told everything once. */
async function withReader(workspace, server, { notifications, stops }, measure) {
  let pid;
  let resolve;
  const connected = new Promise((settle) => {
    resolve = settle;
  });
  const { result, stop } = workspace.start("reader", { server, notifications, onProgress: resolve });
  try {
    ({ pid } = await Promise.race([connected, result]));
    const before = { resident: residentKiB(server.pid), closed: (await figures(server)).closed };
    if (stops) process.kill(pid, "SIGSTOP");
    const { result: times, waiting } = await watched(server, measure);
    const after = { resident: residentKiB(server.pid), closed: (await figures(server)).closed };
    process.kill(pid, "SIGCONT");
    const reader = await result;
    if (reader.seen !== notifications || reader.doubled > 0 || reader.resets > 0)
      throw new Error(`of ${notifications} it was told ${JSON.stringify(reader)}`);
    return { times, waiting, grown: after.resident - before.resident, closed: after.closed > before.closed, reader };
  } finally {
    if (pid !== undefined) process.kill(pid, "SIGCONT");
    await stop();
  }
}

const LOOK_MS = 250;

/** What `task` gives, and the most that waited in the server for one client meanwhile. */
async function watched(server, task) {
  let over = false;
  let waiting = 0;
  const look = async () => {
    while (!over) {
      waiting = Math.max(waiting, (await figures(server)).waiting);
      await pause(LOOK_MS);
    }
  };
  const looking = look();
  looking.catch(() => {});
  try {
    const result = await task();
    return { result, waiting };
  } finally {
    over = true;
    await looking;
  }
}

/** Clients that were closed since they were slow, and bytes that wait for the one that is furthest behind. */
async function figures({ url, adminToken }) {
  const response = await fetch(`${url}/metrics`, { headers: { authorization: `Bearer ${adminToken}` } });
  const text = await response.text();
  const value = (name) => Number(new RegExp(`^${name} ([0-9.]+)$`, "m").exec(text)[1]);
  return { closed: value("tidings_clients_closed_slow_total"), waiting: value("tidings_client_waiting_bytes_max") };
}
