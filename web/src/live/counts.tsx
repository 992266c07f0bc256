/** How much waits for the user, as the server counts it. */
import { createContext, type ReactNode, useContext, useEffect, useMemo, useState } from "react";
import type { Methods } from "tidings/client";
import { useAnswer, useTold } from "../session/session.js";
import { pace } from "./pace.js";

type Counts = Methods["inbox/counts"]["result"];

/** The bell need not count along with a burst. */
const PACE_MS = 150;

const CountsContext = createContext<Counts | null>(null);

export function CountsProvider({ children }: { readonly children: ReactNode }) {
  const first = useAnswer("inbox/counts", {});
  const [counts, setCounts] = useState<Counts | null>(null);
  useEffect(() => {
    if (first.state === "ready") setCounts(first.value);
  }, [first.state, first.value]);
  const told = useMemo(() => pace<Counts>(PACE_MS, setCounts), []);
  useEffect(() => () => told.end(), [told]);
  useTold(({ method, params }) => {
    if (method === "inbox/counts") told.show(params);
  });
  return <CountsContext value={counts}>{children}</CountsContext>;
}

/** Null until the server has said it. */
export function useCounts(): Counts | null {
  return useContext(CountsContext);
}
