/**
 * Named places at which the crash tests end the process as a power cut would: by SIGKILL, between two statements.
 * `TIDINGS_CRASH_AT=accept.journaled:3` ends it at the third passage of that point. Without the variable a point
 * costs one comparison.
 */
export const STORE_POINTS = [
  "commit.begun",
  "accept.journaled",
  "accept.written",
  "change.journaled",
  "change.written",
  "claim.leased",
  "thread.closing",
  "commit.before",
  "commit.after",
] as const;
/** Of a hosted agent's turn. */
export const TURN_POINTS = [
  "turn.begun",
  "turn.requested",
  "turn.started",
  "turn.answered",
  "tool.started",
  "tool.done",
  "turn.promoted",
  "turn.acknowledged",
  "turn.ending",
] as const;
/** What a call in the background has come to is on disk, and nobody was told. */
type HandlePoint = "handle.recorded";
/** That a file has changed was told, and is not recorded. */
type FilePoint = "file.told";
export type CrashPoint = (typeof STORE_POINTS)[number] | (typeof TURN_POINTS)[number] | HandlePoint | FilePoint;

const [armed, passage] = (process.env["TIDINGS_CRASH_AT"] ?? "").split(":");
let left = Number(passage ?? 1);

export function crashPoint(point: CrashPoint): void {
  if (armed !== point) return;
  left -= 1;
  if (left <= 0) process.kill(process.pid, "SIGKILL");
}
