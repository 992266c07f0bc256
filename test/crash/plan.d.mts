/** The rigs are plain JavaScript, so that `npm run crash` needs no build of its own; these are their types. */

/** How a life ends. */
export type End =
  /** From outside, by SIGKILL, or in order by SIGTERM: so many answers were heard, and then some milliseconds. */
  | { how: "moment" | "term"; answers: number; delayMs: number; auditBeside?: boolean }
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

/** What a rig's plans are drawn from. */
export interface Rules {
  /** Kinds of folders: how often each is drawn, how many lives it has, and how they end. */
  folders: Record<
    string,
    { share: number; lives: number; ends: Partial<Record<End["how"], number>>; also?: "prune" | "backup" }
  >;
  /** How many answers of a life are heard at most before it is ended from outside. */
  answers: number;
  points: readonly string[];
  /** How often a point is passed at most before it ends a life. */
  passages: Record<string, number>;
  passagesOtherwise: number;
  /** How many of the lives that end from outside are audited while they run. */
  beside?: number;
}

export function planKills(seed: number, kills: number, rules: Rules): FolderPlan[];
