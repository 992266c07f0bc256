import { randomBytes } from "node:crypto";

const POOL_BYTES = 4 * 1024;
const CHARS_PER_ID = 8;
const NUMBER_HEX = 12;

/**
 * Makes UUIDv7 ids. The last 48 bits are a number of the maker's choice (the place of the thing in its table), so
 * that a thing is found by its id without an index of ids; 26 bits between that and the time are random.
 */
export class IdSource {
  #pool = "";
  #used = 0;
  #atMs = Number.NaN;
  /** How an id begins that is made at `#atMs`: all of one commit begin alike. */
  #prefix = "";

  /** For what is in no numbered table: the number is random too. */
  random(atMs: number): string {
    return this.numbered(atMs, Number.parseInt(this.#take(NUMBER_HEX), 16));
  }

  numbered(atMs: number, number: number): string {
    const random = this.#take(CHARS_PER_ID);
    if (atMs !== this.#atMs) {
      const time = atMs.toString(16).padStart(12, "0");
      this.#prefix = `${time.slice(0, 8)}-${time.slice(8)}-7`;
      this.#atMs = atMs;
    }
    const variant = VARIANTS[random.charCodeAt(3) & 3];
    const tail = number.toString(16).padStart(NUMBER_HEX, "0");
    return `${this.#prefix}${random.slice(0, 3)}-${variant}${random.slice(4, 7)}-${tail}`;
  }

  #take(chars: number): string {
    if (this.#used + chars > this.#pool.length) {
      this.#pool = randomBytes(POOL_BYTES).toString("hex");
      this.#used = 0;
    }
    this.#used += chars;
    return this.#pool.slice(this.#used - chars, this.#used);
  }
}

const VARIANTS = ["8", "9", "a", "b"] as const;
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

/** The number in an id made by `IdSource`; undefined for anything else. */
export function numberInId(id: string): number | undefined {
  return UUID.test(id) ? Number.parseInt(id.slice(-NUMBER_HEX), 16) : undefined;
}

/** When an id of `IdSource` was made, in milliseconds since 1970; undefined for anything else. */
export function timeInId(id: string): number | undefined {
  return UUID.test(id) ? Number.parseInt(`${id.slice(0, 8)}${id.slice(9, 13)}`, 16) : undefined;
}
