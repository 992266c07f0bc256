/**
 * What happens in conversations, as their users are told of it: threads and turns begin and end, items come and change.
 * Read from the journal, one entry after the other; nothing of turns that the user does not see.
 */
import type { Pace, Push } from "../delivery/feed.js";
import { ConflictError, NotFoundError } from "../domain/errors.js";
import type { NotificationId, ThreadId, TurnId, UserId } from "../domain/ids.js";
import type { JournalEntry } from "../domain/journal.js";
import { HOST } from "../domain/principal.js";
import { isoTime } from "../domain/time.js";
import { type ChatSource, isTurnOver } from "../domain/turn.js";
import { numberInId } from "../platform/ids.js";
import type { Store } from "../store/contract.js";
import { ItemReader, type ThreadItem } from "./thread_items.js";

interface ThreadParams {
  thread_id: ThreadId;
  type: "started" | "paused" | "resumed" | "closed";
  state: "running" | "paused" | "closed";
  started_at?: string;
}

interface TurnParams {
  turn_id: TurnId;
  type: "started" | "completed" | "interrupted" | "failed";
  state: "active" | "completed" | "interrupted" | "failed";
  thread_id: ThreadId;
  started_at: string;
  /** With the beginning. */
  source?: ChatSource;
  completed_at?: string;
  /** Why it ended as it did. */
  message?: string | null;
  /** The turn that goes on in its place. */
  continued_by?: TurnId | null;
}

interface ItemParams {
  item_id: string;
  type: "created" | "updated" | "deleted";
  item_type: ThreadItem["type"];
  role?: "user" | "assistant" | "system";
  status: ThreadItem["status"] | "deleted";
  content?: ThreadItem["content"];
  timestamp: string;
  thread_id: ThreadId;
  turn_id: TurnId | null;
}

/** One notification of the wire, but for its place in a client's view. */
export type ThreadPush = {
  readonly user_id: UserId;
  readonly seq: number;
  /** It says what the agent was told: only for those who ask for that. */
  readonly observation: boolean;
} & (
  | { readonly method: `thread/${ThreadParams["type"]}`; readonly params: ThreadParams }
  | { readonly method: `turn/${TurnParams["type"]}`; readonly params: TurnParams }
  | { readonly method: `item/${ItemParams["type"]}`; readonly params: ItemParams }
);

type Told = Extract<JournalEntry, { type: "turn" | "carrier" }>;
type ThreadEntry = Extract<JournalEntry, { type: "thread" }>;

interface Seen {
  readonly item: ThreadItem;
  readonly status: ThreadItem["status"];
  readonly content: ThreadItem["content"];
}

/** A turn as far as it was read; or a carrier of somebody else's loop. */
interface Course {
  readonly reader: ItemReader;
  /** Items as they were told of last. */
  readonly seen: Map<string, Seen>;
  started_at: string;
  internal: boolean;
}

/** How many are kept in mind: those that were read last. What is told of others is read again. */
const COURSES_MAX = 256;
const NOTICES_MAX = 4_096;
const PAGE = 500;

export class ThreadPushes {
  readonly #store: Store;
  readonly #pace: Pace;
  readonly #courses = new Map<string, Course>();
  readonly #paused = new Set<ThreadId>();
  /** Where notices were shown first. */
  readonly #shownAt = new Map<NotificationId, number>();

  constructor(store: Store, pace: Pace = () => undefined) {
    this.#store = store;
    this.#pace = pace;
  }

  /** `wants`: whose conversations somebody follows. */
  async of(
    entries: readonly JournalEntry[],
    pushes: readonly Push[],
    wants: (user_id: UserId) => boolean,
  ): Promise<ThreadPush[]> {
    const found: ThreadPush[] = [];
    for (const entry of entries) {
      await this.#pace();
      if (!wants(entry.user_id)) this.#passOver(entry);
      else if (entry.type === "thread") found.push(...(await this.#ofThread(entry)));
      else if (entry.type === "turn" || entry.type === "carrier") found.push(...(await this.#ofCourse(entry)));
    }
    for (const push of pushes) {
      if (!wants(push.user_id) || push.notification.channel !== "floor") continue;
      await this.#pace();
      found.push(...(await this.#ofNotice(push)));
    }
    return found.toSorted((one, other) => one.seq - other.seq);
  }

  /** What is not read now is read again when somebody wants it. */
  #passOver(entry: JournalEntry): void {
    if (entry.type === "turn" || entry.type === "carrier") this.#courses.delete(keyOf(entry));
    if (entry.type === "thread" && entry.thread_id !== null) this.#keepPaused(entry, entry.thread_id);
  }

  /** Answers whether it had been paused. */
  #keepPaused({ paused }: ThreadEntry, thread_id: ThreadId): boolean {
    const before = this.#paused.delete(thread_id);
    if (paused === true) this.#paused.add(thread_id);
    return before;
  }

  async #ofThread(entry: ThreadEntry): Promise<ThreadPush[]> {
    const { user_id, seq, thread_id, state, paused } = entry;
    if (thread_id === null || state === "closing") return [];
    const about = { user_id, seq, observation: false } as const;
    const wasPaused = this.#keepPaused(entry, thread_id);
    if (state === "closed")
      return [{ ...about, method: "thread/closed", params: { thread_id, type: "closed", state: "closed" } }];
    if (paused === true)
      return [{ ...about, method: "thread/paused", params: { thread_id, type: "paused", state: "paused" } }];
    const created_at = await this.#createdAt(thread_id, entry.at);
    const type = wasPaused || created_at !== entry.at ? "resumed" : "started";
    const params = { thread_id, type, state: "running", started_at: isoTime(created_at) } as const;
    return [{ ...about, method: `thread/${type}`, params } as ThreadPush];
  }

  /** Of one that retention has removed meanwhile, the time of the entry that is read. */
  async #createdAt(thread_id: ThreadId, otherwise: number): Promise<number> {
    try {
      return (await this.#store.thread(HOST, thread_id)).created_at;
    } catch (error) {
      if (error instanceof NotFoundError) return otherwise;
      throw error;
    }
  }

  async #ofCourse(entry: Told): Promise<ThreadPush[]> {
    const course = await this.#courseOf(entry);
    if (entry.type === "turn") course.internal ||= entry.internal;
    const begins = entry.type === "turn" && entry.state === "active" && entry.source !== null;
    if (begins) course.started_at = isoTime(entry.at);
    const items = changes(course, entry);
    if (course.internal) return [];
    return [
      ...(begins ? [begun(entry, entry.source ?? "user", course)] : []),
      ...items,
      ...(entry.type === "turn" ? this.#ended(entry, course) : []),
    ];
  }

  async #courseOf(entry: Told): Promise<Course> {
    const key = keyOf(entry);
    const course = this.#courses.get(key) ?? (await this.#readUpTo(entry, key));
    this.#courses.delete(key);
    this.#courses.set(key, course);
    if (this.#courses.size > COURSES_MAX) this.#courses.delete(this.#courses.keys().next().value ?? key);
    return course;
  }

  /** Its id says where it begins. */
  async #readUpTo(entry: Told, key: string): Promise<Course> {
    const course: Course = {
      reader: new ItemReader(),
      seen: new Map(),
      started_at: isoTime(entry.at),
      internal: false,
    };
    const begin = Math.min(numberInId(key) ?? entry.seq, entry.seq);
    let after = begin - 1;
    while (entry.thread_id !== null && after < entry.seq - 1) {
      await this.#pace();
      const page = await this.#store.conversation(HOST, entry.thread_id, after, PAGE);
      if (after < begin && page[0]?.seq !== begin) throw removed(key);
      for (const one of page) {
        if (one.seq >= entry.seq || (one.type !== "turn" && one.type !== "carrier") || keyOf(one) !== key) continue;
        if (one.type === "turn") course.internal ||= one.internal;
        if (one.type === "turn" && one.state === "active" && one.source !== null) course.started_at = isoTime(one.at);
        changes(course, one);
      }
      const last = page.at(-1);
      if (last === undefined) break;
      after = last.seq;
    }
    return course;
  }

  #ended(entry: Extract<Told, { type: "turn" }>, { started_at }: Course): ThreadPush[] {
    const { user_id, seq, turn_id, thread_id, state, note, continued_by } = entry;
    if (!isTurnOver(state) || state === "removed" || thread_id === null) return [];
    const about = { user_id, seq, observation: false } as const;
    const turn = { turn_id, thread_id, started_at };
    switch (state) {
      case "completed": {
        const params = { ...turn, type: state, state, completed_at: isoTime(entry.at) } as const;
        return [{ ...about, method: "turn/completed", params }];
      }
      case "failed":
        return [{ ...about, method: "turn/failed", params: { ...turn, type: state, state, message: note } }];
      default: {
        const ended = { type: "interrupted", state: "interrupted", message: note, continued_by } as const;
        return [{ ...about, method: "turn/interrupted", params: { ...turn, ...ended } }];
      }
    }
  }

  async #ofNotice({ kind, user_id, seq, notification }: Push): Promise<ThreadPush[]> {
    const { id, thread_id, state } = notification;
    if (thread_id === null) return [];
    const shown_at = kind === "created" ? seq : (this.#shownAt.get(id) ?? (await this.#lookUp(id, seq)));
    if (this.#shownAt.size >= NOTICES_MAX) this.#shownAt.clear();
    this.#shownAt.set(id, shown_at);
    const params = {
      item_id: `${shown_at}.${id}`,
      type: kind,
      item_type: "notice",
      role: "system",
      status: state,
      content: { notification },
      timestamp: kind === "created" ? notification.created_at : notification.updated_at,
      thread_id,
      turn_id: null,
    } as const;
    return [{ user_id, seq, observation: false, method: `item/${kind}`, params } as ThreadPush];
  }

  /** The entry that brought it to the user. */
  async #lookUp(id: NotificationId, seq: number): Promise<number> {
    let found = seq;
    const story = await this.#store.story(HOST, id);
    if (story === undefined) throw removed(id);
    for (const entry of story)
      for (const { notification_id, command, path } of entry.changes) {
        const shows = command === "create" || command === "dispatch" || command === "escalate";
        const comes = path.includes("DISPATCHED") || path.includes("ESCALATED");
        if (notification_id === id && shows && comes && entry.seq <= seq) found = entry.seq;
      }
    return found;
  }
}

/** What it was before cannot be known any more, and so not what has changed. */
function removed(id: string): ConflictError {
  return new ConflictError("cursor_too_old", `retention has removed the beginning of ${id}`);
}

function keyOf(entry: Told): string {
  return entry.type === "turn" ? entry.turn_id : (entry.turn_id ?? entry.carrier_id);
}

function begun(entry: Told, source: ChatSource, { started_at }: Course): ThreadPush {
  const { user_id, seq, turn_id, thread_id } = entry;
  const turn = { turn_id: turn_id as TurnId, thread_id: thread_id as ThreadId };
  const params = { ...turn, type: "started", state: "active", started_at, source } as const;
  return { user_id, seq, observation: false, method: "turn/started", params };
}

/** Reads on, and says what of its items has come, changed or gone. */
function changes({ reader, seen }: Course, entry: Told): ThreadPush[] {
  const { user_id, seq } = entry;
  const at = isoTime(entry.at);
  const found: ThreadPush[] = [];
  reader.read(entry);
  const gone = new Set(seen.keys());
  for (const item of reader.items({ observe: true, internal: true })) {
    const { status, content } = item;
    const before = seen.get(item.item_id);
    gone.delete(item.item_id);
    // Its reader changes the item itself.
    seen.set(item.item_id, { item, status, content });
    if (before?.status === status && before.content === content) continue;
    const type = before === undefined ? "created" : "updated";
    found.push(itemPush(item, { type, user_id, seq, at }));
  }
  for (const id of gone) {
    const before = seen.get(id);
    seen.delete(id);
    if (before !== undefined) found.push(itemPush(before.item, { type: "deleted", user_id, seq, at }));
  }
  return found;
}

function itemPush(
  item: ThreadItem,
  { type, user_id, seq, at }: { type: ItemParams["type"]; user_id: UserId; seq: number; at: string },
): ThreadPush {
  const { item_id, thread_id, turn_id, status, content } = item;
  const params: ItemParams = {
    item_id,
    type,
    item_type: item.type,
    ...("role" in item ? { role: item.role } : {}),
    ...(type === "deleted" ? { status: "deleted" } : { status, content }),
    timestamp: at,
    thread_id,
    turn_id,
  };
  return { user_id, seq, observation: item.type === "observation", method: `item/${type}`, params } as ThreadPush;
}
