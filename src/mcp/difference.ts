/** Where two long texts differ, as somebody is to see it who approves of the second. */

/** Shown on either side of what differs. */
const AROUND = 80;

export interface Difference {
  readonly before: string;
  readonly now: string;
}

/** Both whole if they are short; else what lies around the first place where they differ. */
export function difference(before: string, now: string, charsMax: number): Difference {
  if (before.length <= charsMax && now.length <= charsMax) return { before, now };
  const shorter = Math.min(before.length, now.length);
  let start = 0;
  while (start < shorter && before[start] === now[start]) start += 1;
  let same = 0;
  while (same < shorter - start && before[before.length - 1 - same] === now[now.length - 1 - same]) same += 1;
  const from = Math.max(0, start - AROUND);
  return {
    before: excerpt(before, from, before.length - same, charsMax),
    now: excerpt(now, from, now.length - same, charsMax),
  };
}

/** The beginning of a text that is compared with nothing. */
export function beginning(text: string, charsMax: number): string {
  return excerpt(text, 0, text.length, charsMax);
}

/** `differsUntil`: what is cut off before it is said to be missing. */
function excerpt(text: string, from: number, differsUntil: number, charsMax: number): string {
  const to = Math.min(text.length, from + charsMax, differsUntil + AROUND);
  const unseen = differsUntil - to;
  const rest = unseen > 0 ? `… (and ${unseen} characters more)` : to < text.length ? "…" : "";
  return `${from > 0 ? "…" : ""}${text.slice(from, to).toWellFormed()}${rest}`;
}
