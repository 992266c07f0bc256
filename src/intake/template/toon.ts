/** TOON as the official encoder writes it, without asking it for the forms that most texts have. Tests compare the two. */
import { encode } from "@toon-format/toon";
import type { CleanJson } from "./operations.js";

const PLAIN = /^[A-Za-z][A-Za-z0-9 _./()%+=!?-]*$/;
const WORDS: ReadonlySet<string> = new Set(["true", "false", "null"]);

/** Whether the encoder would write it as it is: sure for these, and most texts are such. */
export function isPlain(text: string): boolean {
  return PLAIN.test(text) && !text.endsWith(" ") && !WORDS.has(text);
}

/** Nothing in it is escaped, and something in it wants quotes. */
const QUOTED = /^[\x20\x21\x23-\x5b\x5d-\x7e]*[:,[\]{}][\x20\x21\x23-\x5b\x5d-\x7e]*$/;

export function toonScalar(text: string): string {
  if (isPlain(text)) return text;
  return QUOTED.test(text) ? `"${text}"` : encode(text);
}

export function toonOf(value: CleanJson): string {
  return tableOf(value) ?? encode(value);
}

const KEY = /^[A-Za-z_]\w*$/;

/** `{"key": rows}`, where the rows have the same keys and no values within values; undefined for anything else. */
function tableOf(value: CleanJson): string | undefined {
  if (!isRecord(value)) return undefined;
  const [key, more] = Object.keys(value);
  if (key === undefined || more !== undefined || !KEY.test(key)) return undefined;
  const rows = value[key];
  if (!Array.isArray(rows)) return undefined;
  const [first] = rows;
  if (!isRecord(first)) return undefined;
  const columns = Object.keys(first);
  if (columns.length === 0 || !columns.every((column) => KEY.test(column))) return undefined;
  let text = `${key}[${rows.length}]{${columns.join(",")}}:`;
  for (const row of rows) {
    const cells = cellsOf(row, columns);
    if (cells === undefined) return undefined;
    text += `\n  ${cells}`;
  }
  return text;
}

function cellsOf(row: CleanJson, columns: readonly string[]): string | undefined {
  if (!isRecord(row)) return undefined;
  const keys = Object.keys(row);
  if (keys.length !== columns.length) return undefined;
  let cells = "";
  for (let index = 0; index < keys.length; index += 1) {
    const key = keys[index] as string;
    const cell = row[key];
    if (key !== columns[index] || cell === undefined || (typeof cell === "object" && cell !== null)) return undefined;
    if (index > 0) cells += ",";
    cells += typeof cell === "string" ? toonScalar(cell) : String(cell);
  }
  return cells;
}

function isRecord(value: CleanJson | undefined): value is { [key: string]: CleanJson } {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
