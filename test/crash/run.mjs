/**
 * npm run crash -- --kills 1000 [--seed N]
 *
 * The seed fixes the plan (where each life is cut, what each worker asks for); the machine decides the microsecond.
 */
import { randomInt } from "node:crypto";
import { parseArgs } from "node:util";
import { CRASH_POINTS, newTally, planKills, runFolder } from "./rig.mjs";

const { values } = parseArgs({
  options: { kills: { type: "string", default: "100" }, seed: { type: "string" } },
});
const kills = wholeNumber("kills", values.kills);
const seed = values.seed === undefined ? randomInt(2 ** 31) : wholeNumber("seed", values.seed);

function wholeNumber(name, text) {
  const number = Number(text);
  if (Number.isSafeInteger(number) && number >= 0) return number;
  console.error(`--${name} must be a whole number, not ${JSON.stringify(text)}`);
  process.exit(2);
}

const total = (numbers) => Object.values(numbers).reduce((sum, one) => sum + one, 0);
const begun = performance.now();
const seconds = () => (performance.now() - begun) / 1_000;
const tally = newTally();
console.log(`seed ${seed}, ${kills} kills`);

let shown = 0;
function progress() {
  const answers = total(tally.answers);
  const line = `${tally.kills}/${kills} kills, ${answers} answers, ${tally.problems.length} problems, ${seconds().toFixed(0)} s`;
  if (process.stdout.isTTY) process.stdout.write(`\r${line}   `);
  else if (tally.kills - shown >= 25 || tally.kills === kills) {
    console.log(line);
    shown = tally.kills;
  }
}

for (const folder of planKills(seed, kills)) {
  await runFolder(folder, tally, { onKill: progress, keep: true });
  if (tally.problems.length > 0) break;
}
if (process.stdout.isTTY) console.log();

const answers = total(tally.answers);
console.log(
  `kills      ${tally.kills}: ${tally.moments} at a random moment, ${tally.openings} while opening, ${total(tally.points)} at crash points; ${tally.unopened} before the store was open`,
);
console.log(`points     ${CRASH_POINTS.map((point) => `${point} ${tally.points[point] ?? 0}`).join(", ")}`);
console.log(
  `answered   ${answers} operations: ${Object.entries(tally.answers)
    .map(([name, number]) => `${name} ${number}`)
    .join(", ")}`,
);
console.log(
  `promised   ${tally.events} events and ${tally.notifications} notifications, each looked for after every later kill`,
);
console.log(
  `audited    ${tally.audited} times, in ${tally.folders} folders, as the crash left it; ${tally.backups} backups opened and compared`,
);
console.log(`took       ${seconds().toFixed(0)} s, ${(answers / seconds()).toFixed(0)} answers/s with all checks`);
for (const problem of tally.problems) console.error(`PROBLEM    ${problem}`);
if (tally.problems.length > 0) {
  console.error(`reproduce  npm run crash -- --kills ${kills} --seed ${seed}`);
  process.exit(1);
}
console.log("nothing answered was lost, and every audit was clean");
