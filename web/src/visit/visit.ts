/** Whether the guided visit is on: the first time by itself, later when it is asked for. */
import { useSyncExternalStore } from "react";

/** Kept for this browser: it does not come again by itself. */
const KEY = "tidings.visited";

/** - `due`: it may begin by itself, if nothing has happened yet. */
export type Visit = "due" | "on" | "off";

const listeners = new Set<() => void>();
let visit: Visit = localStorage.getItem(KEY) === null ? "due" : "off";

function become(next: Visit): void {
  visit = next;
  for (const listener of listeners) listener();
}

export function startVisit(): void {
  become("on");
}

export function endVisit(how: "done" | "skipped"): void {
  localStorage.setItem(KEY, how);
  become("off");
}

/** It is not for this one: something has happened here already. */
export function passVisit(): void {
  if (visit === "due") become("off");
}

export function useVisit(): Visit {
  return useSyncExternalStore(subscribe, () => visit);
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}
