/**
 * Group commit: the write operations of one tick share one transaction and one flush, and resolve after it.
 *
 * An operation reads and decides first and writes last. If it throws before its first write, it alone is rejected. If
 * it throws after that, or the storage fails, the store stops: the transaction is rolled back, everything that waits
 * is rejected, and nothing is retried, since nobody could say what a second attempt would find.
 *
 * At most 64 operations go into a commit, taken in turn from the lanes (one a source), so that a burst from one
 * source delays the others by a slice and no more.
 */
import { AssertionError, StoreError, TidingsError } from "../../domain/errors.js";
import { crashPoint } from "../../platform/crashpoint.js";
import { defer, pause } from "../../platform/timers.js";
import type { Connection, Statement } from "./connection.js";
import { assertDurable } from "./database.js";
import { codeOf, isBusy, storeError } from "./failure.js";

const SLICE = 64;
const TRIM_AT = 1_024;
const BUSY_RETRY_MS = 50;
const BUSY_GIVE_UP_MS = 10_000;

/** What an operation runs in. */
export interface Transaction {
  /** The store's time, one for the whole commit. */
  readonly at: number;
  /** Set by the first write of an operation. */
  wrote: boolean;
}

interface Operation {
  readonly run: (transaction: Transaction) => unknown;
  readonly gathers: boolean;
  readonly resolve: (value: never) => void;
  readonly reject: (error: unknown) => void;
  value: unknown;
  error: unknown;
}

interface Lane {
  readonly operations: Operation[];
  head: number;
}

export interface CommitHooks {
  /** The time of the transaction that begins. */
  now(): number;
  /** Before the operations, inside the transaction. */
  begun(transaction: Transaction): void;
  /** Before each operation: whether it leaves what it changes to be written later. */
  gather(gathers: boolean): void;
  /** Before the commit: everything is to be in the tables. */
  ending(): void;
  /** Goes on however the clock is set. */
  monotonic(): number;
  /** After the commit, before anyone is answered: how long it took, and how many operations were in it. */
  committed(ms: number, operations: number): void;
  /** The store has stopped. */
  failed(error: StoreError): void;
}

export class CommitQueue {
  readonly #connection: Connection;
  readonly #file: string;
  readonly #hooks: CommitHooks;
  readonly #begin: Statement;
  readonly #commit: Statement;
  readonly #lanes = new Map<string, Lane>();
  #waiting = 0;
  #scheduled = false;
  #busySinceMs: number | undefined;
  #failure: StoreError | undefined;
  #closed = false;
  #checked = false;
  #idle: (() => void)[] = [];

  constructor(connection: Connection, file: string, hooks: CommitHooks) {
    this.#connection = connection;
    this.#file = file;
    this.#hooks = hooks;
    this.#begin = connection.prepare("BEGIN IMMEDIATE");
    this.#commit = connection.prepare("COMMIT");
  }

  get failure(): StoreError | undefined {
    return this.#failure;
  }

  /**
   * Runs `run` in the next transaction that has room; resolves with what it returned, after the commit. One that
   * `gathers` reads no table whose rows it leaves to be written at the end of the transaction, with those of the others.
   */
  write<Value>(lane: string, run: (transaction: Transaction) => Value, gathers = false): Promise<Value> {
    return new Promise<Value>((resolve, reject) => {
      const refusal = this.#failure ?? (this.#closed ? closedError() : undefined);
      if (refusal !== undefined) {
        reject(refusal);
        return;
      }
      let queue = this.#lanes.get(lane);
      if (queue === undefined) {
        queue = { operations: [], head: 0 };
        this.#lanes.set(lane, queue);
      }
      queue.operations.push({
        run,
        gathers,
        resolve: resolve as Operation["resolve"],
        reject,
        value: undefined,
        error: undefined,
      });
      this.#waiting += 1;
      this.#schedule();
    });
  }

  /** Resolves when nothing waits any more. */
  async idle(): Promise<void> {
    if (this.#waiting === 0) return;
    await new Promise<void>((resolve) => this.#idle.push(resolve));
  }

  /** Takes no more operations and resolves when those that wait are committed. */
  drain(): Promise<void> {
    this.#closed = true;
    return this.idle();
  }

  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    defer(() => {
      this.#scheduled = false;
      this.#flush();
    });
  }

  #take(): Operation[] {
    const taken: Operation[] = [];
    while (taken.length < SLICE && this.#lanes.size > 0) {
      for (const [name, lane] of this.#lanes) {
        const operation = lane.operations[lane.head];
        if (operation !== undefined) {
          taken.push(operation);
          lane.head += 1;
        }
        if (lane.head >= lane.operations.length) this.#lanes.delete(name);
        else if (lane.head >= TRIM_AT) {
          // A lane that is never empty must not keep what it has done.
          lane.operations.splice(0, lane.head);
          lane.head = 0;
        }
        if (taken.length === SLICE) {
          this.#rotate(name);
          break;
        }
      }
    }
    return taken;
  }

  /** The next slice starts with the lanes that this one did not reach. */
  #rotate(last: string): void {
    for (const [name, lane] of [...this.#lanes]) {
      this.#lanes.delete(name);
      this.#lanes.set(name, lane);
      if (name === last) return;
    }
  }

  #flush(): void {
    if (this.#failure !== undefined || this.#waiting === 0) return;
    const from = this.#hooks.monotonic();
    try {
      this.#begin.run();
    } catch (error) {
      this.#beginFailed(error);
      return;
    }
    this.#busySinceMs = undefined;
    const operations = this.#take();
    try {
      crashPoint("commit.begun");
      const transaction: Transaction = { at: this.#hooks.now(), wrote: false };
      this.#hooks.begun(transaction);
      for (const operation of operations) this.#runOne(operation, transaction);
      this.#hooks.ending();
      crashPoint("commit.before");
      this.#commit.run();
      crashPoint("commit.after");
      if (!this.#checked) {
        assertDurable(this.#connection);
        this.#checked = true;
      }
    } catch (error) {
      this.#fail(error, operations);
      return;
    }
    this.#waiting -= operations.length;
    this.#hooks.committed(this.#hooks.monotonic() - from, operations.length);
    for (const operation of operations) {
      if (operation.error !== undefined) operation.reject(operation.error);
      else operation.resolve(operation.value as never);
    }
    if (this.#waiting > 0) this.#schedule();
    else this.#becameIdle();
  }

  #runOne(operation: Operation, transaction: Transaction): void {
    this.#hooks.gather(operation.gathers);
    transaction.wrote = false;
    try {
      operation.value = operation.run(transaction);
    } catch (error) {
      if (transaction.wrote || codeOf(error) !== undefined) throw error;
      operation.error = error;
    }
  }

  #beginFailed(error: unknown): void {
    if (!isBusy(error)) {
      this.#fail(error, []);
      return;
    }
    const now = this.#hooks.now();
    this.#busySinceMs ??= now;
    if (now - this.#busySinceMs < BUSY_GIVE_UP_MS) {
      void pause(BUSY_RETRY_MS).then(() => this.#schedule());
      return;
    }
    // Nothing was begun, so nothing was stored: those who wait may try again, and the store goes on.
    this.#busySinceMs = undefined;
    this.#rejectWaiting(storeError(error, this.#file) ?? error);
  }

  #fail(error: unknown, operations: readonly Operation[]): void {
    const failure =
      storeError(error, this.#file) ??
      new StoreError("store_io", `the store stopped on an error of its own: ${describe(error)}`, error);
    this.#failure = failure;
    try {
      if (this.#connection.inTransaction) this.#connection.exec("ROLLBACK");
    } catch {
      // The first error is the one that matters.
    }
    for (const operation of operations) operation.reject(failure);
    this.#waiting -= operations.length;
    this.#rejectWaiting(failure);
    this.#hooks.failed(failure);
  }

  #rejectWaiting(error: unknown): void {
    for (const lane of this.#lanes.values())
      for (const operation of lane.operations.slice(lane.head)) operation.reject(error);
    this.#lanes.clear();
    this.#waiting = 0;
    this.#becameIdle();
  }

  #becameIdle(): void {
    const idle = this.#idle;
    this.#idle = [];
    for (const resolve of idle) resolve();
  }
}

export function closedError(): TidingsError {
  return new TidingsError("closed", "the store is closed; open it again");
}

function describe(error: unknown): string {
  return error instanceof AssertionError || error instanceof Error ? error.message : String(error);
}
