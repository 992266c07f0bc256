/** What stands in a request where there is nothing to say and the API wants something. Fixed: history is replayed. */
export const NO_TEXT = "(no text)";
export const NO_OUTPUT = "(no output)";
/** Stands for an answer that was cut off before its first word. */
export const NO_ANSWER = "(no answer was given)";

export function isBlank(text: string): boolean {
  return text.trim() === "";
}

export function orElse(text: string, fallback: string): string {
  return isBlank(text) ? fallback : text;
}
