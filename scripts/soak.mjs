// The model test with as many histories as you like and a fresh seed: npm run soak -- [--runs 5000] [--seed N]
import { spawnSync } from "node:child_process";
import { randomInt } from "node:crypto";
import { parseArgs } from "node:util";

const { values } = parseArgs({ options: { runs: { type: "string", default: "5000" }, seed: { type: "string" } } });
const seed = values.seed ?? String(randomInt(2 ** 31));
console.log(
  `${values.runs} histories from seed ${seed}; the same again: npm run soak -- --runs ${values.runs} --seed ${seed}`,
);
const { status } = spawnSync(
  "npx",
  ["vitest", "run", "--project", "unit", "src/store/sqlite/model.test.ts", "src/store/sqlite/turns_model.test.ts"],
  {
    stdio: "inherit",
    env: { ...process.env, TIDINGS_MODEL_RUNS: values.runs, TIDINGS_MODEL_SEED: seed },
  },
);
process.exit(status ?? 1);
