import type { Connection, Statement } from "./connection.js";

/** Facts about the database as a whole. */
export interface MetaValues {
  readonly journal_id: string;
  /** Entries below it have been pruned, but for what is still wanted. */
  readonly floor_seq: string;
  /** The newest ones when last pruned, so that none is used twice even if nothing is left. */
  readonly last_seq: string;
  readonly last_at: string;
  readonly last_number: string;
  /** The newest entry that the series have counted. */
  readonly series_seq: string;
}

export class Meta {
  readonly #get: Statement;
  readonly #set: Statement;

  constructor(connection: Connection) {
    this.#get = connection.prepare("SELECT value FROM meta WHERE key = ?").pluck();
    this.#set = connection.prepare(
      "INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
    );
  }

  text(key: keyof MetaValues): string | undefined {
    return this.#get.get(key) as string | undefined;
  }

  number(key: keyof MetaValues, absent = 0): number {
    return Number(this.text(key) ?? absent);
  }

  set(key: keyof MetaValues, value: string | number): void {
    this.#set.run(key, String(value));
  }
}
