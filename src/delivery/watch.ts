/** The journal as it grows: every reader goes on from its own cursor, and is woken by commits. */
import { ConflictError } from "../domain/errors.js";
import type { Principal } from "../domain/principal.js";
import type { JournalPage, Store } from "../store/contract.js";

const PAGE = 256;

/**
 * Pages after `start`, without an end; one that is empty says how far the journal has been read. A cursor whose next
 * entries retention has removed is refused with `cursor_too_old`, never passed over; 0 is the oldest that there is.
 */
export async function* watchPages(
  store: Store,
  principal: Principal,
  start: number | Promise<number>,
  signal: AbortSignal,
): AsyncGenerator<JournalPage, void, undefined> {
  let commits = 0;
  let wake = () => {};
  const stopListening = store.onCommit(() => {
    commits += 1;
    wake();
  });
  const onAbort = () => wake();
  signal.addEventListener("abort", onAbort);
  try {
    let cursor = await start;
    let floor = cursor === 0 ? Number.MAX_SAFE_INTEGER : 0;
    while (!signal.aborted) {
      const seen = commits;
      const page = await store.entries(principal, cursor, PAGE);
      // What is kept below the floor is read from 0; any other cursor that the floor has passed has missed something.
      if (cursor + 1 < page.floor && page.floor > floor) throw cursorTooOld(cursor, page.floor);
      floor = page.floor;
      cursor = page.after;
      yield page;
      if (!page.end) continue;
      await new Promise<void>((resolve) => {
        wake = resolve;
        if (commits !== seen || signal.aborted) resolve();
      });
    }
  } finally {
    stopListening();
    signal.removeEventListener("abort", onAbort);
  }
}

export function cursorTooOld(cursor: number, floor: number): ConflictError {
  return new ConflictError("cursor_too_old", `entries after ${cursor} are pruned; the oldest is ${floor}`);
}
