import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { COLUMNS, STATES } from "../../domain/transitions.js";
import { BATCH_VISITS, checkAgainstModel } from "../model.suite.js";
import { openSqliteStore } from "./store.js";

/** `npm run soak` gives more runs and a fresh seed by these variables. */
const runs = Number(process.env["TIDINGS_MODEL_RUNS"] ?? 240);
const seed = Number(process.env["TIDINGS_MODEL_SEED"] ?? 3);

it(
  `does what the reducer says, step by step: ${runs} histories from seed ${seed} (I1, I2, I3, I4, I5, I9, I11, I13)`,
  async () => {
    const visits = await checkAgainstModel(
      async () => {
        const folder = await mkdtemp(join(tmpdir(), "tidings-model-"));
        return {
          open: ({ clock, policy, editor }) =>
            openSqliteStore({ folder, policy, clock, editor, mode: "write", waitMs: 0 }),
          remove: () => rm(folder, { recursive: true, force: true }),
        };
      },
      { runs, steps: 80, seed },
    );
    // `collect` and `merge` are visited only where the store itself would offer them.
    for (const state of STATES)
      for (const column of COLUMNS) {
        const offered = column === "collect" ? state === "PENDING" : true;
        if (offered) expect(visits.get(`${state} ${column}`) ?? 0, `${state} ${column}`).toBeGreaterThan(0);
      }
    for (const what of BATCH_VISITS) expect(visits.get(`batch ${what}`) ?? 0, what).toBeGreaterThan(0);
  },
  24 * 60 * 60 * 1000,
);
