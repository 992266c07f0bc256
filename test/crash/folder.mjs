/** One folder through its lives: an oracle remembers all of them, and the tally grows with each. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Oracle } from "./oracle.mjs";
import { randomFrom } from "./random.mjs";
import { countEnd, sum } from "./tally.mjs";

/**
 * Puts one folder through its lives, or up to the first problem; adds to the tally. `rig.live` is one life with what
 * is looked at before and after it; `rig.finish` looks at the folder when all of them are over.
 */
export async function runLives(plan, tally, { onKill = () => {}, keep = false }, rigOf) {
  const folder = mkdtempSync(join(tmpdir(), "tidings-crash-"));
  const oracle = new Oracle();
  const random = randomFrom(plan.seed);
  const before = { ...tally };
  const tell = () => {
    tally.events = before.events + oracle.eventsAnswered;
    tally.notifications = before.notifications + oracle.notificationsAnswered;
    tally.closed = before.closed + oracle.closed;
    tally.folded = before.folded + oracle.folded;
    tally.answers = sum(before.answers, oracle.answers);
    onKill(tally);
  };
  try {
    const rig = rigOf({ folder, oracle, tally, also: plan.also });
    for (const [life, end] of plan.ends.entries()) {
      const task = { life, end, seed: random.between(0, 2 ** 31), next: plan.ends[life + 1] };
      await guarded(oracle, `life ${life}`, async () => {
        const died = await rig.live(task);
        const problem = countEnd(tally, end, died);
        if (problem !== undefined) oracle.problem(`life ${life} ${problem}`);
        else await rig.after(task);
      });
      tell();
      if (oracle.problems.length > 0) break;
    }
    if (oracle.problems.length === 0) await guarded(oracle, "at the end", () => rig.finish(plan.ends.length));
    tell();
    tally.folders += 1;
  } finally {
    const where = keep ? folder : `seed ${plan.seed}`;
    for (const text of oracle.problems) tally.problems.push(`folder ${where}: ${text}`);
    if (!keep || oracle.problems.length === 0) rmSync(folder, { recursive: true, force: true });
  }
}

async function guarded(oracle, when, run) {
  try {
    await run();
  } catch (error) {
    oracle.problem(`${when}: ${error.stack}`);
  }
}
