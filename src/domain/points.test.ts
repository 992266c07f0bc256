import fc from "fast-check";
import { expect, it } from "vitest";
import { POINTS, type Point, taken, takes } from "./points.js";
import { INJECTION_POINTS, type InjectionPoint, PRIORITIES, type Priority } from "./priority.js";

/** Which injection points each delivery point takes of each priority; the rule, written out by hand. */
const ALL = "next immediate turn_start after_tool turn_end";
const TABLE: Record<Point, Record<Priority, string>> = {
  turn_start: { critical: ALL, high: ALL, normal: ALL, low: ALL },
  user_message: { critical: ALL, high: ALL, normal: ALL, low: ALL },
  immediate: { critical: ALL, high: ALL, normal: ALL, low: ALL },
  after_tool: { critical: ALL, high: ALL, normal: "next after_tool", low: "" },
  turn_end: {
    critical: ALL,
    high: ALL,
    normal: "next immediate after_tool turn_end",
    low: "next immediate after_tool turn_end",
  },
};

it("the table of delivery points, cell by cell", () => {
  for (const point of POINTS)
    for (const priority of PRIORITIES) {
      expect(taken(point, priority).join(" "), `${point} ${priority}`).toBe(TABLE[point][priority]);
      for (const inject_at of INJECTION_POINTS)
        expect(takes(point, priority, inject_at), `${point} ${priority} ${inject_at}`).toBe(
          TABLE[point][priority].split(" ").includes(inject_at),
        );
    }
});

const cell: fc.Arbitrary<[Point, Priority, InjectionPoint]> = fc.tuple(
  fc.constantFrom(...POINTS),
  fc.constantFrom(...PRIORITIES),
  fc.constantFrom(...INJECTION_POINTS),
);

it("whatever is taken is also taken if it is more urgent, and every item has a point in a turn that takes it", () => {
  fc.assert(
    fc.property(cell, ([point, priority, inject_at]) => {
      const more = PRIORITIES.slice(0, PRIORITIES.indexOf(priority));
      if (takes(point, priority, inject_at))
        for (const higher of more) expect(takes(point, higher, inject_at)).toBe(true);
      expect(takes("turn_start", priority, inject_at) && takes("immediate", priority, inject_at)).toBe(true);
      // Nobody waits for a tool call or a turn's end in vain.
      if (inject_at === "turn_end") expect(takes("turn_end", priority, inject_at)).toBe(true);
      if (inject_at === "after_tool" && priority !== "low") expect(takes("after_tool", priority, inject_at)).toBe(true);
    }),
    { seed: 20_260_103 },
  );
});
