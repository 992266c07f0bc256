/** plainjob, a queue on SQLite, with the product's better-sqlite3. By its own setting it flushes at checkpoints only. */
import { join } from "node:path";
import Database from "better-sqlite3";
import { better, defineQueue, defineWorker, JobStatus } from "plainjob";
import { failureOf, payloadOf, rate, work } from "../workload.mjs";

const TYPE = "tool_failure";
const ignore = () => {};
const logger = { error: ignore, warn: ignore, info: ignore, debug: ignore };

/** The way most favourable to it: a bare loop, without its worker's polls, promises and log lines. */
export async function plainjobLoop({ folder, warmup, jobs, synchronous }) {
  const connection = new Database(join(folder, "plainjob.db"));
  const queue = defineQueue({ connection: better(connection), logger });
  if (synchronous !== undefined) connection.pragma(`synchronous = ${synchronous}`);
  const loop = (count) => {
    for (let index = 0; index < count; index += 1) {
      queue.add(TYPE, payloadOf(index));
      const { id } = queue.getAndMarkJobAsProcessing(TYPE);
      queue.getJobById(id);
      queue.markJobAsDone(id);
    }
  };
  try {
    loop(warmup);
    const perSecond = await rate(jobs, () => loop(jobs));
    assertDone(queue, warmup + jobs);
    return perSecond;
  } finally {
    queue.close();
  }
}

/** With its own worker: all jobs are added, then processed. */
export async function plainjobWorker({ folder, warmup, jobs }) {
  const queue = defineQueue({ connection: better(new Database(join(folder, "plainjob.db"))), logger });
  const process = async (count) => {
    for (let index = 0; index < count; index += 1) queue.add(TYPE, payloadOf(index));
    let left = count;
    await new Promise((resolve, reject) => {
      const worker = defineWorker(TYPE, ignore, {
        queue,
        logger,
        onCompleted: () => {
          left -= 1;
          if (left === 0) void worker.stop();
        },
      });
      worker.start().then(resolve, reject);
    });
  };
  try {
    await process(warmup);
    const perSecond = await rate(jobs, () => process(jobs));
    assertDone(queue, warmup + jobs);
    return perSecond;
  } finally {
    queue.close();
  }
}

/** `add` alone: one row a job, and a commit each. */
export async function plainjobAdd({ folder, warmup, events, synchronous }) {
  const connection = new Database(join(folder, "plainjob.db"));
  const queue = defineQueue({ connection: better(connection), logger });
  if (synchronous !== undefined) connection.pragma(`synchronous = ${synchronous}`);
  const add = (from, to) => {
    for (let index = from; index < to; index += 1) queue.add(TYPE, failureOf(index).payload);
  };
  try {
    add(0, warmup);
    return await work(events, () => add(warmup, warmup + events));
  } finally {
    queue.close();
  }
}

function assertDone(queue, jobs) {
  const done = queue.countJobs({ status: JobStatus.Done });
  if (done !== jobs) throw new Error(`plainjob did ${done} jobs of ${jobs}`);
}
