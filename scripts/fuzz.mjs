// Random and mutated input for every method and transport: npm run fuzz -- [--minutes 5] [--runs 50] [--seed N]
import { spawnSync } from "node:child_process";
import { randomInt } from "node:crypto";
import { parseArgs } from "node:util";

const { values } = parseArgs({
  options: {
    minutes: { type: "string", default: "5" },
    runs: { type: "string", default: "50" },
    seed: { type: "string" },
  },
});
const { minutes, runs, seed = String(randomInt(2 ** 31)) } = values;
console.log(
  `${minutes} minutes, ${runs} runs a seed, from seed ${seed} on; the same again: ` +
    `npm run fuzz -- --minutes ${minutes} --runs ${runs} --seed ${seed}`,
);
const words = ["vitest", "run", "--project", "system", "test/system/fuzz.test.ts", "--testTimeout", "0"];
const { status } = spawnSync("npx", words, {
  stdio: "inherit",
  env: { ...process.env, TIDINGS_FUZZ_MINUTES: minutes, TIDINGS_FUZZ_RUNS: runs, TIDINGS_FUZZ_SEED: seed },
});
process.exit(status ?? 1);
