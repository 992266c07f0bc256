/** Where the rows of a long list stand. */
export interface Layout<Item> {
  readonly items: readonly Item[];
  readonly keyOf: (item: Item) => string;
  /** One for all of them, or of each. */
  readonly height: number | ((item: Item) => number);
}

export function heightAt<Item>({ items, height }: Layout<Item>, index: number): number {
  if (typeof height === "number") return height;
  const item = items[index];
  return item === undefined ? 0 : height(item);
}

export function startOf<Item>(layout: Layout<Item>, index: number): number {
  if (typeof layout.height === "number") return index * layout.height;
  let start = 0;
  for (let before = 0; before < index; before += 1) start += heightAt(layout, before);
  return start;
}

/** Which one is at this place. */
export function indexAt<Item>(layout: Layout<Item>, top: number): number {
  if (typeof layout.height === "number") return Math.floor(top / layout.height);
  let index = 0;
  for (let end = heightAt(layout, 0); end <= top && index < layout.items.length; end += heightAt(layout, index))
    index += 1;
  return index;
}

/** `near`: where it is looked for first; a hundred thousand are not gone through for each that comes. */
export function indexOfKey<Item>({ items, keyOf }: Layout<Item>, key: string, near: readonly number[] = []): number {
  for (const index of near) {
    const item = items[index];
    if (item !== undefined && keyOf(item) === key) return index;
  }
  return items.findIndex((item) => keyOf(item) === key);
}

/** Whether what was there before is as high as before, place by place. */
export function isAsHigh<Item>(now: Layout<Item>, before: Layout<Item>): boolean {
  if (now.items.length === 0) return false;
  if (typeof now.height === "number") return now.height === before.height;
  return before.items.every((_, index) => heightAt(now, index) === heightAt(before, index));
}

/** One that is gone is stood in for by one of so many that follow it. */
const STAND_INS = 20;

/** By how much the anchor has moved: the one of this key, or the one at this place. */
export function movedBy<Item>(now: Layout<Item>, before: Layout<Item>, top: number, key: string | null): number {
  const pointed = key === null ? -1 : indexOfKey(before, key);
  const first = pointed >= 0 ? pointed : indexAt(before, top);
  const more = now.items.length - before.items.length;
  for (let index = first; index < Math.min(first + STAND_INS, before.items.length); index += 1) {
    const item = before.items[index];
    if (item === undefined) continue;
    const found = indexOfKey(now, now.keyOf(item), [index + more, index]);
    if (found >= 0) return startOf(now, found) - startOf(before, index);
  }
  return 0;
}
