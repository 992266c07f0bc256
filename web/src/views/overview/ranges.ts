/** How far back is looked, and in which steps. */
const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

export interface Range {
  readonly label: string;
  /** In a sentence. */
  readonly words: string;
  readonly span_ms: number;
  readonly step_ms: number;
  readonly step: string;
  readonly refresh_ms: number;
  readonly time: Intl.DateTimeFormatOptions;
}

const CLOCK = { hour: "2-digit", minute: "2-digit" } as const;

export const RANGES = {
  minutes: {
    label: "5 min",
    words: "the last 5 minutes",
    span_ms: 5 * MINUTE_MS,
    step_ms: 10 * SECOND_MS,
    step: "10 seconds",
    refresh_ms: 3 * SECOND_MS,
    time: { ...CLOCK, second: "2-digit" },
  },
  quarter: {
    label: "15 min",
    words: "the last 15 minutes",
    span_ms: 15 * MINUTE_MS,
    step_ms: 30 * SECOND_MS,
    step: "30 seconds",
    refresh_ms: 3 * SECOND_MS,
    time: { ...CLOCK, second: "2-digit" },
  },
  hour: {
    label: "Hour",
    words: "the last hour",
    span_ms: HOUR_MS,
    step_ms: MINUTE_MS,
    step: "minute",
    refresh_ms: 3 * SECOND_MS,
    time: CLOCK,
  },
  day: {
    label: "Day",
    words: "the last day",
    span_ms: DAY_MS,
    step_ms: 15 * MINUTE_MS,
    step: "quarter of an hour",
    refresh_ms: 15 * SECOND_MS,
    time: { weekday: "short", ...CLOCK },
  },
  week: {
    label: "Week",
    words: "the last week",
    span_ms: 7 * DAY_MS,
    step_ms: HOUR_MS,
    step: "hour",
    refresh_ms: 60 * SECOND_MS,
    time: { weekday: "short", day: "numeric", month: "short", ...CLOCK },
  },
} as const satisfies Readonly<Record<string, Range>>;

export type RangeKey = keyof typeof RANGES;

export function isRangeKey(text: string): text is RangeKey {
  return text in RANGES;
}

export function rangeOf(step_ms: number): Range {
  return Object.values(RANGES).find((range) => range.step_ms === step_ms) ?? RANGES.hour;
}

/** The shortest that has all that the longest has: who comes to a young server sees more than a sliver at the edge. */
export function fittingRange(totals: Readonly<Record<RangeKey, number>>): RangeKey {
  const keys = Object.keys(RANGES).filter(isRangeKey);
  return keys.find((key) => totals[key] >= totals.week) ?? "week";
}
