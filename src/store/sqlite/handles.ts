import type { HandleRecord } from "../../domain/handle.js";
import type { ThreadId } from "../../domain/ids.js";
import type { HandlePlace } from "../contract.js";
import type { Connection, Statement } from "./connection.js";

const COLUMNS = "thread_id, id, user_id, tool, state, seq AS generation, at, detail";

/** One that has stopped, without what it has come to. */
export interface StoppedHandle {
  readonly id: string;
  readonly at: number;
  readonly chars: number;
  /** Whether the agent has read what it has come to. */
  readonly read: boolean;
}

/** Handles, each as the newest entry about it says. */
export class Handles {
  readonly #put: Statement;
  readonly #one: Statement;
  readonly #page: Statement;
  readonly #stopped: Statement;
  readonly #remove: Statement;
  readonly #removeAll: Statement;

  constructor(connection: Connection) {
    this.#put = connection.prepare(
      `INSERT INTO handles (thread_id, id, user_id, tool, state, seq, at, detail) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
       ON CONFLICT (thread_id, id) DO UPDATE SET
         tool = excluded.tool, state = excluded.state, seq = excluded.seq, at = excluded.at, detail = excluded.detail`,
    );
    this.#one = connection.prepare(`SELECT ${COLUMNS} FROM handles WHERE thread_id = ? AND id = ?`);
    this.#page = connection.prepare(
      `SELECT ${COLUMNS} FROM handles WHERE (thread_id, id) > (?, ?) ORDER BY thread_id, id LIMIT ?`,
    );
    this.#stopped = connection.prepare(
      `SELECT h.id, h.at, length(h.detail) AS chars, h.seq, o.generation AS seen FROM handles h
       LEFT JOIN observations o ON o.thread_id = h.thread_id AND o.subject = 'handle:' || h.id
       WHERE h.thread_id = ? AND (h.state = 'stopped' OR h.state = 'failed') ORDER BY h.id`,
    );
    this.#remove = connection.prepare("DELETE FROM handles WHERE thread_id = ? AND id = ?");
    this.#removeAll = connection.prepare("DELETE FROM handles WHERE thread_id = ?");
  }

  put({ thread_id, id, user_id, tool, state, generation, at, detail }: HandleRecord): void {
    this.#put.run(thread_id, id, user_id, tool, state, generation, at, JSON.stringify(detail));
  }

  get(thread_id: ThreadId, id: string): HandleRecord | undefined {
    const row = this.#one.get(thread_id, id);
    return row === undefined ? undefined : recordOf(row);
  }

  page(after: HandlePlace | null, limit: number): HandleRecord[] {
    return this.#page.all(after?.thread_id ?? "", after?.id ?? "", limit).map(recordOf);
  }

  /** Of a thread, the newest first. */
  stopped(thread_id: ThreadId): StoppedHandle[] {
    const rows = this.#stopped.all(thread_id) as (Omit<StoppedHandle, "read"> & { seq: number; seen: number | null })[];
    return rows
      .toSorted((one, other) => other.seq - one.seq)
      .map(({ id, at, chars, seq, seen }) => ({ id, at, chars, read: seen !== null && seen >= seq }));
  }

  remove(thread_id: ThreadId, id: string): void {
    this.#remove.run(thread_id, id);
  }

  removeAll(thread_id: ThreadId): void {
    this.#removeAll.run(thread_id);
  }
}

function recordOf(row: unknown): HandleRecord {
  const { detail, ...rest } = row as Omit<HandleRecord, "detail"> & { detail: string };
  return { ...rest, detail: JSON.parse(detail) as HandleRecord["detail"] };
}
