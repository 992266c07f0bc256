import { Worker } from "node:worker_threads";
import type { Connection, Statement } from "./connection.js";

/** Operations between two checkpoints: together they change some four thousand pages. */
const OPERATIONS = 8_192;
/** How often the thread copies for one checkpoint: each time only what was committed meanwhile is left. */
const PASSES = 3;

/**
 * What has been committed is copied from the write-ahead log into the database by a thread beside this one, which goes on
 * committing: to copy thousands of pages and flush them takes tens of milliseconds, for which everybody would wait. What was
 * committed meanwhile is little, and is copied here; then the log begins anew. A process that writes little never starts
 * the thread, and where it cannot run, SQLite checkpoints here by itself (`wal_autocheckpoint`).
 */
export class Checkpoints {
  readonly #file: string;
  readonly #rest: Statement;
  #thread: Worker | undefined;
  /** Resolves when the thread is no more. */
  #gone: Promise<void> = Promise.resolve();
  #operations = 0;
  #passes = 0;
  #busy = false;
  #ended = false;

  constructor(connection: Connection, file: string) {
    this.#file = file;
    this.#rest = connection.prepare("PRAGMA wal_checkpoint(PASSIVE)");
  }

  /** After each commit. */
  committed(operations: number): void {
    this.#operations += operations;
    if (this.#operations < OPERATIONS || this.#busy || this.#ended) return;
    this.#operations = 0;
    this.#busy = true;
    this.#passes = 0;
    this.#thread ??= this.#start();
    this.#pass();
  }

  #pass(): void {
    this.#passes += 1;
    this.#thread?.postMessage("checkpoint");
  }

  #start(): Worker {
    const thread = new Worker(new URL("./checkpoint_thread.mjs", import.meta.url), {
      workerData: { file: this.#file },
      // Those of the process may not be for a file, and are nothing to it.
      execArgv: [],
    });
    thread.unref();
    thread.on("message", () => this.#done());
    // It cannot run here: it counts as busy from then on, and is not asked again.
    thread.on("error", () => {});
    this.#gone = new Promise((resolve) => thread.once("exit", () => resolve()));
    return thread;
  }

  #done(): void {
    if (this.#ended) return;
    if (this.#passes < PASSES) {
      this.#pass();
      return;
    }
    this.#busy = false;
    try {
      this.#rest.get();
    } catch {
      // Nothing is lost by it: what the log holds stays there. A commit says what is wrong.
    }
  }

  /** Resolves when the thread has let go of the database. */
  async end(): Promise<void> {
    this.#ended = true;
    // It is waited for: a process that has nothing else to do does not end before.
    this.#thread?.ref();
    this.#thread?.postMessage("end");
    await this.#gone;
  }
}
