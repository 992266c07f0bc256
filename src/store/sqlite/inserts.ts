import type { Connection, Statement } from "./connection.js";

const MANY = 8;

/**
 * New rows of one table, eight to a statement: to run one costs about as much as to bind a row. They are in the table when
 * `writeOut` has returned.
 */
export class Inserts {
  readonly #one: Statement;
  readonly #many: Statement;
  readonly #width: number;
  readonly #values: unknown[];
  #used = 0;

  /** `row`: what stands for one row after VALUES. */
  constructor(connection: Connection, into: string, row: string) {
    this.#one = connection.prepare(`INSERT INTO ${into} VALUES ${row}`);
    this.#many = connection.prepare(`INSERT INTO ${into} VALUES ${new Array(MANY).fill(row).join(", ")}`);
    this.#width = row.split("?").length - 1;
    this.#values = new Array(this.#width * MANY).fill(null);
  }

  /** One value for each `?` of the row. */
  add(...row: readonly unknown[]): void {
    for (let index = 0; index < row.length; index += 1) this.#values[this.#used + index] = row[index];
    this.#used += this.#width;
    if (this.#used < this.#values.length) return;
    // Whatever comes of it, they are not written a second time.
    this.#used = 0;
    this.#many.run(this.#values);
  }

  writeOut(): void {
    const used = this.#used;
    this.#used = 0;
    for (let from = 0; from < used; from += this.#width) this.#one.run(this.#values.slice(from, from + this.#width));
  }
}
