/** How far back the web app's overview looks before anybody says how far. */
import { expect, test } from "vitest";
import { fittingRange } from "../../web/src/views/overview/ranges.js";

test("the shortest range that has all there is", () => {
  const none = { minutes: 0, quarter: 0, hour: 0, day: 0, week: 0 };
  expect(fittingRange(none)).toBe("minutes");
  expect(fittingRange({ minutes: 3, quarter: 3, hour: 3, day: 3, week: 3 })).toBe("minutes");
  expect(fittingRange({ minutes: 2, quarter: 3, hour: 3, day: 3, week: 3 })).toBe("quarter");
  expect(fittingRange({ minutes: 0, quarter: 0, hour: 3, day: 3, week: 3 })).toBe("hour");
  expect(fittingRange({ minutes: 0, quarter: 0, hour: 0, day: 3, week: 3 })).toBe("day");
  expect(fittingRange({ minutes: 3, quarter: 3, hour: 3, day: 3, week: 4 })).toBe("week");
  // Something came between the questions.
  expect(fittingRange({ minutes: 5, quarter: 5, hour: 4, day: 4, week: 3 })).toBe("minutes");
});
