/** The candidate that was probably meant; undefined if none is near. */
export function nearest(typed: string, candidates: Iterable<string>): string | undefined {
  let best: string | undefined;
  let least = Math.max(2, Math.floor(typed.length / 3)) + 1;
  for (const candidate of candidates) {
    const distance =
      typed.length > 1 && candidate.startsWith(typed) ? 1 : editDistance(typed.toLowerCase(), candidate.toLowerCase());
    if (distance >= candidate.length || distance > least) continue;
    if (distance < least || sameStart(typed, candidate) > sameStart(typed, best ?? "")) {
      best = candidate;
      least = distance;
    }
  }
  return best;
}

/** How many letters they begin with alike. */
function sameStart(one: string, other: string): number {
  let length = 0;
  while (length < one.length && one[length]?.toLowerCase() === other[length]?.toLowerCase()) length += 1;
  return length;
}

/** Insertions, deletions, replacements, and swaps of neighbours. */
function editDistance(one: string, other: string): number {
  let before: number[] = [];
  let previous = Array.from({ length: other.length + 1 }, (_, index) => index);
  for (let row = 1; row <= one.length; row += 1) {
    const current = [row];
    for (let column = 1; column <= other.length; column += 1) {
      const same = one[row - 1] === other[column - 1];
      const replaced = at(previous, column - 1) + (same ? 0 : 1);
      const swapped =
        row > 1 && column > 1 && one[row - 1] === other[column - 2] && one[row - 2] === other[column - 1]
          ? at(before, column - 2) + 1
          : replaced;
      current.push(Math.min(at(previous, column) + 1, at(current, column - 1) + 1, replaced, swapped));
    }
    before = previous;
    previous = current;
  }
  return at(previous, other.length);
}

function at(row: readonly number[], index: number): number {
  return row[index] ?? Number.POSITIVE_INFINITY;
}

/** For the end of an error message: what was probably meant. */
export function didYouMean(typed: string, candidates: Iterable<string>): string {
  const found = nearest(typed, candidates);
  return found === undefined ? "" : `; did you mean ${found}?`;
}
