import type { ThreadId } from "../../domain/ids.js";
import type { KnownFile } from "../../domain/known_file.js";

/** A file of a thread. `touches`: how often the agent had to do with it since the start. */
export interface Entry {
  record: KnownFile;
  touches: number;
}

/** What the agents of open threads know, by thread and by file. */
export class KnownFiles {
  /** Of each thread, what was touched last comes last. */
  readonly #threads = new Map<ThreadId, Map<string, Entry>>();
  readonly #knowers = new Map<string, Set<ThreadId>>();

  get(thread_id: ThreadId, path: string): Entry | undefined {
    return this.#threads.get(thread_id)?.get(path);
  }

  /** In which threads it is known. */
  threadsOf(path: string): readonly ThreadId[] {
    return [...(this.#knowers.get(path) ?? [])];
  }

  put(record: KnownFile): void {
    const { thread_id, path } = record;
    const files = this.#threads.get(thread_id) ?? new Map<string, Entry>();
    const touches = (files.get(path)?.touches ?? 0) + 1;
    files.delete(path);
    this.#threads.set(thread_id, files.set(path, { record, touches }));
    this.#knowers.set(path, (this.#knowers.get(path) ?? new Set()).add(thread_id));
  }

  /** Beyond so many of a thread, those that were not touched for longest. */
  beyond(thread_id: ThreadId, kept: number): readonly string[] {
    const paths = [...(this.#threads.get(thread_id)?.keys() ?? [])];
    return paths.slice(0, Math.max(0, paths.length - kept));
  }

  /** Answers whether nobody knows it any more. */
  remove(thread_id: ThreadId, path: string): boolean {
    const files = this.#threads.get(thread_id);
    if (files?.delete(path) !== true) return false;
    if (files.size === 0) this.#threads.delete(thread_id);
    const knowers = this.#knowers.get(path);
    knowers?.delete(thread_id);
    if (knowers?.size !== 0) return false;
    this.#knowers.delete(path);
    return true;
  }

  pathsOf(thread_id: ThreadId): readonly string[] {
    return [...(this.#threads.get(thread_id)?.keys() ?? [])];
  }
}
