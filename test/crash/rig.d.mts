import type { FolderPlan, Rules } from "./plan.mjs";
import type { Tally } from "./tally.mjs";

export { newTally } from "./tally.mjs";
export const STORE_POINTS: readonly string[];
export const RULES: Rules;
export function runFolder(
  plan: FolderPlan,
  tally: Tally,
  options?: {
    onKill?: (tally: Tally) => void;
    /** Leave the folder of a problem where it is. */
    keep?: boolean;
  },
): Promise<void>;
