import { parseArgs } from "node:util";

export const SECTIONS = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p"];

const HELP = `npm run bench -- [options]

  --only a,b     Only these sections (b brings a with it, since it is measured against it):
                   a  the machine's raw limit: better-sqlite3 writing the same rows
                   b  durable emit, 64 callers
                   c  full cycle, emit to DELIVERED, beside plainjob and pg-boss
                   d  list, ack and emit on 1,000 and on 1,000,000 notifications
                   e  opening a million, and memory
                   f  emits over HTTP, beside a bare Fastify handler
                   g  emit to WebSocket frame at 1,000 a second, beside a bare ws server
                   h  fan-out to 1,000 WebSocket clients, beside a bare ws broadcast
                   i  the server: boot to ready, memory idle and for each idle client
                   j  matching among 10 and among 10,000 subscribers
                   k  match, dedup, batch and render beside the journal write, and beside plainjob's add
                   l  a burst of 100,000 events beside a source of one a second: its delay, memory, the account
                   m  tokens of the built-in batches beside the same data as JSON
                   n  collect in a small journal and in one of 1,000,000 entries; commits of a model call
                   o  a thousand WebSocket clients, one of which stops reading
                   p  the web app in a real browser: first load, frames while 100 notifications a second arrive,
                      a ledger of 100,000
  --runs N       Runs, each with every contender once (default 5); the median counts.
  --quick        Small counts and one run: shows that it works, says nothing about speed.
  --json FILE    Also write every number to FILE.
  --write-docs   Also put the results into docs/BENCHMARKS.md, between its markers.
  --profile DIR  Also write CPU profiles of the server's process in f to h and l into DIR. The numbers mean less then.
  --help         This.

Needs about 4 GB of disk in the temporary folder for d and e, 1,100 open files in one process for h and i, and about
thirty minutes for everything.
`;

/** What a full and a quick run do. Counts are operations that are timed; `warmup` ones come before them. */
const SIZES = {
  full: {
    warmup: 25_600,
    emits: 38_400,
    cycles: 25_600,
    plainjob: { warmup: 3_000, jobs: 20_000 },
    plainjobFull: { warmup: 200, jobs: 1_500 },
    pgBoss: { warmup: 500, jobs: 4_000, batchedJobs: 12_800 },
    smallStore: 1_000,
    largeStore: 1_000_000,
    rounds: 6,
    memoryEmits: 10_000,
    fdatasyncs: 300,
    http: { warmup: 6_400, events: 38_400 },
    httpArrays: { warmup: 6_400, events: 64_000 },
    latency: { connections: 256, rate: 1_000, warmup: 2_000, events: 10_000 },
    fanOut: { clients: 1_000, warmup: 100, rounds: 6, events: 100 },
    bootStore: 100_000,
    idleClients: 1_000,
    matching: { few: 10, many: 10_000, rounds: 10, calls: 100_000 },
    pipeline: { warmup: 25_600, events: 38_400 },
    plainjobAdd: { warmup: 3_000, events: 20_000 },
    plainjobAddFlushed: { warmup: 200, events: 3_000 },
    burst: { events: 100_000 },
    agent: {
      small: { entries: 1_000, said: 30 },
      large: { entries: 1_000_000, said: 10_000 },
      collects: 500,
      turns: 200,
    },
    stopped: { clients: 1_000, connections: 32, rounds: 3, rate: 10, warmup: 10, events: 400, words: 16_000 },
    web: { seconds: 10, rate: 100, rows: 100_000 },
  },
  quick: {
    warmup: 640,
    emits: 3_200,
    cycles: 1_920,
    plainjob: { warmup: 300, jobs: 1_500 },
    plainjobFull: { warmup: 20, jobs: 100 },
    pgBoss: { warmup: 64, jobs: 256, batchedJobs: 640 },
    smallStore: 1_000,
    largeStore: 20_000,
    rounds: 2,
    memoryEmits: 1_000,
    fdatasyncs: 40,
    http: { warmup: 640, events: 3_200 },
    httpArrays: { warmup: 600, events: 6_400 },
    latency: { connections: 256, rate: 1_000, warmup: 500, events: 1_500 },
    fanOut: { clients: 1_000, warmup: 20, rounds: 2, events: 40 },
    bootStore: 10_000,
    idleClients: 1_000,
    matching: { few: 10, many: 1_000, rounds: 2, calls: 10_000 },
    pipeline: { warmup: 640, events: 3_200 },
    plainjobAdd: { warmup: 300, events: 1_500 },
    plainjobAddFlushed: { warmup: 20, events: 200 },
    burst: { events: 20_000 },
    agent: { small: { entries: 1_000, said: 30 }, large: { entries: 20_000, said: 600 }, collects: 100, turns: 20 },
    stopped: { clients: 200, connections: 32, rounds: 1, rate: 40, warmup: 20, events: 400, words: 16_000 },
    web: { seconds: 2, rate: 100, rows: 3_000 },
  },
};

/** The options, or undefined after having printed the help. */
export function readOptions(argv) {
  const { values } = parseArgs({
    args: argv,
    options: {
      only: { type: "string" },
      runs: { type: "string" },
      quick: { type: "boolean", default: false },
      json: { type: "string" },
      profile: { type: "string" },
      "write-docs": { type: "boolean", default: false },
      help: { type: "boolean", default: false },
    },
  });
  if (values.help) {
    process.stdout.write(HELP);
    return undefined;
  }
  const only = values.only === undefined ? SECTIONS : values.only.split(",").map((name) => name.trim());
  for (const name of only)
    if (!SECTIONS.includes(name)) throw new Error(`--only: no section ${JSON.stringify(name)}; there are ${SECTIONS}`);
  const runs = Number(values.runs ?? (values.quick ? 1 : 5));
  if (!Number.isInteger(runs) || runs < 1) throw new Error("--runs must be a whole number from 1 on");
  return {
    sections: new Set(only.includes("b") ? ["a", ...only] : only),
    runs,
    quick: values.quick,
    json: values.json,
    profile: values.profile,
    writeDocs: values["write-docs"],
    sizes: values.quick ? SIZES.quick : SIZES.full,
  };
}
