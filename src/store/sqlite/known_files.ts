import type { ThreadId } from "../../domain/ids.js";
import type { KnownFile, KnownFilePlace } from "../../domain/known_file.js";
import type { Connection, Statement } from "./connection.js";

/** Files of open threads, as their agents know them. */
export class KnownFiles {
  readonly #put: Statement;
  readonly #page: Statement;
  readonly #remove: Statement;
  readonly #removeAll: Statement;

  constructor(connection: Connection) {
    this.#put = connection.prepare(
      `INSERT INTO known_files (thread_id, path, user_id, folder, generation, at, detail) VALUES (?, ?, ?, ?, ?, ?, ?)
       ON CONFLICT (thread_id, path) DO UPDATE SET
         folder = excluded.folder, generation = excluded.generation, at = excluded.at, detail = excluded.detail`,
    );
    this.#page = connection.prepare(
      `SELECT thread_id, path, user_id, folder, generation, at, detail FROM known_files
       WHERE (thread_id, path) > (?, ?) ORDER BY thread_id, path LIMIT ?`,
    );
    this.#remove = connection.prepare("DELETE FROM known_files WHERE thread_id = ? AND path = ?");
    this.#removeAll = connection.prepare("DELETE FROM known_files WHERE thread_id = ?");
  }

  put({ thread_id, path, user_id, folder, generation, at, seen, announced }: KnownFile): void {
    this.#put.run(thread_id, path, user_id, folder, generation, at, JSON.stringify({ seen, announced }));
  }

  page(after: KnownFilePlace | null, limit: number): KnownFile[] {
    return this.#page.all(after?.thread_id ?? "", after?.path ?? "", limit).map((row) => {
      const { detail, ...rest } = row as Omit<KnownFile, "seen" | "announced"> & { detail: string };
      return { ...rest, ...(JSON.parse(detail) as Pick<KnownFile, "seen" | "announced">) };
    });
  }

  remove(thread_id: ThreadId, path: string): void {
    this.#remove.run(thread_id, path);
  }

  removeAll(thread_id: ThreadId): void {
    this.#removeAll.run(thread_id);
  }
}
