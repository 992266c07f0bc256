/** SPEC I5, I6, I12: what was answered survives kill -9 at any instant. The long run of the same is `npm run crash`. */
import { expect, it } from "vitest";
import type { End } from "../crash/plan.mjs";
import { newTally, runFolder, STORE_POINTS } from "../crash/rig.mjs";

const moment = (answers: number, delayMs: number): End => ({ how: "moment", answers, delayMs });
const opening = (delayMs: number): End => ({ how: "opening", delayMs });

/** Passed rarely, so an early passage; the others at one that is passed with a full queue. */
const PASSAGES: Record<string, number> = { "thread.closing": 1, "claim.leased": 5 };

it("keeps everything it answered through more than thirty kills, at every crash point and at random moments", async () => {
  const tally = newTally();
  const atPoints = STORE_POINTS.map((point): End => ({ how: "point", point, passage: PASSAGES[point] ?? 29 }));
  const atMoments = [3, 40, 90, 150, 60, 200, 120, 10, 170].map((answers, index) => moment(answers, 13 * index));

  // One folder, a long history, every point and moments between them; twice, killed again while it recovers.
  const history = atPoints.flatMap((end, index) => [end, atMoments[index % atMoments.length] ?? moment(50, 20)]);
  await runFolder({ seed: 20_260_101, also: null, ends: [...history, opening(3), moment(80, 30), opening(6)] }, tally);
  // While it prunes, and while it is copied.
  await runFolder({ seed: 20_260_102, also: "prune", ends: [moment(60, 40), moment(150, 60), moment(100, 90)] }, tally);
  await runFolder({ seed: 20_260_103, also: "backup", ends: [moment(60, 60), moment(90, 80), moment(120, 20)] }, tally);
  // While the folder is made.
  for (const delayMs of [1, 5, 9, 13, 17])
    await runFolder({ seed: delayMs, also: null, ends: [opening(delayMs)] }, tally);

  expect(tally.problems).toEqual([]);
  // And it did happen.
  expect(tally.kills).toBe(2 * STORE_POINTS.length + 3 + 3 + 3 + 5);
  expect(tally.kills).toBeGreaterThanOrEqual(30);
  expect(tally.moments).toBeGreaterThanOrEqual(15);
  expect(tally.unopened).toBeGreaterThanOrEqual(1);
  for (const point of STORE_POINTS) expect(tally.points[point], point).toBe(1);
  expect(tally.audited).toBeGreaterThanOrEqual(tally.kills - 5);
  expect(tally.backups).toBeGreaterThanOrEqual(1);
  expect(tally.events).toBeGreaterThanOrEqual(1_000);
  expect(tally.notifications).toBeGreaterThanOrEqual(1_000);
  expect(tally.closed).toBeGreaterThanOrEqual(100);
  expect(tally.folded).toBeGreaterThanOrEqual(20);
  const least = {
    emit: 500,
    emitMany: 200,
    notify: 200,
    claim: 100,
    settle: 100,
    ack: 100,
    resend: 40,
    sent_again: 200,
    collect: 60,
    settleCarrier: 40,
  };
  for (const [operation, number] of Object.entries(least))
    expect(tally.answers[operation] ?? 0, operation).toBeGreaterThanOrEqual(number);
  const some = {
    release: 20,
    promote: 20,
    observe: 10,
    closeThread: 5,
    redrive: 10,
    renew: 5,
    failCarrier: 10,
    settings: 10,
    read: 50,
    prune: 1,
    backup: 1,
  };
  for (const [operation, number] of Object.entries(some))
    expect(tally.answers[operation] ?? 0, operation).toBeGreaterThanOrEqual(number);
});
