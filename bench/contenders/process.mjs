/**
 * The process of one contender. It is told which, answers once, and waits to be ended; if its parent is gone it ends
 * by itself. What a contender needs is loaded only now, since the peers may not be installed.
 */
const MODULES = {
  fdatasync: "./fdatasync.mjs",
  rawInserts: "./raw.mjs",
  durableEmit: "./tidings.mjs",
  fullCycle: "./tidings.mjs",
  plainjobLoop: "./plainjob.mjs",
  plainjobWorker: "./plainjob.mjs",
  postgres: "./postgres.mjs",
  pgBossCallers: "./pg_boss.mjs",
  pgBossBatches: "./pg_boss.mjs",
  buildLive: "./history.mjs",
  settleMost: "./history.mjs",
  compareSizes: "./history.mjs",
  memory: "./memory.mjs",
  tidingsServe: "./servers.mjs",
  bareNode: "./servers.mjs",
  bareFastify: "./servers.mjs",
  bareWebSocket: "./servers.mjs",
  postEvents: "./clients.mjs",
  emitToFrame: "./clients.mjs",
  audience: "./clients.mjs",
  reader: "./reader.mjs",
  matching: "./matching.mjs",
  journalWrite: "./pipeline.mjs",
  rawEntries: "./raw_batches.mjs",
  rawBatches: "./raw_batches.mjs",
  matchAlone: "./pipeline.mjs",
  renderAlone: "./pipeline.mjs",
  pipelineWrite: "./pipeline.mjs",
  pipelineEmit: "./pipeline.mjs",
  pipelineEmitMany: "./pipeline.mjs",
  plainjobAdd: "./plainjob.mjs",
  burst: "./burst.mjs",
  quietSource: "./burst.mjs",
  accountFor: "./burst.mjs",
  tokens: "./tokens.mjs",
  buildConversation: "./agent.mjs",
  collectCost: "./agent.mjs",
  modelCalls: "./agent.mjs",
};

process.once("message", async ({ contender, options }) => {
  try {
    const { [contender]: run } = await import(MODULES[contender]);
    process.send({ result: await run(options, process.send.bind(process)) });
  } catch (error) {
    process.send({ error: error instanceof Error ? error.stack : String(error) });
  }
});

process.once("disconnect", () => process.kill(process.pid, "SIGTERM"));
