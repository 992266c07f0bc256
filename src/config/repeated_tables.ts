/**
 * TOML forbids a table that is opened twice, and a well-known example of this configuration does it: which kinds of a
 * source are wanted, after a switch for the whole source. Such tables are read as if they were one.
 */
import { KeyLocator, type KeyPath } from "./locate.js";

const KINDS = ["conversation", "notifications", "kinds"];

/**
 * The same text without the headers of tables that are opened again: their bodies are moved up to the first. `lineOf`
 * tells where a line of it stands in the original. Undefined if no table is.
 */
export function mergeRepeatedTables(text: string): { text: string; lineOf: (line: number) => number } | undefined {
  const lines = text.split("\n");
  const headers = new KeyLocator(text).headers.map(({ path, line }) => ({ name: nameOf(path), from: line - 1 }));
  const starts = [{ name: null, from: 0 }, ...headers];
  const sections = starts.map((section, index) => ({ ...section, to: starts[index + 1]?.from ?? lines.length }));
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
  if (placed.size === 0) return undefined;
  return {
    // A line that was in the middle of the file and is its last one now has its end, too.
    text: `${order.map((index) => lines[index] ?? "").join("\n")}\n`,
    lineOf: (line) => (order[line - 1] ?? line - 1) + 1,
  };
}

/** Of a table of kinds; null for any other, which may not be opened twice. */
function nameOf(path: KeyPath): string | null {
  const [source] = path.slice(KINDS.length);
  const isKind = path.length === KINDS.length + 1 && KINDS.every((key, index) => path[index] === key);
  return isKind && typeof source === "string" ? source : null;
}

function pushRange(order: number[], from: number, to: number): void {
  for (let index = from; index < to; index += 1) order.push(index);
}
