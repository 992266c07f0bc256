/** Forgets what a map has held longest. */
export function forgetFirst(map: Map<unknown, unknown>): void {
  for (const key of map.keys()) {
    map.delete(key);
    return;
  }
}
