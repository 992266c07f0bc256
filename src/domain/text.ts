/** A part of a text holds the whole of it in memory; a copy does not. */
export function copied(part: string): string {
  return JSON.parse(JSON.stringify(part));
}
