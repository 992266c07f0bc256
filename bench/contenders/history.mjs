/** Stores with much history: built by Tidings itself, and compared with small ones. */
import { cpSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";
import { Tidings } from "../../dist/index.js";
import { callers, eventOf, userOf } from "../workload.mjs";

const USERS = 100;
const SLICE = 6_400;
const HOUR_MS = 60 * 60 * 1_000;

/** History is not of this minute: it was written an hour ago, by the clock that its writer was given. */
const anHourAgo = { wall: () => Date.now() - HOUR_MS, monotonic: () => performance.now() };

/** Emits `total` notifications for 100 users in turn; all stay live. */
export async function buildLive({ data, total }, tell) {
  const started = performance.now();
  const tidings = await Tidings.open({ data, clock: anHourAgo });
  for (let from = 0; from < total; from += SLICE) {
    const count = Math.min(SLICE, total - from);
    const outcomes = await tidings.emitMany(Array.from({ length: count }, (_, index) => eventOf(from + index, USERS)));
    for (const outcome of outcomes) if ("error" in outcome) throw outcome.error;
    tell({ progress: `${from + count} of ${total} emitted` });
  }
  await tidings.close();
  return built(data, started);
}

/** One in 50 stays live; the others are acknowledged. */
export async function settleMost({ data, total }, tell) {
  const started = performance.now();
  const tidings = await Tidings.open({ data, clock: anHourAgo });
  const reader = new Database(join(data, "tidings.db"), { readonly: true });
  const page = reader
    .prepare("SELECT id FROM notifications WHERE number > ? AND number <= ? AND number % 50 <> 0")
    .pluck();
  for (let from = 0; from < total; from += SLICE) {
    const ids = page.all(from, from + SLICE);
    await Promise.all(ids.map((id) => acknowledge(tidings, id, "rendered")));
    tell({ progress: `${Math.min(from + SLICE, total)} of ${total} settled` });
  }
  reader.close();
  await tidings.close();
  return built(data, started);
}

function built(data, started) {
  return { seconds: (performance.now() - started) / 1_000, bytes: statSync(join(data, "tidings.db")).size };
}

async function acknowledge(tidings, id, action) {
  const answer = await tidings.ack({ id, revision: 1, action });
  if ("miss" in answer) throw new Error(answer.message);
}

/** Operations of one kind in one round: ten commits of 64. */
const OPERATIONS = 640;
const LISTS = 50;

/** Events that were emitted in this process: no two are the same. */
let emitted = 0;

/**
 * The same operations on the small and on the large store, in turn. Each round opens them anew, so that no cache of
 * ours is warm; the small one is a fresh copy each time, since it would not stay small. The first round is a warm-up.
 * Answers the milliseconds of each operation, for each store.
 */
export async function compareSizes({ folder, small, large, total, settled, rounds }, tell) {
  const sums = { small: {}, large: {} };
  for (let round = 0; round <= rounds; round += 1) {
    for (const size of round % 2 === 0 ? ["small", "large"] : ["large", "small"]) {
      const data = size === "small" ? join(folder, "copy") : large;
      if (size === "small") cpSync(small, data, { recursive: true });
      const times = await measure(data, total[size], settled);
      if (size === "small") rmSync(data, { recursive: true });
      if (round > 0) for (const [name, ms] of Object.entries(times)) sums[size][name] = (sums[size][name] ?? 0) + ms;
    }
    tell({ progress: `round ${round} of ${rounds}` });
  }
  const means = (times) => Object.fromEntries(Object.entries(times).map(([name, ms]) => [name, ms / rounds]));
  return { small: means(sums.small), large: means(sums.large) };
}

async function measure(data, total, settled) {
  const old = pickOld(data, total, settled);
  const times = {};
  let tidings = await Tidings.open({ data });
  times.list10 = await perListed((user_id) => tidings.list({ user_id, limit: 10 }));
  times.list100 = await perListed((user_id) => tidings.list({ user_id, limit: 100 }));
  times.unread100 = await perListed((user_id) => tidings.list({ user_id, unread: true, limit: 100 }));
  times.count = await perUser((user_id) => tidings.counts(user_id));
  times.countAgain = await perUser((user_id) => tidings.counts(user_id));
  const recent = [];
  times.emit = await each(OPERATIONS, async () => {
    emitted += 1;
    const answer = await tidings.emit(eventOf(emitted, USERS));
    recent.push(answer.matches[0].notification.id);
  });
  times.ackRecent = await each(OPERATIONS, (index) => acknowledge(tidings, recent[index], "rendered"));
  await tidings.close();

  tidings = await Tidings.open({ data });
  const started = performance.now();
  times.ackOld = await each(OPERATIONS, (index) => acknowledge(tidings, old[index], settled ? "clicked" : "rendered"));
  await tidings.close();
  times.ackOldCheckpointed = (performance.now() - started) / OPERATIONS;
  return times;
}

/** Milliseconds of one of `count` operations. */
async function each(count, operation) {
  const started = performance.now();
  await callers(count, operation);
  return (performance.now() - started) / count;
}

/** Milliseconds for each notification that a list of a user's newest answers: a small store has fewer than a page. */
async function perListed(list) {
  let listed = 0;
  const started = performance.now();
  for (let index = 0; index < LISTS; index += 1) {
    const { notifications } = await list(userOf(index, USERS));
    listed += notifications.length;
  }
  return (performance.now() - started) / listed;
}

/** Milliseconds of one answer, of each user once. */
async function perUser(ask) {
  const started = performance.now();
  for (let index = 0; index < USERS; index += 1) await ask(userOf(index, USERS));
  return (performance.now() - started) / USERS;
}

/** Any of the first `total` that an acknowledgement still changes, far apart from each other. */
function pickOld(data, total, settled) {
  const reader = new Database(join(data, "tidings.db"), { readonly: true });
  const state = settled ? "DELIVERED" : "DISPATCHED";
  const one = reader
    .prepare(
      "SELECT n.id FROM notifications n JOIN deliveries d ON d.number = n.number WHERE n.number = ? AND d.state = ? AND d.read_at IS NULL",
    )
    .pluck();
  const picked = new Set();
  while (picked.size < OPERATIONS) {
    const id = one.get(1 + Math.floor(Math.random() * total), state);
    if (id !== undefined) picked.add(id);
  }
  reader.close();
  return [...picked];
}
