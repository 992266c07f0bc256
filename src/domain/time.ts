const SLOTS = 64;
const times = new Float64Array(SLOTS).fill(Number.NaN);
const texts: string[] = new Array(SLOTS).fill("");

/** ISO 8601 in UTC. Many things bear the same few times, so the last answers are kept. */
export function isoTime(ms: number): string {
  // Mixed, since times that are whole days apart would share a slot otherwise.
  const slot = (ms + Math.floor(ms / 4_096)) & (SLOTS - 1);
  if (times[slot] !== ms) {
    texts[slot] = new Date(ms).toISOString();
    times[slot] = ms;
  }
  return texts[slot] as string;
}
