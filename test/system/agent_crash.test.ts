/** A hosted agent is killed at every named point of a turn: nothing is lost, held twice, or done twice (I6, I3, I21, I22). */
import { expect, test } from "vitest";
import { REQUEST_SENT, runAgentFolder, TURN_POINTS } from "../crash/agent_rig.mjs";

/** At the first passage, in the turn of a user's message; and at a later one, in a turn of the system's own. */
const LATER: Record<string, number> = {
  "turn.begun": 2,
  "turn.requested": 4,
  "turn.started": 4,
  "turn.answered": 2,
  "tool.started": 3,
  "tool.done": 3,
  "turn.acknowledged": 2,
  "turn.ending": 2,
};

test.each(TURN_POINTS.map((point) => [point]))("killed at %s", async (point) => {
  const kills = [{ point, passage: 1 }];
  const later = LATER[point];
  if (later !== undefined) kills.push({ point, passage: later });
  const { problems, met, promised } = await runAgentFolder(kills);
  expect(problems).toEqual([]);
  // And it did happen.
  expect(met).toEqual(kills.map(() => point));
  expect(promised).toBeGreaterThanOrEqual(2);
});

test("killed when the request has arrived at its provider, and nothing has come back", async () => {
  const kills = [1, 2].map((passage) => ({ point: REQUEST_SENT, passage }));
  const { problems, met } = await runAgentFolder(kills);
  expect(problems).toEqual([]);
  expect(met).toEqual([REQUEST_SENT, REQUEST_SENT]);
});

test("killed before and after a commit", async () => {
  const kills = [3, 6, 9, 12, 16, 20].flatMap((passage) => [
    { point: "commit.before", passage },
    { point: "commit.after", passage },
  ]);
  const { problems, met } = await runAgentFolder(kills);
  expect(problems).toEqual([]);
  expect(met).toHaveLength(kills.length);
});
