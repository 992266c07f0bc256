/** To the very end of a list of which only a part was read: the rest is read first. */
import { useCallback, useEffect, useRef, useState } from "react";
import type { Feed, Listed } from "./feed.js";

export interface ToEnd {
  /** It is on its way. */
  readonly isReading: boolean;
  readonly go: () => void;
  readonly stop: () => void;
}

export function useToEnd(
  { rows, hasMore, readAll }: Pick<Listed, "rows" | "hasMore"> & Pick<Feed, "readAll">,
  show: (id: string) => void,
): ToEnd {
  const [isWanted, setWanted] = useState(false);
  const running = useRef<AbortController | null>(null);
  const stop = useCallback(() => {
    running.current?.abort();
    running.current = null;
    setWanted(false);
  }, []);
  const last = rows.at(-1)?.id;
  useEffect(() => {
    if (!isWanted || hasMore || last === undefined) return;
    show(last);
    setWanted(false);
  }, [isWanted, hasMore, last, show]);
  // Another filter makes another list.
  // biome-ignore lint/correctness/useExhaustiveDependencies: of another list nobody has wanted the end
  useEffect(() => stop, [readAll, stop]);
  const go = () => {
    if (running.current !== null) return;
    setWanted(true);
    const mine = new AbortController();
    running.current = mine;
    void readAll(mine.signal).then((isThere) => {
      if (running.current !== mine) return;
      running.current = null;
      if (!isThere) setWanted(false);
    });
  };
  return { isReading: isWanted && hasMore, go, stop };
}
