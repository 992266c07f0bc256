import { OverloadedError } from "../domain/errors.js";
import type { ThreadId } from "../domain/ids.js";
import { LIMITS } from "../domain/limits.js";

const RETRY_AFTER_MS = 1_000;

/** Whoever writes faster than anybody answers is told so. */
export function refuseMore(waiting: number, thread_id: ThreadId): void {
  if (waiting < LIMITS.messagesWaiting) return;
  throw new OverloadedError(
    `${waiting} messages wait in thread ${JSON.stringify(thread_id)}; let it answer, or take one back first`,
    RETRY_AFTER_MS,
  );
}
