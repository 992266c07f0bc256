/** Words of a server, as they may be shown: cleaned, and no longer than this. */
import { cleanText } from "../domain/clean.js";
import { MCP_LIMITS } from "./limits.js";

/** Colours of a terminal. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they begin with one
const COLOURS = /\u001b\[[0-9;]{0,20}m/g;

export function shortWords(text: string, charsMax: number = MCP_LIMITS.wordsChars): string {
  // Cut before, so that nothing of any length is looked through; and after, since what is removed may leave half a pair.
  const clean = cleanText(text.slice(0, 4 * charsMax).replace(COLOURS, "")).trim();
  return clean.length <= charsMax ? clean : `${clean.slice(0, charsMax - 1).toWellFormed()}…`;
}

export function wordsOf(error: unknown): string {
  if (!(error instanceof Error)) return shortWords(String(error));
  // `fetch` says why only there.
  const { cause } = error;
  const why = cause instanceof Error && cause.message !== "" ? `: ${cause.message}` : "";
  return shortWords(`${error.message}${why}`);
}

/** One word of a command that somebody is told to run, whatever it holds. */
export function shellWord(word: string): string {
  return /^[\w./:-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
