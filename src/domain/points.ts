import { INJECTION_POINTS, type InjectionPoint, type Priority } from "./priority.js";

/**
 * Where an agent can be told something: with a user's new message, with a steer or a reply, with the results of a tool
 * batch, before it yields, or at once because it was forced.
 */
export const POINTS = ["turn_start", "user_message", "after_tool", "turn_end", "immediate"] as const;
export type Point = (typeof POINTS)[number];

/** Whether what has this priority and waits for this injection point is told at a delivery point. */
export function takes(point: Point, priority: Priority, inject_at: InjectionPoint): boolean {
  const urgent = priority === "critical" || priority === "high";
  switch (point) {
    case "turn_start":
    case "user_message":
    case "immediate":
      return true;
    case "after_tool":
      return urgent || (priority === "normal" && (inject_at === "next" || inject_at === "after_tool"));
    case "turn_end":
      return urgent || inject_at !== "turn_start";
  }
}

/** What a delivery point takes of one priority: all of these, and no others. */
export function taken(point: Point, priority: Priority): InjectionPoint[] {
  return INJECTION_POINTS.filter((inject_at) => takes(point, priority, inject_at));
}
