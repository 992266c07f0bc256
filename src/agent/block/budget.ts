import type { BlockItem, Form } from "./item.js";

/** How much one block may tell. */
export interface Budget {
  /** How many are told in full. */
  readonly items: number;
  /** Estimated, of all that are told in full together. */
  readonly tokens: number;
  /** How many more are told in one line each. */
  readonly lines: number;
}

/** Unless a host says otherwise. */
export const DEFAULT_BUDGET: Budget = { items: 10, tokens: 1_000, lines: 20 };

export interface Entry {
  readonly item: BlockItem;
  readonly form: Form;
  readonly text: string;
}

/** No tokenizer: four characters make a token, near enough for every provider. */
export function estimateTokens(text: string): number {
  return Math.ceil(text.length / 4);
}

/**
 * Urgent by the policy's word, or owed to the user. The severity does not count: any producer may call an event
 * critical, and would have as much room as it likes.
 */
export function isWhole(item: BlockItem): boolean {
  return item.must_narrate || item.priority === "critical";
}

/**
 * The first of the items, each in the form for which there is room; the rest waits. What is never shortened takes its
 * room first. One is told at least, or a budget that is too small would keep all waiting for ever.
 */
export function withinBudget(
  items: readonly BlockItem[],
  budget: Budget,
  entryText: (item: BlockItem, form: Form) => string,
): Entry[] {
  const candidates = items.map((item) => {
    const text = entryText(item, "full");
    return { item, text, tokens: estimateTokens(text) };
  });
  const whole = candidates.filter(({ item }) => isWhole(item));
  let inFull = whole.length;
  let used = whole.reduce((sum, { tokens }) => sum + tokens, 0);
  let lines = 0;
  const entries: Entry[] = [];
  for (const { item, text, tokens } of candidates) {
    if (isWhole(item)) {
      entries.push({ item, form: "full", text });
    } else if (inFull < budget.items && used + tokens <= budget.tokens) {
      entries.push({ item, form: "full", text });
      inFull += 1;
      used += tokens;
    } else if (lines < budget.lines || entries.length === 0) {
      entries.push({ item, form: "line", text: entryText(item, "line") });
      lines += 1;
    } else {
      break;
    }
  }
  return entries;
}
