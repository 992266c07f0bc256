import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { batchesContract } from "../batches.suite.js";
import { type StoreHarness, storeContract } from "../contract.suite.js";
import { handleContract } from "../handles.suite.js";
import { knownFilesContract } from "../known_files.suite.js";
import { mcpToolContract } from "../mcp_tools.suite.js";
import { seriesContract } from "../series.suite.js";
import { turnContract } from "../turns.suite.js";
import { usageContract } from "../usage.suite.js";
import { openSqliteStore } from "./store.js";

async function sqlite(): Promise<StoreHarness> {
  const folder = await mkdtemp(join(tmpdir(), "tidings-contract-"));
  return {
    open: ({ clock, policy, editor }) => openSqliteStore({ folder, policy, clock, editor, mode: "write", waitMs: 0 }),
    remove: () => rm(folder, { recursive: true, force: true }),
  };
}

storeContract("SQLite", sqlite);
batchesContract("SQLite", sqlite);
turnContract("SQLite", sqlite);
handleContract("SQLite", sqlite);
knownFilesContract("SQLite", sqlite);
usageContract("SQLite", sqlite);
seriesContract("SQLite", sqlite);
mcpToolContract("SQLite", sqlite);
