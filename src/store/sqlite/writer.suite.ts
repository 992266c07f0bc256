import { DEFAULT_POLICY } from "../../domain/policy.js";
import type { ManualClock } from "../../platform/manual_clock.js";
import { PlainEditor } from "../editor.suite.js";
import { openSqliteStore, type SqliteStore } from "./store.js";

/** A store for writing, with the policy as it is by default and words that need no template. */
export function openWriter(folder: string, clock: ManualClock): Promise<SqliteStore> {
  return openSqliteStore({
    folder,
    policy: DEFAULT_POLICY,
    clock,
    editor: new PlainEditor(),
    mode: "write",
    waitMs: 0,
  });
}
