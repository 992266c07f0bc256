/** JSON as it comes from outside. */
import { InvalidInputError } from "../domain/errors.js";

const utf8 = new TextDecoder("utf-8", { fatal: true });

/** Text that is no UTF-8, or no JSON, is told apart. */
export function parseJson(bytes: Uint8Array): unknown {
  let text: string;
  try {
    text = utf8.decode(bytes);
  } catch {
    throw new InvalidInputError("", "is not UTF-8");
  }
  try {
    return JSON.parse(text);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new InvalidInputError("", `is not JSON: ${why.slice(0, 200)}`);
  }
}
