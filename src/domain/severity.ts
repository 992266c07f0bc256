/** The producer's word on an event, lowest first. */
export const SEVERITIES = ["debug", "info", "warning", "error", "critical"] as const;
export type Severity = (typeof SEVERITIES)[number];

export function severityAtLeast(severity: Severity, floor: Severity): boolean {
  return SEVERITIES.indexOf(severity) >= SEVERITIES.indexOf(floor);
}
