/** The producer's word on an event, lowest first. */
export const SEVERITIES = ["debug", "info", "warning", "error", "critical"] as const;
export type Severity = (typeof SEVERITIES)[number];

export function severityAtLeast(severity: Severity, floor: Severity): boolean {
  return SEVERITIES.indexOf(severity) >= SEVERITIES.indexOf(floor);
}

/** The highest of at least one. */
export function mostSevere(severities: readonly Severity[]): Severity {
  return severities.reduce((one, other) => (severityAtLeast(one, other) ? one : other), "debug");
}
