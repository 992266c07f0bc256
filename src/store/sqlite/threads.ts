import { NotFoundError } from "../../domain/errors.js";
import type { NewEvent } from "../../domain/event.js";
import type { ThreadId, UserId } from "../../domain/ids.js";
import type { Thread, ThreadState } from "../../domain/journal.js";
import { mayAct, type Principal } from "../../domain/principal.js";
import { parseSubject, type Subject } from "../../domain/subject.js";
import type { ThreadBudgets } from "../../domain/usage.js";
import type { Connection, Statement } from "./connection.js";
import { HELD_COLUMNS, type Held, type HeldRow, heldOf } from "./ledger.js";

const CACHE_SIZE = 1_024;
const COLUMNS = "id, user_id, state, created_at, paused_at, budgets";

type ThreadRow = Omit<Thread, "budgets"> & { readonly budgets: string | null };

function threadOf(row: ThreadRow): Thread {
  return { ...row, budgets: row.budgets === null ? null : (JSON.parse(row.budgets) as ThreadBudgets) };
}

/** Threads, whose they are, and what their agents have observed. */
export class Threads {
  readonly #one: Statement;
  readonly #insert: Statement;
  readonly #setState: Statement;
  readonly #setPaused: Statement;
  readonly #setActive: Statement;
  readonly #activeAt: Statement;
  readonly #setAware: Statement;
  readonly #ofUser: Statement;
  readonly #ofUserAfter: Statement;
  readonly #closing: Statement;
  readonly #page: Statement;
  readonly #observed: Statement;
  readonly #observe: Statement;
  readonly #about: Statement;
  readonly #batched: Statement;
  readonly #live: Statement;
  readonly #open = new Map<ThreadId, Thread>();

  constructor(connection: Connection) {
    this.#one = connection.prepare(`SELECT ${COLUMNS} FROM threads WHERE id = ?`);
    this.#insert = connection.prepare(
      "INSERT INTO threads (id, user_id, state, created_at, active_at, budgets) VALUES (?, ?, ?, ?, ?, ?)",
    );
    this.#setPaused = connection.prepare("UPDATE threads SET paused_at = ? WHERE id = ?");
    this.#setActive = connection.prepare("UPDATE threads SET active_at = ? WHERE id = ?");
    this.#activeAt = connection.prepare("SELECT active_at FROM threads WHERE id = ?").pluck();
    this.#setAware = connection.prepare(
      "UPDATE threads SET aware_seq = max(aware_seq, ?), aware_inbox = max(aware_inbox, ?) WHERE id = ?",
    );
    this.#ofUser = connection.prepare(
      `SELECT ${COLUMNS} FROM threads WHERE user_id = ? ORDER BY active_at DESC, id DESC LIMIT ?`,
    );
    this.#ofUserAfter = connection.prepare(
      `SELECT ${COLUMNS} FROM threads WHERE user_id = ?
         AND (active_at, id) < (SELECT active_at, id FROM threads WHERE id = ?)
       ORDER BY active_at DESC, id DESC LIMIT ?`,
    );
    this.#setState = connection.prepare("UPDATE threads SET state = ? WHERE id = ?");
    this.#closing = connection.prepare("SELECT id FROM threads WHERE state = 'closing' LIMIT 1").pluck();
    this.#page = connection.prepare(`SELECT ${COLUMNS} FROM threads WHERE id > ? ORDER BY id LIMIT ?`);
    this.#observed = connection
      .prepare("SELECT generation FROM observations WHERE thread_id = ? AND subject = ?")
      .pluck();
    this.#observe = connection.prepare(
      `INSERT INTO observations (thread_id, subject, generation) VALUES (?, ?, ?)
       ON CONFLICT (thread_id, subject) DO UPDATE SET generation = max(generation, excluded.generation)`,
    );
    const held = `SELECT ${HELD_COLUMNS} FROM deliveries d JOIN notifications n ON n.number = d.number`;
    this.#about = connection
      .prepare(`${held} WHERE d.thread_id = ? AND d.subject = ? AND d.state = 'PENDING' ORDER BY d.number`)
      .raw();
    this.#batched = connection
      .prepare(`${held} WHERE d.thread_id = ? AND d.state = 'PENDING' AND d.rows > 1 ORDER BY d.number`)
      .raw();
    this.#live = connection
      .prepare(
        `SELECT ${HELD_COLUMNS} FROM deliveries d JOIN notifications n ON n.number = d.number
         WHERE d.thread_id = ? AND d.live = 1 AND d.number > ? ORDER BY d.number LIMIT ?`,
      )
      .raw();
  }

  get(id: ThreadId): Thread | undefined {
    const cached = this.#open.get(id);
    if (cached !== undefined) return cached;
    const row = this.#one.get(id) as ThreadRow | undefined;
    const thread = row === undefined ? undefined : threadOf(row);
    if (thread?.state === "open") this.#remember(thread);
    return thread;
  }

  page(after: ThreadId | null, limit: number): Thread[] {
    return (this.#page.all(after ?? "", limit) as ThreadRow[]).map(threadOf);
  }

  #remember(thread: Thread): void {
    if (this.#open.size >= CACHE_SIZE) this.#open.clear();
    this.#open.set(thread.id, thread);
  }

  /**
   * The thread that an event names: it must be the event's user's. The host makes one by naming it; a user can only
   * name what is there, so that a probe for another's thread and for none get the same answer.
   */
  forEvent(principal: Principal, event: NewEvent): Thread | "new" | null {
    if (event.thread_id === null) return null;
    const thread = this.get(event.thread_id);
    if (thread === undefined && principal.kind === "host") return "new";
    if (thread?.user_id !== event.user_id) throw new NotFoundError("thread", event.thread_id);
    return thread;
  }

  /** The thread, if it is the principal's; an unknown and another's get the same answer. */
  owned(principal: Principal, id: ThreadId): Thread {
    const thread = this.get(id);
    if (thread === undefined || !mayAct(principal, thread.user_id)) throw new NotFoundError("thread", id);
    return thread;
  }

  insert(id: ThreadId, user_id: UserId, created_at: number, budgets: ThreadBudgets | null): Thread {
    const thread: Thread = { id, user_id, state: "open", created_at, paused_at: null, budgets };
    const own = budgets === null ? null : JSON.stringify(budgets);
    this.#insert.run(id, user_id, thread.state, created_at, created_at, own);
    this.#remember(thread);
    return thread;
  }

  setState(id: ThreadId, state: ThreadState): void {
    this.#setState.run(state, id);
    this.#open.delete(id);
  }

  setPaused(id: ThreadId, paused_at: number | null): void {
    this.#setPaused.run(paused_at, id);
    this.#open.delete(id);
  }

  /** Something was done in it. */
  setActive(id: ThreadId, at: number): void {
    this.#setActive.run(at, id);
  }

  /** When something was last done in it. */
  activeAt(id: ThreadId): number {
    return (this.#activeAt.get(id) as number | undefined) ?? 0;
  }

  /** Its agent was told of what was shown, up to here. */
  setAware(id: ThreadId, seq: number, inbox: number): void {
    this.#setAware.run(seq, inbox, id);
  }

  /** The most recently active first. */
  ofUser(user_id: UserId, after: ThreadId | null, limit: number): Thread[] {
    const rows = after === null ? this.#ofUser.all(user_id, limit) : this.#ofUserAfter.all(user_id, after, limit);
    return (rows as ThreadRow[]).map(threadOf);
  }

  /** A thread whose closing was cut off by a crash. */
  closing(): ThreadId | undefined {
    return this.#closing.get() as ThreadId | undefined;
  }

  hasObserved(id: ThreadId, subject: string): boolean {
    const { name, generation } = parseSubject(subject);
    const seen = this.#observed.get(id, name) as number | undefined;
    return seen !== undefined && seen >= generation;
  }

  markObserved(id: ThreadId, { name, generation }: Subject): void {
    this.#observe.run(id, name, generation);
  }

  /** What is pending about a subject alone, of any generation. */
  pendingAbout(id: ThreadId, name: string): Held[] {
    return (this.#about.all(id, name) as HeldRow[]).map(heldOf).filter(({ delivery }) => delivery.rows === 1);
  }

  /** What is pending and has several rows, each about something of its own. */
  pendingBatches(id: ThreadId): Held[] {
    return (this.#batched.all(id) as HeldRow[]).map(heldOf);
  }

  /** What is live in a thread, oldest first. */
  live(id: ThreadId, afterNumber: number, limit: number): Held[] {
    return (this.#live.all(id, afterNumber, limit) as HeldRow[]).map(heldOf);
  }
}
