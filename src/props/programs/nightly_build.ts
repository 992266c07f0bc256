/** A build that fails: the last of its steps exits with 2. */
import { pause } from "../../platform/timers.js";

const STEP_MS = 350;
const STEPS = ["compiling 3 targets", "target shop: ok", "target search: error: no rule to make 'index'"];
const FAILED = 2;

for (const step of STEPS) {
  process.stdout.write(`${step}\n`);
  await pause(STEP_MS);
}
process.exitCode = FAILED;
