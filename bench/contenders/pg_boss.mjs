/** pg-boss 10 on PostgreSQL with its default settings: every commit is flushed, as ours is. */
import PgBoss from "pg-boss";
import { CALLERS, callers, payloadOf, rate } from "../workload.mjs";

/** Its default. With 4, 32 and 64 it was up to a quarter faster or slower, and never near the others. */
const CONNECTIONS = 10;

/** 64 callers: each sends a job, takes whichever is next, and completes it. */
export function pgBossCallers({ connectionString, warmup, jobs }) {
  return withQueue(connectionString, async (boss, queue) => {
    const cycle = async (index) => {
      await boss.send(queue, payloadOf(index));
      for (;;) {
        const [job] = await boss.fetch(queue);
        if (job === undefined) continue;
        await boss.complete(queue, job.id);
        return;
      }
    };
    await callers(warmup, cycle);
    return rate(jobs, () => callers(jobs, cycle));
  });
}

/** One caller that sends, fetches and completes 64 at a time. */
export function pgBossBatches({ connectionString, warmup, jobs }) {
  return withQueue(connectionString, async (boss, queue) => {
    const batches = async (count) => {
      for (let from = 0; from < count; from += CALLERS) {
        await boss.insert(
          Array.from({ length: CALLERS }, (_, index) => ({ name: queue, data: payloadOf(from + index) })),
        );
        const fetched = await boss.fetch(queue, { batchSize: CALLERS });
        if (fetched.length !== CALLERS) throw new Error(`pg-boss fetched ${fetched.length} jobs of ${CALLERS}`);
        await boss.complete(
          queue,
          fetched.map((job) => job.id),
        );
      }
    };
    await batches(warmup);
    return rate(jobs, () => batches(jobs));
  });
}

async function withQueue(connectionString, measure) {
  const boss = new PgBoss({ connectionString, max: CONNECTIONS, supervise: false, schedule: false });
  let failure;
  boss.on("error", (error) => {
    failure = error;
  });
  await boss.start();
  // A queue of its own each time, which is a table of its own; it goes with the server.
  const queue = `tool_failure_${process.pid}`;
  try {
    await boss.createQueue(queue);
    const measured = await measure(boss, queue);
    if (failure !== undefined) throw failure;
    return measured;
  } finally {
    await boss.stop({ graceful: false });
  }
}
