/**
 * npm run crash -- --kills 1000 [--seed N] [--http]
 *
 * Kills a process that uses the library, or with --http the server, under the load of its clients. The seed fixes the
 * plan (where each life is cut, what is asked for); the machine decides the microsecond.
 */
import { randomInt } from "node:crypto";
import { parseArgs } from "node:util";
import { planKills } from "./plan.mjs";
import { newTally, total } from "./tally.mjs";

const HELP = `npm run crash -- [--kills 100] [--seed N] [--http]

  --kills N  how often the process is killed (default 100)
  --seed N   the same plan again; without it another each time
  --http     kills the server, under the load of its clients; else a process that uses the library
`;

function options() {
  try {
    return parseArgs({
      options: {
        kills: { type: "string", default: "100" },
        seed: { type: "string" },
        http: { type: "boolean", default: false },
        help: { type: "boolean", default: false },
      },
    }).values;
  } catch (error) {
    console.error(`${error.message}\n\n${HELP}`);
    process.exit(2);
  }
}

const values = options();
if (values.help) {
  process.stdout.write(HELP);
  process.exit(0);
}
const kills = wholeNumber("kills", values.kills);
const seed = values.seed === undefined ? randomInt(2 ** 31) : wholeNumber("seed", values.seed);
const { RULES, runFolder } = values.http ? await import("./http_rig.mjs") : await import("./rig.mjs");

function wholeNumber(name, text) {
  const number = Number(text);
  if (Number.isSafeInteger(number) && number >= 0) return number;
  console.error(`--${name} must be a whole number, not ${JSON.stringify(text)}`);
  process.exit(2);
}

const begun = performance.now();
const seconds = () => (performance.now() - begun) / 1_000;
const tally = newTally();
console.log(`seed ${seed}, ${kills} kills${values.http ? ", over HTTP" : ""}`);

let shown = 0;
function progress() {
  const answers = total(tally.answers);
  const line = `${tally.kills}/${kills} kills, ${answers} answers, ${tally.problems.length} problems, ${seconds().toFixed(0)} s`;
  if (process.stdout.isTTY) process.stdout.write(`\r${line}   `);
  else if (tally.kills - shown >= 25 || (tally.kills === kills && shown < kills)) {
    console.log(line);
    shown = tally.kills;
  }
}

for (const folder of planKills(seed, kills, RULES)) {
  await runFolder(folder, tally, { onKill: progress, keep: true });
  if (tally.problems.length > 0) break;
}
if (process.stdout.isTTY) console.log();

const answers = total(tally.answers);
const each = (numbers) =>
  Object.entries(numbers)
    .map(([name, number]) => `${name} ${number}`)
    .join(", ");
console.log(
  `kills      ${tally.kills}: ${tally.moments} at a random moment, ${tally.openings} while opening, ${total(tally.points)} at crash points; ${tally.unopened} before the store was open`,
);
console.log(`points     ${each(Object.fromEntries(RULES.points.map((point) => [point, tally.points[point] ?? 0])))}`);
console.log(`answered   ${answers} operations: ${each(tally.answers)}`);
const again = values.http ? "in the lives that followed" : "after every later kill";
console.log(
  `promised   ${tally.events} events and ${tally.notifications} notifications, each looked for ${again}; ${tally.closed} batches closed, ${tally.folded} notifications folded, all accounted for`,
);
if (values.http) {
  console.log(`channels   ${each(tally.channels)}`);
  console.log(
    `shown      ${tally.frames} frames to ${tally.sockets} WebSocket clients; ${tally.shownAgain} items again to those that came back`,
  );
  console.log(
    `ended      ${tally.terms} times by SIGTERM under load, with exit code 0; ${tally.stale} starts over the server.json of a dead server`,
  );
}
console.log(
  values.http
    ? `audited    ${tally.audited} times, in ${tally.folders} folders, as the end left it; ${tally.auditedBeside} times beside the running server`
    : `audited    ${tally.audited} times, in ${tally.folders} folders, as the crash left it; ${tally.backups} backups opened and compared`,
);
console.log(`took       ${seconds().toFixed(0)} s, ${(answers / seconds()).toFixed(0)} answers/s with all checks`);
for (const problem of tally.problems) console.error(`PROBLEM    ${problem}`);
if (tally.problems.length > 0) {
  console.error(`reproduce  npm run crash -- --kills ${kills} --seed ${seed}${values.http ? " --http" : ""}`);
  process.exit(1);
}
console.log("nothing answered was lost, and every audit was clean");
