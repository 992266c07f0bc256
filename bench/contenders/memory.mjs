import { Tidings } from "../../dist/index.js";
import { callers, eventOf, userOf } from "../workload.mjs";

const USERS = 100;

/** In a fresh process: how long a store takes to open, and what the process holds then, and after some use. */
export async function memory({ data, emits }) {
  const unopened = residentMiB();
  const started = performance.now();
  let tidings = await Tidings.open({ data });
  const openMs = performance.now() - started;
  const idle = residentMiB();
  await callers(emits, (index) => tidings.emit(eventOf(index, USERS)));
  const afterEmits = residentMiB();
  for (let index = 0; index < USERS; index += 1) await tidings.list({ user_id: userOf(index, USERS), limit: 100 });
  const afterLists = residentMiB();
  await tidings.close();

  const again = performance.now();
  tidings = await Tidings.open({ data });
  const reopenMs = performance.now() - again;
  await tidings.close();
  return { unopened, openMs, idle, afterEmits, afterLists, reopenMs };
}

function residentMiB() {
  globalThis.gc();
  return process.memoryUsage().rss / (1_024 * 1_024);
}
