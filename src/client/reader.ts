/** What one consumer is told, at its own pace. So much waits for it, and no more: then it ends, and says where it was. */
import { TidingsError } from "../domain/errors.js";
import type { Cursor } from "./methods.js";
import type { Told } from "./told.js";

/** More was told than the consumer of an iterator has taken. A client that begins at `cursor` goes on where it ends. */
export class SlowConsumerError extends TidingsError {
  readonly cursor: Cursor | null;

  constructor(waiting: number, cursor: Cursor | null) {
    super("overloaded", `${waiting} notifications were not taken in time; go on from the cursor of this error`);
    this.name = "SlowConsumerError";
    this.cursor = cursor;
  }
}

interface Waiting {
  resolve(result: IteratorResult<Told, undefined>): void;
  reject(error: unknown): void;
}

export class Reader implements AsyncIterableIterator<Told, undefined, undefined> {
  readonly #max: number;
  /** Undefined: all. */
  readonly #methods: ReadonlySet<string> | undefined;
  readonly #leave: (reader: Reader) => void;
  #buffer: Told[] = [];
  readonly #waiting: Waiting[] = [];
  /** Where it stands after the last one in the buffer. */
  #cursor: Cursor | null;
  #ended = false;
  #error: unknown;

  constructor(
    bufferMax: number,
    cursor: Cursor | null,
    methods: ReadonlySet<string> | undefined,
    leave: (reader: Reader) => void,
  ) {
    this.#max = bufferMax;
    this.#methods = methods;
    this.#cursor = cursor;
    this.#leave = leave;
  }

  tell(told: Told): void {
    if (this.#ended) return;
    if (this.#methods?.has(told.method) === false) {
      this.#cursor = told.cursor;
      return;
    }
    const next = this.#waiting.shift();
    if (next !== undefined) next.resolve({ done: false, value: told });
    else if (this.#buffer.length >= this.#max) {
      this.end(new SlowConsumerError(this.#max, this.#cursor));
      return;
    } else this.#buffer.push(told);
    this.#cursor = told.cursor;
  }

  /** After what is in the buffer; with an error, which is thrown once. */
  end(error?: unknown): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#leave(this);
    const [first, ...others] = this.#waiting.splice(0);
    if (first === undefined) this.#error = error;
    else if (error === undefined) first.resolve({ done: true, value: undefined });
    else first.reject(error);
    for (const { resolve } of others) resolve({ done: true, value: undefined });
  }

  next(): Promise<IteratorResult<Told, undefined>> {
    const value = this.#buffer.shift();
    if (value !== undefined) return Promise.resolve({ done: false, value });
    const error = this.#error;
    this.#error = undefined;
    if (error !== undefined) return Promise.reject(error);
    if (this.#ended) return Promise.resolve({ done: true, value: undefined });
    return new Promise((resolve, reject) => this.#waiting.push({ resolve, reject }));
  }

  return(): Promise<IteratorResult<Told, undefined>> {
    this.#buffer = [];
    this.end();
    this.#error = undefined;
    return Promise.resolve({ done: true, value: undefined });
  }

  [Symbol.asyncIterator](): this {
    return this;
  }
}
