const ISO = /^(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?)([Zz]|[+-]\d\d:?\d\d)?$/;

/** Milliseconds of an ISO 8601 time, UTC unless it says otherwise; undefined if it is none. */
export function isoMs(text: string): number | undefined {
  const [, date, time, zone = "Z"] = ISO.exec(text) ?? [];
  if (date === undefined) return undefined;
  const ms = Date.parse(`${date}T${time}${zone.replace(/^([+-]\d\d)(\d\d)$/, "$1:$2").toUpperCase()}`);
  return Number.isNaN(ms) ? undefined : ms;
}

const UNITS = [
  { ms: 86_400_000, one: "day", many: "days" },
  { ms: 3_600_000, one: "h", many: "h" },
  { ms: 60_000, one: "min", many: "min" },
  { ms: 1_000, one: "s", many: "s" },
] as const;

/** `3 min ago`, `in 2 h`, `just now`: the largest unit that fits, rounded down. */
export function agoWords(ms: number, nowMs: number): string {
  const distance = Math.abs(nowMs - ms);
  const unit = UNITS.find((one) => distance >= one.ms);
  if (unit === undefined) return "just now";
  const count = Math.floor(distance / unit.ms);
  const words = `${count} ${count === 1 ? unit.one : unit.many}`;
  return ms > nowMs ? `in ${words}` : `${words} ago`;
}
