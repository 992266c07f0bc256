/**
 * TOML forbids a table that is opened twice, and a well-known example of this configuration does it: which kinds of a
 * source are wanted, after a switch for the whole source. Such tables are read as if they were one.
 */

const HEADER = /^[ \t]*\[[ \t]*(conversation\.notifications\.kinds\.[A-Za-z0-9_-]+)[ \t]*\][ \t]*(?:#.*)?$/;

/**
 * The same text, of the same number of lines, with the bodies of repeated tables moved up to the first. `lineOf` tells
 * where a line of it stands in the original.
 */
export function mergeRepeatedTables(text: string): { text: string; lineOf: (line: number) => number } {
  const lines = text.split("\n");
  const sections: { name: string | null; from: number; to: number }[] = [{ name: null, from: 0, to: lines.length }];
  for (const [index, line] of lines.entries()) {
    if (!/^[ \t]*\[/.test(line)) continue;
    const last = sections.at(-1);
    if (last !== undefined) last.to = index;
    sections.push({ name: HEADER.exec(line)?.[1] ?? null, from: index, to: lines.length });
  }
  const order: number[] = [];
  const placed = new Set<number>();
  for (const [index, section] of sections.entries()) {
    if (placed.has(index)) continue;
    pushRange(order, section.from, section.to);
    if (section.name === null) continue;
    for (const [other, again] of sections.entries()) {
      if (other <= index || again.name !== section.name) continue;
      placed.add(other);
      // Its own header is passed over: its keys go on with the first one's.
      pushRange(order, again.from + 1, again.to);
    }
  }
  if (order.length === lines.length) return { text, lineOf: (line) => line };
  return {
    text: order.map((index) => lines[index] ?? "").join("\n"),
    lineOf: (line) => (order[line - 1] ?? line - 1) + 1,
  };
}

function pushRange(order: number[], from: number, to: number): void {
  for (let index = from; index < to; index += 1) order.push(index);
}
