/** One conversation, live: its end is read first, what is older when it is wanted, and what happens is added as it is told. */
import { useCallback, useEffect, useRef, useState } from "react";
import { useClient, useTold, useWhenBack } from "../session/session.js";
import { type Conversation, ThreadState } from "./threads_state.js";

export interface LiveConversation {
  /** Null until it was read. */
  readonly conversation: Conversation | null;
  readonly error: Error | null;
  readonly isReadingOlder: boolean;
  readonly readOlder: () => void;
  readonly retry: () => void;
  /** As if nothing had been read: of another user's nothing is told. */
  readonly readAnew: () => void;
}

/** Entries of the journal that are read at once. */
const PAGE = 80;
const NEWEST = Number.MAX_SAFE_INTEGER;

export function useConversation(thread_id: string): LiveConversation {
  const client = useClient();
  const state = useRef(new ThreadState(thread_id)).current;
  const [conversation, setConversation] = useState<Conversation | null>(null);
  const [error, setError] = useState<Error | null>(null);
  const [isReadingOlder, setReadingOlder] = useState(false);
  const [round, setRound] = useState(0);
  const isReading = useRef(false);
  /** What was asked for before all was forgotten is of no use. */
  const latest = useRef(0);
  const show = useShow(useCallback(() => setConversation(state.view), [state]));
  const readAnew = useCallback(() => {
    state.forget();
    setRound((count) => count + 1);
  }, [state]);

  const read = useCallback(
    async (before: number, limit: number) => {
      if (isReading.current) return;
      isReading.current = true;
      const mine = latest.current;
      try {
        const page = await client.call("thread/read", { thread_id, before, limit, observe: true });
        if (latest.current !== mine) return;
        state.read(page, before === NEWEST);
        setError(null);
        show();
      } catch (thrown) {
        if (latest.current === mine) setError(thrown instanceof Error ? thrown : new Error(String(thrown)));
      } finally {
        if (latest.current === mine) isReading.current = false;
      }
    },
    [client, state, thread_id, show],
  );

  useTold((told) => {
    if (told.method === "stream/reset") readAnew();
    else if (state.hear(told)) {
      show();
      if (state.isMissing) void read(NEWEST, 1);
    }
  });

  // biome-ignore lint/correctness/useExhaustiveDependencies: read anew with every round
  useEffect(() => {
    latest.current += 1;
    isReading.current = false;
    void read(NEWEST, PAGE);
  }, [read, round]);

  const previous = conversation?.previous ?? null;
  const readOlder = useCallback(() => {
    if (previous === null || isReading.current) return;
    setReadingOlder(true);
    void read(previous, PAGE).finally(() => setReadingOlder(false));
  }, [previous, read]);
  const retry = useCallback(() => setRound((count) => count + 1), []);
  useWhenBack(error !== null, retry);
  return { conversation, error, isReadingOlder, readOlder, retry, readAnew };
}

/** At most once a frame: pieces of an answer come faster than anybody reads. */
function useShow(run: () => void): () => void {
  const frame = useRef<number | null>(null);
  useEffect(
    () => () => {
      if (frame.current !== null) cancelAnimationFrame(frame.current);
      frame.current = null;
    },
    [],
  );
  return useCallback(() => {
    frame.current ??= requestAnimationFrame(() => {
      frame.current = null;
      run();
    });
  }, [run]);
}
