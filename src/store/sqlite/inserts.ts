import type { Connection, Statement } from "./connection.js";

const MANY = 16;
/** For what is left. */
const SOME = 4;

/**
 * New rows of one table, sixteen to a statement: to run one costs about as much as to bind a row. They are in the table when
 * `writeOut` has returned. Values are given one by one: out of an array the binding reads each as slowly as it binds it.
 */
export class Inserts {
  readonly #one: Statement;
  readonly #some: Statement;
  readonly #many: Statement;
  readonly #width: number;
  readonly #values: unknown[];
  readonly #first: Inserts | undefined;
  #used = 0;

  /** `row`: what stands for one row after VALUES. `first`: whose rows are in their table before any of these, which refer to them. */
  constructor(connection: Connection, into: string, row: string, first?: Inserts) {
    this.#first = first;
    const insert = (rows: number) =>
      connection.prepare(`INSERT INTO ${into} VALUES ${new Array(rows).fill(row).join(", ")}`);
    this.#one = insert(1);
    this.#some = insert(SOME);
    this.#many = insert(MANY);
    this.#width = row.split("?").length - 1;
    this.#values = new Array(this.#width * MANY).fill(null);
  }

  /** One value for each `?` of the row. */
  add(...row: readonly unknown[]): void {
    for (let index = 0; index < row.length; index += 1) this.#values[this.#used + index] = row[index];
    this.#used += this.#width;
    if (this.#used < this.#values.length) return;
    this.#first?.writeOut();
    // Whatever comes of it, they are not written a second time.
    this.#used = 0;
    this.#many.run(...this.#values);
    this.#values.fill(null);
  }

  writeOut(): void {
    const used = this.#used;
    if (used === 0) return;
    this.#first?.writeOut();
    this.#used = 0;
    let from = 0;
    for (let to = SOME * this.#width; to <= used; to += SOME * this.#width) {
      this.#some.run(...this.#values.slice(from, to));
      from = to;
    }
    for (; from < used; from += this.#width) this.#one.run(...this.#values.slice(from, from + this.#width));
    // Texts may be long, and the next ones may not come for long.
    this.#values.fill(null, 0, used);
  }
}
