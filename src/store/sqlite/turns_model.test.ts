import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { turnModel } from "../turns_model.suite.js";
import { openSqliteStore } from "./store.js";

/** `npm run soak` gives more runs and a fresh seed by these variables. */
const runs = Number(process.env["TIDINGS_MODEL_RUNS"] ?? 80);
const seed = Number(process.env["TIDINGS_MODEL_SEED"] ?? 5);

turnModel(
  "SQLite",
  async () => {
    const folder = await mkdtemp(join(tmpdir(), "tidings-turns-"));
    return {
      open: ({ clock, policy, editor }) => openSqliteStore({ folder, policy, clock, editor, mode: "write", waitMs: 0 }),
      remove: () => rm(folder, { recursive: true, force: true }),
    };
  },
  { runs, seed },
);
