import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { storeContract } from "../contract.suite.js";
import { openSqliteStore } from "./store.js";

storeContract("SQLite", async () => {
  const folder = await mkdtemp(join(tmpdir(), "tidings-contract-"));
  return {
    open: ({ clock, policy }) => openSqliteStore({ folder, policy, clock, mode: "write", waitMs: 0 }),
    remove: () => rm(folder, { recursive: true, force: true }),
  };
});
