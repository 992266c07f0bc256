const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** How long ago it was, in the largest unit of which there are two. A time to come was just now: clocks differ. */
export function ageOf(created_at: string, now: number): string {
  const age = Math.max(0, now - Date.parse(created_at));
  if (age >= 2 * DAY) return `${Math.floor(age / DAY)} d ago`;
  if (age >= 2 * HOUR) return `${Math.floor(age / HOUR)} h ago`;
  if (age >= 2 * MINUTE) return `${Math.floor(age / MINUTE)} min ago`;
  return `${Math.floor(age / SECOND)} s ago`;
}
