/**
 * What a server's process holds, for whoever connects to a socket in the file system: after what it has done with was
 * collected, so that only what it goes on holding counts. Loaded into the process by `--import`, or called.
 */
import { createServer } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import { getHeapSpaceStatistics } from "node:v8";

const COLLECTIONS = 4;
const PAUSE_MS = 50;

export function openMemoryDoor(path) {
  const door = createServer(async (socket) => {
    for (let times = 0; times < COLLECTIONS; times += 1) {
      globalThis.gc();
      await pause(PAUSE_MS);
    }
    const { heapUsed, external, rss } = process.memoryUsage();
    socket.end(JSON.stringify({ heap: heapUsed + external, resident: rss - young(), all: rss }));
  });
  door.unref();
  return new Promise((resolve) => door.listen(path, resolve));
}

/** Where new objects are made: its pages are touched one after the other as things are done, and then used again. */
function young() {
  return getHeapSpaceStatistics().find(({ space_name }) => space_name === "new_space").physical_space_size;
}

const { BENCH_MEMORY_DOOR: path } = process.env;
if (path !== undefined) await openMemoryDoor(path);
