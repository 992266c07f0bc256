/** The rig is plain JavaScript, so that `npm run crash` needs no build of its own; these are its types. */

/** How a life ends. */
export type End =
  /** From outside, some milliseconds after so many answers were heard. */
  | { how: "moment"; answers: number; delayMs: number }
  /** From outside, some milliseconds after it began to open the store, on the folder as the last kill left it. */
  | { how: "opening"; delayMs: number }
  /** From inside, at the n-th passage of a named point. */
  | { how: "point"; point: string; passage: number };

export interface FolderPlan {
  seed: number;
  /** What goes on beside the load. */
  also: "prune" | "backup" | null;
  ends: End[];
}

export interface Tally {
  kills: number;
  moments: number;
  openings: number;
  unopened: number;
  points: Record<string, number>;
  folders: number;
  answers: Record<string, number>;
  events: number;
  notifications: number;
  audited: number;
  backups: number;
  problems: string[];
}

export const CRASH_POINTS: readonly string[];
export function planKills(seed: number, kills: number): FolderPlan[];
export function newTally(): Tally;
export function runFolder(
  plan: FolderPlan,
  tally: Tally,
  options?: {
    onKill?: (tally: Tally) => void;
    /** Leave the folder of a problem where it is. */
    keep?: boolean;
  },
): Promise<void>;
