/** The user's conversations, the most recently active first, as they change. */
import { useDebouncedCallback } from "@mantine/hooks";
import { createContext, type ReactNode, useContext, useEffect, useMemo, useState } from "react";
import type { Methods, Told } from "tidings/client";
import { useAnswer, useTold } from "../session/session.js";

export type ThreadSummary = Methods["thread/list"]["result"]["threads"][number];

export interface Threads {
  /** Null until they were read. */
  readonly threads: readonly ThreadSummary[] | null;
  readonly error: Error | null;
  readonly hasMore: boolean;
  /** There are older ones, and no more are listed. */
  readonly isCut: boolean;
  readonly readMore: () => void;
  readonly reload: () => void;
}

const PAGE = 50;
const LIMIT = 1_000;
/** What the server counts is asked for when nothing has happened for so long, and after so long at the latest. */
const CALM_MS = 250;
const PATIENCE_MS = 1_000;

const ThreadsContext = createContext<Threads | null>(null);

export function ThreadsProvider({ children }: { readonly children: ReactNode }) {
  const [limit, setLimit] = useState(PAGE);
  const answer = useAnswer("thread/list", { limit });
  const [threads, setThreads] = useState<readonly ThreadSummary[] | null>(null);
  const { value, reload } = answer;
  useEffect(() => {
    if (value !== undefined) setThreads(value.threads);
  }, [value]);
  const askAgain = useDebouncedCallback(reload, { delay: CALM_MS, maxWait: PATIENCE_MS });
  useTold((told) => {
    if (!isAboutThreads(told)) return;
    setThreads((known) => (known === null ? known : withTold(known, told)));
    askAgain();
  });
  const error = answer.state === "failed" && threads === null ? answer.error : null;
  const hasOlder = value?.next != null;
  const hasMore = hasOlder && limit < LIMIT;
  const isCut = hasOlder && limit === LIMIT;
  const given = useMemo(
    () => ({ threads, error, hasMore, isCut, reload, readMore: () => setLimit((now) => Math.min(LIMIT, now * 2)) }),
    [threads, error, hasMore, isCut, reload],
  );
  return <ThreadsContext value={given}>{children}</ThreadsContext>;
}

export function useThreads(): Threads {
  const threads = useContext(ThreadsContext);
  if (threads === null) throw new Error("outside of the threads");
  return threads;
}

function isAboutThreads({ method, params }: Told): boolean {
  if (method.startsWith("thread/")) return true;
  if (method.startsWith("notification/")) return "notification" in params && params.notification.channel === "floor";
  return method.startsWith("turn/") ? method !== "turn/progress" : method === "item/created";
}

/** What is seen at once; the rest is asked for. */
function withTold(threads: readonly ThreadSummary[], told: Told): readonly ThreadSummary[] {
  switch (told.method) {
    case "thread/started": {
      const { thread_id, started_at = new Date().toISOString() } = told.params;
      if (threads.some((one) => one.thread_id === thread_id)) return threads;
      return [newThread(thread_id, started_at), ...threads];
    }
    case "thread/paused":
    case "thread/resumed":
    case "thread/closed":
      return changed(threads, told.params.thread_id, { state: told.params.state });
    case "turn/started": {
      const { thread_id, turn_id, started_at } = told.params;
      return changed(threads, thread_id, { active_turn_id: turn_id, active_at: started_at });
    }
    case "turn/completed":
      return changed(threads, told.params.thread_id, { active_turn_id: null, active_at: told.params.completed_at });
    case "turn/interrupted":
    case "turn/failed":
      return changed(threads, told.params.thread_id, { active_turn_id: null });
    default:
      return threads;
  }
}

function changed(
  threads: readonly ThreadSummary[],
  thread_id: string,
  change: Partial<ThreadSummary>,
): readonly ThreadSummary[] {
  return threads
    .map((one) => (one.thread_id === thread_id ? { ...one, ...change } : one))
    .toSorted((one, other) => Date.parse(other.active_at) - Date.parse(one.active_at));
}

function newThread(thread_id: ThreadSummary["thread_id"], at: string): ThreadSummary {
  return {
    thread_id,
    session_id: thread_id,
    user_id: "" as ThreadSummary["user_id"],
    state: "running",
    started_at: at,
    created_at: at,
    budgets: null,
    active_at: at,
    title: null,
    active_turn_id: null,
    queued: 0,
    unread: 0,
  };
}
