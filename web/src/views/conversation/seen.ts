/** Which conversations something has happened in since they were last looked at, in this browser. */
import { useLocalStorage } from "@mantine/hooks";
import { useCallback, useEffect } from "react";
import type { ThreadSummary } from "../../live/threads.js";

interface Seen {
  /** What was active before is not news. */
  readonly since: string;
  readonly threads: Readonly<Record<string, string>>;
}

/** So many are kept. */
const KEPT = 300;

export function useSeen(
  threads: readonly ThreadSummary[] | null,
  selected: string | null,
): (thread: ThreadSummary) => boolean {
  const [seen, setSeen] = useLocalStorage<Seen>({
    key: "seen threads",
    defaultValue: { since: new Date().toISOString(), threads: {} },
    getInitialValueInEffect: false,
  });
  const active_at = threads?.find(({ thread_id }) => thread_id === selected)?.active_at;
  useEffect(() => {
    const look = () => {
      if (selected === null || active_at === undefined || document.visibilityState !== "visible") return;
      setSeen((known) => {
        if (known.threads[selected] === active_at) return known;
        const newest = [...Object.entries(known.threads), [selected, active_at] as const].slice(-KEPT);
        return { ...known, threads: Object.fromEntries(newest) };
      });
    };
    look();
    document.addEventListener("visibilitychange", look);
    return () => document.removeEventListener("visibilitychange", look);
  }, [selected, active_at, setSeen]);
  return useCallback(
    ({ thread_id, active_at: at }) => Date.parse(at) <= Date.parse(seen.threads[thread_id] ?? seen.since),
    [seen],
  );
}
