import { parse, TomlError } from "smol-toml";

/** Where a text is no TOML, and why. */
export interface TomlProblem {
  readonly line: number;
  readonly column: number;
  readonly reason: string;
}

/** Keys that lead to JavaScript's own machinery (`__proto__`) are refused, as is whatever is no TOML. */
export function parseToml(text: string): { readonly content: unknown } | { readonly problem: TomlProblem } {
  try {
    return { content: parse(text, { unsafeKeyBehaviour: "throw" }) };
  } catch (error) {
    if (!(error instanceof TomlError)) throw error;
    // The parser's own words, without its drawing of the place.
    const [first = ""] = error.message.split("\n");
    const reason = `is not valid TOML: ${first.replace(/^Invalid TOML document: /, "")}`;
    return { problem: { line: error.line, column: error.column, reason } };
  }
}
