import type { Severity } from "./severity.js";

/** The policy's word on a delivery, highest first. */
export const PRIORITIES = ["critical", "high", "normal", "low"] as const;
export type Priority = (typeof PRIORITIES)[number];

/** Lower rank goes first. */
export function priorityRank(priority: Priority): number {
  return PRIORITIES.indexOf(priority);
}

export function higherPriority(one: Priority, other: Priority): Priority {
  return priorityRank(one) <= priorityRank(other) ? one : other;
}

const FROM_SEVERITY: Record<Severity, Priority> = {
  critical: "critical",
  error: "high",
  warning: "normal",
  info: "normal",
  debug: "low",
};

/** What `notify()` uses when its caller names no priority. */
export function priorityFromSeverity(severity: Severity): Priority {
  return FROM_SEVERITY[severity];
}

/** When the agent is told; `next` is the next carrier, whatever it is. */
export const INJECTION_POINTS = ["next", "immediate", "turn_start", "after_tool", "turn_end"] as const;
export type InjectionPoint = (typeof INJECTION_POINTS)[number];
