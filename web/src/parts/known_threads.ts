/** The conversations that were active last, and what they are called, as more of them begin. */
import { useDebouncedCallback } from "@mantine/hooks";
import { useCallback, useMemo } from "react";
import type { Methods, Told } from "tidings/client";
import { useAnswer, useTold } from "../session/session.js";
import { shortId } from "./words.js";

type KnownThread = Methods["thread/list"]["result"]["threads"][number];

const LIMIT = 200;
/** A conversation has its name from its first turn on. */
const NAMING: ReadonlySet<Told["method"]> = new Set(["thread/started", "turn/started"]);
const CALM_MS = 250;
const PATIENCE_MS = 1_000;
const NONE: readonly KnownThread[] = [];

export function useKnownThreads(user_id?: string): readonly KnownThread[] {
  const { value, reload } = useAnswer("thread/list", { limit: LIMIT, ...(user_id === undefined ? {} : { user_id }) });
  const askAgain = useDebouncedCallback(reload, { delay: CALM_MS, maxWait: PATIENCE_MS });
  useTold(({ method }) => {
    if (NAMING.has(method)) askAgain();
  });
  return value?.threads ?? NONE;
}

/** A conversation's title; the end of its id where it has none, or is not known. */
export type ThreadName = (thread_id: string) => string;

export function useThreadNames(): ThreadName {
  const titles = useKnownThreads().flatMap(({ thread_id, title }) => (title === null ? [] : [[thread_id, title]]));
  const key = JSON.stringify(titles);
  const byId = useMemo(() => new Map(JSON.parse(key) as [string, string][]), [key]);
  return useCallback((thread_id) => byId.get(thread_id) ?? shortId(thread_id), [byId]);
}
