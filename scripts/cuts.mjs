// Streams whose connections are cut: a WebSocket at every byte, for both of its clients, and all transports at random, for as
// many sessions as you like: npm run cuts -- [--sessions 200] [--seed N]
import { spawnSync } from "node:child_process";
import { randomInt } from "node:crypto";
import { parseArgs } from "node:util";

const { values } = parseArgs({ options: { sessions: { type: "string", default: "200" }, seed: { type: "string" } } });
const { sessions, seed = String(randomInt(2 ** 31)) } = values;
console.log(
  `${sessions} sessions from seed ${seed}; the same again: npm run cuts -- --sessions ${sessions} --seed ${seed}`,
);
const words = ["vitest", "run", "--project", "system", "test/system/stream_cuts.test.ts", "-t", "WebSocket|at random"];
const { status } = spawnSync("npx", [...words, "--testTimeout", "0"], {
  stdio: "inherit",
  env: { ...process.env, TIDINGS_CUT_SESSIONS: sessions, TIDINGS_CUT_SEED: seed },
});
process.exit(status ?? 1);
