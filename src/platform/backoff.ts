/** How long to wait before the attempt with this number, the first being 0: twice as long each time, and never for all at once. */
export function backoff(number: number, baseMs: number, maxMs: number): number {
  const whole = Math.min(baseMs * 2 ** Math.min(number, 30), maxMs);
  return Math.round(whole * (0.5 + Math.random() / 2));
}
