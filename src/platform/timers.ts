/** Timers. Unless they say so, they do not keep the process alive by themselves. */

/** Runs `task` every `periodMs`, each time after the one before has ended. Returns the function that stops it. */
export function every(periodMs: number, task: () => Promise<void>): () => void {
  let stopped = false;
  let timer: NodeJS.Timeout;
  const schedule = () => {
    timer = setTimeout(async () => {
      await task();
      if (!stopped) schedule();
    }, periodMs);
    timer.unref();
  };
  schedule();
  return () => {
    stopped = true;
    clearTimeout(timer);
  };
}

/** Resolves after `delayMs`. Keeps the process alive meanwhile. */
export function pause(delayMs: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve();
    const timer = setTimeout(done, delayMs);
    function done() {
      clearTimeout(timer);
      signal?.removeEventListener("abort", done);
      resolve();
    }
    signal?.addEventListener("abort", done, { once: true });
  });
}

/** Lets everybody else have their turn: long work in one process asks for it between its pieces. */
export function breathe(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** Runs `task` after the callers that are ready now have had their turn. */
export function defer(task: () => void): void {
  setImmediate(task);
}

/** Runs `task` once after `delayMs`, unless the function that is returned is called before. `owed`: the process waits for it. */
export function later(delayMs: number, task: () => void, owed = false): () => void {
  const timer = setTimeout(task, delayMs);
  // Browsers have numbers, which keep nothing alive.
  if (!owed) (timer as Partial<NodeJS.Timeout>).unref?.();
  return () => clearTimeout(timer);
}
