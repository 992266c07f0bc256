/** TOON as the official encoder writes it, without asking it for the forms that most texts have. Tests compare the two. */
import { decode, encode } from "@toon-format/toon";
import { cleanText } from "../../domain/clean.js";
import type { Run } from "./run.js";
import { isList, isObject, type Value } from "./value.js";

const PLAIN = /^[A-Za-z][A-Za-z0-9 _./()%+=!?-]*$/;
const WORDS: ReadonlySet<string> = new Set(["true", "false", "null"]);
const WORD_CHARS_MAX = 5;
const SPACE = 32;

/** Whether the encoder would write it as it is: sure for these, and most texts are such. */
export function isPlain(text: string): boolean {
  return (
    PLAIN.test(text) && text.charCodeAt(text.length - 1) !== SPACE && (text.length > WORD_CHARS_MAX || !WORDS.has(text))
  );
}

/** Nothing in it is escaped, and something in it wants quotes. */
const QUOTED = /^[\x20\x21\x23-\x5b\x5d-\x7e]*[:,[\]{}][\x20\x21\x23-\x5b\x5d-\x7e]*$/;

export function toonScalar(text: string): string {
  if (isPlain(text)) return text;
  return QUOTED.test(text) ? `"${text}"` : encode(text);
}

const KEY = /^[A-Za-z_]\w*$/;

/**
 * `{"key": rows}` of parsed JSON, where the rows have the same keys and no values within values, encoded without a copy; it
 * costs the steps of the copy. Undefined for anything else, and where a limit is in the way: the long way says which.
 */
export function tableOf(run: Run, value: Value): string | undefined {
  if (!run.plain || run.limits.depth < 3 || !isObject(value)) return undefined;
  const [key, more] = Object.keys(value);
  if (key === undefined || more !== undefined || !KEY.test(key)) return undefined;
  const rows = value[key];
  if (!isList(rows) || !isObject(rows[0])) return undefined;
  const columns = Object.keys(rows[0]);
  if (columns.length === 0 || !columns.every((column) => KEY.test(column))) return undefined;
  const names = columns.join(",");
  const nameChars = names.length - columns.length + 1;
  const rowCost = 9 + 8.125 * columns.length + nameChars / 16;
  let cost = 16.125 + key.length / 16;
  let chars = key.length;
  let text = `${key}[${rows.length}]{${names}}:`;
  for (let index = 0; index < rows.length; index += 1) {
    const row = rows[index];
    if (!isObject(row)) return undefined;
    const keys = Object.keys(row);
    if (keys.length !== columns.length) return undefined;
    cost += rowCost;
    chars += nameChars;
    for (let column = 0; column < keys.length; column += 1) {
      const name = keys[column] as string;
      if (name !== columns[column]) return undefined;
      text += column === 0 ? "\n  " : ",";
      const cell = row[name];
      if (typeof cell !== "string") {
        if (typeof cell === "object" && cell !== null) return undefined;
        text += cell ?? null;
        continue;
      }
      cost += cell.length / 16;
      chars += cell.length;
      if (chars > run.textChars) return undefined;
      if (isPlain(cell)) text += cell;
      else if (QUOTED.test(cell)) text += `"${cell}"`;
      else {
        const clean = cleanText(cell);
        cost += cell.length - clean.length;
        text += toonScalar(clean);
      }
    }
    if (!run.affords(cost)) return undefined;
  }
  run.step(cost);
  return text;
}

/** Why the official decoder does not read it; null if it does. */
export function toonProblem(text: string): string | null {
  try {
    decode(text);
    return null;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}
