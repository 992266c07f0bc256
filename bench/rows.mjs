/** What every row of the report is made with. */
import { median } from "./statistics.mjs";

/** Ratios of what was measured in the same run; their median. */
export function pairedRatio(above, below) {
  return median(above.map((value, run) => value / below[run]));
}

export function range(values, format) {
  return `${format(Math.min(...values))} to ${format(Math.max(...values))}`;
}

export function perSecond(value) {
  return `${Math.round(value).toLocaleString("en-US")}/s`;
}

export function millis(value) {
  return `${value.toFixed(1)} ms`;
}

export function micros(ms) {
  return `${(ms * 1_000).toFixed(1)} µs`;
}

export function mebibytes(value) {
  return `${value.toFixed(0)} MiB`;
}

export function fine(ms) {
  return `${ms.toFixed(2)} ms`;
}

export function percent(part) {
  return `${Math.round(part * 100)}%`;
}
