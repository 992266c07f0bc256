/**
 * SPEC I5, I6, I12, I18: what the server answered survives kill -9 at any instant, and its clients are shown it without
 * a gap. The long run of the same is `npm run crash -- --http`.
 */
import { expect, it } from "vitest";
import { newTally, POINTS, runFolder } from "../crash/http_rig.mjs";
import type { End } from "../crash/plan.mjs";

const moment = (answers: number, delayMs: number, auditBeside = false): End => ({
  how: "moment",
  answers,
  delayMs,
  auditBeside,
});
const term = (answers: number, delayMs: number, auditBeside = false): End => ({
  how: "term",
  answers,
  delayMs,
  auditBeside,
});
const opening = (delayMs: number): End => ({ how: "opening", delayMs });
const point = (name: string, passage: number): End => ({ how: "point", point: name, passage });

/** Generous: a loaded machine takes several times as long, and is not wrong. */
const LIMIT_MS = 600_000;
/** A change is also what the watchdog does while the server starts: so many that clients make some of them. */
const PASSAGES: Record<string, number> = {
  "change.journaled": 170,
  "change.written": 190,
  "claim.leased": 3,
};

it(
  "keeps everything it answered over HTTP through more than twenty kills and two orderly ends",
  async () => {
    const tally = newTally();
    const atPoints = POINTS.map((name) => point(name, PASSAGES[name] ?? 23));
    const between: End[] = [
      moment(90, 7),
      moment(60, 31, true),
      term(110, 3),
      moment(140, 13),
      moment(10, 0),
      term(90, 40, true),
      moment(120, 60),
    ];
    const history = atPoints.flatMap((end, index) => [...between.slice(index, index + 1), end]);
    const more = [moment(5, 0), opening(3), moment(80, 50), opening(9), moment(100, 11)];
    await runFolder({ seed: 20_260_201, also: null, ends: [...history, ...more] }, tally);
    // While it prunes, and while the folder is made.
    const pruned = [moment(110, 60), point("commit.before", 60), moment(110, 90)];
    await runFolder({ seed: 20_260_202, also: "prune", ends: pruned }, tally);
    await runFolder({ seed: 20_260_203, also: null, ends: [opening(4), opening(12)] }, tally);

    expect(tally.problems).toEqual([]);
    // And it did happen.
    expect(tally.kills).toBe(POINTS.length + 5 + 5 + 3 + 2);
    expect(tally.kills).toBeGreaterThanOrEqual(20);
    expect(tally.terms).toBe(2);
    for (const name of POINTS) expect(tally.points[name], name).toBeGreaterThanOrEqual(1);
    expect(tally.openings).toBe(4);
    for (const channel of ["inbox", "floor", "agent", "context"])
      expect(tally.channels[channel], channel).toBeGreaterThanOrEqual(50);
    expect(tally.stale).toBeGreaterThanOrEqual(10);
    expect(tally.audited).toBeGreaterThanOrEqual(20);
    expect(tally.auditedBeside).toBe(2);
    expect(tally.events).toBeGreaterThanOrEqual(700);
    expect(tally.notifications).toBeGreaterThanOrEqual(500);
    expect(tally.closed).toBeGreaterThanOrEqual(50);
    expect(tally.sockets).toBeGreaterThanOrEqual(80);
    expect(tally.frames).toBeGreaterThanOrEqual(500);
    expect(tally.shownAgain).toBeGreaterThanOrEqual(50);
    const least = {
      emit: 200,
      emitByRpc: 30,
      emitMany: 200,
      resend: 20,
      sendTwice: 10,
      notify: 60,
      ack: 100,
      read: 15,
      redrive: 3,
      token_create: 30,
      token_revoke: 12,
      sent_again: 100,
      collect: 30,
      settleCarrier: 15,
      failCarrier: 3,
      settings: 5,
      prune: 1,
    };
    for (const [operation, number] of Object.entries(least))
      expect(tally.answers[operation] ?? 0, operation).toBeGreaterThanOrEqual(number);
  },
  LIMIT_MS,
);
