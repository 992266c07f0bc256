export function median(values) {
  return quantile(values, 0.5);
}

export function quantile(values, part) {
  const sorted = [...values].sort((one, other) => one - other);
  const place = (sorted.length - 1) * part;
  const below = sorted[Math.floor(place)];
  const above = sorted[Math.ceil(place)];
  return below + (above - below) * (place - Math.floor(place));
}

/** The same list, begun `by` places later. */
export function rotated(list, by) {
  const start = by % list.length;
  return [...list.slice(start), ...list.slice(0, start)];
}
